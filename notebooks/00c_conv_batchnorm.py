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
# # 00c: convolution and batch norm in one Function
#
# Memory is what limits many a training run, and most of it holds numbers that only the backward pass will ask for.
# Here a Function of your own keeps fewer of them: a convolution and the batch norm behind it become one operation,
# which computes the tensor between them a second time instead of keeping it. You derive both gradients, prove them,
# see what goes wrong where a derivation is careless, and then weigh it: bytes, peak, time, and a network that learns.
#
# You need notebook 00a, and some idea of convolutions. About 60 minutes.
#
# (Other texts call something else by this name: *inference* folds a batch norm, whose statistics are fixed by then,
# into the weights of the convolution. This one is about *training*, where they depend on the batch.)

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
import torch.nn.functional as F
from torch import nn
from torch.autograd import gradcheck

from common import load

stage = load(0).conv_batchnorm  # the finished code of this notebook
torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# ## What training keeps
#
# PyTorch tells a hook about each tensor that it keeps for backward. One image batch through the two layers:

# %%
images = torch.randn(16, 3, 32, 32)  # N images, I channels, H x W pixels
layers = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16))


def tell(tensor):
    print(f"{tuple(tensor.shape)!s:18} {tensor.nbytes:9,} bytes")
    return tensor


with torch.autograd.graph.saved_tensors_hooks(tell, lambda tensor: tensor):
    output = layers(images)

# %% [markdown]
# The images, the weights, and then the tensor *between* the layers, (16, 16, 32, 32), which is as large as the
# output. Batch norm wants it for its gradient, and nobody else does. The next layer keeps its own input anyway, so
# in a deep network every second large tensor is one of these. They can be computed again from what is kept.
#
# For that, the two backward passes have to be ours.

# %% [markdown] syllabus="0.13a"
# ## The gradients of a convolution
#
# With stride s and padding p, and zero where an index leaves the image:
#
#     output[n,o,y,x] = sum over i,k,l of  weight[o,i,k,l] * input[n,i, y s + k - p, x s + l - p]
#
# Each term is a product, and the gradient of one factor is the gradient of the output times the other factor:
#
#     d_weight[o,i,k,l] = sum over n,y,x of  d_output[n,o,y,x] * input[n,i, y s + k - p, x s + l - p]
#     d_input[n,i,Y,X]  = sum over o,k,l of  weight[o,i,k,l] * d_output[n,o,y,x]   where Y = y s + k - p, and so X
#
# Read the first again: it slides `d_output` over `input`. It is a convolution in which images and channels have
# changed places, the kernel is `d_output`, and neighbours in it are s pixels apart, which is called dilation. The
# second spreads each pixel of `d_output` over the pixels that made it: a *transposed* convolution.


# %%
def convolution_d_weight(d_output, input, stride, padding):
    d_weight = F.conv2d(input.transpose(0, 1), d_output.transpose(0, 1), padding=padding, dilation=stride)
    return d_weight.transpose(0, 1)


def convolution_d_input(d_output, weight, stride, padding):
    return F.conv_transpose2d(d_output, weight, stride=stride, padding=padding)


