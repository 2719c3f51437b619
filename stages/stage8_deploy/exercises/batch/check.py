import torch

from common.exercises.judge import Failure, require, unchanged

I, S, C = 3, 6, 4
NAMES = ("scores", "h", "cell")
TOO_LARGE = 1000.0  # the model refuses such an input


def check(work):
    unchanged(work, "trial.py", "Edit only batching.py")
    numbers = work.numbers()
    in_float = [torch.randn(*shape, generator=numbers) for shape in ((I, S), (S, S), (S, C))]
    for lengths, failing, *most_rows in (
        ((4, 1, 7, 2, 5), ()), ((3,), ()), ((2, 2), ()), ((6, 3, 1), ()), ((1, 8, 8, 2), ()),
        ((4, 6, 2, 3), (2,)), ((2, 5, 9, 1), (0, 3)), ((9, 1), (0,)), ((1, 9), ()), ((5,), (0,)), ((), ()),
        ((4, 6, 2, 3), (), 2), ((3, 1, 5), (), 1), ((2, 2, 7, 4), (1,), 2),
    ):  # fmt: skip
        requests = [request(length, numbers) for length in lengths]
        for k in failing:
            requests[k][0][-1, 1] = TOO_LARGE + k
        parameters = in_float
        if len(lengths) == 4:
            parameters, requests = in_double(in_float), [in_double(one) for one in requests]
        results, batch_sizes, misuse, is_kept = work.load("trial").trial(parameters, requests, *most_rows)
        what = (
            f"requests of {', '.join(map(str, lengths))} steps in {parameters[0].dtype}" if lengths else "no request"
        )
        what += f"; the model refuses request {' and '.join(map(str, failing))}" if failing else ""
        what += f"; the model has memory for only {most_rows[0]} at a time" if most_rows else ""
        require(not misuse, f"the call of the model is wrong: {misuse} ({what})")
        count_calls(batch_sizes, len(requests), failing or most_rows, what)
        require(len(results) == len(requests), f"{len(results)} results for {len(requests)} requests ({what})")
        for k, result in enumerate(results):
            if k in failing:
                require_error(result, k, what)
            else:
                compare(result, parameters, requests, k, what)
        require(is_kept, f"predict_together changes the list of requests, which the caller still needs ({what})")


def in_double(tensors):
    return [one.double() for one in tensors]


def request(length, numbers):
    return [torch.randn(*shape, generator=numbers) for shape in ((length, I), (S,), (S,))]


def count_calls(batch_sizes, requests, fails, what):
    """Raises `Failure` unless there is one call for all, and at least one more if it fails."""
    calls = f"the batch sizes of the model's calls are {batch_sizes}"
    if not requests:
        require(not batch_sizes, f"{calls}, expected no call ({what})")
    elif not fails:
        require(batch_sizes == [requests], f"{calls}, expected one call with all {requests} ({what})")
    else:
        require(batch_sizes[:1] == [requests], f"{calls}, expected first one call with all {requests} ({what})")
        require(
            len(batch_sizes) > 1 or requests == 1,
            f"{calls}: after the call for all has failed, the requests that are right need another one ({what})",
        )


def require_error(result, k, what):
    """Raises `Failure` unless the result is the exception that this request causes."""
    own = f"TooLarge: an input is {TOO_LARGE + k:.0f}"
    if isinstance(result, str) and result.startswith(own):
        return
    said = result if isinstance(result, str) else "tensors"
    raise Failure(f"the result of request {k} is {said}, expected the exception {own}, ... ({what})")


def compare(result, parameters, requests, k, what):
    """Raises `Failure` unless the result is that of the model for this request alone."""
    if isinstance(result, str):
        notes = {
            "TooLarge": ": does one request fail the others of its batch?",
            "MemoryError": ": the model accepts this request if it is called for it alone",
        }
        note = notes.get(result.partition(":")[0], "")
        raise Failure(f"the result of request {k} is {result}, expected scores, h and cell{note} ({what})")
    found, kept = result
    want = predict(parameters, *requests[k])
    shapes = [[tuple(one.shape) for one in tensors] for tensors in (found, want)]
    require(
        shapes[0] == shapes[1], f"the result of request {k} has shapes {shapes[0]}, expected {shapes[1]} ({what})"
    )
    if not are_close(found, want):
        likely = (cause for cause, suspect in suspects(parameters, requests, k) if are_close(found, suspect))
        wrong = [name for name, one, other in zip(NAMES, found, want, strict=True) if not are_close([one], [other])]
        cause = next(likely, "")
        raise Failure(f"{', '.join(wrong)} of request {k} differ from the model's ({what})\n{cause}".rstrip())
    for name, one, size in list(zip(NAMES, found, kept, strict=True))[1:]:  # the scores are sent at once
        require(
            size <= one.numel() * one.element_size(),
            f"{name} of request {k} keeps {size} bytes of memory for {one.numel()} numbers: it is a view of the "
            f"whole batch ({what})",
        )


def suspects(parameters, requests, k):
    """Wrong results that a likely mistake would give, with the mistake."""
    steps, h, cell = requests[k]
    longest, shortest = (choose(len(one[0]) for one in requests) for choose in (max, min))
    zeros = torch.zeros(longest - len(steps), I)
    yield (
        "the padding counts as steps: which lengths does the model get?",
        predict(parameters, torch.cat([steps, zeros]), h, cell),
    )
    for padded in (torch.cat([zeros, steps]), torch.cat([zeros, steps])[: len(steps)]):
        yield (
            "the padding comes before the steps, but the model reads rows from their beginning",
            predict(parameters, padded, h, cell),
        )
    yield "the sequence was cut to the shortest one", predict(parameters, steps[:shortest], h, cell)
    yield "h and cell of the request are not used", predict(parameters, steps, torch.zeros(S), torch.zeros(S))
    yield "h and cell are exchanged", predict(parameters, steps, cell, h)
    for other, given in enumerate(requests):
        yield (
            f"this is the result of request {other}: are the results in the order of the requests?",
            predict(parameters, *given),
        )
        yield f"it starts from h and cell of request {other}", predict(parameters, steps, *given[1:])


def predict(parameters, steps, h, cell):
    """The results for one request, in float64."""
    weights, recurrent, head = (one.double() for one in parameters)
    h, cell = h.double(), cell.double()
    for step in steps.double():
        cell = 0.9 * cell + torch.tanh(step @ weights + h @ recurrent)
        h = torch.tanh(cell)
    return h @ head, h, cell


def are_close(found, want):
    """Whether all tensors agree; NaN never does."""
    return all(
        torch.allclose(one.double(), other, rtol=1e-4, atol=1e-5) for one, other in zip(found, want, strict=True)
    )
