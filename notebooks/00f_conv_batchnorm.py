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
# # 00f: convolution and batch norm in one Function
#
# Memory limits the training of many networks. Most of this memory contains numbers that only the backward pass
# needs. In this notebook, you write a Function that stores fewer of these numbers. It *fuses* two layers, a
# convolution and the batch norm after it: one operation computes both. (Batch norm shifts and scales each channel to
# mean 0 and variance 1, and then applies a learnt scale and shift.) The Function does not store the tensor that the
# convolution passes to batch norm. Instead, backward computes this tensor a second time. You derive both gradients,
# verify them, and see what goes wrong if a derivation is careless. Then you measure what the Function gains and what
# it costs: bytes stored for backward, peak memory and time. At the end, you train a network with it.
#
# You need notebook 00a, and some knowledge of convolutions and of batch norm. The notebook takes about 60 minutes.
#
# (In other texts, "fusing convolution and batch norm" means something else. For *inference*, when the statistics of
# batch norm are fixed, these texts fold batch norm into the weights of the convolution. This notebook is about
# *training*, where the statistics depend on the batch.)

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
# ## What training stores for backward
#
# PyTorch can call a hook, a function that you write, for each tensor that is stored ("saved") for backward. This
# cell passes one batch of images through the two layers:

# %%
images = torch.randn(16, 3, 32, 32)  # N images, I channels, H x W pixels
layers = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16))


def tell(tensor):
    print(f"{tuple(tensor.shape)!s:18} {tensor.nbytes:9,} bytes")
    return tensor


with torch.autograd.graph.saved_tensors_hooks(tell, lambda tensor: tensor):
    output = layers(images)

# %% [markdown]
# The saved tensors are the images, the weights, and the tensor *between* the layers. Its shape is (16, 16, 32, 32),
# so it is as large as the output. Only the gradient of batch norm needs this tensor. In a deep network, each
# convolution saves its input, and each batch norm saves its input. So half of the large saved tensors are inputs of
# a batch norm. You can compute each input of a batch norm again from the input and the weights of the convolution,
# which are saved anyway.
#
# To do that, we have to write both backward passes ourselves.

# %% [markdown] syllabus="0.13a"
# ## The gradients of a convolution
#
# A convolution with stride s and padding p is the sum below. Where an index is outside the image, the input counts
# as zero:
#
#     output[n,o,y,x] = sum over i,k,l of  weight[o,i,k,l] * input[n,i, y s + k - p, x s + l - p]
#
# Each term is a product. In a product, the gradient of one factor is the gradient of the output times the other
# factor:
#
#     d_weight[o,i,k,l] = sum over n,y,x of  d_output[n,o,y,x] * input[n,i, y s + k - p, x s + l - p]
#     d_input[n,i,Y,X]  = sum over o,k,l of  weight[o,i,k,l] * d_output[n,o,y,x]
#                       where Y = y s + k - p and X = x s + l - p
#
# Look at the formula for `d_weight` again: `d_output` slides over `input`. So the formula is a convolution of
# `input` with `d_output` as its kernel. It sums over the images n, while forward sums over the input channels i. So
# images and channels have exchanged their roles. Neighbouring elements of the kernel are s pixels apart,
# which is called dilation. The formula for `d_input` spreads each pixel of `d_output` over the input pixels from
# which that output pixel was computed. This operation is called a *transposed* convolution.


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
# A test with one convenient size is not enough. With another stride, both gradients are wrong:

# %%
try_convolution(stride=2, padding=1, H=6, W=5)