# %%
def leaf(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def compare(name, got, want):
    if got.shape != want.shape:
        print(f"{name:18} WRONG: shape {tuple(got.shape)}, expected {tuple(want.shape)}")
        return
    error = (got - want).abs().max().item()
    print(f"{name:18} {'agrees' if error < 1e-12 else 'WRONG '}  largest difference from autograd {error:.1e}")


def try_convolution(stride, padding, H, W):
    input, weight = leaf(3, 2, H, W), leaf(4, 2, 3, 3)
    output = F.conv2d(input, weight, stride=stride, padding=padding)
    d_output = torch.randn_like(output)
    d_input, d_weight = torch.autograd.grad(output, (input, weight), d_output)
    compare("d_weight", convolution_d_weight(d_output, input, stride, padding), d_weight)
    compare("d_input", convolution_d_input(d_output, weight, stride, padding), d_input)


try_convolution(stride=1, padding=1, H=6, W=5)

# %% [markdown]
# A test at one convenient size proves little:

# %%
try_convolution(stride=2, padding=1, H=6, W=5)

# %% [markdown]
# At 6 rows, stride 2 leaves the last row unread: the kernel does not fit there once more. So `d_input` lacks a row,
# whose gradient is zero, and `d_weight` has one too many, of a position that the kernel never had. The stage's
# version adds the one and cuts the other:

# %%
import inspect

print(inspect.getsource(stage.convolution_d_input))
print(inspect.getsource(stage.convolution_d_weight))

# %%
for stride, padding, H, W in [(1, 0, 5, 5), (2, 1, 6, 5), (3, 2, 7, 8), (2, 0, 3, 4)]:
    passed = gradcheck(stage.Convolution.apply, (leaf(3, 2, H, W), leaf(4, 2, 3, 3), stride, padding))
    print(f"stride {stride}, padding {padding}, {H} x {W} pixels: gradcheck {passed}")

# %% [markdown] syllabus="0.13b"
# ## The gradient of batch norm
#
# For one channel, whose n = N·h·w numbers are called x:
#
#     mean = sum of x / n         var = sum of (x - mean)² / n         root = sqrt(var + eps)
#     x_hat = (x - mean) / root
#     y     = gamma * x_hat + beta
#
# The last line is soon done: `d_beta` is the sum of `d_y`, `d_gamma` the sum of `d_y * x_hat`, and
# `d_x_hat = gamma * d_y`. For the rest, the careless version. It takes mean and root for the numbers that they are
# just now, so that only `/ root` remains:


# %%
def batchnorm(x, gamma, beta, eps):
    mean = x.mean((0, 2, 3), keepdim=True)
    var = (x - mean).square().mean((0, 2, 3), keepdim=True)
    return (x - mean) / (var + eps).sqrt() * gamma.view(-1, 1, 1) + beta.view(-1, 1, 1)


def careless_d_x(d_x_hat, x_hat, root):
    return d_x_hat / root


# %%
x, gamma, beta, eps = leaf(3, 4, 2, 3), leaf(4), leaf(4), 0.1
y = batchnorm(x, gamma, beta, eps)
d_y = torch.randn_like(y)
want_x, want_gamma, want_beta = torch.autograd.grad(y, (x, gamma, beta), d_y, retain_graph=True)

root = (x.var((0, 2, 3), correction=0, keepdim=True) + eps).sqrt().detach()
x_hat = ((x - x.mean((0, 2, 3), keepdim=True)) / root).detach()
d_x_hat = d_y * gamma.detach().view(-1, 1, 1)

compare("d_beta", d_y.sum((0, 2, 3)), want_beta)
compare("d_gamma", (d_y * x_hat).sum((0, 2, 3)), want_gamma)
compare("careless d_x", careless_d_x(d_x_hat, x_hat, root), want_x)

# %% [markdown]
# Each x also moves mean and root, and with them *every* x_hat of its channel. Three paths, then:
#
# - straight: `d_x_hat / root`;
# - through the mean: when it rises by one, every x_hat falls by 1/root, so `d_mean = -sum of d_x_hat / root`, and
#   each x is 1/n of the mean. (The variance does not feel the mean: the sum of `x - mean` is zero.)
# - through the root: `x_hat = (x - mean) / root`, so `d_root = -sum of d_x_hat * x_hat / root`. And how fast does the
#   root grow with one x? `d var / d x = 2 (x - mean) / n` and `d root / d var = 1 / (2 root)`; together that is
#   `(x - mean) / (n root)`, which is `x_hat / n`.
#
# Added up, with "mean of" for "sum of ... / n":
#
#     d_x = (d_x_hat - mean of d_x_hat - x_hat * mean of (d_x_hat * x_hat)) / root


# %%
def d_x_of(d_x_hat, x_hat, root):
    mean_d = d_x_hat.mean((0, 2, 3), keepdim=True)
    mean_dx = (d_x_hat * x_hat).mean((0, 2, 3), keepdim=True)
    return (d_x_hat - mean_d - x_hat * mean_dx) / root


compare("d_x", d_x_of(d_x_hat, x_hat, root), want_x)

# %% [markdown]
# Both subtractions have a meaning. To shift all of a channel, or (but for eps) to stretch it, changes nothing in the
# output: so the gradient in these two directions has to be nothing. That can be asked of any version.

# %%
for name, version in (("careless", careless_d_x), ("right", d_x_of)):
    d_x = version(d_x_hat, x_hat, root)
    print(f"{name:9} sum over channel 0 {d_x[:, 0].sum():9.1e}   along x_hat {(d_x * x_hat)[:, 0].sum():9.1e}")

# %% [markdown]
# The first is zero, up to rounding. Of the second a part is left, eps / (var + eps): epsilon does not stretch with
# the channel, and is large here. (At 1e-5 it would be next to nothing.)
#
# A shift that changes nothing has a consequence for the convolution, too: a bias there is subtracted again at once.
# It learns nothing, which is why it is left out before a batch norm:

# %%
with_bias = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).double()
(with_bias(images.double()) ** 3).sum().backward()
for name, parameter in with_bias[0].named_parameters():
    print(f"largest gradient of the convolution's {name:6} {parameter.grad.abs().max():9.1e}")

