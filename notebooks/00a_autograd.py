# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00a: a gradient of your own
#
# Every extension in this workbook ends in the same few lines of Python: an `autograd.Function`, which says how a
# result is computed and what its gradient is. This notebook takes that class apart on functions of one line, before
# there is any C++ to distract. If you have written one before, go to `01_python`, and come back when a gradient is
# wrong: much of this page is about gradients that are wrong and say nothing.
#
# You need Python and PyTorch. About 75 minutes.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy
import torch
import torch.nn.functional as F
from torch.autograd import Function, gradcheck, gradgradcheck

torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# Much of what follows fails, on purpose. This function shows an error in one line and lets the notebook go on:


# %%
def attempt(call):
    try:
        print(call())
    except (RuntimeError, TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}")


# %% [markdown] syllabus="0.1d"
# ## When not to
#
# The formula first. What torch can compute, it can differentiate, as often as you like and with nothing to write:


# %%
def plain_cube(x):
    return x * x * x


x = torch.tensor(2.0, requires_grad=True)
(first,) = torch.autograd.grad(plain_cube(x), x, create_graph=True)
(second,) = torch.autograd.grad(first, x, create_graph=True)
(third,) = torch.autograd.grad(second, x)
print(f"{plain_cube(x):g}, then {first:g}, {second:g} and {third:g}; by hand x³, 3x², 6x and 6")

# %% [markdown]
# A Function would replace that by code which can be wrong. So a plain function is the first choice, and this
# notebook is about the cases in which it is not enough.

# %% [markdown] syllabus="0.1f"
# ## A hook is enough
#
# To look at a gradient on its way, or to change it, nothing has to be defined. A hook on any tensor of the graph is
# called with the gradient that arrives there; what it returns goes on instead.

# %%
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 10
y.register_hook(lambda grad: print("arrived:", grad))
y.register_hook(lambda grad: grad.clamp(max=5.0))
(y * torch.tensor([1.0, 6.0, 9.0])).sum().backward()
print("x.grad: ", x.grad)

# %% [markdown] syllabus="0.1a"
# ## A call that autograd cannot see
#
# NumPy draws a line through points, `numpy.interp`; torch has no such function. The formula: between two knots the
# line has the slope of that piece, outside all knots it is constant.

# %%
knots, values = [0.0, 1.0, 3.0], [1.0, 2.0, -1.0]
x = torch.tensor([-0.5, 0.5, 2.0], requires_grad=True)
attempt(lambda: numpy.interp(x, knots, values))

# %% [markdown]
# torch refuses, and says what to do. Many do just that, and the refusal is gone:

# %%
y = torch.tensor(numpy.interp(x.detach().numpy(), knots, values))
print("right numbers:", y)
print("y.requires_grad:", y.requires_grad)
print("gradient of y + x² at x:", torch.autograd.grad((y + x**2).sum(), x)[0], "which is that of x² alone")

# %% [markdown]
# The gradient is silently without the part that went through NumPy. In the graph one can see it: a node names those
# before it, one for each argument, and where nothing is tracked there is None.

# %%
print((y + x**2).grad_fn.next_functions)

# %% [markdown]
# From scratch, a Function has two methods:
# `forward` computes, and `backward` turns the gradient of its output into those of its arguments. `ctx` carries what
# the second needs from the first. Within forward nothing is recorded, so NumPy may have x.


# %%
class Interp(Function):
    @staticmethod
    def forward(ctx, x, knots, values):
        ctx.save_for_backward(x)
        ctx.knots, ctx.values = knots, values
        return torch.as_tensor(numpy.interp(x.numpy(), knots, values), dtype=x.dtype)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        slopes = numpy.diff(ctx.values) / numpy.diff(ctx.knots)
        slopes = numpy.concatenate([[0.0], slopes, [0.0]])  # outside the knots
        slope = slopes[numpy.searchsorted(ctx.knots, x.detach().numpy())]
        return grad_y * torch.as_tensor(slope, dtype=x.dtype), None, None


# %%
y = Interp.apply(x, knots, values)
print(y)
print("gradient of y + x² at x:", torch.autograd.grad((y + x**2).sum(), x)[0], "= slopes 0, 1, -1.5 plus 2x")

# %% [markdown]
# As a picture, over many places at once. Concise, it is in `stages/stage0_extending_python/functions.py`, with a
# check of the knots:

# %%
from common import load

stage0 = load(0)
places = torch.linspace(-1, 4, 500, requires_grad=True)
y = stage0.functions.interp(places, knots, values)
(slope,) = torch.autograd.grad(y.sum(), places)
plt.plot(places.detach(), y.detach(), label="interp")
plt.plot(places.detach(), slope, "--", label="its slope, by our backward")
plt.plot(knots, values, "ko", label="knots")
plt.title("NumPy computes, torch differentiates")
plt.xlabel("x")
plt.legend()
plt.show()
attempt(lambda: stage0.functions.interp(x, [0.0, 3.0, 1.0], values))

# %% [markdown] syllabus="0.1g"
# ### If it must also be compiled
#
# `torch.compile` looks into a Function, and with `fullgraph=True` refuses what it cannot record. If that is needed,
# write no Function but an operator, `torch.library.custom_op`: nobody looks into it, so it has to say what comes out,
# by `register_fake`. Its gradient is written as for a Function in two parts. Stage 5 makes operators in C++.


# %%
@torch.library.custom_op("stage0::interp", mutates_args=())
def interp_operator(x: torch.Tensor, knots: list[float], values: list[float]) -> torch.Tensor:
    return torch.as_tensor(numpy.interp(x.numpy(), knots, values), dtype=x.dtype)


def keep(ctx, inputs, output):
    x, ctx.knots, ctx.values = inputs
    ctx.save_for_backward(x)


interp_operator.register_fake(lambda x, knots, values: torch.empty_like(x))
interp_operator.register_autograd(Interp.backward, setup_context=keep)

