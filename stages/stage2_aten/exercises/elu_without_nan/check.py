import math

import torch

from common.exercises.judge import require, same


def check(work):
    d_elu = work.load("_C").d_elu
    numbers = work.numbers()
    for shape in ((3, 70), (33,), (2, 1, 5), (), (0, 3)):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            z = 2 * torch.randn(shape, generator=numbers, dtype=dtype)
            spaced = torch.stack([z, -z], -1)[..., 0]
            for laid_out in (z, z.transpose(0, -1), spaced, z.expand(3, *z.shape)):  # also without dimensions
                compare(d_elu, laid_out)
    for dtype in (torch.float32, torch.float64, torch.float16):
        largest = math.log(torch.finfo(dtype).max)
        offset = torch.rand(7, generator=numbers, dtype=dtype)
        compare(d_elu, torch.cat([largest + 1 + offset, -largest - offset, 1e4 * offset]))
        compare(d_elu, torch.tensor([0.0, 1e-30, -1e-30, math.inf, -math.inf], dtype=dtype))
        compare_small(d_elu, (1 - largest) * torch.rand(50, generator=numbers, dtype=dtype))
        if dtype != torch.float16:  # which cannot hold such small numbers exactly
            compare(d_elu, -20 - offset)
        lost = d_elu(torch.tensor([math.nan], dtype=dtype))
        require(
            bool(lost.isnan().all()),
            f"d_elu(nan) is {lost.tolist()[0]:g}: a NaN in z must stay NaN. Avoid the product 0 * inf instead of "
            "replacing its NaN",
        )


def compare_small(d_elu, z):
    """For z <= 0, whose results may be too small for the tolerance of `compare`: the quotient must be near 1."""
    got, want = d_elu(z).double(), z.double().exp()
    error = (got / want - 1).abs()
    worst = int(error.argmax())
    require(
        bool(error[worst] <= {torch.float16: 0.01, torch.float32: 1e-4, torch.float64: 1e-8}[z.dtype]),
        f"d_elu({z[worst]:g}) is {got[worst]:g} in {z.dtype}, expected exp({z[worst]:g}) = {want[worst]:g}",
    )
    limit = float(d_elu(z.new_tensor([-math.inf])))
    require(limit == 0, f"d_elu(-inf) is {limit:g} in {z.dtype}, expected exactly 0")


def compare(d_elu, z):
    got, want = d_elu(z), torch.where(z > 0, 1.0, torch.exp(z.double()))
    if isinstance(got, torch.Tensor) and got.shape == z.shape and got.isnan().any():
        worst = z[got.isnan()].flatten()[0].item()
        exponential = z.new_tensor(worst).exp().item()
        require(
            False,
            f"d_elu({worst:g}) is NaN in {z.dtype}, expected {float(worst > 0):g}: exp({worst:g}) is {exponential:g} "
            "there, and 0 * inf is NaN",
        )
    suspects = {
        "this is z, unchanged": z,
        "this treats z as the result of elu: it uses z + 1 instead of exp(z)": torch.where(
            z > 0, 1.0, z.double() + 1
        ),
        "this is elu itself, not its derivative": torch.nn.functional.elu(z.double()),
        "this is 1 for z <= 0, too": torch.ones_like(z),
    }
    about = f"z {tuple(z.shape)}, {z.dtype}"
    if not z.is_contiguous():
        about += f", not contiguous: its strides are {z.stride()}"
    same("d_elu(z)", got, want, about, z.dtype, suspects=suspects)