# %% [markdown] syllabus="0.13c"
# ## Epsilon's place
#
# `nn.BatchNorm2d` divides by `sqrt(var + eps)`. Some code, and some texts, divide by `sqrt(var) + eps`. It is nearly
# the same number, and not the same gradient: now `d root / d var = 1 / (2 sqrt(var))`, and one x is
# `(x - mean) / (n sqrt(var))` of the root, which is `root / sqrt(var)` times what it was.
#
#     d_x = (d_x_hat - mean of d_x_hat - slope * x_hat * mean of (d_x_hat * x_hat)) / root
#
# with slope = 1 for eps within the root, and root / sqrt(var) for eps outside of it. `stage.BatchNorm` has both. The
# wrong version: eps outside in forward, and the gradient that belongs inside.


# %%
class Mixed(torch.autograd.Function):
    """Epsilon outside of the root in forward, and the gradient for epsilon within it."""

    @staticmethod
    def forward(ctx, x, eps):
        var, mean = torch.var_mean(x, (0, 2, 3), correction=0, keepdim=True)
        root = var.sqrt() + eps
        x_hat = (x - mean) / root
        ctx.save_for_backward(x_hat, root)
        return x_hat

    @staticmethod
    def backward(ctx, d_x_hat):
        return d_x_of(d_x_hat, *ctx.saved_tensors), None


# %%
one, zero = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)


def outside(x, eps):
    return stage.BatchNorm.apply(x, one, zero, eps, True)


for eps in (1e-5, 0.1):
    for name, function in (("mixed", Mixed.apply), ("its own gradient", outside)):
        passed = gradcheck(function, (leaf(3, 4, 2, 3), eps), raise_exception=False)
        print(f"eps = {eps:<6} {name:17} gradcheck {passed}")

# %% [markdown]
# At the eps that everybody uses, gradcheck lets the wrong version pass: the error is one part in a hundred thousand,
# and below its tolerance. **Test such a constant where it counts**: at a value that would be foolish in training.
#
# Where does it count in training? Where a channel hardly varies. And if one does not vary at all, as a channel of
# dead units behind a ReLU:

# %%
dead = torch.zeros(2, 4, 3, 3, dtype=torch.float64, requires_grad=True)
for name, is_outside in (("within", False), ("outside", True)):
    y = stage.BatchNorm.apply(dead, one, zero, 1e-5, is_outside)
    (d_x,) = torch.autograd.grad(y.sum(), dead)
    print(f"epsilon {name:8} output {y[0, 0, 0, 0].item()}, gradient {d_x[0, 0, 0, 0].item()}")

# %% [markdown]
# With eps outside, forward is fine and the gradient is NaN, because the slope of the square root is infinite at zero.
# That is no mistake of ours, autograd gives the same. So within the root is the better place, and from here on the
# only one.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/batchnorm_backward`. `make check EX=0/batchnorm_backward` in a terminal hands out the files and
# checks what you wrote; the cell below checks it here.

