import torch

from common.exercises.judge import Failure, LearnerError, require, same, unchanged

# For each call: the same operation on full matrices.
WANT = {
    "torch.mean(d)": lambda d, e, tensor: d.mean(),
    "torch.mean(input=d)": lambda d, e, tensor: d.mean(),
    "torch.add(tensor, d)": lambda d, e, tensor: tensor + d,
    "torch.add(d, tensor, alpha=3)": lambda d, e, tensor: d + 3 * tensor,
    "tensor.add(d)": lambda d, e, tensor: tensor + d,
    "tensor + d": lambda d, e, tensor: tensor + d,
    "d + tensor": lambda d, e, tensor: tensor + d,
    "torch.add(d, e)": lambda d, e, tensor: d + e,
    "torch.add(d, e, alpha=-2)": lambda d, e, tensor: d - 2 * e,
    "torch.matmul(d, tensor)": lambda d, e, tensor: d @ tensor,
    "torch.matmul(tensor, other=d)": lambda d, e, tensor: tensor @ d,
    "tensor.matmul(d)": lambda d, e, tensor: tensor @ d,
    "tensor @ d": lambda d, e, tensor: tensor @ d,
    "d @ tensor": lambda d, e, tensor: d @ tensor,
    "torch.matmul(d, e)": lambda d, e, tensor: d @ e,
}
# ATen operations that create or multiply matrices.
MATRICES = ("bmm", "diag", "diag_embed", "diagonal_scatter", "eye", "fill_diagonal_", "mm", "new_zeros", "zeros")


def check(work):
    unchanged(work, "trial.py", "Edit only diagonal.py")
    numbers = work.numbers()
    for N in (3, 1, 6):
        for call, want in WANT.items():
            d, e = torch.randn(2, N, generator=numbers, dtype=torch.float64)
            tensor = torch.randn(shape(call, N), generator=numbers, dtype=torch.float64)
            compare(work, call, want, (d, e, tensor))
    large(work, numbers)
    out = work.load("trial").written(d, square := torch.randn(N, N, generator=numbers, dtype=torch.float64))
    same("out of torch.add(d, tensor, out=out)", out, torch.diag(d) + square, f"N={N}")


def shape(call, N):
    """The shape of the tensor in a call. Not square in a product, so that exchanged factors do not fit."""
    if "mat" not in call and "@" not in call:
        return N, N
    return (N, N + 2) if "d, tensor" in call or "d @" in call else (N + 1, N)


def compare(work, call, want, given):
    """Raises `Failure` unless a call gives the same result as with matrices, without a needless matrix."""
    d, e, tensor = given
    matrices = torch.diag(d), torch.diag(e), tensor
    with work.counting() as counted:
        answer = asked(work, call, given)
    is_two = "d, e" in call
    require(
        answer["is_diagonal"] == is_two,
        f"{call} gives {'no Diagonal' if is_two else 'a Diagonal'}, expected a {'Diagonal' if is_two else 'tensor'}",
    )
    found = answer["found"]
    if is_two and isinstance(found, torch.Tensor) and found.shape == d.shape:
        found = torch.diag(found)
    same(call, found, want(*matrices), f"N={len(d)}", torch.float64, suspects=mistakes(call, *matrices))
    differentiate(work, call, want, given)
    needs_matrix = "add" in call or "+" in call
    made = [name.partition(".")[0] for name in counted.calls]
    expensive = [name for name in made if name in MATRICES]
    require(
        not expensive or (needs_matrix and not is_two),
        f"{call} calls {', '.join(expensive)}, but does not need the full matrix: use only the N diagonal elements. "
        "For example, a product with a diagonal matrix scales rows or columns",
    )


def large(work, numbers):
    """Raises `Failure` if a call that does not need the full matrix, of 80 GB here, creates it all the same."""
    N = 100_000
    for call in ("torch.mean(d)", "torch.add(d, e)", "torch.matmul(d, e)", "torch.matmul(d, tensor)"):
        d, e = torch.randn(2, N, generator=numbers, dtype=torch.float64)
        tensor = torch.randn(N, 2, generator=numbers, dtype=torch.float64)
        try:
            asked(work, call, (d, e, tensor))
        except LearnerError as error:
            if "memory" not in str(error):
                raise
            raise Failure(
                f"{call} runs out of memory for N={N:,}: it creates a full matrix, but needs only N elements"
            ) from None


def differentiate(work, call, want, given):
    """Raises `Failure` unless the result of a call has the gradients that it has with full matrices."""
    d, e, tensor = (one.clone().requires_grad_() for one in given)
    found = asked(work, call, (d, e, tensor))["found"]
    require(found.requires_grad, f"{call} loses the gradient: compute with operations of torch only")
    right = want(torch.diag(d), torch.diag(e), tensor)
    right = right.diagonal() if found.shape == d.shape != right.shape else right
    gradients = (torch.autograd.grad(one.sum(), (d, e, tensor), allow_unused=True) for one in (found, right))
    for name, mine, ours in zip(("the values of d", "the values of e", "the tensor"), *gradients, strict=True):
        if ours is not None:
            same(f"the gradient of {name} in {call}", mine, ours, f"N={len(d)}", torch.float64)


def asked(work, call, given):
    """The result of the learner's override. Raises `Failure` if no override handles the call."""
    try:
        return work.load("trial").trial(call, *given)
    except Failure as failure:
        if "modifies its arguments" not in str(failure):
            raise
        changed = f"{call} writes into d, e or the tensor: the caller still needs them. Return new numbers"
        raise Failure(changed) from None
    except LearnerError as error:
        unhandled = ("NotImplemented", "no implementation found", "unsupported operand")
        if error.kind == "TypeError" and any(words in str(error) for words in unhandled):
            raise Failure(
                f"{call}: no override handles this call. It arrives as a function that is not in HANDLED. Which one?"
            ) from None
        raise LearnerError(error.kind, f"{call}: {error}", error.where) from None


def mistakes(call, d, e, tensor):
    """Wrong results, by the mistake that leads to them."""
    other = e if "d, e" in call else tensor
    return {
        "this is the product in the other order": other_order(call, (d, e, tensor)),
        "this is the mean of the diagonal, not of all N * N numbers": d.diagonal().mean() if "mean" in call else None,
        "alpha is not used": d + other if "alpha" in call else None,
    }


def other_order(call, matrices):
    """The product with its factors exchanged, if that has the right shape."""
    d, _, tensor = matrices
    if tensor.shape != d.shape or ("mat" not in call and "@" not in call):
        return None
    return tensor @ d if "d, tensor" in call or "d @" in call else d @ tensor
