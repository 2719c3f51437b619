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
# In stages 2 to 4 of this workbook, torch calls your C++ and CUDA code from a few lines of Python: an
# `autograd.Function`. This class has two parts: forward computes a result, and backward computes the gradient. (In
# stages 5 and 6, you give the same two parts to torch without this class.) This notebook explains each part of the
# class with very short functions as examples, without any C++. If you have written such a class before, go to
# `01_python`, and come back when a gradient is wrong: much of this notebook is about gradients that are wrong
# without any error message. Notebook 00b continues with changes in place, several outputs and second derivatives, and
# 00c with `gradcheck` and a layer that uses all of this.
#
# You need Python and PyTorch. The notebook takes about 40 minutes.

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
from torch.autograd import Function, gradcheck

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


# %% [markdown] syllabus="0.1d"
# ## When you do not need a Function
#
# For almost every function that torch can compute, torch also computes the first, the second and every further
# derivative. You only write the formula:


# %%
def plain_cube(x):
    return x * x * x


x = torch.tensor(2.0, requires_grad=True)
(first,) = torch.autograd.grad(plain_cube(x), x, create_graph=True)
(second,) = torch.autograd.grad(first, x, create_graph=True)
(third,) = torch.autograd.grad(second, x)
print(f"{plain_cube(x):g}, then {first:g}, {second:g} and {third:g}; by hand x³, 3x², 6x and 6")

# %% [markdown]
# With an `autograd.Function` (from here on, a Function), your own code computes the derivatives instead of torch,
# and your code can be wrong. So a plain function is the first choice. This notebook is about the cases in which a
# plain function is not enough.

# %% [markdown] syllabus="0.1f"
# ## To look at a gradient, use a hook
#
# To look at a gradient during backward, or to change it, you do not need a Function. In forward, autograd records
# the operations in a graph. On any tensor in this graph, you can register a hook, a function that you write. In
# backward, autograd calls the hook with the gradient of that tensor. If the hook returns a tensor, autograd
# continues with that tensor instead.

# %%
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 10
y.register_hook(lambda grad: print("arrived:", grad))
y.register_hook(lambda grad: grad.clamp(max=5.0))
(y * torch.tensor([1.0, 6.0, 9.0])).sum().backward()
print("x.grad: ", x.grad)

# %% [markdown]
# A module has hooks of its own. `register_full_backward_hook` calls a function with the gradients of the module's
# inputs and the gradients of its outputs, each as a tuple. If the function returns a tuple, this tuple replaces the
# gradients of the inputs:

# %%
layer = torch.nn.Linear(3, 2)
layer.register_full_backward_hook(
    lambda module, of_inputs, of_outputs: print("inputs:", of_inputs, "\noutputs:", of_outputs)
)
layer(torch.ones(1, 3, requires_grad=True)).sum().backward()

# %% [markdown] syllabus="0.1a"
# ## A call that autograd cannot see
#
# `numpy.interp` interpolates linearly between points. torch has no such function. Each point has a position, called
# a knot, and a value. Between two knots, the derivative is the slope of the line through the two points. Outside all
# knots, the result is constant and the derivative is 0.

# %%
knots, values = [0.0, 1.0, 3.0], [1.0, 2.0, -1.0]
x = torch.tensor([-0.5, 0.5, 2.0], requires_grad=True)
attempt(lambda: numpy.interp(x, knots, values))

# %% [markdown]
# torch raises an error, and the message recommends calling `detach`. If you follow this advice, the error is gone:

# %%
y = torch.tensor(numpy.interp(x.detach().numpy(), knots, values))
print("right numbers:", y)
print("y.requires_grad:", y.requires_grad)
print("gradient of y + x² at x:", torch.autograd.grad((y + x**2).sum(), x)[0], "which is that of x² alone")

# %% [markdown]
# The gradient lacks the part that went through NumPy, and there is no error. You can see this in the graph. Backward
# goes through the graph from the result to the arguments. Each operation is a node of the graph. The attribute
# `next_functions` of a node lists the nodes that backward visits next, one for each argument of the operation. For
# an argument that autograd does not track, because no gradient is needed, the list contains None:

# %%
print((y + x**2).grad_fn.next_functions)

