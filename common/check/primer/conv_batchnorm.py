"""Convolution and batch norm in one Function. Syllabus 0.13; conv_batchnorm.py of stage 0."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...build import modules
from ...cell.memory import peak_bytes, saved_bytes
from ..lines import Check
from .checks import agrees, leaf, passes, refuses_second_derivatives

fused = modules.load_stage(0).conv_batchnorm

LARGE_EPS = 0.5  # with the usual 1e-5, a gradient that ignores epsilon would pass
LEAST_SAVED, LEAST_AT_PEAK = 0.4, 0.2  # of the bytes of plain layers
# N, H, W, K, L, stride, padding: odd and even sizes, and strides that skip the last row or column.
SHAPES = ((3, 5, 4, 3, 2, 1, 0), (2, 6, 7, 3, 3, 2, 1), (1, 7, 5, 1, 1, 3, 0), (2, 3, 3, 3, 3, 1, 2))


def convolution() -> str:
    """The two gradients of a convolution, which are convolutions themselves."""
    for N, H, W, K, L, stride, padding in SHAPES:
        input, weight = leaf(N, 2, H, W), leaf(4, 2, K, L)
        agrees("the convolution", fused.Convolution.apply(input, weight, stride, padding),
               F.conv2d(input, weight, stride=stride, padding=padding))  # fmt: skip
        passes("the convolution", fused.Convolution.apply, input, weight, stride, padding)
    return f"gradcheck on {len(SHAPES)} shapes, with strides and padding"


def batchnorm() -> str:
    """Batch norm with epsilon inside the root, as in torch, and outside of it."""
    input, gamma, beta = leaf(3, 4, 2, 3), leaf(4), leaf(4)
    var, mean = torch.var_mean(input, (0, 2, 3), correction=0, keepdim=True)
    for outside, root in ((False, (var + LARGE_EPS).sqrt()), (True, var.sqrt() + LARGE_EPS)):
        where = "outside of the root" if outside else "within the root"
        want = (input - mean) / root * gamma.view(-1, 1, 1) + beta.view(-1, 1, 1)
        arguments = (input, gamma, beta, LARGE_EPS, outside)
        agrees(f"batch norm with epsilon {where}", fused.BatchNorm.apply(*arguments), want)
        passes(f"batch norm with epsilon {where}", fused.BatchNorm.apply, *arguments)
        refuses_second_derivatives("batch norm", fused.BatchNorm.apply, *arguments)
    return f"gradcheck with epsilon = {LARGE_EPS} within the root and outside of it"


def joined() -> str:
    """The fused Function agrees with torch's two layers and refuses a second derivative."""
    for N, H, W, K, L, stride, padding in SHAPES:
        arguments = leaf(N, 2, H, W), leaf(4, 2, K, L), leaf(4), leaf(4)

        def ours(*arguments: Tensor, options: tuple = (LARGE_EPS, stride, padding)) -> Tensor:
            return fused.conv_batchnorm(*arguments, *options)[0]

        input, weight, gamma, beta = arguments
        between = F.conv2d(input, weight, stride=stride, padding=padding)
        want = F.batch_norm(between, None, None, gamma, beta, training=True, eps=LARGE_EPS)
        agrees("the fused output", ours(*arguments), want)
        passes("the fused Function", ours, *arguments)
        d_output = torch.randn_like(want)
        pairs = (torch.autograd.grad(output, arguments, d_output) for output in (ours(*arguments), want))
        for name, got, expected in zip(("input", "weight", "gamma", "beta"), *pairs, strict=True):
            agrees(f"the fused d_{name}", got, expected)
    # Mean and root are saved without their history, so a second derivative would be wrong.
    refuses_second_derivatives("the fused Function", ours, *arguments)
    return f"gradcheck and torch's own gradients on {len(SHAPES)} shapes; a second derivative is refused"


