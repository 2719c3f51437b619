"""Convolution and batch norm for training, in one Function that does not save the tensor between the two.

Sizes: N images, I channels of H x W pixels before the convolution, O channels of h x w pixels after it, a kernel of
K x L. Batch norm computes the mean and the variance of each channel over its n = N*h*w numbers in the batch.

`Convolution` and `BatchNorm` are the two operations on their own, for reading and for gradcheck. `ConvBatchNorm`
combines them, `conv_batchnorm` checks its arguments, and `ConvBatchNorm2d` is the layer.
"""

import torch
import torch.nn.functional as F
from torch import nn

CHANNEL = (0, 2, 3)  # the dimensions that a sum over one channel runs over


def column(tensor):
    """(O) -> (1, O, 1, 1): one number for each channel."""
    return tensor.view(1, -1, 1, 1)


class Convolution(torch.autograd.Function):
    """input (N, I, H, W), weight (O, I, K, L) -> (N, O, h, w)."""

    @staticmethod
    def forward(ctx, input, weight, stride, padding):
        ctx.save_for_backward(input, weight)
        ctx.stride, ctx.padding = stride, padding
        return F.conv2d(input, weight, stride=stride, padding=padding)

    @staticmethod
    def backward(ctx, d_output):
        input, weight = ctx.saved_tensors
        d_input = convolution_d_input(d_output, input.shape, weight, ctx.stride, ctx.padding)
        d_weight = convolution_d_weight(d_output, input, weight.shape, ctx.stride, ctx.padding)
        return d_input, d_weight, None, None


def convolution_d_input(d_output, shape, weight, stride, padding):
    """Maps d_output (N, O, h, w) back to the pixels that it was computed from: d_input, of `shape` (N, I, H, W)."""
    # If the stride does not divide evenly, forward skips the last `unread` rows and columns of the padded input.
    # Without output_padding, d_input would have that many rows and columns fewer than the input.
    unread = [(shape[2 + k] + 2 * padding - weight.size(2 + k)) % stride for k in range(2)]
    return F.conv_transpose2d(d_output, weight, stride=stride, padding=padding, output_padding=unread)


def convolution_d_weight(d_output, input, shape, stride, padding):
    """Convolves the input with d_output, with images and channels exchanged: d_weight, of `shape` (O, I, K, L)."""
    d_weight = F.conv2d(input.transpose(0, 1), d_output.transpose(0, 1), padding=padding, dilation=stride)
    return d_weight.transpose(0, 1)[:, :, : shape[2], : shape[3]]  # it is larger if some pixels were not read


class BatchNorm(torch.autograd.Function):
    """input (N, O, h, w), gamma (O), beta (O) -> (N, O, h, w).

    Divides by sqrt(var + eps), as nn.BatchNorm2d does, or by sqrt(var) + eps if `outside` is true.
    """

    @staticmethod
    def forward(ctx, input, gamma, beta, eps, outside=False):
        output = input.clone()
        mean, var, root = normalise_(output, eps, outside)
        ctx.save_for_backward(input, gamma, mean, var, root)
        ctx.outside = outside
        return output.mul_(column(gamma)).add_(column(beta))

    @staticmethod
    def backward(ctx, d_output):
        return *BatchNormBackward.apply(d_output, *ctx.saved_tensors, ctx.outside), None, None


class BatchNormBackward(torch.autograd.Function):
    """d_input, d_gamma and d_beta of `BatchNorm`, without a derivative.

    mean, var and root are saved without their history, so a second derivative would be wrong. This node leads to the
    saved input and gamma, so every attempt raises the error.
    """

    @staticmethod
    def forward(ctx, d_output, input, gamma, mean, var, root, outside):
        x_hat = (input - column(mean)).div_(column(root))
        slope = root / var.sqrt() if outside else 1
        return batchnorm_backward(d_output, x_hat, gamma, root, slope)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("batchnorm: the gradient is once_differentiable: there are no second derivatives")