# %% [markdown]
# Here is a Function for `numpy.interp`. A Function has two methods: `forward` computes the result, and `backward`
# turns the gradient of the output into the gradients of the arguments. `forward` stores in `ctx`, the context, what
# `backward` will need. Autograd does not record operations within `forward`, so `x.numpy()` is allowed there.


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
# The next cell plots the function and its derivative at many points. It uses the finished version of the Function,
# from `stages/stage0_extending_python/functions.py`, which also checks the knots:

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
# ### When `torch.compile` must also handle the function
#
# `torch.compile` turns Python code into faster, generated code. To do that, it *traces* the Python code: it reads
# the code and lists the operations of torch in it. `torch.compile` also traces the code inside a Function. With
# `fullgraph=True`, `torch.compile` raises an error if it cannot trace something, such as a call of NumPy. If you
# need that option, write an operator with `torch.library.custom_op` instead of a Function. `torch.compile` does not
# trace the code of an operator, so you have to describe the output, its shape and dtype, with `register_fake`. You
# write the gradient with two functions, `backward` and `setup_context`. The section "The parts of a Function"
# explains both. Stage 5 defines operators in C++.


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
# **Your turn:** `0/through_numpy`. `make check EX=0/through_numpy` in a terminal creates the files of the exercise
# and checks what you wrote. The cell below makes the same check here.

# %%
from common.exercises import show

show("0/through_numpy")

# %% [markdown] syllabus="0.1b 0.1c"
# ## Store less for backward, and run fewer operations
#
# The first reason to write a Function was a call that autograd cannot see. The second reason: you choose which
# tensors are stored for backward, and which operations run. The example is swish, `x * sigmoid(beta * x)`. The next
# function counts the bytes that autograd stores for backward. It does not count the argument and the result, which
# are in memory anyway:


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
# These bytes are the result of the sigmoid. But backward can compute this result again from x. And torch has a
# single operation, `silu`, with which you can compute the whole function: swish is `silu(beta * x) / beta`. Autograd
# computes the derivative of `silu` with the operation `silu_backward`. You, too, can call the operations that
# autograd calls: they are in `torch.ops.aten`.


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
# For autograd, the Function is one node of the graph, and you decide which operations this node runs. Count the
# operations of both versions, forward and backward. On a GPU, each of these operations runs a kernel, a program for
# the GPU:

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
# The Function needs five operations instead of eight, and stores no tensor besides x. From stage 3 on, you write
# kernels, each of which replaces several operations.

# %% [markdown] syllabus="0.1h"
# ## A gradient that is not the derivative
#
# The third reason to write a Function: sometimes the true derivative is not useful. The derivative of rounding is 0,
# so a network that rounds its weights would not learn. The usual solution is to act as if the derivative were 1, and
# to pass the gradient on unchanged. This is called a straight-through gradient. `Round` does this in a Function, and
# `plain_round` does the same without a Function:


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
# `gradcheck`, which notebook 00c explains, compares the gradient with the derivative. Here the gradient and the
# derivative differ on purpose, so the check should fail. Test such a Function in another way: compare the result
# with `torch.round`, and the gradient with the gradient that you intended. In this example, the intended gradient is
# that of `plain_round`, which uses `detach` and needs no Function. So here, too, the plain function is the better
# choice.

# %% [markdown] syllabus="0.2a"
# ## The parts of a Function
#
# You can also split `forward` into two parts: a `forward` without `ctx`, which only computes, and `setup_context`,
# which stores what backward needs.


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
# The gradients are the same. The functions of `torch.func`, such as `grad`, take a function and return another
# function, for example one that computes the gradient. They call `forward` and `setup_context` separately, so they
# need the form in two parts. The form with a single `forward` is shorter, and most of the code that you will read
# uses it.

# %%
attempt(lambda: torch.func.grad(Product.apply)(torch.tensor(2.0), torch.tensor(5.0)))
attempt(lambda: torch.func.grad(ProductInParts.apply)(torch.tensor(2.0), torch.tensor(5.0)))

