import torch
import torch.nn.functional as F

from common.exercises.judge import Failure, LearnerError, require, same, unchanged

# For each call: the same call with plain tensors, and which of its arguments are signals with a rate.
WANT = {
    "F.relu(a)": (lambda a, b, plain: F.relu(a), "a"),
    "torch.sum(a, dim=0)": (lambda a, b, plain: a.sum(dim=0), "a"),
    "torch.sum(a)": (lambda a, b, plain: a.sum(), "a"),
    "torch.add(a, b)": (lambda a, b, plain: a + b, "ab"),
    "plain + a": (lambda a, b, plain: plain + a, "a"),
    "torch.cat([a, b])": (lambda a, b, plain: torch.cat([a, b]), "ab"),
    "torch.cat((a, b))": (lambda a, b, plain: torch.cat([a, b]), "ab"),
    "torch.cat([plain, b], dim=1)": (lambda a, b, plain: torch.cat([plain, b], dim=1), "b"),
    "torch.stack(tensors=[a, b])": (lambda a, b, plain: torch.stack([a, b]), "ab"),
    "F.linear(a, weight=b, bias=None)": (lambda a, b, plain: F.linear(a, b), "ab"),
    "torch.max(a, dim=0)": (lambda a, b, plain: tuple(a.max(dim=0)), "a"),
    "torch.max(a, dim=0).values": (lambda a, b, plain: a.max(dim=0).values, "a"),
    "torch.cat([a, a, plain, b])": (lambda a, b, plain: torch.cat([a, a, plain, b]), "ab"),
    "torch.cat([a, b, a])": (lambda a, b, plain: torch.cat([a, b, a]), "ab"),
    "torch.cat(sounds), a second time with the list sounds = [a, b]": (lambda a, b, plain: torch.cat([a, b]), "ab"),
    "torch.histogramdd(a, bins=[2, 2, 2, 2])": (lambda a, b, plain: nested(a), "a"),
    "torch.histogramdd(a, bins=[2, 2, 2, 2]).bin_edges": (lambda a, b, plain: nested(a)[1:], "a"),
    "torch.split(b, 1)": (lambda a, b, plain: b.split(1), "b"),
    "torch.numel(a)": (lambda a, b, plain: a.numel(), "a"),
    "torch.result_type(a, plain)": (lambda a, b, plain: a.dtype, "a"),
    "torch.equal(a, b)": (lambda a, b, plain: torch.equal(a, b), "ab"),
    "torch.add(a, b, out=sum)": (lambda a, b, plain: a + b, "ab"),
}


def nested(a):
    """The tensors of a result that is a tuple within a tuple."""
    histogram, edges = torch.histogramdd(a, bins=[2, 2, 2, 2])
    return histogram, *edges


def check(work):
    unchanged(work, "trial.py", "Edit only signal.py")
    numbers = work.numbers()
    for call, (want, carriers) in WANT.items():
        low, high = (int(rate) for rate in 8000 + torch.randint(40_000, (2,), generator=numbers).cumsum(0) + 1)
        a, b, plain = torch.randn(3, 4, 4, generator=numbers)
        for rates in (
            (low, low),
            (low, low + high),
            (low + high, low),
            (low, low + 1),
            (low, low + 0.5),
            (2_822_400, low + 0.25),
            (low, float(low)),
        ):
            found = tried(work, call, a, rates[0], b, rates[1], plain)
            if carriers == "ab" and rates[0] != rates[1]:
                if "refused" not in found:
                    rate = found["results"][0][1]
                    raise Failure(
                        f"{call} combined signals of {rates[0]} and {rates[1]} Hz"
                        + f" into one of {rate} Hz" * (rate is not None)
                        + ". Raise a ValueError instead"
                    )
                both = all(str(rate) in found["refused"] for rate in rates)
                require(
                    both, f"{call} raises a ValueError, but its message {found['refused']!r} does not name both rates"
                )
                continue
            in_list = ". Signals in a list or tuple are arguments, too: tree_leaves finds them" * ("cat" in call)
            said = f"{call} raises a ValueError, but its signals have one rate: {found.get('refused')}{in_list}"
            require("refused" not in found, said)
            agree(call, found, want(a, b, plain), rates[carriers == "b"])


def tried(work, call, *given):
    """The result of a call with the learner's class. Raises `Failure` for endless recursion."""
    try:
        return work.load("trial").trial(call, *given)
    except LearnerError as error:
        if error.kind == "RecursionError":
            raise Failure(
                f"{call} never ends: __torch_function__ calls torch with a Signal still in the arguments, so torch "
                "calls it again"
            ) from None
        raise LearnerError(error.kind, f"{call}: {error}", error.where) from None


def agree(call, found, want, rate):
    """Raises `Failure` unless the results are right and each tensor among them has the rate."""
    results, in_tuple = found["results"], isinstance(want, tuple)
    want = list(want) if in_tuple else [want]
    require(len(results) == len(want), f"{call} gives {len(results)} results, expected {len(want)}")
    for (got, carried), one in zip(results, want, strict=True):
        if not isinstance(one, torch.Tensor):
            require(got == one, f"{call} gives {got}, expected {one}")
            require(
                carried is None, f"{call} gives no tensor, so there is no rate, but the result has the rate {carried}"
            )
            continue
        same(call, got, one, "as Signals")
        require(carried is not None, f"{call} gives a plain tensor: its rate is lost")
        require(carried == rate, f"the result of {call} has the rate {carried}, expected {rate}")
    is_right = found["in_tuple"] or not in_tuple
    require(is_right, f"{call} gives no tuple, although torch does: change only the tensors in a result")