def normalise_(x, eps, outside=False):
    """Overwrites x (N, O, h, w) with (x - mean) / root; returns mean, var and root, each (O)."""
    mean = x.mean(CHANNEL)
    x.sub_(column(mean))
    var = x.square().mean(CHANNEL)
    root = var.sqrt() + eps if outside else (var + eps).sqrt()
    x.div_(column(root))
    return mean, var, root


def batchnorm_backward(d_output, x_hat, gamma, root, slope=1):
    """Returns d_input, in the memory of x_hat (N, O, h, w), and d_gamma and d_beta, each (O).

    mean and var depend on every number of the channel; the two sums account for that.
    """
    n = x_hat.numel() // x_hat.size(1)
    d_gamma = (d_output * x_hat).sum(CHANNEL)
    d_beta = d_output.sum(CHANNEL)
    # d_input = gamma / root * (d_output - d_beta / n - slope * x_hat * d_gamma / n)
    scale = gamma / root
    d_input = x_hat.mul_(column(-scale * slope * d_gamma / n)).sub_(column(scale * d_beta / n))
    return d_input.addcmul_(d_output, column(scale)), d_gamma, d_beta


class ConvBatchNorm(torch.autograd.Function):
    """Both operations in one: saves the input, the weight and tensors of shape (O), and convolves again in backward.

    input (N, I, H, W), weight (O, I, K, L), gamma (O), beta (O) -> output (N, O, h, w), mean (O), var (O).
    """

    @staticmethod
    def forward(ctx, input, weight, gamma, beta, eps, stride, padding):
        output = convolve(input, weight, stride, padding)
        mean, var, root = normalise_(output, eps)
        ctx.save_for_backward(input, weight, gamma, mean, root)
        ctx.stride, ctx.padding = stride, padding
        ctx.mark_non_differentiable(mean, var)
        return output.mul_(column(gamma)).add_(column(beta)), mean, var

    @staticmethod
    def backward(ctx, d_output, *_):
        arguments = d_output, *ctx.saved_tensors, ctx.stride, ctx.padding, ctx.needs_input_grad
        return *ConvBatchNormBackward.apply(*arguments), None, None, None