# %% [markdown] syllabus="0.2i"
# ### Jacobians and batches with `torch.func`
#
# `grad` computes a gradient, and `jacrev` the Jacobian: the matrix of the derivatives of all outputs with respect to
# all inputs. Both go from the result back to the arguments, as backward does. This is called reverse mode. For
# reverse mode, a Function with `forward`, `setup_context` and `backward` is enough, if `backward` consists of torch
# operations. `jacfwd` also computes the
# Jacobian, but in forward mode: from the arguments to the result. `jacfwd` needs a method `jvp`, which turns a
# change of the arguments into the change of the result. `hessian` computes the second derivatives with both modes,
# so it needs `backward` and `jvp`. `vmap` takes a function of one example, and returns a function that handles a
# whole batch at once. `vmap` needs a rule that says how the Function works on inputs with one more dimension.
# `jacfwd` and `hessian` use `vmap`, so they need this rule, too.


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

warnings.filterwarnings("ignore", "`torch.jit", FutureWarning)  # raised inside torch, not by our code
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
# With `generate_vmap_rule = True`, torch writes the rule for `vmap`: it runs the methods of the Function on batches,
# so these methods must consist of torch's own operations. If the methods call NumPy or a kernel of yours, you have
# to write `vmap` by hand. `setup_context` receives only the inputs and the outputs. If backward needs an
# intermediate result of forward, forward has to return this result as an output.

# %% [markdown] syllabus="0.2g 0.2h"
# ## Call a Function with `apply`
#
# `apply` runs forward and adds a node to the graph. A direct call of `forward` looks similar and returns the same
# numbers. The next Function makes the difference visible, because its backward is wrong:


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
# A direct call of `forward` is an ordinary function call: autograd records the operations inside `forward`, but not
# the Function, and the backward of the Function never runs.
#
# `apply`, however, is not an ordinary function. Older versions of torch reject every keyword argument. Newer
# versions turn keyword arguments into positional ones. But they do not always fill in defaults: the next call gives
# `shift` by keyword and leaves out `factor`, which comes before `shift`. torch does not fill in the default of
# `factor`:


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
# So put a plain function around each Function. The plain function has the keywords, the defaults, the checks and the
# docstring:


# %%
def affine(x, factor=1.0, shift=0.0):
    """The map factor * x + shift."""
    return Affine.apply(x, factor, shift)


print(affine(x, shift=5.0))

# %% [markdown] syllabus="0.2b"
# ## Which arguments autograd tracks
#
# An argument may be any object: a number, a string, a list. Autograd tracks a tensor only if the tensor is itself an
# argument. It does not track a tensor inside a list or a dict:


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
# ## Return one gradient for each argument
#
# backward gets one gradient for each output. It returns one gradient for each argument of forward, in the same
# order, and None for an argument without a gradient. In the next Function, the class attribute `returned` sets the
# number of values that backward returns:


# %%
class Shifted(Function):
    returned = 2

    @staticmethod
    def forward(ctx, x, shift, name="unused"):
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
# The call had two arguments, so one gradient is too few. torch also accepts three and four gradients, because it
# drops additional Nones at the end. So one backward works for calls with and without the optional `name`. If an
# additional value at the end is not None, torch raises an error, because there is no argument to which this gradient
# belongs. A gradient for an argument that is not a tensor is an error, too.


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
# A gradient whose shape does not fit is an error as well. The dtype is not checked: torch converts a gradient of
# another dtype without a warning. In the next Function, backward computes in float16. The digits that are lost there
# stay lost.


# %%
class InHalf(Shifted):
    @staticmethod
    def backward(ctx, grad):
        return (grad / 3).half(), None  # float16 has three digits


(gradient,) = torch.autograd.grad(InHalf.apply(x, 5).sum(), x)
print(gradient.dtype, gradient.tolist())

# %% [markdown] syllabus="0.2e"
# ## Skip the gradients that are not needed
#
# A frozen weight needs no gradient, and neither does input data. `ctx.needs_input_grad` contains a boolean for
# each argument, so backward can skip the gradients that are not needed:


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
# ## Do not change the incoming gradient
#
# Doubling a gradient in place avoids an allocation, and often the result is right. Here is a case in which the
# result is wrong: a residual connection, `x + 2x`, where a Function computes `2x`:


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
# An addition passes the same gradient tensor to both of its arguments. `Double` changed this tensor before the other
# branch had read it, so the first element of the result is 2 + 2 instead of 2 + 1. gradcheck does not find the
# mistake, because `Double` is right when it is used alone. `grad * 2` is safe, because it creates a new tensor.