# %%
from common.exercises import show

show("0/batchnorm_backward")

# %% [markdown] syllabus="0.13d"
# ## One Function
#
# Now both in one. Forward keeps the input and the weights, as the convolution would, and of batch norm only what is
# as small as a channel. Backward begins with the convolution, a second time.


# %%
class Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, gamma, beta, eps, padding):
        between = F.conv2d(input, weight, padding=padding)
        var, mean = torch.var_mean(between, (0, 2, 3), correction=0, keepdim=True)
        root = (var + eps).sqrt()
        ctx.save_for_backward(input, weight, gamma, mean, root)  # not `between`
        ctx.padding = padding
        return (between - mean) / root * gamma.view(-1, 1, 1) + beta.view(-1, 1, 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_y):
        input, weight, gamma, mean, root = ctx.saved_tensors
        between = F.conv2d(input, weight, padding=ctx.padding)  # again
        x_hat = (between - mean) / root
        d_between = d_x_of(d_y * gamma.view(-1, 1, 1), x_hat, root)
        d_input = convolution_d_input(d_between, weight, 1, ctx.padding)
        d_weight = convolution_d_weight(d_between, input, 1, ctx.padding)
        return d_input, d_weight, (d_y * x_hat).sum((0, 2, 3)), d_y.sum((0, 2, 3)), None, None


# %%
arguments = leaf(3, 2, 5, 4), leaf(4, 2, 3, 3), leaf(4), leaf(4)
print("gradcheck:", gradcheck(lambda *arguments: Fused.apply(*arguments, 0.1, 1), arguments))

# %%
input, weight, gamma, beta = arguments
y = Fused.apply(*arguments, 0.1, 1)
plain = F.batch_norm(F.conv2d(input, weight, padding=1), None, None, gamma, beta, training=True, eps=0.1)
d_y = torch.randn_like(y)
compare("output", y, plain)
found, wanted = (torch.autograd.grad(result, arguments, d_y) for result in (y, plain))
for name, got, want in zip(("d_input", "d_weight", "d_gamma", "d_beta"), found, wanted, strict=True):
    compare(name, got, want)

# %% [markdown]
# The `once_differentiable` says that backward cannot be differentiated: it holds mean and root as plain numbers, as
# if they did not depend on the input. Fused Functions are published without that line. Then a second derivative,
# here of a penalty on the gradient, is silently wrong:


# %%
class Unguarded(Fused):
    backward = staticmethod(Fused.backward.__wrapped__)  # without once_differentiable


def penalty(output):
    weight.grad = None
    (gradient,) = torch.autograd.grad((output**3).sum(), weight, create_graph=True)
    gradient.square().sum().backward()
    return f"{weight.grad.norm().item():.1f}"


print("torch    ", penalty(F.batch_norm(F.conv2d(input, weight, padding=1), None, None, gamma, beta, True, eps=0.1)))
print("unguarded", penalty(Unguarded.apply(*arguments, 0.1, 1)))
try:
    penalty(Fused.apply(*arguments, 0.1, 1))
except RuntimeError as error:
    print("guarded  ", error)

# %% [markdown]
# The stage's version computes the same with fewer passes over memory: it normalises in place, where a fresh tensor
# for each step would cost time and, at the peak, the very bytes that were saved. It also keeps autocast out, which is
# on in forward and off in backward: what is computed again has to be what it was. (cuDNN may take another algorithm
# the second time; then the two differ in their last bits, and the gradient by as little.)

# %%
print(inspect.getsource(stage.ConvBatchNorm))

# %% [markdown] syllabus="0.13e"
# ## The layer
#
# Parameters and running statistics belong in an `nn.Module`. In training it calls the Function; for eval mode it
# keeps a running mean and variance, which the Function hands out as two further outputs without gradient. Batch norm
# normalises with the variance divided by n, and averages the one divided by n - 1: both are in `nn.BatchNorm2d`.

# %%
print(inspect.getsource(stage.ConvBatchNorm2d.forward))

