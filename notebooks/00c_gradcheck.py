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
# # 00c: `gradcheck`, and a layer of your own
#
# `gradcheck` compares the derivatives of a Function with finite differences. This notebook explains how it does so,
# why it needs float64, and which mistakes it cannot find. Then it puts the parts of notebooks 00a and 00b together,
# in a fully connected layer.
#
# You need notebook 00b. The notebook takes about 25 minutes.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import warnings

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch.autograd import Function, gradcheck, gradgradcheck

from common import load

stage0 = load(0)
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
# Three cubes are from notebook 00b: a plain function, a Function with a right second derivative, and one whose second
# derivative is wrong.


# %%
def plain_cube(x):
    return x * x * x


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


class CubeKeepsSlope(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3 * x * x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


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
# Four wrong Functions pass the test. The first is `CubeKeepsSlope`. These are the other three:


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
# The cell below checks it.

# %%
from common.exercises import show

show("0/find_the_wrong_ones")

# %% [markdown] syllabus="0.6a"
# ## A fully connected layer
#
# A layer uses all of this. A fully connected layer computes `y = input @ weight.T + bias`. There are B
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
# - Use `gradcheck` in float64, with inputs of every kind: on both sides of each jump, in several sizes and layouts.
# - `gradcheck` finds a backward that does not match forward. Compare forward with a reference, and test the second
#   derivative with `gradgradcheck`.
# - A Function has no state: parameters and buffers belong in a module.
#
# `make stage-0` checks the functions of this notebook's stage. Next: `00d_torch_function`, about types of your own.
# Or continue with `01_python`, the recurrent cell that is the example of all later stages.
