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
# without any error message.
#
# You need Python and PyTorch. The notebook takes about 75 minutes.

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
# `gradcheck`, which a later section explains, compares the gradient with the derivative. Here the gradient and the
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
# in place, the rule is different: return the argument as it is, and call `mark_dirty`. A later section shows how.

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
# **Your turn:** `0/in_place`. `show("0/in_place")` in a cell checks it here.

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
# differentiate these operations, the gradient has a gradient, too. `Square` above, which stores its input for
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

# %% [markdown] syllabus="0.5a"
# ## How `gradcheck` works
#
# The derivative of forward at x is close to the central difference, `(f(x + eps) - f(x - eps)) / (2 eps)`. For
# several inputs and outputs, these differences form a matrix, the Jacobian, with a row for each output and a column
# for each input. backward computes the same matrix row by row. The next cell computes both matrices:


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
# `gradcheck(function, inputs)` compares the two Jacobians in one call. It also checks what happens if an output is
# not used: backward must treat its missing upstream gradient as zero. The next cell shows what `gradcheck` prints
# when the two Jacobians differ, for a cube with a wrong factor:


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
# ### Why `gradcheck` needs float64
#
# How accurate is the central difference with the step eps? There are two errors. The truncation error, which arises
# because the difference is not exactly the derivative, is proportional to eps². It becomes smaller with a smaller
# step. But in `f(x + eps) - f(x - eps)`, the difference is much smaller than the two numbers that are subtracted, so
# their rounding errors matter. The rounding error of the difference is divided by eps, so this error becomes larger
# with a smaller step.

# %%
steps = torch.logspace(-10, 0, 60, dtype=torch.float64)
errors = {}
for dtype in (torch.float64, torch.float32):
    at = torch.linspace(1, 2, 200, dtype=dtype)  # many places, of which we take the mean
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
# The curve has the shape of a valley: rounding errors dominate on the left, truncation errors on the right. In
# float64, the default step of 1e-6 is near the minimum. In float32, the rounding error at this step is several per
# cent. That is far more than `rtol` allows, so even a right gradient fails:

# %%
x = torch.tensor([0.7, 1.3, -2.1], requires_grad=True)  # float32
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    attempt(lambda: gradcheck(torch.sin, x))
print("and a warning:", str(said[0].message)[:70], "...")
print("in float64:", gradcheck(torch.sin, x.detach().double().requires_grad_()))

# %% [markdown]
# The elements of the two Jacobians may differ by `atol` (default 1e-5) plus `rtol` (default 1e-3) times the element.
# A relative error of one in a thousand is a lot:


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
# gradcheck rejects two more cases. The first case is an input whose elements share memory, as after `expand`:
# gradcheck cannot change one element at a time. The second case is a gradient that varies: gradcheck calls backward
# twice, and both results have to be equal to the last bit. If many GPU threads add to the same number, the order of
# the additions, and with it the rounding, can differ from call to call. If such differences are the only problem,
# set `nondet_tol` to the largest difference that you accept:


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
# ### What `gradcheck` cannot find
#
# gradcheck verifies that backward is the derivative of forward, at the inputs, sizes and layouts that you gave it.
# Four wrong Functions pass the test. The first is `CubeKeepsSlope` from above. These are the other three:


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
# So test with random inputs on both sides of every point where the derivative jumps, and with several sizes and
# layouts. Test the second derivative with `gradgradcheck`, or raise an error that reaches every caller. Compare
# forward with a reference. `make stage-2`, and the same command for every other stage, does all of this.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/find_the_wrong_ones`: write a test that distinguishes wrong Functions from right ones.
# `show("0/find_the_wrong_ones")` in a cell checks it here.

