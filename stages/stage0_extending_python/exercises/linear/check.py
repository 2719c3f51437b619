import itertools

import torch

from common.exercises.judge import Failure, made_by, require, right_or_refused, same

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "linear", "matmul", "einsum")
FOLLOWED = (
    "Autograd can follow a backward that computes with the saved arguments, in operations of torch that it records. "
    "Then second derivatives are right"
)
SUMS = ("sum", "sum_to_size", "mean")
# Runs in the learner's folder and reports what several layers look like.
LOOK = """
import torch
from linear import Linear
from torch.nn.functional import linear

def unreached(layer, given):
    total = layer(given).sum()
    if total.requires_grad:
        total.backward()
    return [key for key, value in layer.named_parameters() if value.grad is None]

layers = {"with bias": Linear(16, 3), "without": Linear(16, 3, bias=False), "wide": Linear(100, 400)}
seen = {}
for name, layer in layers.items():
    given = torch.randn(2, layer.in_features)
    parts = {key: list(value.shape) for key, value in layer.named_parameters()}
    seen[name] = {"parameters": parts, "shown": str(layer),
                  "largest": max([p.abs().max().item() for p in layer.parameters()], default=0.0),
                  "unreached": unreached(layer, given),
                  "same": torch.allclose(layer(given), linear(given, layer.weight, layer.bias), atol=1e-5)}
first, second = Linear(16, 3), Linear(16, 3)
seen["repeats"] = [key for key, value in first.named_parameters() if torch.equal(value, getattr(second, key))]
large = Linear(10, 300000).double()
with torch.no_grad():
    for parameter in large.parameters():
        parameter.zero_()
before = list(large.parameters())
large.reset_parameters()
seen["kept"] = all(old is new for old, new in zip(before, large.parameters()))
seen["dtypes"] = {key: str(value.dtype) for key, value in large.named_parameters()}
seen["spread"] = {key: [value.min().item(), value.max().item(), value.mean().item(), value.std().item()]
                  for key, value in large.named_parameters()}
try:
    layers["without"].bias = torch.zeros(3)
    seen["refused"] = False
except TypeError:
    seen["refused"] = True
tell(seen)
"""


def check(work):
    gradients(work)
    ran = work.observe(LOOK)
    if ran.told is None:
        last = (ran.output.splitlines() or [""])[-1]
        raise Failure(f"a program that makes Linear(16, 3) and Linear(16, 3, bias=False) ends in an error:\n{last}")
    module(ran.told)


def gradients(work):
    """Compares every gradient, for each combination of arguments that need one."""
    linear, numbers = work.load("linear").linear, work.numbers()
    for has_bias, (B, I, O) in ((True, (3, 5, 4)), (False, (1, 7, 2))):
        shapes = {"input": (B, I), "weight": (O, I)} | ({"bias": (O,)} if has_bias else {})
        for count in range(1, len(shapes) + 1):
            for wanted in itertools.combinations(shapes, count):
                tensors = {name: drawn(numbers, *shape, leaf=name in wanted) for name, shape in shapes.items()}
                case = f"B={B}, I={I}, O={O}, gradients for {', '.join(wanted)}" + "; no bias" * (not has_bias)
                agree(work, linear, tensors, wanted, drawn(numbers, B, O), case)
    tensors = {name: drawn(numbers, *shape, leaf=True) for name, shape in (("input", (2, 3)), ("weight", (4, 3)))}
    right_or_refused(linear, torch.nn.functional.linear, tensors | {"bias": drawn(numbers, 4, leaf=True)}, FOLLOWED)