# %%
for function in (Interp.apply, interp_operator):
    compiled = torch.compile(lambda x, f=function: f(x, knots, values), backend="eager", fullgraph=True)
    attempt(lambda compiled=compiled: torch.autograd.grad(compiled(x).sum(), x)[0])

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/through_numpy`. `make check EX=0/through_numpy` in a terminal hands out the files and checks what
# you wrote; the cell below checks it here.

# %%
from common.exercises import show

show("0/through_numpy")

# %% [markdown] syllabus="0.1b 0.1c"
# ## Less memory, fewer operations
#
# The second reason: you choose what is kept, and what runs. swish is `x * sigmoid(beta * x)`. This counts the bytes
# that autograd keeps for backward, beside the argument and the result, which are there anyway:


# %%
def saved_bytes(function, x):
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = function(x)
    held = {tensor.untyped_storage().data_ptr() for tensor in (x, y)}
    return sum(size for pointer, size in kept.items() if pointer not in held)


# %%
def plain_swish(x, beta):
    return x * torch.sigmoid(beta * x)


x = torch.randn(1000, 1000, requires_grad=True)
print(f"the formula keeps {saved_bytes(lambda x: plain_swish(x, 1.5), x):,} bytes for a million numbers")

# %% [markdown]
# That is the sigmoid. But the sigmoid can be had again from x, and torch has one kernel for all of it: up to a
# factor swish is `silu`, whose derivative autograd takes by `silu_backward`. All operations that autograd calls can
# be called by anybody, under `torch.ops.aten`.


# %%
class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return F.silu(beta * x) / beta

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return torch.ops.aten.silu_backward(grad_y, ctx.beta * x), None


print(f"the Function keeps {saved_bytes(lambda x: Swish.apply(x, 1.5), x):,} bytes")
print("equal results:", torch.allclose(Swish.apply(x, 1.5), plain_swish(x, 1.5), atol=1e-6))

# %% [markdown]
# For autograd it is one node of the graph, and what runs in it is up to you. Count the operations of both, forward
# and backward; each is a kernel on a GPU:

# %%
from torch.utils._python_dispatch import TorchDispatchMode


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function is not torch.ops.aten.detach.default:  # a view, no work
            self.calls.append(function._schema.name.removeprefix("aten::"))
        return function(*arguments, **(keywords or {}))


# %%
for name, function in (("formula", plain_swish), ("Function", Swish.apply)):
    with Count() as forward:
        y = function(x, 1.5)
    grad_y = torch.randn_like(y)
    with Count() as backward:
        torch.autograd.grad(y, x, grad_y)
    print(f"{name:8}  forward: {', '.join(forward.calls)}   backward: {', '.join(backward.calls)}")

# %% [markdown]
# Five operations instead of eight, and nothing kept. From stage 3 on the one operation is a kernel that you write.

# %% [markdown] syllabus="0.1h"
# ## A gradient that is not the derivative
#
# The third reason: the derivative is right and of no use. Rounding has the slope 0, and a network that rounds its
# weights would not learn. So one pretends that it had the slope 1, and lets the gradient straight through:


# %%
class Round(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad  # on purpose: not the derivative


def plain_round(x):
    return x + (x.round() - x).detach()


# %%
x = torch.tensor([0.2, 0.8, -1.3], dtype=torch.float64, requires_grad=True)
for name, function in (("torch.round", torch.round), ("Round", Round.apply), ("plain_round", plain_round)):
    (gradient,) = torch.autograd.grad((function(x) ** 2).sum(), x)
    right = gradcheck(function, x, raise_exception=False)
    print(f"{name:11} {function(x).tolist()}  gradient of the squares {gradient.tolist()}  gradcheck {right}")

# %% [markdown]
# `gradcheck`, which compares with the derivative and comes further down, is right to fail. Such a Function is tested
# otherwise: its result against `torch.round`, its gradient against what was meant, here that of the plain function,
# which does it with `detach` and is once more the first choice.

# %% [markdown] syllabus="0.2a"
# ## The parts of a Function
#
# `forward` may also come in two parts: `forward` without `ctx`, which only computes, and `setup_context`, which
# keeps what backward needs.


# %%
class Product(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


# %%
class ProductInParts(Function):
    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    backward = Product.backward


# %%
a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
for kind in (Product, ProductInParts):
    print(kind.__name__, torch.autograd.grad(kind.apply(a, b), (a, b)))

# %% [markdown]
# The same gradients. The form in parts is needed for `torch.func`, whose transforms call the parts themselves; the
# other is shorter, and most of the code that you will read uses it.

# %%
attempt(lambda: torch.func.grad(Product.apply)(torch.tensor(2.0), torch.tensor(5.0)))
attempt(lambda: torch.func.grad(ProductInParts.apply)(torch.tensor(2.0), torch.tensor(5.0)))

# %% [markdown] syllabus="0.2i"
# ### The rest of `torch.func`
#
# `grad` and `jacrev` go backward, and the parts are enough. `vmap` asks what a Function does with one dimension more,
# and `jacfwd` and `hessian` go forward: beside the gradient they want `jvp`, which turns a change of the arguments
# into that of the result.


# %%
class SquareInParts(Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)  # for jvp

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0]


class SquareForAll(SquareInParts):
    generate_vmap_rule = True

    @staticmethod
    def jvp(ctx, change):
        return change * 2 * ctx.saved_tensors[0]


# %%
import warnings

warnings.filterwarnings("ignore", "`torch.jit", FutureWarning)  # from within torch, not for us
x = torch.tensor([1.0, 2.0])
for kind in (SquareInParts, SquareForAll):
    calls = {
        "jacrev": lambda kind=kind: torch.func.jacrev(kind.apply)(x).tolist(),
        "vmap": lambda kind=kind: torch.func.vmap(kind.apply)(x).tolist(),
        "jacfwd": lambda kind=kind: torch.func.jacfwd(kind.apply)(x).tolist(),
        "hessian": lambda kind=kind: torch.func.hessian(lambda x: kind.apply(x).sum())(x).tolist(),
        "jvp": lambda kind=kind: torch.func.jvp(kind.apply, (x,), (torch.ones(2),)),
    }
    for name, call in calls.items():
        print(f"{kind.__name__} {name:7}", end=" ")
        attempt(call)