# %% [markdown] syllabus="0.6a"
# ## A fully connected layer
#
# This section uses all of the above. A fully connected layer computes `y = input @ weight.T + bias`. There are B
# examples with I inputs and O outputs each. `grad` has the shape of y, (B, O). The gradients are:
#
#     d_input  = grad @ weight       (B, I)
#     d_weight = grad.T @ input      (O, I)
#     d_bias   = sum of grad's rows  (O)
#
# The bias is optional, but `forward` always has an argument for it. For a layer without a bias, the caller passes
# None, and backward returns None as the gradient:


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
# ### The module for the layer
#
# A Function has no state. Learnt values belong in an `nn.Module`, each as an `nn.Parameter`, because optimizers and
# `state_dict` do not find plain tensors. The module also sets the initial values: they are distributed uniformly
# within ±1/√I, as in `torch.nn.Linear`. The next cell defines such a module, and a second, wrong one that has plain
# tensors instead:


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
        self.weight, self.bias = weight.requires_grad_(), bias.requires_grad_()  # wrong: not parameters


# %%
for kind in (MyLinear, PlainTensors):
    module = kind(100, 10)
    loss = module(torch.randn(8, 100)).square().sum()
    loss.backward()
    print(f"{kind.__name__:12} weight within ±{module.weight.abs().max().item():.4f}; it has a gradient:", end=" ")
    print(module.weight.grad is not None, "  state_dict:", list(module.state_dict()))
    attempt(lambda module=module: f"             {type(torch.optim.SGD(module.parameters(), 0.1)).__name__}: fine")

# %% [markdown]
# Both modules compute the result, and both have gradients. But the optimizer finds no parameters in the second
# module, and raises an error, and `state_dict` is empty. In a larger network, the optimizer would find the
# parameters of other layers and raise no error, so this layer would never learn. Register state that is not learnt,
# such as a running mean, with `register_buffer`. Such a buffer is part of the `state_dict`, and is moved to another
# device with the module, but optimizers do not find it.

# %%
module = MyLinear(3, 2)
module.register_buffer("mean", torch.zeros(3))
print("parameters:", [name for name, _ in module.named_parameters()], "  state_dict:", list(module.state_dict()))

# %% [markdown] syllabus="0.6c"
# ### No bias: `register_parameter(name, None)`
#
# Without a bias, the attribute `self.bias` must still exist, because forward and other code read it.
# `self.bias = None` is enough for that. `register_parameter` also reserves the name for a parameter:


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
# Neither module has a parameter, and both state_dicts are empty. But if a plain tensor is assigned to `bias` by
# mistake, the module with the registered name raises an error. The other module accepts the tensor, which is then
# never trained.

# %% [markdown] syllabus="0.6e"
# ### `extra_repr`
#
# When you print a module, its method `extra_repr` determines the text between the brackets. The module in
# `stages/stage0_extending_python/linear.py` has a Function, checks of the arguments, an optional bias and an
# `extra_repr`:

# %%
print(MyLinear(3, 4))
print(stage0.linear.Linear(3, 4))
print(stage0.linear.Linear(3, 4, bias=False))
attempt(lambda: stage0.linear.Linear(3, 4)(torch.randn(2, 5)))

# %% [markdown]
# The layer also learns. The task is to recover a linear map from noisy examples:

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
# ## Summary
#
# - Use a plain function first. Use a hook to look at a gradient or to change it. Use a Function for operations that
#   torch cannot differentiate, and to choose what is stored for backward.
# - backward returns a gradient for each argument. Save tensors with `save_for_backward` and store the rest on `ctx`.
#   Never change an argument in place, unless you call `mark_dirty`, and never change an incoming gradient.
# - Use `gradcheck` in float64, with inputs of every kind. Make sure that a second derivative is either right, which
#   `gradgradcheck` verifies, or raises an error for every caller: in a second Function that is connected with all
#   arguments.
#
# `make stage-0` checks the functions of this notebook's stage. Next: `00b_torch_function`, about types of your own.
# Or continue with `01_python`, the recurrent cell that is the example of all later stages.