def agree(work, linear, tensors, wanted, grad, case):
    """Compares output and gradients with torch's own layer."""
    output, want = (function(*tensors.values()) for function in (linear, torch.nn.functional.linear))
    same("the output", output, want.detach(), case, torch.float64)
    require(output.requires_grad, f"the output has no gradient: autograd does not know how it was computed ({case})")
    made_by(work, "LinearFunction", "linear", "linear", *tensors.values())
    leaves = [tensors[name] for name in wanted]
    with work.counting() as counted:
        got = torch.autograd.grad(output, leaves, grad, allow_unused=True)
    expected = torch.autograd.grad(want, leaves, grad, allow_unused=True)
    suspects = {"this is the mean over the batch, not the sum": grad.mean(dim=0)} if len(grad) > 1 else {}
    for name, mine, theirs in zip(wanted, got, expected, strict=True):
        same(f"d_{name}", mine, theirs, case, torch.float64, suspects=suspects)
    for names, enough in ((PRODUCTS, len(wanted)), (SUMS, int("bias" in wanted))):  # a product can sum, too
        made = [name for name, number in counted.calls.items() for _ in range(number) if name in names]
        require(
            len(made) <= enough,
            f"backward computes a gradient that is not needed: it calls {', '.join(made)} ({case}). "
            "ctx.needs_input_grad says which gradients are needed",
        )


def drawn(numbers, *shape, leaf=False):
    """Random numbers."""
    return torch.randn(shape, generator=numbers, dtype=torch.float64).requires_grad_(leaf)


def module(seen):
    """Checks the module's parameters, output, initial values and text."""
    for name, made, sizes, shapes in (
        ("with bias", "Linear(16, 3)", (16, 3), {"weight": [3, 16], "bias": [3]}),
        ("without", "Linear(16, 3, bias=False)", (16, 3), {"weight": [3, 16]}),
        ("wide", "Linear(100, 400)", (100, 400), {"weight": [400, 100], "bias": [400]}),
    ):
        layer, found = seen[name], listed(seen[name]["parameters"]) or "nothing"
        require(found == listed(shapes), f"in {made} an optimizer finds {found}, expected {listed(shapes)}")
        require(layer["same"], f"{made} does not return linear(input, weight, bias)")
        lost = ", ".join(layer["unreached"])
        require(not lost, f"after backward {lost} of {made} has no gradient: forward must not detach a parameter")
        bound, what = sizes[0] ** -0.5, f"the largest parameter of a new {made} is {layer['largest']:.4f}"
        require(
            0.5 * bound < layer["largest"] <= bound * (1 + 1e-6),  # float32 rounds the bound
            f"{what}, expected at most 1/sqrt(in_features) = {bound:.4f}, and close to it",
        )
        shown = f"Linear(in_features={sizes[0]}, out_features={sizes[1]}, bias={'bias' in shapes})"
        require(layer["shown"] == shown, f"{made} is printed as {layer['shown']}, expected {shown}")
    spread(seen["spread"])  # first: zeros are the same in every layer, too
    require(
        seen["kept"],
        "reset_parameters() replaces the parameters, and an optimizer that has the old ones no longer changes the "
        "layer. Write the new values into them, as torch.nn.init does",
    )
    for name, dtype in seen["dtypes"].items():
        require(
            dtype == "torch.float64",
            f"in Linear(10, 300000).double(), {name} has dtype {dtype} after reset_parameters(), expected "
            "torch.float64: the parameter has got another tensor. Write the new values into the one that it has, as "
            "torch.nn.init does",
        )
    repeated = " and ".join(seen["repeats"])
    require(
        not repeated,
        f"two layers made one after the other have the same {repeated}: each layer needs random numbers of its own. "
        "Do not set a seed, which would also repeat the random numbers of the rest of the program",
    )
    message = "Linear(16, 3, bias=False) accepts a plain tensor as its bias, which an optimizer would not find"
    require(seen["refused"], message)


def spread(seen):
    """How the parameters of a large layer are distributed, compared with torch's own layer."""
    theirs, bound = torch.nn.Linear(10, 300_000), 10**-0.5
    for name, mine in seen.items():
        other = getattr(theirs, name).detach()
        want = [one.item() for one in (other.min(), other.max(), other.mean(), other.std())]
        numbers = zip(("minimum", "maximum", "mean", "standard deviation"), mine, want, strict=True)
        for what, number, expected in numbers:
            require(
                abs(number - expected) < 0.01 * bound,
                f"reset_parameters gives {name} of Linear(10, 300000) a {what} of {number:.4f}, expected "
                f"{expected:.4f} as in torch.nn.Linear: the values of weight and bias are uniformly distributed "
                "within ±1/sqrt(in_features)",
            )


def listed(shapes):
    """Names and shapes as text."""
    return ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
