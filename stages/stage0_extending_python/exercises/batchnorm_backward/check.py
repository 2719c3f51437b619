import torch

from common.exercises.judge import LearnerError, derived_by_hand, require, same

CHANNEL = (0, 2, 3)
ROUNDING = 64 * torch.finfo(torch.float64).eps
SIZES = ((3, 4, 2, 3), (1, 2, 7, 1), (5, 1, 3, 3))
LAYOUTS = ("contiguous", "channels last", "every other row", "expanded", "contiguous, x with h and w exchanged")


def check(work):
    batchnorm = getattr(work.load("conv_batchnorm"), "BatchNorm.apply")
    generator = work.numbers()
    for outside in (False, True):
        for size in SIZES:
            for layout in LAYOUTS:
                compare(batchnorm, size, outside, layout, generator)
    given = [torch.randn(size, generator=generator, requires_grad=True) for size in ((3, 4, 2, 3), (4,), (4,))]
    derived_by_hand(work, "conv_batchnorm", "BatchNorm.apply", *given, 0.1)


def compare(batchnorm, size, outside, layout, generator):
    def leaf(*shape):
        return torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_()

    eps = 0.1 + torch.rand((), generator=generator).item()
    x, gamma, beta, d_output = leaf(*size), leaf(size[1]), leaf(size[1]), leaf(*size).detach()
    if layout == "expanded":
        gamma.data[0] = 0  # after the other layouts, in which a missing gamma is recognised
    if layout == "channels last":
        d_output = d_output.contiguous(memory_format=torch.channels_last)
    if layout == "every other row":
        N, O, h, w = size
        d_output = leaf(N, O, 2 * h, w).detach()[:, :, ::2]
    if layout == "expanded":
        d_output = leaf(*size[1:]).detach().expand(size)  # the same for each image
    if "exchanged" in layout:
        x = x.detach().mT.contiguous().mT.requires_grad_()
    want = formula(x, gamma, beta, eps, outside)
    got = batchnorm(x, gamma, beta, eps, outside)
    where = "outside the root" if outside else "within the root"
    what = f"(N, O, h, w) = {size}, float64, epsilon {where}, d_output {layout}"
    what += ", the first gamma 0" * (layout == "expanded")
    same("output", got, want, what)
    require(got.requires_grad, "the output has no gradient: autograd does not know how it was computed")
    wanted = torch.autograd.grad(want, (x, gamma, beta), d_output)
    try:
        found = torch.autograd.grad(got, (x, gamma, beta), d_output, allow_unused=True)
    except LearnerError as error:
        raise LearnerError(error.kind, f"{error} ({what})", error.where) from None
    x_hat = formula(x, torch.ones_like(gamma), torch.zeros_like(beta), eps, outside).detach()
    for name, k, terms in (("d_beta", 2, d_output), ("d_gamma", 1, d_output * x_hat)):
        # The terms of a sum may nearly cancel, so its rounding error is relative to their magnitudes.
        tolerance = ROUNDING * (terms.abs().sum(CHANNEL) / wanted[k].abs()).max().item()
        same(name, found[k], wanted[k], what, tolerance_=tolerance)
    same("d_input", found[0], wanted[0], what, suspects=suspects(x, gamma, eps, outside, d_output))


def formula(x, gamma, beta, eps, outside):
    var, mean = torch.var_mean(x, CHANNEL, correction=0, keepdim=True)
    root = var.sqrt() + eps if outside else (var + eps).sqrt()
    return (x - mean) / root * gamma.view(-1, 1, 1) + beta.view(-1, 1, 1)


def suspects(x, gamma, eps, outside, d_output):
    """Wrong values that d_input may have, by the mistake that leads to them."""
    var, mean = torch.var_mean(x.detach(), CHANNEL, correction=0, keepdim=True)
    root = var.sqrt() + eps if outside else (var + eps).sqrt()
    x_hat, d_x_hat = (x.detach() - mean) / root, d_output * gamma.detach().view(-1, 1, 1)
    n = x[:, 0].numel()
    sum_d, sum_dx = (term.sum(CHANNEL, keepdim=True) for term in (d_x_hat, d_x_hat * x_hat))
    slope = root / var.sqrt() if outside else 1
    named = {
        "mean and root are treated as constants, but both depend on every x of the channel": d_x_hat,
        "the path through mean is missing": d_x_hat - slope * x_hat * sum_dx / n,
        "the path through root is missing": d_x_hat - sum_d / n,
        "gamma is missing": (d_x_hat - (sum_d + slope * x_hat * sum_dx) / n) / gamma.detach().view(-1, 1, 1),
        "n is not the number of images, but the count of numbers in a channel: N * h * w": d_x_hat
        - (sum_d + slope * x_hat * sum_dx) / len(x),
        "the sums are not divided by n": d_x_hat - sum_d - slope * x_hat * sum_dx,
    }
    if outside:
        named["slope belongs to the term with x_hat alone: it is the derivative of root, not of mean"] = (
            d_x_hat - slope * (sum_d + x_hat * sum_dx) / n
        )
        named["slope is not used, although epsilon is outside the root here"] = d_x_hat - (sum_d + x_hat * sum_dx) / n
    return {mistake: term / root for mistake, term in named.items()}