class ConvBatchNormBackward(torch.autograd.Function):
    """d_input, d_weight, d_gamma and d_beta of `ConvBatchNorm`, without a derivative, as in `BatchNormBackward`."""

    @staticmethod
    def forward(ctx, d_output, input, weight, gamma, mean, root, stride, padding, needs_input_grad):
        x_hat = convolve(input, weight, stride, padding).sub_(column(mean)).div_(column(root))
        d_between, d_gamma, d_beta = batchnorm_backward(d_output, x_hat, gamma, root)
        # Both convolutions of `Convolution` in one call, the one that autograd itself would make.
        both = [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, [*needs_input_grad[:2], False]
        d_input, d_weight, _ = torch.ops.aten.convolution_backward(d_between, input, weight, None, *both)
        return d_input, d_weight, d_gamma, d_beta

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("conv_batchnorm: the gradient is once_differentiable: there are no second derivatives")


def convolve(input, weight, stride, padding):
    # Autocast is on in forward and off in backward. Both results must be equal, so it is switched off for both.
    with torch.autocast(input.device.type, enabled=False):
        return F.conv2d(input, weight, stride=stride, padding=padding)


def conv_batchnorm(input, weight, gamma, beta, eps=1e-5, stride=1, padding=0):
    """Convolves, then normalises each channel with the mean and variance of this batch.

    Shapes: input (N, I, H, W), weight (O, I, K, L), gamma (O), beta (O). Returns output (N, O, h, w) and, for running
    statistics, mean (O) and var (O), the latter divided by n. Raises RuntimeError for arguments that do not fit.
    """
    check_arguments(input, weight, gamma, beta, eps, stride, padding)
    return ConvBatchNorm.apply(input, weight, gamma, beta, eps, stride, padding)


def check_arguments(input, weight, gamma, beta, eps, stride, padding):
    if input.dtype not in (torch.float32, torch.float64):  # half precision is too inaccurate for a variance
        raise RuntimeError(f"conv_batchnorm: input has dtype {input.dtype}, expected torch.float32 or torch.float64")
    if input.dim() != 4:
        raise RuntimeError(f"conv_batchnorm: input has shape {tuple(input.shape)}, expected (N, I, H, W)")
    if weight.dim() != 4 or weight.size(1) != input.size(1):
        raise RuntimeError(
            f"conv_batchnorm: weight has shape {tuple(weight.shape)}, but input of shape {tuple(input.shape)} "
            f"calls for (O, {input.size(1)}, K, L)"
        )
    O = weight.size(0)
    for name, tensor in {"weight": weight, "gamma": gamma, "beta": beta}.items():
        if tensor.dtype != input.dtype:
            raise RuntimeError(f"conv_batchnorm: {name} has dtype {tensor.dtype}, but input has {input.dtype}")
        if tensor.device != input.device:
            raise RuntimeError(f"conv_batchnorm: {name} is on {tensor.device}, but input is on {input.device}")
        if name != "weight" and tensor.shape != (O,):
            raise RuntimeError(
                f"conv_batchnorm: {name} has shape {tuple(tensor.shape)}, but weight of shape "
                f"{tuple(weight.shape)} calls for ({O},)"
            )
    for name, value, least in (("stride", stride, 1), ("padding", padding, 0)):
        if not isinstance(value, int) or value < least:
            raise RuntimeError(f"conv_batchnorm: {name} is {value!r}, expected a whole number, {least} or more")
    if not eps > 0:
        raise RuntimeError(f"conv_batchnorm: eps is {eps}, expected more than 0")
    h, w = ((input.size(2 + k) + 2 * padding - weight.size(2 + k)) // stride + 1 for k in range(2))
    if min(h, w) < 1 or input.size(0) * h * w < 2:
        raise RuntimeError(
            f"conv_batchnorm: input of shape {tuple(input.shape)} leaves {input.size(0)} x {max(h, 0)} x {max(w, 0)} "
            "numbers in each channel, but a variance needs 2 or more"
        )


class ConvBatchNorm2d(nn.Module):
    """nn.Conv2d without bias and nn.BatchNorm2d in one layer: (N, I, H, W) -> (N, O, h, w).

    In training it calls the fused Function; in eval mode the running statistics are folded into the convolution.
    Parameters and buffers are created on `device` with `dtype`, as in torch's own layers.
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, eps=1e-5, momentum=0.1,
        device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.stride, self.padding, self.eps, self.momentum = stride, padding, eps, momentum
        # Initialised as in nn.Conv2d. There is no bias: batch norm subtracts the mean, and any constant with it.
        self.weight = nn.Conv2d(in_channels, out_channels, kernel_size, bias=False, **where).weight
        self.gamma = nn.Parameter(torch.ones(out_channels, **where))
        self.beta = nn.Parameter(torch.zeros(out_channels, **where))
        self.register_buffer("running_mean", torch.zeros(out_channels, **where))
        self.register_buffer("running_var", torch.ones(out_channels, **where))

    def forward(self, input):
        if not self.training:
            scale = self.gamma / (self.running_var + self.eps).sqrt()
            weight, bias = self.weight * scale.view(-1, 1, 1, 1), self.beta - self.running_mean * scale
            return F.conv2d(input, weight, bias, self.stride, self.padding)
        output, mean, var = conv_batchnorm(
            input, self.weight, self.gamma, self.beta, self.eps, self.stride, self.padding
        )
        n = output.numel() // output.size(1)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * n / (n - 1), self.momentum)  # the sample variance, divided by n - 1
        return output

    def extra_repr(self):
        """What `print(layer)` shows between the parentheses."""
        O, I, K, L = self.weight.shape
        return f"{I}, {O}, kernel_size=({K}, {L}), stride={self.stride}, padding={self.padding}"
