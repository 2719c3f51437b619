import itertools

import torch
import torch.nn.functional as F

from common.exercises.judge import Failure, LearnerError, require, same, unchanged

PRODUCTS = (
    "torch.matmul(a, b)",
    "torch.matmul(input=a, other=b)",
    "torch.mm(a, b)",
    "torch.mm(a, mat2=b)",
    "torch.mm(mat2=b, input=a)",
    "a.matmul(b)",
    "a.mm(b)",
    "a.matmul(other=b)",
    "a.mm(mat2=b)",
    "a @ b",
    "F.linear(a, b.T)",
    "F.linear(input=a, weight=b.T)",
)
# For each call: its result with plain tensors, and how many products of m * k * n multiplications it contains; None
# if it may be counted or not.
WANT = {call: (lambda a, b: a @ b, 1) for call in PRODUCTS} | {
    "F.linear(a, weight=b.T, bias=bias)": (lambda a, b: F.linear(a, b.T) + 1, 1),
    "F.linear(a, bias=bias, weight=b.T)": (lambda a, b: F.linear(a, b.T) + 1, 1),
    "torch.relu(a @ b) @ b.T": (lambda a, b: torch.relu(a @ b) @ b.T, 2),
    "a @ b + a @ b": (lambda a, b: 2 * (a @ b), 2),
    "a * 2 + a.sum()": (lambda a, b: a * 2 + a.sum(), 0),
    "torch.split(a, len(a))[0] @ b": (lambda a, b: a @ b, 1),
    "copy = a.clone(); copy.add_(1)": (lambda a, b: a + 1, 0),
    "torch.max(a, dim=0).values": (lambda a, b: a.max(dim=0).values, 0),
    "torch.cat([a, a])": (lambda a, b: torch.cat([a, a]), 0),
    "a @ b[:, 0]": (lambda a, b: a @ b[:, 0], None),
    "torch.stack([a, a]) @ b": (lambda a, b: torch.stack([a, a]) @ b, None),
    "F.linear(a[0], b.T)": (lambda a, b: a[0] @ b, None),
    "F.linear(torch.stack([a, a]), b.T)": (lambda a, b: torch.stack([a, a]) @ b, None),
    "a[:, :0] @ b[:0]": (lambda a, b: torch.zeros(len(a), b.size(1)), 0),
    "a @ torch.cat([b, b]), which raises an error": (lambda a, b: torch.relu(a), 0),
    "torch.mm(a, b, out=product)": (lambda a, b: a @ b, None),
    "a @ b, where a requires a gradient": (lambda a, b: a, 1),
    "F.linear(a, b.T, bias)": (lambda a, b: F.linear(a, b.T) + 1, 1),
    "F.linear(a, b.T, None)": (lambda a, b: F.linear(a, b.T), 1),
}


def check(work):
    unchanged(work, "trial.py", "Edit only counting.py")
    numbers = work.numbers()
    for call, (want, products) in WANT.items():
        in_turn = ("a", "ab", "b") if call in PRODUCTS else ("a", "ab")
        for which, single in itertools.product(in_turn, (None, 0, 1, 2)):
            sizes = torch.randint(2, 9, (3,), generator=numbers)
            if single is not None:  # a matrix of one row or column is a matrix, too
                sizes[single] = 1
            m, k, n = sizes.tolist()
            a, b = torch.randn(m, k, generator=numbers), torch.randn(k, n, generator=numbers)
            counting = " and ".join(which)
            try:
                found = work.load("trial").trial(call, a, b, which)
            except LearnerError as error:
                if error.kind != "RecursionError":
                    raise LearnerError(error.kind, f"{call}: {error}", error.where) from None
                raise Failure(
                    f"{call} never ends: __torch_function__ runs the operation without disabling itself, so torch "
                    "calls it again"
                ) from None
            same(call, found["result"], want(a, b), f"m={m}, k={k}, n={n}, {counting} as Counting")
            require(
                found["kind"] == "Counting",
                f"{call} returns a {found['kind']}, expected a Counting: the products of this result are not counted",
            )
            expected = found["counted"] if products is None else products * m * k * n
            require(
                found["counted"] == expected,
                f"{call}, {counting} as Counting: counted {found['counted']}, expected {expected} "
                f"(m={m}, k={k}, n={n}). {cause(found['counted'], expected, which, products)}",
            )


def cause(counted, expected, which, products):
    """The likely cause of a wrong count of so many products."""
    if not expected:
        return "This call contains no multiplication of a matrix product"
    if not counted and which == "b":
        return "Only the second matrix is a Counting here, but the product counts, too"
    if not counted:
        return (
            "The call reaches __torch_function__ as a function, or with arguments, that you do not count: print "
            "func, args and kwargs to see which"
        )
    if counted < expected and products == 2:
        return "Every product counts, also a second one, and one of the same matrices"
    if counted == 2 * expected:
        return "Count only the multiplications, not the additions"
    return "(m, k) times (k, n) takes m·k·n multiplications; the weight of F.linear is (n, k)"