# %%
x = torch.randn(3, dtype=torch.float64, requires_grad=True)
print("backward and jvp both right:", gradcheck(SquareForAll.apply, x, check_forward_ad=True))

# %% [markdown]
# The rule for `vmap` is made by running the parts on batches, so they have to consist of torch's own operations:
# NumPy or a kernel of yours needs a `vmap` written by hand. And `setup_context` sees only what went in and what came
# out; an intermediate of forward that backward wants has to be returned, as an output.

# %% [markdown] syllabus="0.2g 0.2h"
# ## Called through `apply`
#
# `Product.apply` runs forward and puts a node into the graph. To call `forward` looks like the same, and gives the
# same numbers. Only the wrong backward here shows the difference:


# %%
class WrongSquare(Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad * 1000  # to see whether it is called


# %%
x = torch.tensor(3.0, requires_grad=True)
print("apply:  ", torch.autograd.grad(WrongSquare.apply(x), x))
print("forward:", torch.autograd.grad(WrongSquare.forward(x), x), "which is autograd's own, of x * x")

# %% [markdown]
# Called directly, forward is a function like any other: the Function is not recorded, and its backward never runs.
#
# `apply` is not like any other function. Older versions of torch refuse every keyword. Newer ones make positional
# arguments of them, and a default that was left out before a keyword is then missing:


# %%
class Affine(Function):
    @staticmethod
    def forward(ctx, x, factor=1.0, shift=0.0):
        ctx.factor = factor
        return factor * x + shift

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None, None


attempt(lambda: Affine.apply(x, shift=5.0))

# %% [markdown]
# So a Function gets a plain function around it, which has the keywords, the defaults, the checks and the docstring:


# %%
def affine(x, factor=1.0, shift=0.0):
    """The map factor * x + shift."""
    return Affine.apply(x, factor, shift)


print(affine(x, shift=5.0))

# %% [markdown] syllabus="0.2b"
# ## What is tracked
#
# An argument may be anything, a number, a text, a list. Tracked are tensors that are arguments themselves; one
# inside a list or a dict is not:


# %%
class Total(Function):
    @staticmethod
    def forward(ctx, tensors):
        return sum(tensors)

    @staticmethod
    def backward(ctx, grad):
        return [grad, grad]


# %%
a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
print("in a list:", Total.apply([a, b]), "and no grad_fn: autograd has not seen a and b")


class TotalOfMany(Total):
    @staticmethod
    def forward(ctx, *tensors):
        return sum(tensors)

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


print("each an argument:", TotalOfMany.apply(a, b))

# %% [markdown] syllabus="0.2c 0.2d"
# ## As many gradients as arguments
#
# backward gets one gradient for each output and returns one for each argument of forward, in its order; None for
# what has none. `returned` here makes the same backward return more or fewer:


# %%
class Shifted(Function):
    returned = 2

    @staticmethod
    def forward(ctx, x, shift, name="nobody"):
        return x + shift

    @staticmethod
    def backward(ctx, grad):
        return grad, *[None] * (Shifted.returned - 1)


# %%
x = torch.zeros(2, requires_grad=True)
for Shifted.returned in (1, 2, 3, 4):
    print(f"{Shifted.returned} returned:", end=" ")
    attempt(lambda: torch.autograd.grad(Shifted.apply(x, 5).sum(), x)[0])

# %% [markdown]
# Two arguments came, so one gradient is too few; three and four are right as well. Nones at the end that nobody
# asked for are dropped, and so one backward serves calls with and without the optional `name`. A gradient at the end
# is not: it would have nowhere to go. Nor is a gradient for what is no tensor.


# %%
class Lost(Shifted):
    @staticmethod
    def backward(ctx, grad):
        return grad, None, grad


class ForANumber(Shifted):
    @staticmethod
    def backward(ctx, grad):
        return grad, grad


attempt(lambda: torch.autograd.grad(Lost.apply(x, 5).sum(), x))
attempt(lambda: torch.autograd.grad(ForANumber.apply(x, 5).sum(), x))

# %% [markdown]
# A gradient whose shape does not fit is refused, too. Dtypes are not compared: one of another dtype is converted
# silently, and what it has lost by then is lost.


# %%
class InHalf(Shifted):
    @staticmethod
    def backward(ctx, grad):
        return (grad / 3).half(), None  # float16 has three digits


(gradient,) = torch.autograd.grad(InHalf.apply(x, 5).sum(), x)
print(gradient.dtype, gradient.tolist())

# %% [markdown] syllabus="0.2e"
# ## Gradients that nobody wants
#
# A frozen weight, or an input of data, needs no gradient. `ctx.needs_input_grad` has a truth value for each
# argument, and what is not wanted need not be computed:


# %%
class Multiply(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)

    @staticmethod
    def backward(ctx, grad):
        input, weight = ctx.saved_tensors
        d_input = grad.mm(weight.t()) if ctx.needs_input_grad[0] else None
        d_weight = input.t().mm(grad) if ctx.needs_input_grad[1] else None
        return d_input, d_weight


# %%
for needed in ((True, True), (False, True)):
    input, weight = torch.randn(4, 3), torch.randn(3, 2)
    y = Multiply.apply(input.requires_grad_(needed[0]), weight.requires_grad_(needed[1]))
    grad_y = torch.randn_like(y)
    with Count() as counted:
        y.backward(grad_y)
    print(f"needs_input_grad {needed}: {counted.calls.count('mm')} matrix products in backward")

# %% [markdown] syllabus="0.2f"
# ## The incoming gradient is not yours
#
# To double a gradient in place saves an allocation, and often works. Here it is, in a residual connection, `x + 2x`
# with the 2x by a Function:


# %%
class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.mul_(2)  # wrong: others read it too


# %%
start = torch.ones(3, requires_grad=True)
x = start * 1
y = Double.apply(x) + x
y.backward(torch.tensor([1.0, 10.0, 100.0]))
print("gradient:", start.grad, "where 3, 30, 300 is right")
print("gradcheck of Double alone:", gradcheck(Double.apply, torch.ones(3, dtype=torch.float64, requires_grad=True)))

# %% [markdown]
# An addition hands one and the same tensor to both of its arguments. Double changed it before the other had read it,
# and 2 + 2 came out. gradcheck sees nothing, because alone Double is right. `grad * 2` makes a tensor of its own.

# %% [markdown] syllabus="0.2j"
# ## What forward returns is new
#
# A Function that passes its argument on, or a part of it, works until somebody changes the result in place, or what
# it is a part of. Then torch does not know any more whose backward is to run, and refuses:


# %%
class FirstTwo(Function):
    copied = False

    @staticmethod
    def forward(ctx, x):
        return x[:2].clone() if FirstTwo.copied else x[:2]

    @staticmethod
    def backward(ctx, grad):
        return F.pad(grad, (0, 1))


# %%
start = torch.ones(3, requires_grad=True)
for FirstTwo.copied in (False, True):
    y = FirstTwo.apply(start * 1)
    print("gradient:", torch.autograd.grad(y.sum(), start, retain_graph=True)[0], "  in place:", end=" ")
    attempt(lambda y=y: y.mul_(5))

# %% [markdown]
# `clone()` costs a copy and settles it. An argument that forward itself has changed is no such case: that is returned
# as it is, with `mark_dirty`, below.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/repair_the_function`, a Function with three of these mistakes. `show("0/repair_the_function")` in
# a cell checks it here.

# %% [markdown] syllabus="0.3a 0.3b 0.3c"
# ## What `ctx` is for
#
# Tensors go through `save_for_backward`, inputs, outputs and whatever else forward has made; anything that is no
# tensor is an attribute. A tensor can be an attribute too, and the gradient is right. But three things differ.
# The first shows when somebody changes that tensor before backward runs:


# %%
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class SquareByAttribute(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x  # wrong
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.x


# %%
def gradient_after_a_change(kind):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = kind.apply(x)
    with torch.no_grad():
        x += 100  # as an optimizer's step does
    return torch.autograd.grad(y.sum(), x)[0]


for kind in (Square, SquareByAttribute):
    print(f"{kind.__name__:18}", end=" ")
    attempt(lambda kind=kind: gradient_after_a_change(kind))

# %% [markdown]
# The gradient was to be 2 and 4. `save_for_backward` notes the tensor's version, finds another one and refuses. The
# attribute is not looked at, and the gradient is silently that of other numbers. What is no tensor, on the other
# hand, `save_for_backward` does not take:


# %%
class Power(Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x, exponent)
        return x**exponent


attempt(lambda: Power.apply(torch.ones(2, requires_grad=True), 3))

# %% [markdown]
# It takes None, for an argument that may be absent. And it is called once, with everything: a second call replaces
# what the first has saved, without a word.


# %%
class SavesTwice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(None, x + 1)  # wrong, unless the x above is not needed
        return x * x

    @staticmethod
    def backward(ctx, grad):
        print("saved:", ctx.saved_tensors)
        return grad


SavesTwice.apply(torch.zeros(2, requires_grad=True)).sum().backward()

# %% [markdown] syllabus="0.3i 0.3j"
# ### What an attribute keeps alive
#
# The second difference: after backward autograd frees what was saved, and refuses to go the same way again. An
# attribute stays, and nothing is refused:

# %%
for kind in (Square, SquareByAttribute):
    y = kind.apply(torch.ones(2, requires_grad=True)).sum()
    y.backward()
    print(f"{kind.__name__:17} backward again:", end=" ")
    attempt(lambda y=y: y.backward() or "runs, with the tensor that is still there")

# %% [markdown]
# The third is a leak. exp is its own derivative, so its Function keeps its output. But an output holds its node,
# which holds `ctx`, and with `ctx.y = y` that holds the output: a cycle.

# %%
import gc
import weakref


class Exp(Function):
    @staticmethod
    def forward(ctx, x, keep):
        y = x.exp()
        keep(ctx, y)
        return y


def outlives(keep, collect):
    """Whether an output of Exp is still there when nobody has it any more."""
    y = Exp.apply(torch.zeros(3, requires_grad=True), keep)
    output = weakref.ref(y)
    gc.disable()  # or it may come by in between
    del y
    if collect:
        gc.collect()
    gc.enable()
    return output() is not None


# %%
ways = {
    "save_for_backward(y)": lambda ctx, y: ctx.save_for_backward(y),
    "ctx.y = y": lambda ctx, y: setattr(ctx, "y", y),
    "save_for_backward(y.view(-1))": lambda ctx, y: ctx.save_for_backward(y.view(-1)),
}
for name, keep in ways.items():
    print(f"{name:29} after del y: {outlives(keep, False)!s:5}  after gc.collect(): {outlives(keep, True)}")

# %% [markdown]
# `save_for_backward` knows the outputs and keeps no cycle. That of the attribute waits for Python's collector, which
# looks at the number of objects and not at their bytes: meanwhile a GPU may run out of memory. A view of the output
# is not recognised, and the collector does not see that cycle: only a backward ends it. So save the output itself.

# %% [markdown] syllabus="0.3d 0.3e"
# ## In place: `mark_dirty`
#
# A Function may overwrite its argument, as `x.exp_()` does. Then autograd has to be told, and the argument has to be
# returned:


# %%
class ExpInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)  # exp is its own derivative
        return x

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class ExpUntold(ExpInPlace):
    @staticmethod
    def forward(ctx, x):
        x.exp_()  # wrong: nobody is told
        ctx.save_for_backward(x)
        return x


# %%
for kind in (ExpInPlace, ExpUntold):
    start = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    x = start * 1
    kind.apply(x)  # as x.exp_() is used: for what it does to x
    print(f"{kind.__name__}: x = {x.detach()}, made by {x.grad_fn.name()}")
    print("  gradient of x.sum():", torch.autograd.grad(x.sum(), start)[0])

# %% [markdown]
# Both overwrite x. With `mark_dirty` its history is rewritten too: it was made by our Function now, and the gradient
# is exp. Without it x keeps the history from before, and the gradient silently goes around the Function.
#
# A leaf has no history that could be rewritten. It is refused, but only if autograd knows:

# %%
for kind in (ExpInPlace, ExpUntold):
    leaf = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    print(f"{kind.__name__:10}", end=" ")
    attempt(lambda kind=kind, leaf=leaf: kind.apply(leaf))

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/in_place`. `show("0/in_place")` in a cell checks it here.

# %% [markdown] syllabus="0.3f"
# ## Outputs without a gradient
#
# Whole numbers, such as the indices of a sort, have no gradient, and autograd knows that by their dtype. A mask of
# zeros and ones in floating point it cannot know:


# %%
class Clip(Function):
    mark = True

    @staticmethod
    def forward(ctx, x):
        inside = (x.abs() <= 1).to(x.dtype)
        if Clip.mark:
            ctx.mark_non_differentiable(inside)
        ctx.save_for_backward(inside)
        return x.clamp(-1, 1), inside, x.argsort()

    @staticmethod
    def backward(ctx, grad_y, grad_inside, grad_order):
        (inside,) = ctx.saved_tensors
        return grad_y * inside


# %%
x = torch.tensor([-3.0, 0.5, 2.0], requires_grad=True)
for Clip.mark in (False, True):
    y, inside, order = Clip.apply(x)
    needs = [tensor.requires_grad for tensor in (y, inside, order)]
    print(f"mark_non_differentiable {Clip.mark!s:5}: y, inside and order require a gradient: {needs}")
    attempt(lambda: torch.autograd.grad(Clip.apply(x)[1].sum(), x))

# %% [markdown]
# Unmarked, a loss that depends on the mask alone trains on zeros without a word. Marked, it is told.

# %% [markdown] syllabus="0.3g 0.3h"
# ## The gradient that never came
#
# An output that nobody uses has no gradient. torch makes zeros of it before it calls backward, which is convenient
# and costs memory and time. `set_materialize_grads(False)` hands over None instead:


# %%
class Both(Function):
    @staticmethod
    def forward(ctx, x, factor, zeros):
        ctx.set_materialize_grads(zeros)
        ctx.factor = factor
        return x * factor, x + factor

    @staticmethod
    def backward(ctx, grad_product, grad_sum):
        print("  backward gets", grad_product, "and", grad_sum)
        return grad_product * ctx.factor + (0 if grad_sum is None else grad_sum), None, None


# %%
x = torch.ones(2, requires_grad=True)
for zeros in (True, False):
    print("set_materialize_grads", zeros)
    attempt(lambda zeros=zeros: torch.autograd.grad(Both.apply(x, 5, zeros)[0].sum(), x)[0])

# %% [markdown]
# This backward reckons with None for the sum only. If it is the product that nobody uses:

# %%
attempt(lambda: torch.autograd.grad(Both.apply(x, 5, False)[1].sum(), x)[0])

# %% [markdown]
# Whoever asks for None has to handle it everywhere. Multiplication by a constant shows how, and that it pays: where
# no gradient comes, none is computed. With one output None comes only from a Function above that returned it.


# %%
class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.set_materialize_grads(False)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return (None if grad is None else grad * ctx.factor), None


class Stop(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None


# %%
print("a gradient:", torch.autograd.grad(Scale.apply(x, 5).sum(), x))
with Count() as counted:
    y = Stop.apply(Scale.apply(x, 5)).sum()
    print("none:      ", torch.autograd.grad(y, x, allow_unused=True))
print("operations, forward and backward:", ", ".join(counted.calls))

# %% [markdown] syllabus="0.4a"
# ## Second derivatives
#
# With `create_graph=True` the operations of backward are recorded like any others. If torch can differentiate them,
# the gradient has a gradient. Square above, which saves its input, is an example:

# %%
x = torch.tensor(3.0, requires_grad=True)
(first,) = torch.autograd.grad(Square.apply(x), x, create_graph=True)
(second,) = torch.autograd.grad(first, x)
print(f"x² at 3: slope {first.item():g}, made by {first.grad_fn.name()}; second derivative {second.item():g}")

# %% [markdown] syllabus="0.4b"
# ### Silently wrong
#
# That the first derivative is right says nothing about the second. The cube is x times x², so its slope is
# `x² + x · 2x`. forward has computed x² anyway, and keeps it:


# %%
class CubeKeepsSquare(Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(x, square)
        return x * square

    @staticmethod
    def backward(ctx, grad):
        x, square = ctx.saved_tensors
        return grad * (square + x * 2 * x)


# %%
def derivatives(function, after):
    """The first and second derivative of after(function(x)) at x = 2."""
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(after(function(x)), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    return f"first {first.item():g}, second {second.item():g}"


print("plain:          ", derivatives(plain_cube, torch.sum))
print("CubeKeepsSquare:", derivatives(CubeKeepsSquare.apply, torch.sum))

# %% [markdown]
# 8, not 12, and not a word. What is computed inside forward is not recorded, so for backward the saved `square` is a
# constant: the derivative of `square + 2x²` came out as 4x.

# %% [markdown] syllabus="0.4c"
# ### Loudly, or not
#
# Keep only the finished slope, and x does not occur in backward at all:


# %%
class CubeKeepsSlope(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3 * x * x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


# %%
for name, after in (("y.sum()", torch.sum), ("y ** 2", torch.square)):
    print(f"{name:8} plain:", derivatives(plain_cube, after))
    print(f"{'':8} kept: ", end=" ")
    attempt(lambda after=after: derivatives(CubeKeepsSlope.apply, after))

# %% [markdown]
# One Function, two failures. Below a plain sum the incoming gradient is a constant, the slope is another, and torch
# finds nothing to differentiate. Below a square the incoming gradient is 2y, which depends on x: now there is a
# graph, with one of its two branches missing, and 288 comes out for 480. A test with `sum()` would have called this
# mistake a loud one.

# %% [markdown] syllabus="0.4d"
# ### Right
#
# Either save x alone and compute from it, as Square does, or let the graph know the intermediate: what forward
# *returns* has a history. So the slope becomes a second output. Its own gradient arrives when somebody
# differentiates the first one's, and its derivative, 6x, is ours to give as well:


# %%
class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        slope = 3 * x * x
        ctx.save_for_backward(x, slope)
        return x * x * x, slope

    @staticmethod
    def backward(ctx, grad_y, grad_slope):
        x, slope = ctx.saved_tensors
        return grad_y * slope + grad_slope * 6 * x


def cube(x):
    return Cube.apply(x)[0]


for name, after in (("y.sum()", torch.sum), ("y ** 2", torch.square)):
    print(f"{name:8}", derivatives(cube, after))

# %% [markdown] syllabus="0.4e"
# ### `gradgradcheck`
#
# Nobody should have to find this by hand. `gradcheck` compares the first derivative with finite differences,
# `gradgradcheck` the second, and weights the gradients from above at random, so that no `sum()` hides anything:

# %%
x = torch.randn(4, dtype=torch.float64, requires_grad=True)
versions = {
    "plain": plain_cube,
    "keeps square": CubeKeepsSquare.apply,
    "keeps slope": CubeKeepsSlope.apply,
    "slope as output": cube,
}
for name, version in versions.items():
    outcomes = [test(version, x, raise_exception=False) for test in (gradcheck, gradgradcheck)]
    print(f"{name:16} gradcheck {outcomes[0]!s:5}  gradgradcheck {outcomes[1]}")

# %% [markdown] syllabus="0.4h"
# ### A backward that torch cannot record
#
# What runs in NumPy or in a kernel of your own is not recorded at all, so such a backward has the same fate. The
# remedy is that of forward: the backward becomes a Function too, of `grad` and x, with a gradient for each.


# %%
class NumpyCubeBackward(Function):
    @staticmethod
    def forward(ctx, grad, x):
        ctx.save_for_backward(grad, x)
        return torch.from_numpy(grad.numpy() * 3 * x.numpy() ** 2)

    @staticmethod
    def backward(ctx, grad_2):
        grad, x = ctx.saved_tensors
        return grad_2 * 3 * x**2, grad_2 * grad * 6 * x


class NumpyCube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(x.numpy() ** 3)

    @staticmethod
    def backward(ctx, grad):
        return NumpyCubeBackward.apply(grad, *ctx.saved_tensors)


# %%
x = torch.randn(4, dtype=torch.float64, requires_grad=True)
print("gradcheck", gradcheck(NumpyCube.apply, x), " gradgradcheck", gradgradcheck(NumpyCube.apply, x))

# %% [markdown] syllabus="0.4f"
# ### Refusing: `once_differentiable`
#
# If nobody needs the second derivative, one line turns the silently wrong one into a refusal; every backward of
# stages 1 to 4 has it:

# %%
from torch.autograd.function import once_differentiable


class CubeOnce(CubeKeepsSlope):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


def second_by_backward(function):
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(function(x) ** 2, x, create_graph=True)
    first.backward()
    return x.grad


attempt(lambda: second_by_backward(CubeKeepsSlope.apply))
attempt(lambda: second_by_backward(CubeOnce.apply))

# %% [markdown] syllabus="0.4g"
# ### Where the refusal is heard
#
# The refusal is a node in the graph, and it speaks when a gradient is sent through it. `backward()` does that.
# `autograd.grad` first asks how to get from the result to x, finds no way through that node, and complains about x:

# %%
attempt(lambda: derivatives(CubeOnce.apply, torch.square))
attempt(lambda: derivatives(CubeOnce.apply, torch.sum))
x = torch.tensor(2.0, requires_grad=True)
(first,) = torch.autograd.grad(CubeOnce.apply(x) ** 2, x, create_graph=True)
print("with allow_unused=True:", torch.autograd.grad(first, x, allow_unused=True))

# %% [markdown]
# So "appears to not have been used" may mean `once_differentiable`. Below a plain sum there is no graph
# at all. And `allow_unused=True`, which the first message recommends, only turns the refusal into a None.
#
# Worse, where there is another way, `autograd.grad` takes that one alone and says nothing. Here is the gradient with
# respect to a weight, of a loss that the weight reaches directly and through the slope, as in a gradient penalty:


# %%
class MultiplyOnce(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w, grad * x


def penalised(multiply, x, w):
    y = multiply(x, w) ** 2
    (slope,) = torch.autograd.grad(y, x, create_graph=True)  # 2 x w²
    return y + slope  # its derivative with respect to w: 2 x² w + 4 x w


for multiply in torch.mul, MultiplyOnce.apply:
    x, w = (torch.tensor(value, requires_grad=True) for value in (3.0, 2.0))
    print(torch.autograd.grad(penalised(multiply, x, w), w))
attempt(lambda: penalised(MultiplyOnce.apply, x, w).backward())

# %% [markdown]
# The 24 of the slope is gone, and only `backward()` refuses. So train with `backward()`, or write the second
# derivative.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/second_derivatives`: four Functions, and what each of them will give. Then `0/cube`.
# `show("0/second_derivatives", "0/cube")` in a cell checks both here.

# %% [markdown] syllabus="0.5a"
# ## `gradcheck`, from scratch
#
# The formula: the derivative of forward at x is close to `(f(x + eps) - f(x - eps)) / (2 eps)`, the central
# difference. For several inputs and outputs these make a matrix, the Jacobian; backward gives the same matrix, a row
# for each output.


# %%
def numerical_jacobian(function, x, eps):
    columns = []
    for k in range(x.numel()):
        step = torch.zeros_like(x)
        step.view(-1)[k] = eps
        columns.append((function(x + step) - function(x - step)).flatten() / (2 * eps))
    return torch.stack(columns, dim=1).detach()


def jacobian_of_backward(function, x):
    y = function(x)
    rows = [torch.autograd.grad(one, x, retain_graph=True)[0].flatten() for one in y.flatten()]
    return torch.stack(rows)


# %%
x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
print(numerical_jacobian(cube, x, eps=1e-6))
print(jacobian_of_backward(cube, x))


# %% [markdown]
# Concise, it is `gradcheck(function, inputs)`, which also tries gradients that are None. What it prints when
# the two disagree, here for a cube with a wrong factor:


# %%
class CubeWrong(CubeKeepsSlope):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(2 * x * x)  # wrong: 3
        return x * x * x


try:
    gradcheck(CubeWrong.apply, x)
except RuntimeError as error:
    print(error)

# %% [markdown] syllabus="0.5b 0.5c"
# ### float64, and the step
#
# How good is the difference? The smaller the step, the smaller its mistake by the function's curvature, which goes
# with eps². But `f(x + eps) - f(x - eps)` is a small difference of large numbers: rounding is divided by eps.

# %%
steps = torch.logspace(-10, 0, 60, dtype=torch.float64)
errors = {}
for dtype in (torch.float64, torch.float32):
    at = torch.linspace(1, 2, 200, dtype=dtype)  # the mean over many places
    slopes = [(plain_cube(at + e) - plain_cube(at - e)) / (2 * e) for e in steps.tolist()]
    errors[dtype] = [(slope / (3 * at**2) - 1).abs().mean().item() for slope in slopes]
    best = min(zip(errors[dtype], steps.tolist(), strict=True))
    print(f"{dtype}: at best {best[0]:.0e} off, at eps {best[1]:.0e}")

# %%
for dtype, error in errors.items():
    plt.loglog(steps, error, label=str(dtype))
plt.axvline(1e-6, color="grey", linestyle=":", label="eps of gradcheck")
plt.axhline(1e-3, color="grey", linestyle="--", label="rtol of gradcheck")
plt.xlabel("eps")
plt.ylabel("relative error")
plt.title("The central difference of x³, for each step")
plt.legend()
plt.show()

# %% [markdown]
# A valley: rounding to the left, curvature to the right. In float64 the usual step, 1e-6, lies near its bottom. In
# float32 rounding makes it wrong by per cents there, far more than `rtol` allows, and the right gradient fails:

# %%
x = torch.tensor([0.7, 1.3, -2.1], requires_grad=True)  # float32
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    attempt(lambda: gradcheck(torch.sin, x))
print("and a warning:", str(said[0].message)[:70], "...")
print("in float64:", gradcheck(torch.sin, x.detach().double().requires_grad_()))

# %% [markdown]
# `atol` and `rtol` say how far the two may be apart, 1e-5 plus a thousandth if nothing else is given. A thousandth
# is much:


# %%
class SinOff(Function):
    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * SinOff.factor


# %%
x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
for SinOff.factor in (1.01, 1.0001, 1.0):
    usual = gradcheck(SinOff.apply, x, raise_exception=False)
    strict = gradcheck(SinOff.apply, x, rtol=1e-7, atol=1e-8, raise_exception=False)
    print(f"wrong by {SinOff.factor - 1:.2%}: passes {usual!s:5}; with rtol=1e-7, atol=1e-8: {strict}")

# %% [markdown] syllabus="0.5e"
# ### Inputs that overlap, and gradients that vary
#
# Two more refusals. Numbers that share their memory, as after `expand`, cannot be moved one at a time. And a backward
# has to give the same twice, to the last bit; one that adds in changing order, as with `atomicAdd` on a GPU, does
# not. If that is all, `nondet_tol` says how far apart the two may be:


# %%
class SinVaries(SinOff):
    @staticmethod
    def backward(ctx, grad):
        return SinOff.backward(ctx, grad) * (1 + 1e-12 * torch.rand_like(grad))


attempt(lambda: gradcheck(torch.sin, torch.ones(1, dtype=torch.float64).expand(3).requires_grad_()))
x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
attempt(lambda: gradcheck(SinVaries.apply, x))
attempt(lambda: gradcheck(SinVaries.apply, x, nondet_tol=1e-10))

# %% [markdown] syllabus="0.5d"
# ### What it cannot see
#
# It proves that backward is the derivative of forward, at the places, sizes and layouts that you gave. Four
# Functions that pass and are wrong; the first is CubeKeepsSlope from above.


# %%
class AbsForPositive(Function):
    @staticmethod
    def forward(ctx, x):
        return x.abs()

    @staticmethod
    def backward(ctx, grad):
        return grad  # wrong where x is negative


class SquareInRows(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        in_rows = x.as_strided(x.shape, (x.size(1), 1))  # wrong unless x lies in memory row by row
        return grad * 2 * in_rows


class Sine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.cos()  # wrong: not the sine

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return -grad * x.sin()


# %%
def passes(test, function, x):
    return test(function, x.detach().requires_grad_(), raise_exception=False)


positive, rows = torch.rand(3, dtype=torch.float64) + 0.1, torch.randn(2, 3, dtype=torch.float64)
print("second derivative:", passes(gradcheck, CubeKeepsSlope.apply, rows), end="   ")
print("by gradgradcheck:", passes(gradgradcheck, CubeKeepsSlope.apply, rows))
print("other inputs:     ", passes(gradcheck, AbsForPositive.apply, positive), end="   ")
print("at negative ones:", passes(gradcheck, AbsForPositive.apply, -positive))
print("other layouts:    ", passes(gradcheck, SquareInRows.apply, rows), end="   ")
print("transposed:      ", passes(gradcheck, SquareInRows.apply, rows.t()))
print("forward is wrong: ", passes(gradcheck, Sine.apply, rows), end="   ")
print("against sin:     ", torch.allclose(Sine.apply(rows), rows.sin()))

# %% [markdown]
# So: random inputs on both sides of every kink, several sizes and layouts, `gradgradcheck` or a refusal, and a
# reference for forward. `make stage-2` and its like do this for every stage.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/find_the_wrong_ones`: a test that tells wrong Functions from right ones.
# `show("0/find_the_wrong_ones")` in a cell checks it here.

# %% [markdown] syllabus="0.6a"
# ## A fully connected layer
#
# All of it together. `y = input @ weight.T + bias`, so with `grad` of y's shape:
#
#     d_input  = grad @ weight       (B, I)
#     d_weight = grad.T @ input      (O, I)
#     d_bias   = sum of grad's rows  (O)
#
# The bias is optional. It is an argument all the same, and its gradient is None when it is absent:


# %%
class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return input.mm(weight.t()) if bias is None else torch.addmm(bias, input, weight.t())

    @staticmethod
    def backward(ctx, grad):
        input, weight = ctx.saved_tensors
        d_input = grad.mm(weight) if ctx.needs_input_grad[0] else None
        d_weight = grad.t().mm(input) if ctx.needs_input_grad[1] else None
        d_bias = grad.sum(dim=0) if ctx.needs_input_grad[2] else None  # False for an absent bias
        return d_input, d_weight, d_bias


def linear(input, weight, bias=None):
    return LinearFunction.apply(input, weight, bias)


# %%
shapes = {"input": (3, 5), "weight": (4, 5), "bias": (4,)}
arguments = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes.values()]
for given in (arguments, arguments[:2]):
    same = torch.allclose(linear(*given), F.linear(*given))
    checks = gradcheck(linear, given), gradgradcheck(linear, given)
    print(f"{', '.join(list(shapes)[: len(given)]):20} as F.linear: {same}   checks: {checks}")

# %% [markdown] syllabus="0.1e 0.6b 0.6d"
# ### The module around it
#
# A Function has no state. What is learnt belongs to an `nn.Module`, as an `nn.Parameter`: that is how optimizers and
# `state_dict` find it. The module also says how it starts, uniformly within ±1/√I as `torch.nn.Linear`. From
# scratch, and beside it one that keeps plain tensors:


# %%
class MyLinear(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        bound = in_features**-0.5
        self.weight = torch.nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        self.bias = torch.nn.Parameter(torch.empty(out_features).uniform_(-bound, bound))

    def forward(self, input):
        return linear(input, self.weight, self.bias)


class PlainTensors(MyLinear):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        weight, bias = self.weight.detach(), self.bias.detach()
        del self.weight, self.bias
        self.weight, self.bias = weight.requires_grad_(), bias.requires_grad_()  # wrong: no parameters


# %%
for kind in (MyLinear, PlainTensors):
    module = kind(100, 10)
    loss = module(torch.randn(8, 100)).square().sum()
    loss.backward()
    print(f"{kind.__name__:12} weight within ±{module.weight.abs().max().item():.4f}; it has a gradient:", end=" ")
    print(module.weight.grad is not None, "  state_dict:", list(module.state_dict()))
    attempt(lambda module=module: f"             {type(torch.optim.SGD(module.parameters(), 0.1)).__name__}: fine")

# %% [markdown]
# Both compute, and both have gradients. But the optimizer finds nothing in the second, nothing of it is saved, and
# in a larger network not even the optimizer would complain: the layer would just never learn. State that is not
# learnt, such as a running mean, goes into `register_buffer`: it is saved and moved with the module, but no optimizer
# finds it.

# %%
module = MyLinear(3, 2)
module.register_buffer("mean", torch.zeros(3))
print("parameters:", [name for name, _ in module.named_parameters()], "  state_dict:", list(module.state_dict()))

# %% [markdown] syllabus="0.6c"
# ### No bias: `register_parameter(name, None)`
#
# Without a bias, `self.bias` must be there still, for forward and for who asks. `self.bias = None` does that;
# `register_parameter` also keeps the name for a parameter:


# %%
class NoBias(torch.nn.Module):
    def __init__(self, registered):
        super().__init__()
        if registered:
            self.register_parameter("bias", None)
        else:
            self.bias = None


def give(module, bias):
    module.bias = bias
    return f"takes a plain tensor; parameters: {list(module.parameters())}"


for registered in (False, True):
    module = NoBias(registered)
    print(f"registered {registered!s:5} bias is {module.bias}, state_dict {dict(module.state_dict())};", end=" ")
    attempt(lambda module=module: give(module, torch.zeros(3)))

# %% [markdown]
# Neither has a parameter, and neither saves one. But a plain tensor that lands there by mistake is refused where the
# name is known, and otherwise never trained.

# %% [markdown] syllabus="0.6e"
# ### `extra_repr`
#
# What a module prints between its brackets is up to its `extra_repr`. Concise, all of this is
# `stages/stage0_extending_python/linear.py`:

# %%
print(MyLinear(3, 4))
print(stage0.linear.Linear(3, 4))
print(stage0.linear.Linear(3, 4, bias=False))
attempt(lambda: stage0.linear.Linear(3, 4)(torch.randn(2, 5)))

# %% [markdown]
# It learns, too. The task is to find a linear map again from noisy examples of it:

# %%
layer, target = stage0.linear.Linear(5, 1), torch.randn(1, 5)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
losses = []
for _ in range(60):
    input = torch.randn(64, 5)
    loss = F.mse_loss(layer(input), input @ target.t() + 0.5 + 0.1 * torch.randn(64, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
plt.semilogy(losses)
plt.axhline(0.1**2, color="grey", linestyle=":", label="the noise")
plt.title("Our layer learns")
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()
plt.show()
print(f"weight off by {(layer.weight - target).abs().max().item():.3f}; bias {layer.bias.item():.2f}, it was 0.5")

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/linear`. `show("0/linear")` in a cell checks it here.

# %% [markdown]
# ## What to take along
#
# - A plain function first, a hook for a gradient on its way, a Function for what torch cannot see or should not keep.
# - A gradient for each argument; tensors by `save_for_backward`, the rest on `ctx`; never change what comes in,
#   unless `mark_dirty` says so.
# - `gradcheck` in float64, with inputs of every kind; second derivatives right, by `gradgradcheck`, or refused.
#
# `make stage-0` checks the functions of this notebook's stage. Next: `00b_torch_function`, for types of your own, or
# straight to the cell: `01_python`.