# %% [markdown] syllabus="0.2j"
# ## Return a new tensor from forward
#
# torch lets a Function return its argument, or a view of a part of the argument. This works until the result or the
# argument is changed in place. When a view is changed in place, autograd records a new history for it, and our
# backward would not be part of this history. The gradient could then be wrong. So torch raises an error:


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
# `clone()` makes a copy, which takes time and memory, and avoids the problem. If forward itself changes its argument
# in place, the rule is different: return the argument as it is, and call `mark_dirty`. Notebook 00b shows how.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/repair_the_function`, a Function with three of these mistakes. `show("0/repair_the_function")`
# in a cell checks it here.

# %% [markdown] syllabus="0.3a 0.3b 0.3c"
# ## What `ctx` is for
#
# Save tensors with `save_for_backward`: inputs, outputs and any other tensors that forward has computed. Store
# everything else as an attribute of `ctx`. You can also store a tensor as an attribute, and usually the gradient is
# right. But there are three differences from `save_for_backward`. You see the first one when the tensor is changed
# before backward runs:


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
# The gradient should be 2 and 4. `save_for_backward` records the version of the tensor, a number that increases when
# the tensor is changed in place. If the version has changed when backward reads the tensor, torch raises an error.
# For an attribute there is no such check: the gradient is computed from the changed numbers, and there is no error.
# On the other hand, `save_for_backward` accepts only tensors. A number is an error:


# %%
class Power(Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x, exponent)
        return x**exponent


attempt(lambda: Power.apply(torch.ones(2, requires_grad=True), 3))

# %% [markdown]
# The exception is None: `save_for_backward` accepts None, for an optional argument that is absent. Call
# `save_for_backward` only once, with all tensors: a second call replaces what the first call has stored, without a
# warning.


# %%
class SavesTwice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(None, x + 1)  # wrong if the x above is needed
        return x * x

    @staticmethod
    def backward(ctx, grad):
        print("saved:", ctx.saved_tensors)
        return grad


SavesTwice.apply(torch.zeros(2, requires_grad=True)).sum().backward()

# %% [markdown] syllabus="0.3i 0.3j"
# ### An attribute keeps tensors in memory
#
# The second difference: after backward, autograd frees the saved tensors, and a second backward through the same
# graph raises an error. An attribute is not freed, and there is no error:

# %%
for kind in (Square, SquareByAttribute):
    y = kind.apply(torch.ones(2, requires_grad=True)).sum()
    y.backward()
    print(f"{kind.__name__:17} backward again:", end=" ")
    attempt(lambda y=y: y.backward() or "runs, with the tensor that is still there")

# %% [markdown]
# The third difference is a memory leak. exp is its own derivative, so a Function for exp stores the output for
# backward. The output has a reference to its node in the graph, and the node has a reference to `ctx`. With
# `ctx.y = y`, `ctx` has a reference to the output, so the references form a cycle.

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
    """Whether an output of Exp is still in memory when no variable refers to it any more."""
    y = Exp.apply(torch.zeros(3, requires_grad=True), keep)
    output = weakref.ref(y)
    gc.disable()  # otherwise it may run in between
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
# `save_for_backward` recognises outputs and creates no cycle. With the attribute, the output stays in memory until
# Python's garbage collector runs. The collector runs after a certain number of new objects, whatever their size in
# bytes, so a GPU may run out of memory before that. torch does not recognise a *view* of the output as an output. A
# saved view creates a cycle that the garbage collector cannot see, and this cycle disappears only when backward
# runs. So store the output itself, not a view.

# %% [markdown]
# ## Summary
#
# - Use a plain function first. Use a hook to look at a gradient or to change it. Use a Function for operations that
#   torch cannot differentiate, and to choose what is stored for backward.
# - backward returns a gradient for each argument. Save tensors with `save_for_backward` and store the rest on `ctx`.
#   Never change an incoming gradient.
#
# Next: notebook 00b, about changes in place, outputs and second derivatives. Or continue with `01_python`, the
# recurrent cell that is the example of all later stages.
