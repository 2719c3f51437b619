import torch

from common.exercises.judge import made_by, require, same


def check(work):
    mix, numbers = work.load("mix").mix, work.numbers()
    for needed in ("ab", "a", "b"):
        chance = torch.rand((), generator=numbers).item()
        shares = (chance, 0.5, 0.0, 1.0)
        for shape, dtype, share in (
            ((3, 5), torch.float64, chance),
            *(((70,), torch.float32, one) for one in shares),
        ):
            a, b, grad = (torch.randn(shape, generator=numbers, dtype=torch.float64).to(dtype) for _ in range(3))
            given = {name: tensor.requires_grad_() for name, tensor in (("a", a), ("b", b)) if name in needed}
            y = mix(a, b, share)
            case = f"gradients for {' and '.join(needed)}, shape {shape}, share {share:.3f}"
            want = a.detach().double() * share + b.detach().double() * (1 - share)
            same("mix(a, b, share)", y, want, case, dtype)
            require(y.requires_grad, f"the result of mix has no gradient: mix does not call Mix.apply ({case})")
            made_by(work, "Mix", "mix", "mix", a, b, share)
            with work.counting() as counted:
                gradients = torch.autograd.grad(y, list(given.values()), grad, allow_unused=True)
            for name, gradient in zip(given, gradients, strict=True):
                factor = share if name == "a" else 1 - share
                same(f"d_{name}", gradient, grad.double() * factor, case, dtype)
            require(
                counted.all_calls <= len(needed),  # 1 - share is Python arithmetic
                f"backward computes a gradient that is not needed: {counted.all_calls} operations ({case}). "
                "ctx.needs_input_grad says which gradients are needed",
            )
