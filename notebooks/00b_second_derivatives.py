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
# # 00b: in-place changes, outputs and second derivatives
#
# Notebook 00a explains the parts of an `autograd.Function`. This notebook explains what a Function has to say to
# autograd when it changes an argument, or when an output has no gradient or is not used. The longer part is about
# second derivatives, which are often wrong without an error.
#
# You need notebook 00a. The notebook takes about half an hour.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# Many calls in this notebook fail on purpose. The next function prints an error as one line, and the notebook
# continues:


# %%
def attempt(call):
    try:
        print(call())
    except (RuntimeError, TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}")


# %% [markdown]
# These are from notebook 00a: a counter of operations, and two functions with right derivatives.


# %%
class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function is not torch.ops.aten.detach.default:  # a view, no work
            self.calls.append(function._schema.name.removeprefix("aten::"))
        return function(*arguments, **(keywords or {}))


def plain_cube(x):
    return x * x * x


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


# %% [markdown] syllabus="0.3d 0.3e"
# ## Change an argument in place: `mark_dirty`
#
# A Function may overwrite its argument, as `x.exp_()` does. Then the Function has to call `mark_dirty`, which
# informs autograd, and has to return the argument. The second class, `ExpUntold`, does not call `mark_dirty`:


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
        x.exp_()  # wrong: mark_dirty is missing
        ctx.save_for_backward(x)
        return x


# %%
for kind in (ExpInPlace, ExpUntold):
    start = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    x = start * 1
    kind.apply(x)  # for its effect on x, like x.exp_()
    print(f"{kind.__name__}: x = {x.detach()}, made by {x.grad_fn.name()}")
    print("  gradient of x.sum():", torch.autograd.grad(x.sum(), start)[0])

# %% [markdown]
# Both Functions overwrite x. With `mark_dirty`, autograd also updates the history of x, the record of the operations
# that produced x: the `grad_fn` of x is now our Function, and the gradient is exp(x). Without `mark_dirty`, x keeps
# its old history, and the gradient bypasses the Function without an error.
#
# A leaf is a tensor that is not the result of an operation that autograd has recorded. Parameters are leaves that
# require a gradient. Such a leaf has no history that autograd could update, so a Function must not change a leaf in
# place. torch raises an error, but only if `mark_dirty` was called:

# %%
for kind in (ExpInPlace, ExpUntold):
    leaf = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    print(f"{kind.__name__:10}", end=" ")
    attempt(lambda kind=kind, leaf=leaf: kind.apply(leaf))

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/in_place`. The cell below checks it.

# %%
from common.exercises import show

show("0/in_place")

# %% [markdown] syllabus="0.3f"
# ## Outputs without a gradient
#
# Integers, such as the indices of a sort, have no gradient, and autograd recognises them by their dtype. If a mask
# contains zeros and ones as floating-point numbers, autograd cannot know that the mask has no gradient.
# `mark_non_differentiable` tells autograd:


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
# Without `mark_non_differentiable`, a network whose loss depends only on the mask gets gradients of zero, and there
# is no error. With `mark_non_differentiable`, torch raises an error.

# %% [markdown] syllabus="0.3g 0.3h"
# ## Outputs that are not used
#
# An output that is not used has no gradient. By default, torch creates a tensor of zeros as the gradient of this
# output, and then calls backward. This is convenient, but it costs memory and time. With
# `set_materialize_grads(False)`, backward gets None instead:


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
# This backward expects None only for the sum. If the product is not used, backward gets None for the product, and
# fails:

# %%
attempt(lambda: torch.autograd.grad(Both.apply(x, 5, False)[1].sum(), x)[0])

# %% [markdown]
# With `set_materialize_grads(False)`, backward has to handle None for every output. The Function `Scale` multiplies
# by a constant and handles None: if no gradient arrives, its backward computes nothing. If a Function has a single
# output, its backward gets None in one case: the Function that uses this output returned None from its own backward,
# as `Stop` does here.


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
# With `create_graph=True`, autograd records the operations of backward like all other operations. If torch can
# differentiate these operations, the gradient has a gradient, too. `Square`, which stores its input for
# backward, is an example:

# %%
x = torch.tensor(3.0, requires_grad=True)
(first,) = torch.autograd.grad(Square.apply(x), x, create_graph=True)
(second,) = torch.autograd.grad(first, x)
print(f"x² at 3: slope {first.item():g}, made by {first.grad_fn.name()}; second derivative {second.item():g}")

# %% [markdown] syllabus="0.4b"
# ### A wrong second derivative without an error
#
# A right first derivative does not imply a right second derivative. The cube is x times x², so its derivative is
# `x² + x · 2x`. forward has already computed x², so it stores x² for backward:


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
# The second derivative is 8 instead of 12, and there is no error. Autograd does not record what forward computes. So
# in backward the saved `square` is a constant, and autograd computes 4x as the derivative of `square + 2x²`. The
# right derivative is 6x.

# %% [markdown] syllabus="0.4c"
# ### Sometimes an error, sometimes a wrong number
#
# The next Function stores only the finished derivative, the slope, for backward, so x does not occur in backward at
# all:


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
# One Function fails in two ways. The gradient that arrives in backward is called the upstream gradient. With
# `y.sum()`, the upstream gradient and the saved derivative are both constants, so torch finds nothing to
# differentiate and raises an error. With `y ** 2`, the upstream gradient is 2y, which depends on x. Now there is a
# graph, but one of its two branches is missing, and the result is 288 instead of 480. If your test only uses
# `sum()`, you may believe that this mistake always raises an error.

# %% [markdown] syllabus="0.4d"
# ### Two correct ways
#
# There are two correct ways. You can store only x for backward and compute everything from x, as `Square` does. Or
# you *return* the intermediate result from forward as an output, because outputs are part of the graph, and other
# intermediate results are not. In the next Function, the slope `3x²` is a second output. The first derivative is
# computed from this slope. So when you compute the second derivative, autograd calls this backward again, now with
# `grad_slope`, the gradient of the slope. The derivative of `3x²` is 6x, so backward adds `grad_slope * 6 * x`:


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
# You do not have to find such mistakes by hand. `gradcheck` compares the first derivative with finite differences
# (the change of the result when an input changes a little), and `gradgradcheck` does the same with the second
# derivative. `gradgradcheck` uses random upstream gradients, so it also finds mistakes that a test with `sum()`
# hides:

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
# Autograd cannot record what runs in NumPy or in a kernel of your own. If backward uses NumPy or such a kernel, the
# second derivative is wrong or missing. The solution is the same as for forward: turn backward into a Function as
# well. This second Function has the arguments `grad` and x, and its own backward returns a gradient for each of
# them.


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
# ### No second derivative: `once_differentiable`
#
# If you do not need the second derivative, an error is better than a wrong result. torch has a decorator for this,
# `once_differentiable`. It runs backward without recording anything, and attaches to each gradient a node that raises
# an error as soon as a gradient of this gradient arrives:

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
# ### Which calls raise the error
#
# The node of `once_differentiable` raises the error only when a gradient arrives at it, and no edge of the graph
# leads from this node to the arguments. `backward()` sends a gradient to every node that it can reach.
# `autograd.grad` first looks for the paths from the result to x, and visits only the nodes on these paths. It finds
# no path here, and raises another error, which is about x:

# %%
attempt(lambda: derivatives(CubeOnce.apply, torch.square))
attempt(lambda: derivatives(CubeOnce.apply, torch.sum))
x = torch.tensor(2.0, requires_grad=True)
(first,) = torch.autograd.grad(CubeOnce.apply(x) ** 2, x, create_graph=True)
print("with allow_unused=True:", torch.autograd.grad(first, x, allow_unused=True))

# %% [markdown]
# So if a message says "appears to not have been used", the cause may be `once_differentiable`. With a plain sum,
# there is no graph at all: that is what the second message says. And `allow_unused=True`, which the first message
# recommends, only replaces the error by None.
#
# There is a worse case. If there is another path from the result to x, `autograd.grad` uses only that path and
# raises no error. The next example is a loss with a gradient penalty, a term that depends on a derivative. This loss
# depends on a weight in two ways: directly, and through the derivative of y. The next cell computes the gradient of
# the loss with respect to the weight:


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
# The part of the gradient that comes from the penalty is 4·x·w = 24. This part is missing, and only `backward()`
# raises an error. Methods that differentiate a gradient, such as model-agnostic meta-learning (MAML), often call
# `autograd.grad`. With this Function, they compute wrong numbers without an error.

# %% [markdown] syllabus="0.4i"
# ### An error for every caller
#
# The error reaches every caller if its node is on the path from the gradient to the arguments. A Function has such a
# node: `apply` connects its results with all of its tensor arguments. So make the gradient a second Function, as
# `NumpyCube` does above, but raise the error in its backward. Stages 1 to 4 do the same:


# %%
class MultiplyBackward(Function):
    @staticmethod
    def forward(ctx, grad, x, w):
        return grad * w, grad * x

    @staticmethod
    def backward(ctx, *grads_2):
        raise RuntimeError("multiply: there are no second derivatives")


class MultiplyRefuses(MultiplyOnce):
    @staticmethod
    def backward(ctx, grad):
        return MultiplyBackward.apply(grad, *ctx.saved_tensors)


attempt(lambda: torch.autograd.grad(penalised(MultiplyRefuses.apply, x, w), w))
attempt(lambda: penalised(MultiplyRefuses.apply, x, w).backward())

# %% [markdown] syllabus="0.4j"
# ### Which saved tensors connect the node
#
# `MultiplyBackward` is connected with x and w because backward passes x and w to `apply`. They are arguments of the
# first Function, and a saved argument comes back as the same tensor, with its history. What if backward does not need
# any argument? It depends on the kind of the saved tensor:
#
# - An *argument* leads to itself.
# - A *result* of the Function comes back with the Function's own node as its `grad_fn`, so it leads to all arguments.
#   It costs no memory as long as the caller keeps the result, too.
# - An *intermediate result*, which forward has computed and does not return, leads nowhere.
#
# In the next cell, the gradient of the cube needs only the slope 3x², an intermediate result. Three versions save
# the slope alone, the slope and x, and the slope and the result. The loss `y + slope` has the derivative 3x² + 6x,
# which is 24 at x = 2:


# %%
class CubeBackward(Function):
    @staticmethod
    def forward(ctx, grad, slope, *connected):  # `connected` is not read: it only connects the node
        return grad * slope

    @staticmethod
    def backward(ctx, grad_2):
        raise RuntimeError("cube: there are no second derivatives")


class CubeSaves(Function):
    @staticmethod
    def forward(ctx, x, what):
        slope, y = 3 * x * x, x * x * x
        ctx.save_for_backward(slope, *{"slope": (), "slope and x": (x,), "slope and result": (y,)}[what])
        return y

    @staticmethod
    def backward(ctx, grad):
        return CubeBackward.apply(grad, *ctx.saved_tensors), None


def derivative_of_sum(function):
    """The derivative of function(x) plus its slope, at x = 2."""
    x = torch.tensor(2.0, requires_grad=True)
    y = function(x)
    (slope,) = torch.autograd.grad(y, x, create_graph=True)
    return torch.autograd.grad(y + slope, x)[0].item()


for what in ("slope", "slope and x", "slope and result"):
    print(f"saves {what:18}", end="")
    attempt(lambda what=what: derivative_of_sum(lambda x: CubeSaves.apply(x, what)))
print("slope is a result, too: ", derivative_of_sum(cube))

# %% [markdown]
# The first version is silently wrong: 12, although it has a Function that raises an error. The other two raise the
# error. The last line is the function `cube` from above, which returns the slope as a result and handles its
# gradient. It is the alternative to an error: the second derivative is right.
#
# Test an error for second derivatives as the last cells do: with `autograd.grad`, of a sum of the value and its
# gradient, for every pair of arguments.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/second_derivatives`: for each of four Functions, predict the second derivative. Then solve
# `0/cube`, and find the refusals that miss an argument in `0/connected_refusal`.
# `show("0/second_derivatives", "0/cube", "0/connected_refusal")` in a cell checks all three here.

# %% [markdown]
# ## The second derivatives in a picture
#
# The four versions of the cube, and the second derivative of `y ** 2` that autograd computes with each of them. The
# right one is 30x⁴:

# %%
places = torch.linspace(-2, 2, 81, dtype=torch.float64)


def second_derivative(function, x):
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad((function(x) ** 2).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0]


for (name, version), style in zip(versions.items(), ("-", "--", "--", ":"), strict=True):
    plt.plot(places, second_derivative(version, places), style, label=name)
plt.title("The second derivative of (x³)²")
plt.xlabel("x")
plt.legend()
plt.show()

# %% [markdown]
# ## Summary
#
# - Never change an argument in place, unless you call `mark_dirty`.
# - Tell autograd which outputs have no gradient. With `set_materialize_grads(False)`, backward must handle None for
#   every output.
# - Make sure that a second derivative is either right, which `gradgradcheck` verifies, or raises an error for every
#   caller: in a second Function that is connected with all arguments.
#
# Next: notebook 00c, about `gradcheck` and a layer of your own.
