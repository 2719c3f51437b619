import torch

from common.exercises.judge import Failure, LearnerError, require, same, unchanged

# Each call, and the same with matrices.
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
# Operations of ATen that make or multiply matrices.
MATRICES = ("bmm", "diag", "diag_embed", "diagonal_scatter", "eye", "fill_diagonal_", "mm", "new_zeros", "zeros")


def check(work):
    unchanged(work, "trial.py", "It is what is tried; diagonal.py is yours")
    numbers = work.numbers()
    for N in (3, 1, 6):
        for call, want in WANT.items():
            d, e = torch.randn(2, N, generator=numbers, dtype=torch.float64)
            tensor = torch.randn(shape(call, N), generator=numbers, dtype=torch.float64)
            compare(work, call, want, (d, e, tensor))
    out = work.load("trial").written(d, square := torch.randn(N, N, generator=numbers, dtype=torch.float64))
    same("out of torch.add(d, tensor, out=out)", out, torch.diag(d) + square, f"N={N}")


def shape(call, N):
    """The shape of the tensor in a call: what is not square cannot be exchanged."""
    if "mat" not in call and "@" not in call:
        return N, N
    return (N, N + 2) if "d, tensor" in call or "d @" in call else (N + 1, N)


def compare(work, call, want, given):
    """Raises `Failure` unless a call gives what it gives with matrices, and makes no matrix that it does not need."""
    d, e, tensor = given
    matrices = torch.diag(d), torch.diag(e), tensor
    with work.counting() as counted:
        answer = asked(work, call, given)
    is_two = "d, e" in call
    require(
        answer["is_diagonal"] == is_two,
        f"{call} makes {'no Diagonal' if is_two else 'a Diagonal'}, expected a {'Diagonal' if is_two else 'tensor'}",
    )
    found = answer["found"]
    if is_two and isinstance(found, torch.Tensor) and found.shape == d.shape:
        found = torch.diag(found)
    same(call, found, want(*matrices), f"N={len(d)}", suspects=mistakes(call, *matrices))
    needs_matrix = "add" in call or "+" in call
    made = [name.partition(".")[0] for name in counted.calls]
    dear = [name for name in made if name in MATRICES]
    require(
        not dear or (needs_matrix and not is_two),
        f"{call} calls {', '.join(dear)}: a diagonal matrix scales rows or columns. One product with N numbers does",
    )


def asked(work, call, given):
    """The learner's answer. Raises `Failure` where nobody answers."""
    try:
        return work.load("trial").trial(call, *given)
    except LearnerError as error:
        unanswered = ("NotImplemented", "no implementation found", "unsupported operand")
        if error.kind == "TypeError" and any(words in str(error) for words in unanswered):
            raise Failure(f"{call}: nobody answers. It arrives under a name that is not in HANDLED. Which?") from None
        raise LearnerError(error.kind, f"{call}: {error}", error.where) from None


def mistakes(call, d, e, tensor):
    """What a result may be instead."""
    other = e if "d, e" in call else tensor
    return {
        "this is the product in the other order": other_order(call, (d, e, tensor)),
        "this is the mean of the diagonal, not of all N * N numbers": d.diagonal().mean() if "mean" in call else None,
        "alpha is not used": d + other if "alpha" in call else None,
    }


def other_order(call, matrices):
    """What a product is with its factors exchanged, where that has the right shape."""
    d, _, tensor = matrices
    if tensor.shape != d.shape or ("mat" not in call and "@" not in call):
        return None
    return tensor @ d if "d, tensor" in call or "d @" in call else d @ tensor