# %% [markdown]
# In eval mode the statistics are constants, so batch norm is one factor and one summand for each channel, and both go
# into the convolution: that is the fusion of inference. Beside torch's two layers, over five batches:


# %%
def plain_layer(I, O):
    return nn.Sequential(nn.Conv2d(I, O, 3, padding=1, bias=False), nn.BatchNorm2d(O))


def fused_layer(I, O):
    return stage.ConvBatchNorm2d(I, O, 3, padding=1)


def copy_parameters(network, other):
    with torch.no_grad():
        for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
            mine.copy_(theirs)


# %%
torch.manual_seed(1)
plain, fused = plain_layer(3, 16), fused_layer(3, 16)
copy_parameters(fused, plain)
for batch in range(5):
    images = torch.randn(16, 3, 32, 32) * (batch + 1) + batch
    of_output = (fused(images) - plain(images)).abs().max()
    of_var = (fused.running_var - plain[1].running_var).abs().max()
    print(f"batch {batch}: largest difference of the output {of_output:.0e}, of running_var {of_var:.0e}")

# %%
plain.eval(), fused.eval()
print(f"largest difference in eval mode: {(fused(images) - plain(images)).abs().max():.0e}")

# %% [markdown]
# What does not fit is refused, by name. Without these lines a `gamma` of one number would be stretched over all
# channels, and a channel with a single number would be normalised to zero.

# %%
gamma, beta = torch.ones(4), torch.zeros(4)
attempts = [
    (torch.randn(2, 3, 8, 8), torch.randn(4, 2, 3, 3), gamma, beta),
    (torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3), torch.ones(1), beta),
    (torch.randn(1, 3, 3, 3), torch.randn(4, 3, 3, 3), gamma, beta),
    (torch.randn(2, 3, 8, 8).half(), torch.randn(4, 3, 3, 3), gamma, beta),
]
for arguments in attempts:
    try:
        stage.conv_batchnorm(*arguments)
    except RuntimeError as error:
        print(error)

# %% [markdown] syllabus="0.13f"
# ## Bytes that are saved
#
# The hook of the beginning, now as a sum: each storage counts once, because two tensors may share one, and what is
# there anyway, such as parameters, does not count.


# %%
def saved_bytes(forward, without=()):
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()  # its graph has to live until the count is made: no address is used twice
    there_anyway = {tensor.untyped_storage().data_ptr() for tensor in without}
    del result
    return sum(size for place, size in kept.items() if place not in there_anyway)


# %% [markdown]
# First a case that is known: exp keeps its result, 1000 numbers of 4 bytes, and a sum keeps nothing.

# %%
x = torch.randn(1000, requires_grad=True)
print(saved_bytes(lambda: x.exp()), saved_bytes(lambda: x.sum()))

# %% [markdown]
# Then a network of four layers, each with its ReLU.


# %%
def network(layer, depth=4, channels=16):
    parts = []
    for k in range(depth):
        parts += [layer(channels if k else 3, channels), nn.ReLU()]
    return nn.Sequential(*parts)


images = torch.randn(16, 3, 32, 32)
kept = {}
for name, layer in (("plain", plain_layer), ("fused", fused_layer)):
    model = network(layer)
    kept[name] = saved_bytes(lambda model=model: model(images), without=model.parameters())
    print(f"{name}: {kept[name]:9,} bytes")
between = 16 * 16 * 32 * 32 * 4
print(f"difference: {kept['plain'] - kept['fused']:,}, four tensors between layers: {4 * between:,}")
print(f"saved: {1 - kept['fused'] / kept['plain']:.0%}")

# %% [markdown]
# The difference is the four tensors, almost to the byte. (torch keeps an inverse root and a mean for each channel,
# as we do, beside running statistics.) What is left are the images and the results of the ReLUs: these are the
# inputs of the next layers, so each counts once.
#
# Now a version that cheats, or was written by somebody who has not read notebook 00a. It keeps `between` after all,
# as an attribute of `ctx`:


# %%
class Hidden(stage.ConvBatchNorm):
    @staticmethod
    def forward(ctx, input, weight, gamma, beta, eps, stride, padding):
        ctx.between = F.conv2d(input, weight, stride=stride, padding=padding)
        return stage.ConvBatchNorm.forward(ctx, input, weight, gamma, beta, eps, stride, padding)


# %%
weight, gamma, beta = (torch.randn(16, *more, requires_grad=True) for more in ((3, 3, 3), (), ()))
for Function in (stage.ConvBatchNorm, Hidden):
    count = saved_bytes(lambda Function=Function: Function.apply(images, weight, gamma, beta, 1e-5, 1, 1))
    print(f"{Function.__name__:14} {count:,} bytes")

# %% [markdown]
# The hook sees only what goes through `save_for_backward`. What really has to fit into memory is another figure.

# %% [markdown] syllabus="0.13g"
# ## Peak memory
#
# On a GPU, PyTorch's allocator keeps the peak: `torch.cuda.max_memory_allocated()`. On the CPU the profiler can write
# down each allocation and each release, those inside of operations too. Their running sum is the memory in use:

# %%
import json
import os
import tempfile

from torch.profiler import ProfilerActivity, profile

os.environ["KINETO_LOG_LEVEL"] = "6"  # the profiler's messages about itself stay off the page