# %% [markdown]
# With 6 rows, a kernel of 3 x 3, padding 1 and stride 2, the convolution reads all rows of the image, but not the
# row of padding at the bottom. With 5 rows, the output has the same size, and there is no unread row. The transposed
# convolution knows only the size of `d_output` and assumes 5 rows, so `d_input` lacks the last row. `d_weight` has
# four rows, one more than the kernel. The stage's version computes the missing row (`output_padding`) and removes
# the additional row:

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
# Take one channel. Its n = N·h·w numbers are called x:
#
#     mean = sum of x / n         var = sum of (x - mean)² / n         root = sqrt(var + eps)
#     x_hat = (x - mean) / root
#     y     = gamma * x_hat + beta
#
# The gradients of the last line are simple: `d_beta` is the sum of `d_y`, `d_gamma` is the sum of `d_y * x_hat`, and
# `d_x_hat = gamma * d_y`. For `d_x`, we start with a careless version. It treats mean and root as constants, so that
# only the division by root remains:


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
# Each x also changes mean and root, and through them *every* x_hat of its channel. So there are three paths:
#
# - The direct path gives `d_x_hat / root`.
# - Through the mean: if the mean increases by one, every x_hat decreases by 1/root, so
#   `d_mean = -sum of d_x_hat / root`. Each x contributes 1/n to the mean. (The mean also occurs in the formula of
#   the variance. But the derivative of the variance with respect to the mean is zero, because the sum of `x - mean`
#   is zero.)
# - Through the root: `x_hat = (x - mean) / root`, so `d_root = -sum of d_x_hat * x_hat / root`. We also need the
#   derivative of the root with respect to one x: `d var / d x = 2 (x - mean) / n` and
#   `d root / d var = 1 / (2 root)`. The product is `(x - mean) / (n root)`, which is `x_hat / n`.
#
# The sum of the three paths, with "mean of" for "sum of ... / n", is:
#
#     d_x = (d_x_hat - mean of d_x_hat - x_hat * mean of (d_x_hat * x_hat)) / root


# %%
def d_x_of(d_x_hat, x_hat, root):
    mean_d = d_x_hat.mean((0, 2, 3), keepdim=True)
    mean_dx = (d_x_hat * x_hat).mean((0, 2, 3), keepdim=True)
    return (d_x_hat - mean_d - x_hat * mean_dx) / root


compare("d_x", d_x_of(d_x_hat, x_hat, root), want_x)

# %% [markdown]
# Both subtractions have a meaning. The output does not change when you add the same number to the whole channel (a
# shift). Nor does the output change when you scale the channel, except for the effect of eps. So the gradient in
# these two directions has to be zero. You can test this for both versions:

# %%
for name, version in (("careless", careless_d_x), ("right", d_x_of)):
    d_x = version(d_x_hat, x_hat, root)
    print(f"{name:9} sum over channel 0 {d_x[:, 0].sum():9.1e}   along x_hat {(d_x * x_hat)[:, 0].sum():9.1e}")

# %% [markdown]
# With the right version, the first number is zero up to rounding. The second number is not quite zero: scaling the
# channel changes the variance, but not eps, so the output does change a little. This number is eps / (var + eps)
# times the number of the careless version. Here eps is large, 0.1. (With eps = 1e-5, the second number would be
# almost zero.)
#
# The output does not change when a channel is shifted, and this has a consequence for the convolution. A bias of the
# convolution only shifts the channel, and batch norm subtracts this shift again. Such a bias would learn nothing, so
# a convolution before a batch norm has no bias:

# %%
with_bias = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).double()
(with_bias(images.double()) ** 3).sum().backward()
for name, parameter in with_bias[0].named_parameters():
    print(f"largest gradient of the convolution's {name:6} {parameter.grad.abs().max():9.1e}")

# %% [markdown] syllabus="0.13c"
# ## Epsilon inside or outside the root
#
# `nn.BatchNorm2d` divides by `sqrt(var + eps)`. Some code and some texts divide by `sqrt(var) + eps`. The output is
# almost the same, but the gradient is different. Now `d root / d var = 1 / (2 sqrt(var))`. The derivative of the
# root with respect to one x is `(x - mean) / (n sqrt(var))`, which is `root / sqrt(var)` times the derivative from
# before.
#
#     d_x = (d_x_hat - mean of d_x_hat - slope * x_hat * mean of (d_x_hat * x_hat)) / root
#
# Here, slope is 1 for eps inside the root, and root / sqrt(var) for eps outside. `stage.BatchNorm` can do both. The
# next class is wrong: forward has eps outside, and backward computes the gradient for eps inside.


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
# With the usual eps of 1e-5, gradcheck accepts the wrong version, because the relative error is about 1e-5, and
# gradcheck allows 1e-3. **Test a constant such as eps at a value at which it has an effect**, even if you would
# never train with this value.
#
# When does eps have an effect in training? It has an effect when the numbers of a channel are almost equal. In some
# channels they are exactly equal, for example if every number is zero after a ReLU:

# %%
dead = torch.zeros(2, 4, 3, 3, dtype=torch.float64, requires_grad=True)
for name, is_outside in (("within", False), ("outside", True)):
    y = stage.BatchNorm.apply(dead, one, zero, 1e-5, is_outside)
    (d_x,) = torch.autograd.grad(y.sum(), dead)
    print(f"epsilon {name:8} output {y[0, 0, 0, 0].item()}, gradient {d_x[0, 0, 0, 0].item()}")

# %% [markdown]
# With eps outside, forward is right and the gradient is NaN, because the derivative of the square root is infinite
# at zero. Our formula is not wrong: autograd returns NaN, too. So it is better to have eps inside the root, as in
# the rest of this notebook.

# %% [markdown] syllabus="0.13j"
# ### The published variance (!)
#
# Another published difference: PyTorch's tutorial on this subject normalises with the *unbiased* variance, which
# divides by n - 1. `nn.BatchNorm2d` divides by n, and by n - 1 only for `running_var`. With n = 8, that is 7 %:

# %%
few, layer = torch.randn(2, 4, 2, 2), nn.BatchNorm2d(4, momentum=1.0)
for correction in (0, 1):
    var, mean = torch.var_mean(few, (0, 2, 3), correction=correction, keepdim=True)
    of_layer = (layer(few) / ((few - mean) / (var + layer.eps).sqrt())).mean().item()
    print(f"divided by n - {correction}: the layer's output is {of_layer:.3f} times as large,", end=" ")
    print("running_var equal:", torch.allclose(layer.running_var, var.flatten()))

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/batchnorm_backward`. `make check EX=0/batchnorm_backward` in a terminal creates the files of the
# exercise and checks what you wrote. The cell below makes the same check here.

# %%
from common.exercises import show

show("0/batchnorm_backward")

# %% [markdown] syllabus="0.13d"
# ## Both layers in one Function
#
# Now combine both layers in one Function. Like the convolution, forward stores the input and the weights for
# backward. For batch norm, forward stores only tensors with one number for each channel. Backward starts by
# computing the convolution a second time.


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
    def backward(ctx, d_y):
        return *FusedBackward.apply(d_y, *ctx.saved_tensors, ctx.padding), None, None


def fused_backward(d_y, input, weight, gamma, mean, root, padding):
    between = F.conv2d(input, weight, padding=padding)  # again
    x_hat = (between - mean) / root
    d_between = d_x_of(d_y * gamma.view(-1, 1, 1), x_hat, root)
    d_input = convolution_d_input(d_between, weight, 1, padding)
    d_weight = convolution_d_weight(d_between, input, 1, padding)
    return d_input, d_weight, (d_y * x_hat).sum((0, 2, 3)), d_y.sum((0, 2, 3))


class FusedBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *arguments):
        return fused_backward(*arguments)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("there are no second derivatives")


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
# The gradient is a Function of its own, `FusedBackward`, whose backward raises an error. The first gradient is
# right, but for autograd, the saved mean and root are constants in backward, as if they did not depend on the input.
# So autograd cannot compute the second derivative. If a fused Function raises no error, or only marks its backward
# with `once_differentiable`, whose error does not reach every caller (notebook 00b), a second derivative is wrong
# without an error. The example is a loss with a penalty on the gradient:


# %%
class Unguarded(Fused):
    @staticmethod
    def backward(ctx, d_y):
        return *fused_backward(d_y, *ctx.saved_tensors, ctx.padding), None, None


class Once(Unguarded):
    backward = staticmethod(torch.autograd.function.once_differentiable(Unguarded.backward))


def with_penalty(output):
    """The norm of the gradient for the weight of a loss with a gradient penalty."""
    loss = (output**3).sum()
    (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
    (d_weight,) = torch.autograd.grad(loss + gradient.square().sum(), weight)
    return f"{d_weight.norm().item():.1f}"


plain = F.batch_norm(F.conv2d(input, weight, padding=1), None, None, gamma, beta, True, eps=0.1)
print("torch              ", with_penalty(plain))
print("unguarded          ", with_penalty(Unguarded.apply(*arguments, 0.1, 1)))
print("once_differentiable", with_penalty(Once.apply(*arguments, 0.1, 1)))
try:
    with_penalty(Fused.apply(*arguments, 0.1, 1))
except RuntimeError as error:
    print("FusedBackward      ", error)

# %% [markdown]
# The version in stage 0 computes the same with fewer passes over memory. It normalises in place. A new tensor for
# each step would cost time. Each such tensor would also be as large as the one that the Function avoids storing, so
# the layer would need this memory again while it runs. This version also switches autocast off. (Autocast runs some
# operations in float16 or bfloat16 automatically.) The reason is that the second convolution has to compute the same
# numbers as the first convolution. But a training loop often runs forward with autocast and backward without
# autocast, and then the two results would differ. (On a GPU, torch's convolution library, cuDNN, may choose another
# algorithm the second time. Then the two results differ in their last bits, and the gradient also differs only in
# its last bits.)

# %%
for function in (stage.ConvBatchNorm, stage.ConvBatchNormBackward):
    print(inspect.getsource(function))

# %% [markdown] syllabus="0.13e"
# ## The layer
#
# Parameters and running statistics belong in an `nn.Module`. In training, the module calls the Function. For eval
# mode, the module keeps a running mean and a running variance. The Function returns the mean and the variance of the
# batch as two additional outputs without a gradient. There are two kinds of variance, as in `nn.BatchNorm2d`. To
# normalise, the layer divides the sum of `(x - mean)²` by `n`. For the running average, it divides the same sum by
# `n - 1`.

# %%
print(inspect.getsource(stage.ConvBatchNorm2d.forward))

# %% [markdown]
# In eval mode the statistics are constants, so batch norm multiplies each channel by one number and adds another
# number. Both numbers can be included in the weights and a bias of the convolution. This is the fusion for
# inference. The next cells compare our layer with torch's two layers, over five batches:


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
# The function `conv_batchnorm` of stage 0 rejects arguments that do not fit, and the error names them. Without these
# checks, a `gamma` of one number would be expanded to all channels, and a channel with a single number would be
# normalised to zero.

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
# ## How many bytes are stored for backward
#
# The hook of the first section printed the bytes of each saved tensor. The next function adds them up. Two tensors
# may share the same memory (their storage), so each storage counts once. Tensors that are in memory anyway, such as
# parameters, do not count.


# %%
def saved_bytes(forward, without=()):
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()  # keeps the graph until the count is complete, so that no address is reused
    there_anyway = {tensor.untyped_storage().data_ptr() for tensor in without}
    del result
    return sum(size for place, size in kept.items() if place not in there_anyway)


# %% [markdown]
# First test the function with known cases: exp stores its result for backward, which is 1000 numbers of 4 bytes, and
# a sum stores nothing.

# %%
x = torch.randn(1000, requires_grad=True)
print(saved_bytes(lambda: x.exp()), saved_bytes(lambda: x.sum()))

# %% [markdown]
# Then measure a network of four layers, each with its ReLU.


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
# The difference is the size of the four tensors, almost to the byte. (Like our Function, torch saves an inverse root
# and a mean for each channel, in addition to the running statistics.) The images and the results of the ReLUs
# remain. A ReLU and the layer after it store the same tensor, so this tensor counts only once.
#
# The next version hides a tensor from our count. It stores `between`, the tensor between the two layers, after all:
# as an attribute of `ctx`, which is one of the mistakes in notebook 00a:


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
# The hook sees only what goes through `save_for_backward`. The next section measures how much memory a step really
# needs.

# %% [markdown] syllabus="0.13g"
# ## Peak memory
#
# On a GPU, PyTorch's allocator records the peak: `torch.cuda.max_memory_allocated()`. On the CPU, the profiler can
# record each allocation and each release, including those inside operations. The running sum of these changes is the
# memory in use:

# %%
import json
import os
import tempfile

from torch.profiler import ProfilerActivity, profile

os.environ["KINETO_LOG_LEVEL"] = "6"  # hides the profiler's messages about itself


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
# Test this function with a known case as well. The function below uses 4 MB, then 6 MB, then only 3 MB:


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
# The peak includes the hidden tensor. Now measure a whole training step of the four layers:


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
# The curve rises in steps during forward, because each layer adds the tensors that it stores for backward. The curve
# falls during backward. The steps of the plain network are twice as high. While a layer runs, it also needs
# temporary memory, for example for gradients, or for the tensor that the fused layer computes again. This memory is
# needed for only one layer at a time. So the peak becomes smaller, but by less than the stored bytes. With a single
# layer, the peak does not change. The deeper the network is, the larger is the gain. (`peak_bytes`, in the next
# cell, measures the peak in the same way as `memory_in_use`. On a GPU, it uses the allocator's own count.)

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
# ## Comparison with `torch.utils.checkpoint`
#
# `checkpoint(function, input)` also stores less and computes again, in one line and for any function. It stores only
# the input, and runs the whole function again in backward. You can write our layer with it:

# %%
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Sequential):
    def forward(self, input):
        return checkpoint(super().forward, input, use_reentrant=False)


def checkpointed_layer(I, O):
    return Checkpointed(*plain_layer(I, O))


# %% [markdown]
# A checkpoint can also contain more than one layer. If two layers and their ReLUs are in one checkpoint, torch
# stores only the input of the first layer. We call this version "pairs":


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
print(f"\nthe fused network stores at least {1 - worst:.0%} fewer bytes")

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
# The memory of all versions grows linearly with the batch. At the peak, the fused network needs about two thirds of
# the memory of the plain network, so a batch can be 1.5 times as large. The Function and a checkpoint for each layer
# store the same number of bytes for backward. The pairs store the fewest bytes, but they need additional memory at
# the peak, when all tensors of two layers exist again.
#
# What does this cost in time? From here on, torch computes with one thread, so that the ratio depends on the work,
# and less on other programs that run on this machine.

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
# For each layer but the first, forward and backward together have three convolutions: one in forward, and one for
# each of the two gradients. (The first needs no gradient of its images.) Computing the tensor again adds a fourth
# convolution, so the convolutions take about a third more time. The Function repeats only the convolution. A
# checkpoint repeats everything in it, including batch norm, and has some overhead of its own.
#
# In a checkpoint, one more operation runs twice. You see it in the running mean:

# %%
for name in ("plain", "fused", "checkpoint"):
    torch.manual_seed(2)
    model = MODELS[name]()
    training_step(model, torch.randn(16, 3, 32, 32) + 1)
    first = dict(model.named_buffers())["0.running_mean" if name == "fused" else "0.1.running_mean"]
    print(f"{name:11} running mean after one step:", [round(value, 4) for value in first[:4].tolist()])

# %% [markdown]
# The checkpoint has run the forward of batch norm again, and forward updates the running statistics. So the
# statistics were updated twice. This does not change the training, but eval mode uses another average than intended.
# Code that runs again must not have side effects. (Random numbers are one such side effect, and `checkpoint` handles
# them: it restores the state of the generator for dropout.)
#
# So use a checkpoint for any part that needs too much memory, and for large parts of a network at once. A Function
# is more work for you, but it can be faster than a checkpoint, because it does not have to repeat everything.

# %% [markdown] tags=["exercise"]
# **Your turn:** `0/recompute`. `show("0/recompute")` in a cell checks it here.

# %% [markdown] syllabus="0.13h"
# ## Does the fused network learn the same?
#
# The data are handwritten digits: 1797 images of 8 x 8 pixels, collected by E. Alpaydin and C. Kaynak. They are
# part of scikit-learn. The last 297 images are the test set. Both networks start with the same numbers and get the
# same batches, in float32 and then in float64.

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
# The two curves coincide. They are not equal to the last bit, because the sums are computed in another order, and
# every step continues with the rounding error of the step before. If rounding is the only cause, arithmetic with
# nine more digits must make the difference smaller by about nine digits, and the plot shows that it does. An error
# in the gradient would not depend on the number of digits.
#
# ## Summary
#
# - You derived the gradients of a convolution and of batch norm, and tested them where their constants have an
#   effect.
# - You have a layer that stores half as many bytes for backward and computes the same, at the price of a third more
#   work.
# - You know two ways to measure memory: the count of saved tensors, from which a tensor can be hidden, and the peak,
#   which includes every tensor.
# - You know what to compare a Function with: it has to be better than `checkpoint`, which needs one line.
#
# Next: `01_python`, about the recurrent cell that all later stages use.
