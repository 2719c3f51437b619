"""Convolution and batch norm in one Function: the module, the primer's checks of it, and the memory that it saves."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from common.cell.memory import peak_bytes, saved_bytes
from common.check.primer import conv_batchnorm as primer
from common.check.primer.checks import leaf
from common.check.primer.conv_batchnorm import fused, make_pair
from support.proofs.files import stage_files

pytestmark = pytest.mark.proof("stages' tests", files=stage_files(0))

ONE, ZERO = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
LARGE = 16 * 8 * 12 * 12 * 4  # bytes of the tensor between the layers in `example`


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def example(device: str = "cpu") -> tuple[nn.Module, nn.Module, Tensor]:
    """Both versions of a layer, and a batch of images."""
    plain, layer = make_pair(3, 8, 3, padding=1)
    return plain.to(device), layer.to(device), torch.randn(16, 3, 12, 12, device=device)


# What `make stage-0` says of it ------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.13a", "0.13b", "0.13c", "0.13d", "0.13e", "0.13f", "0.13g")
@pytest.mark.parametrize("check", primer.CHECKS, ids=lambda check: check.run.__name__)
def test_the_primer_passes(check):
    assert len(check.run()) > 10


def whole_input_unpadded(d_output, shape, weight, stride, padding):
    return F.conv_transpose2d(d_output, weight, stride=stride, padding=padding)


def stride_for_dilation(d_output, input, shape, stride, padding):
    found = F.conv2d(input.transpose(0, 1), d_output.transpose(0, 1), padding=padding, stride=stride)
    return found.transpose(0, 1)[:, :, : shape[2], : shape[3]]


def careless(d_output, x_hat, gamma, root, slope=1):
    d_gamma = (d_output * x_hat).sum(fused.CHANNEL)
    return d_output * fused.column(gamma / root), d_gamma, d_output.sum(fused.CHANNEL)


right, Right = fused.batchnorm_backward, fused.ConvBatchNorm


def one_slope(d_output, x_hat, gamma, root, slope=1):
    return right(d_output, x_hat, gamma, root)


class Keeps(torch.autograd.Function):
    """Saves the tensor between the layers, through save_for_backward."""

    @staticmethod
    def forward(ctx, *arguments):
        *tensors, eps, stride, padding = arguments
        with torch.enable_grad():
            ctx.leaves = [tensor.detach().requires_grad_() for tensor in tensors]
            input, weight, gamma, beta = ctx.leaves
            between = F.conv2d(input, weight, stride=stride, padding=padding)
            ctx.output = F.batch_norm(between, None, None, gamma, beta, training=True, eps=eps)
        var, mean = torch.var_mean(between.detach(), fused.CHANNEL, correction=0)
        ctx.mark_non_differentiable(mean, var)
        ctx.save_for_backward(*tensors, between.detach())
        return ctx.output.detach(), mean, var

    @staticmethod
    def backward(ctx, d_output, *_):
        return *torch.autograd.grad(ctx.output, ctx.leaves, d_output, retain_graph=True), None, None, None


class Hides(Right):
    """Keeps tensors of that size as attributes of ctx, where no hook sees them."""

    @staticmethod
    def forward(ctx, input, weight, gamma, beta, eps, stride, padding):
        ctx.between = F.conv2d(input, weight, stride=stride, padding=padding)
        return Right.forward(ctx, input, weight, gamma, beta, eps, stride, padding)


def gradients(ctx, d_output, *_):
    arguments = d_output, *ctx.saved_tensors, ctx.stride, ctx.padding, ctx.needs_input_grad
    return *fused.ConvBatchNormBackward.forward(None, *arguments), None, None, None


class DifferentiatedTwice(Right):
    """Without a refusal: a second derivative goes wrong, here in words that help nobody."""

    backward = staticmethod(gradients)


class Unconnected(Right):
    """With a refusal that does not lead to the arguments: autograd.grad returns a number that lacks a part."""

    backward = staticmethod(once_differentiable(gradients))


class BatchNormUnconnected(fused.BatchNorm):
    """The same for batch norm alone."""

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output):
        found = fused.BatchNormBackward.forward(None, d_output, *ctx.saved_tensors, ctx.outside)
        return *found, None, None


MISTAKES = {
    "unread rows": ("convolution_d_input", whole_input_unpadded, primer.convolution, "fails gradcheck"),
    "dilation": ("convolution_d_weight", stride_for_dilation, primer.convolution, "fails gradcheck"),
    "careless": ("batchnorm_backward", careless, primer.batchnorm, "epsilon within the root fails gradcheck"),
    "careless, joined": ("batchnorm_backward", careless, primer.joined, "the fused Function fails gradcheck"),
    "slope": ("batchnorm_backward", one_slope, primer.batchnorm, "epsilon outside of the root fails gradcheck"),
    "keeps": ("ConvBatchNorm", Keeps, primer.memory_of_four_layers, "bytes for backward"),
    "hides": ("ConvBatchNorm", Hides, primer.memory_of_four_layers, "bytes at its peak"),
    "twice": ("ConvBatchNorm", DifferentiatedTwice, primer.joined, "the fused Function is refused, but the message"),
    "unconnected": ("ConvBatchNorm", Unconnected, primer.joined, "of the fused Function is not refused: it returns"),
    "batch norm unconnected": (
        "BatchNorm",
        BatchNormUnconnected,
        primer.batchnorm,
        "a second derivative of batch norm is not refused: it returns",
    ),
    "no check": (
        "check_arguments",
        lambda *arguments: None,
        primer.refused_arguments,
        "a wrong input raises an error that does not name it: IndexError",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_primer_finds_a_planted_mistake(mistake, monkeypatch):
    name, wrong, check, words = MISTAKES[mistake]
    monkeypatch.setattr(fused, name, wrong)
    with pytest.raises(AssertionError, match=words):
        check()


def test_the_primer_finds_a_biased_running_variance(monkeypatch):
    monkeypatch.setattr(Tensor, "lerp_", lambda self, end, weight: self.mul_(1 - weight).add_(0.9 * weight * end))
    with pytest.raises(AssertionError, match="running_mean is off by up to"):
        primer.module()


# Gradients ---------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.13a")
def test_gradients_of_a_convolution_on_many_shapes():
    for stride, padding, H, K in itertools.product((1, 2, 3), (0, 1, 2), (3, 4, 5, 6), (1, 2, 3)):
        input, weight = leaf(2, 2, H, H + 1), leaf(3, 2, K, K)
        want = F.conv2d(input, weight, stride=stride, padding=padding)
        got = fused.Convolution.apply(input, weight, stride, padding)
        d_output = torch.randn_like(want)
        for mine, theirs in zip(
            torch.autograd.grad(got, (input, weight), d_output),
            torch.autograd.grad(want, (input, weight), d_output),
            strict=True,
        ):
            torch.testing.assert_close(mine, theirs, msg=f"stride {stride}, padding {padding}, {H} rows, kernel {K}")


@pytest.mark.syllabus("0.13b")
def test_mean_and_variance_are_functions_of_the_input():
    x, gamma, beta = leaf(3, 4, 2, 3), leaf(4), leaf(4)
    y = fused.BatchNorm.apply(x, gamma, beta, 1e-9)
    (d_x,) = torch.autograd.grad(y, x, torch.randn_like(y))
    sums = d_x.sum(fused.CHANNEL), (d_x * (x - x.mean(fused.CHANNEL, keepdim=True))).sum(fused.CHANNEL)
    for total in sums:  # neither a shift of a channel nor a stretch changes the output
        torch.testing.assert_close(total, torch.zeros(4, dtype=torch.float64), atol=1e-6, rtol=0)


@pytest.mark.syllabus("0.13c")
def test_the_usual_epsilon_hides_the_wrong_gradient(monkeypatch):
    def outside(x: Tensor, eps: float) -> Tensor:
        return fused.BatchNorm.apply(x, ONE, ZERO, eps, True)

    assert gradcheck(outside, (leaf(3, 4, 2, 3), 0.1))
    monkeypatch.setattr(fused, "batchnorm_backward", one_slope)
    assert gradcheck(outside, (leaf(3, 4, 2, 3), 1e-5)), "as notebook 00f says, 1e-5 is too small to tell"
    assert not gradcheck(outside, (leaf(3, 4, 2, 3), 0.1), raise_exception=False)


@pytest.mark.syllabus("0.13c")
@pytest.mark.parametrize("outside", [False, True])
def test_a_dead_channel_has_a_gradient_only_with_epsilon_within(outside):
    x = torch.zeros(2, 4, 3, 3, dtype=torch.float64, requires_grad=True)
    y = fused.BatchNorm.apply(x, ONE, ZERO, 1e-5, outside)
    (d_x,) = torch.autograd.grad(y.sum(), x)
    assert not y.any()
    assert bool(d_x.isnan().all()) is outside
    assert outside or not d_x.any()


# The fused Function ------------------------------------------------------------------------------------------------


def shapes_saved(layer: nn.Module, images: Tensor) -> list[tuple[int, ...]]:
    shapes = []

    def pack(tensor: Tensor) -> Tensor:
        shapes.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(images)
    return shapes


@pytest.mark.syllabus("0.13d")
def test_nothing_between_the_layers_is_saved():
    plain, layer, images = example()
    assert (16, 8, 12, 12) in shapes_saved(plain, images)
    assert sorted(shapes_saved(layer, images)) == [(8,), (8,), (8,), (8, 3, 3, 3), (16, 3, 12, 12)]


@pytest.mark.syllabus("0.13d")
@pytest.mark.parametrize("layout", ["channels last", "transposed", "sliced", "expanded gradient"])
def test_layouts(layout):
    plain, layer, images = example()
    if layout == "channels last":
        images = images.contiguous(memory_format=torch.channels_last)
    if layout == "transposed":
        images = images.transpose(2, 3)
    if layout == "sliced":
        images = images[::2, :, 1:, 1:]
    images.requires_grad_()
    results = []
    for one in (plain, layer):
        y = one(images)
        d_y = torch.ones(()).expand(y.shape) if layout == "expanded gradient" else y.detach().sin()
        results.append([y, *torch.autograd.grad(y, [images, *one.parameters()], d_y)])
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, atol=2e-4, rtol=2e-4)


def test_only_what_is_wanted_is_computed():
    _, layer, images = example()
    found = torch.autograd.grad(layer(images).square().sum(), [layer.gamma, layer.beta])
    layer.weight.requires_grad_(False)
    again = torch.autograd.grad(layer(images).square().sum(), [layer.gamma, layer.beta])
    assert all(map(torch.equal, found, again))


def test_backward_can_run_twice_and_notices_a_changed_input():
    _, layer, images = example()
    loss = layer(images).square().sum()
    first = torch.autograd.grad(loss, layer.weight, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(loss, layer.weight, retain_graph=True)[0])
    images.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("inside", [False, True], ids=["backward outside", "backward inside"])
def test_autocast_does_not_make_the_second_convolution_another(inside):
    _, layer, images = example()
    want = torch.autograd.grad(layer(images).square().sum(), layer.weight)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = layer(images)
        got = torch.autograd.grad(output.square().sum(), layer.weight)[0] if inside else None
    if not inside:
        got = torch.autograd.grad(output.square().sum(), layer.weight)[0]
    assert output.dtype is torch.float32
    torch.testing.assert_close(got, want)


@pytest.mark.needs("gpu")
def test_on_a_gpu():
    plain, layer, images = example("cuda")
    with torch.backends.cudnn.flags(allow_tf32=False):
        torch.testing.assert_close(layer(images), plain(images), atol=1e-4, rtol=1e-4)
        sizes = [peak_bytes(lambda one=one: one(images).square().mean().backward(), "cuda") for one in (plain, layer)]
    assert min(sizes) > LARGE


# The layer ---------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.13e")
def test_the_layer_is_saved_and_loaded_with_its_statistics():
    _, layer, images = example()
    layer(images)
    other = fused.ConvBatchNorm2d(3, 8, 3, padding=1)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.eval()(images), layer.eval()(images))
    assert str(layer) == "ConvBatchNorm2d(3, 8, kernel_size=(3, 3), stride=1, padding=1)"


@pytest.mark.syllabus("0.13e")
def test_the_layer_is_created_on_a_device_and_with_a_dtype():
    layer = fused.ConvBatchNorm2d(3, 8, 3, device="meta", dtype=torch.float64)
    tensors = [*layer.parameters(), *layer.buffers()]
    assert {(tensor.device.type, tensor.dtype) for tensor in tensors} == {("meta", torch.float64)}
    assert fused.ConvBatchNorm2d(3, 8, 3, dtype=torch.float64)(torch.ones(2, 3, 5, 5).double()).dtype == torch.float64


@pytest.mark.syllabus("0.13e")
def test_without_gradients_nothing_is_kept_and_statistics_move():
    plain, layer, images = example()
    with torch.no_grad():
        assert not layer(images).requires_grad
        plain(images)
    torch.testing.assert_close(layer.running_mean, plain[1].running_mean)
    assert not layer.running_mean.requires_grad


def test_a_shape_is_refused_in_words():
    with pytest.raises(RuntimeError) as raised:
        fused.conv_batchnorm(torch.randn(2, 3, 8, 8), torch.randn(4, 2, 3, 3), torch.ones(4), torch.ones(4))
    assert str(raised.value) == (
        "conv_batchnorm: weight has shape (4, 2, 3, 3), but input of shape (2, 3, 8, 8) calls for (O, 3, K, L)"
    )


# Memory ------------------------------------------------------------------------------------------------------------


def test_saved_bytes_of_known_cases():
    x = torch.randn(1000, requires_grad=True)
    assert saved_bytes(lambda: x.exp()) == 4000
    assert saved_bytes(lambda: x.sum()) == 0
    assert saved_bytes(lambda: x * x[:10].sum(), without=[x]) == 4  # the sum; both uses of x share its storage


def test_peak_bytes_of_known_cases():
    def known() -> None:
        a = torch.empty(1_000_000)
        b = torch.empty(500_000)
        del a
        c = torch.empty(250_000)
        del b, c

    assert peak_bytes(known) == 6_000_000
    assert peak_bytes(lambda: None) == 0


def test_peak_bytes_sees_what_an_operation_takes_for_itself():
    x = torch.randn(64, 64, 64).transpose(0, 2)
    assert peak_bytes(lambda: x.reshape(-1).sum()) >= x.nbytes  # a copy that nobody holds


@pytest.mark.syllabus("0.13f")
def test_saved_bytes_shrink_by_the_tensor_between():
    plain, layer, images = example()
    saved = [saved_bytes(lambda one=one: one(images), one.parameters()) for one in (plain, layer)]
    assert 0 <= saved[0] - saved[1] - LARGE < 1000  # the rest are running statistics


@pytest.mark.syllabus("0.13g")
def test_the_peak_shrinks_more_in_a_deeper_network():
    shares = []
    for depth in (2, 6):
        peaks = []
        for layers in zip(*(make_pair(8, 8, 3, padding=1) for _ in range(depth)), strict=True):
            network = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))
            images = torch.randn(8, 8, 16, 16)
            network(images).sum().backward()
            peaks.append(peak_bytes(lambda network=network, images=images: network(images).sum().backward()))
        shares.append(peaks[1] / peaks[0])
    assert shares[1] < 0.8 < shares[0]  # two layers alone gain little: at the peak, one of them is whole again


@pytest.mark.syllabus("0.13i")
def test_a_checkpoint_saves_as_much_and_moves_the_statistics_twice():
    plain, layer, images = example()
    images.requires_grad_()

    def checkpointed(images: Tensor) -> Tensor:
        return checkpoint(plain, images, use_reentrant=False)

    kept = saved_bytes(lambda: checkpointed(images), plain.parameters())
    assert kept == images.nbytes
    assert 0 < saved_bytes(lambda: layer(images), layer.parameters()) - kept < 1000
    plain[1].reset_running_stats()
    checkpointed(images).sum().backward()
    assert plain[1].num_batches_tracked == 2


# Digits ------------------------------------------------------------------------------------------------------------


@pytest.mark.needs("sklearn")
@pytest.mark.syllabus("0.13h")
def test_the_loss_curve_on_real_digits_is_the_same():
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels, labels = torch.tensor(digits.images).unsqueeze(1) / 16, torch.tensor(digits.target)
    layers = zip(make_pair(1, 8, 3, padding=1), make_pair(8, 16, 3, stride=2, padding=1), strict=True)
    curves = []
    for first, second in layers:
        torch.manual_seed(1)
        parts = first, nn.ReLU(), second, nn.ReLU(), nn.Flatten(), nn.Linear(16 * 4 * 4, 10)
        model = nn.Sequential(*parts).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        losses = []
        for step in range(40):
            chosen = slice(32 * step, 32 * step + 32)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(pixels[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        curves.append(torch.tensor(losses))
    plain, ours = curves
    torch.testing.assert_close(ours, plain, atol=1e-6, rtol=1e-6)
    assert plain[-5:].mean() < plain[:5].mean() / 3, "it learns"


@pytest.mark.syllabus("0.13j")
@pytest.mark.parametrize("rows", [2, 50])
def test_batch_norm_normalises_with_the_biased_variance_and_keeps_the_unbiased_one(rows):
    """With the unbiased one, as in the published version, the output is smaller by a factor that depends on n."""
    x, layer = torch.randn(rows, 4, 2, 2), nn.BatchNorm2d(4, momentum=1.0)
    n, output = rows * 4, layer(x)
    scaled = {}
    for correction in (0, 1):
        var, mean = torch.var_mean(x, (0, 2, 3), correction=correction, keepdim=True)
        scaled[correction] = (x - mean) / (var + layer.eps).sqrt()
        assert torch.allclose(layer.running_var, var.flatten()) == (correction == 1)
    torch.testing.assert_close(scaled[0], output)
    torch.testing.assert_close(scaled[1] * (n / (n - 1)) ** 0.5, output, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(scaled[1], output, rtol=1e-3)