def memory_in_use(step):
    """Bytes in use after each allocation and release within `step()`, beyond what was in use before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    with tempfile.TemporaryDirectory() as folder:
        profiler.export_chrome_trace(f"{folder}/trace.json")
        events = json.loads(Path(f"{folder}/trace.json").read_text())["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]")
    return torch.tensor([change for _, change in changes]).cumsum(0)


# %% [markdown]
# Known cases first, here too. The one below has 4 MB, then 6 MB, then only 3 MB in use:


# %%
def known():
    a = torch.empty(1_000_000)
    b = torch.empty(500_000)
    del a
    c = torch.empty(250_000)
    del b, c


print(memory_in_use(known).tolist())

# %%
for Function in (stage.ConvBatchNorm, Hidden):
    in_use = memory_in_use(lambda Function=Function: Function.apply(images, weight, gamma, beta, 1e-5, 1, 1)[0].sum())
    print(f"{Function.__name__:14} peak {in_use.max():,} bytes")

# %% [markdown]
# The hidden tensor shows. Now a whole training step of the four layers:


# %%
def training_step(model, images):
    model(images).square().mean().backward()


curves = {}
for name, layer in (("plain", plain_layer), ("fused", fused_layer)):
    model = network(layer)
    training_step(model, images)
    curves[name] = memory_in_use(lambda model=model: training_step(model, images)) / 2**20
    print(f"{name}: peak {curves[name].max():.1f} MiB")

# %%
for name, curve in curves.items():
    plt.step(torch.linspace(0, 1, len(curve)), curve, where="post", label=name)
plt.title("Memory in use during a step: forward, then backward")
plt.xlabel("allocations and releases, from the first to the last")
plt.ylabel("MiB")
plt.ylim(bottom=0)
plt.legend()
plt.show()

# %% [markdown]
# Forward climbs a stair, and each layer adds to it what it keeps; backward descends. Plain steps are twice as high.
# What a layer needs for itself, such as gradients, or the tensor that the fused one computes again, comes on top,
# but for one layer at a time. So the peak shrinks by less than the saved bytes do: a single layer gains nothing, and
# a deep network the most. (`peak_bytes` of the workbook is the function above; on a GPU, the allocator's own count.)

# %%
from common.cell.memory import peak_bytes

for depth in (2, 4, 8, 16):
    peaks = []
    for layer in (plain_layer, fused_layer):
        model = network(layer, depth)
        training_step(model, images)
        peaks.append(peak_bytes(lambda model=model: training_step(model, images)))
    print(f"{depth:2} layers: peak {peaks[0] / 2**20:5.1f} MiB plain, {peaks[1] / 2**20:5.1f} MiB fused,", end=" ")
    print(f"{1 - peaks[1] / peaks[0]:.0%} less")

# %% [markdown] syllabus="0.13i"
# ## Against `torch.utils.checkpoint`
#
# `checkpoint(function, input)` does what we did, for any function and in one line: it keeps the input, forgets the
# rest, and runs the whole function again in backward. Our layer can be had that way:

# %%
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Sequential):
    def forward(self, input):
        return checkpoint(super().forward, input, use_reentrant=False)


def checkpointed_layer(I, O):
    return Checkpointed(*plain_layer(I, O))


# %% [markdown]
# It can also take more at a time. Two layers with their ReLUs as one keep nothing but the input of the first:


# %%
def checkpointed_pairs():
    parts = list(network(plain_layer))
    return nn.Sequential(Checkpointed(*parts[:4]), Checkpointed(*parts[4:]))


MODELS = {
    "plain": lambda: network(plain_layer),
    "fused": lambda: network(fused_layer),
    "checkpoint": lambda: network(checkpointed_layer),
    "checkpoint, pairs": checkpointed_pairs,
}
BATCHES = (8, 16, 32, 64)

# %%
memory = {}
for name, make in MODELS.items():
    for batch in BATCHES:
        model, images = make(), torch.randn(batch, 3, 32, 32)
        training_step(model, images)
        saved = saved_bytes(lambda model=model, images=images: model(images), without=model.parameters())
        peak = peak_bytes(lambda model=model, images=images: training_step(model, images))
        memory[name, batch] = saved / 2**20, peak / 2**20

# %%
print(f"{'':19}{'saved for backward':>33}{'peak':>31}   MiB")
print(f"{'batch of':19}", *(f"{batch:7}" for batch in BATCHES * 2))
for name in MODELS:
    print(f"{name:19}", *(f"{memory[name, batch][k]:7.1f}" for k in range(2) for batch in BATCHES))
worst = max(memory["fused", batch][0] / memory["plain", batch][0] for batch in BATCHES)
print(f"\nthe fused network saves {1 - worst:.0%} of the bytes or more")

# %%
figure, panels = plt.subplots(1, 2, figsize=(11, 4))
MARKS = dict(zip(MODELS, ("o-", "s-", "^--", "v:"), strict=True))
for k, (axes, title) in enumerate(zip(panels, ("Saved for backward", "Peak of a training step"), strict=True)):
    for name in MODELS:
        axes.plot(BATCHES, [memory[name, batch][k] for batch in BATCHES], MARKS[name], label=name)
    axes.set_title(title)
    axes.set_xlabel("images in a batch")
    axes.set_ylabel("MiB")
    axes.set_ylim(bottom=0)
    axes.legend()
plt.show()

# %% [markdown]
# All of them grow with the batch, along straight lines. By the peak, the memory of two plain batches holds three
# fused ones. The Function and a checkpoint of each layer keep the same; the pairs keep least, and pay at the peak,
# where two layers are whole again. And what does it cost in time? From here on torch computes with one thread, so
# that the ratio tells of the work and not of what else runs here.

# %%
from common.measure.clock import interleave

torch.set_num_threads(1)
images = torch.randn(32, 3, 32, 32)
models = {name: make() for name, make in MODELS.items()}
calls = [lambda model=model: training_step(model, images) for model in models.values()]
times = dict(zip(models, interleave(calls, "cpu", rounds=9, block_seconds=0.05), strict=True))
for name, samples in times.items():
    print(f"{name:19}{samples.quartiles()[1] / 1000:6.1f} ms a step, {samples.ratio_to(times['plain']):.2f} of plain")

# %% [markdown]
# One convolution more, where forward and backward together have three: about a third more of what convolutions take.
# The Function repeats only that; a checkpoint also repeats batch norm, and whatever else is in it, and has some
# bookkeeping of its own.
#
# There is one thing more that runs twice:

# %%
for name in ("plain", "fused", "checkpoint"):
    torch.manual_seed(2)
    model = MODELS[name]()
    training_step(model, torch.randn(16, 3, 32, 32) + 1)
    first = dict(model.named_buffers())["0.running_mean" if name == "fused" else "0.1.running_mean"]
    print(f"{name:11} running mean after one step:", [round(value, 4) for value in first[:4].tolist()])

# %% [markdown]
# The checkpoint has run batch norm's forward again, and that averages into the running statistics: they have moved
# twice. In training nobody notices; eval mode uses another average than was meant. What is run again must have no
# side effects. (Random numbers are one, and `checkpoint` looks after these: it restores the generator for dropout.)
#
# So: a checkpoint for whatever is in the way, and for large parts of a network at once. A Function where it is worth
# an afternoon: it knows what need not be done again.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/recompute`. `show("0/recompute")` in a cell checks it here.

# %% [markdown] syllabus="0.13h"
# ## Does it learn the same?
#
# Handwritten digits, 1797 images of 8 x 8 pixels, collected by E. Alpaydin and C. Kaynak; they ship inside of
# scikit-learn. The last 297 are for the test. Both networks start with the same numbers and see the same batches, in
# float32 and once more in float64.

# %%
from sklearn.datasets import load_digits

digits = load_digits()
pixels = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16  # (1797, 1, 8, 8), from 0 to 1
labels = torch.tensor(digits.target)

figure, panels = plt.subplots(1, 10, figsize=(10, 1.3))
for axes, image, label in zip(panels, pixels, labels, strict=False):
    axes.imshow(image[0], cmap="gray_r")
    axes.set_title(label.item())
    axes.axis("off")
plt.show()


# %%
def classifier(layer):
    return nn.Sequential(
        layer(1, 16), nn.ReLU(), layer(16, 32), nn.ReLU(), nn.MaxPool2d(2), layer(32, 32), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 10),
    )  # fmt: skip


def train(model, dtype=torch.float32, epochs=4, batch=50):
    """The loss of each step; the batches are the same in each call."""
    model.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    order, losses = torch.Generator().manual_seed(0), []
    for _ in range(epochs):
        for chosen in torch.randperm(1500, generator=order).split(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(pixels[chosen].to(dtype)), labels[chosen])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def right(model):
    model.eval()
    with torch.no_grad():
        answers = model(pixels[1500:].to(next(model.parameters()).dtype)).argmax(1)
    return (answers == labels[1500:]).float().mean().item()


# %%
losses = {}
for dtype in (torch.float32, torch.float64):
    for name, layer in (("plain", plain_layer), ("fused", fused_layer)):
        torch.manual_seed(3)
        start = classifier(plain_layer)
        model = classifier(layer)
        copy_parameters(model, start)
        losses[name, dtype] = train(model, dtype)
        print(f"{name}, {dtype}: last loss {losses[name, dtype][-1]:.4f}, {right(model):.1%} of the test are right")

# %%
figure, (left, middle) = plt.subplots(1, 2, figsize=(11, 4))
left.plot(losses["plain", torch.float32], color="#bbbbbb", linewidth=6, label="plain")
left.plot(losses["fused", torch.float32], color="black", linewidth=1, label="fused")
left.set_title("Loss, float32")
for dtype in (torch.float32, torch.float64):
    difference = (losses["plain", dtype] - losses["fused", dtype]).abs()
    middle.semilogy(difference.cummax(0).values, label=str(dtype))
    print(f"largest difference of the two losses in {dtype}: {difference.max():.1e}")
middle.set_title("Largest difference so far")
for axes in (left, middle):
    axes.set_xlabel("step")
    axes.legend()
plt.show()

# %% [markdown]
# The curves lie on top of each other. They are not equal to the last bit, because sums are made in another order, and
# every step builds on the rounding of the one before. If that is all, then arithmetic with nine more digits must make
# the difference smaller by about as much, and it does. A wrong gradient would not care about digits.
#
# ## What you have now
#
# - the gradients of a convolution and of batch norm, derived, and tested where their constants count;
# - a layer that keeps half of the bytes for a third more work, and computes the same;
# - two measures of memory, and the reason to trust only one of them;
# - a yardstick: what `checkpoint` does in one line, a Function has to do better.
#
# Next: `01_python`, the cell that goes through all later stages.