def make_pair(I: int, O: int, K: int, **options: int) -> tuple[nn.Module, nn.Module]:
    """The two layers of torch, and the fused layer with the same initial values."""
    plain = nn.Sequential(nn.Conv2d(I, O, K, bias=False, **options), nn.BatchNorm2d(O))
    layer = fused.ConvBatchNorm2d(I, O, K, **options)
    with torch.no_grad():
        plain[1].weight.copy_(torch.randn(O))
        plain[1].bias.copy_(torch.randn(O))
        for mine, theirs in zip(layer.parameters(), plain.parameters(), strict=True):
            mine.copy_(theirs)
    return plain, layer


def module() -> str:
    """The layer's running statistics over a few batches, then eval mode."""
    plain, layer = (one.double() for one in make_pair(2, 4, 3, stride=2, padding=1))
    for batch in range(1, 4):
        input = torch.randn(5, 2, 6, 7, dtype=torch.float64) * batch + batch
        agrees("the layer in training", layer(input), plain(input))
    agrees("running_mean", layer.running_mean, plain[1].running_mean)
    agrees("running_var", layer.running_var, plain[1].running_var)
    plain.eval(), layer.eval()
    agrees("the layer in eval mode", layer(input[:1]), plain(input[:1]))
    return "training, running statistics and eval mode agree with torch's two layers"


def refused_arguments() -> str:
    """Each invalid argument is refused with an error that names it."""
    input, weight, gamma, beta = leaf(2, 3, 4, 4), leaf(5, 3, 3, 3), leaf(5), leaf(5)
    calls = (
        ("input", input[0], weight, gamma, beta),
        ("input", input[:1], weight[:, :, :2, :2], gamma, beta, 1e-5, 4),
        ("input", input[:, :, :2], weight, gamma, beta),
        ("input", input[:0], weight, gamma, beta),
        ("input", input.half(), weight.half(), gamma.half(), beta.half()),
        ("weight", input, weight[:, :2], gamma, beta),
        ("weight", input, weight.float(), gamma, beta),
        ("gamma", input, weight, gamma[:1], beta),
        ("beta", input, weight, gamma, beta.to("meta")),
        ("stride", input, weight, gamma, beta, 1e-5, 0),
        ("padding", input, weight, gamma, beta, 1e-5, 1, "same"),
        ("eps", input, weight, gamma, beta, 0.0),
    )
    for name, *arguments in calls:
        try:
            fused.conv_batchnorm(*arguments)
        except Exception as error:  # an error of torch itself means that our check missed the argument
            said = f"{type(error).__name__}: {error}"
            assert said.startswith(f"RuntimeError: conv_batchnorm: {name} "), (
                f"a wrong {name} raises an error that does not name it: {said}"
            )
            continue
        raise AssertionError(f"a wrong {name} is accepted")
    return f"{len(calls)} invalid calls, each refused with the name of the argument"


def memory_of_four_layers() -> str:
    """Bytes saved and the peak of a step, in a network of four layers."""
    pairs = [make_pair(I, 16, 3, padding=1) for I in (3, 16, 16, 16)]
    input = torch.randn(8, 3, 24, 24)
    saved, peak = [], []
    for layers in zip(*pairs, strict=True):
        network = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))
        saved.append(saved_bytes(lambda network=network: network(input), network.parameters()))

        def step(network: nn.Module = network) -> None:
            network(input).square().mean().backward()

        step()  # from now on, the parameters' gradients are allocated
        peak.append(peak_bytes(step))
    less, less_at_peak = (1 - mine / theirs for theirs, mine in (saved, peak))
    assert less >= LEAST_SAVED, f"the fused layers save {saved[1]:,} bytes for backward, plain ones {saved[0]:,}"
    assert less_at_peak >= LEAST_AT_PEAK, (
        f"a step of the fused layers takes {peak[1]:,} bytes at its peak, plain {peak[0]:,}"
    )
    return f"{less:.0%} fewer bytes saved for backward, {less_at_peak:.0%} fewer in use at the peak"


CHECKS = (
    Check("gradients of a convolution", convolution),
    Check("gradients of batch norm", batchnorm),
    Check("the two in one Function", joined),
    Check("the layer", module),
    Check("bad input", refused_arguments),
    Check("memory of four layers", memory_of_four_layers),
)
