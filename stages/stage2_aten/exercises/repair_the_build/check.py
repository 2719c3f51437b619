import torch

from common.exercises.judge import Failure, LearnerError, require, same


def check(work):
    mix = work.load("_C").mix
    signature, numbers = mix.doc.partition("\n")[0], work.numbers()  # pybind11 writes it
    for name in ("a", "b", "share"):
        require(f"{name}: " in signature, f"help(_C.mix) shows no argument {name}: py::arg gives it its name")
    for shape in ((3, 7), (1, 33)):
        for dtype in (torch.float32, torch.float64):
            a, b = (torch.randn(shape, generator=numbers, dtype=dtype) for _ in "ab")
            share = float(torch.rand((), generator=numbers, dtype=torch.float64))
            mixture = a.double() * share + b.double() * (1 - share)
            want = torch.cat([a.double(), b.double(), mixture], dim=1)
            for call, got in (
                ("mix(a, b, share)", mix(a, b, share)),
                ("mix(share=share, b=b, a=a)", mix(share=share, b=b, a=a)),
            ):
                same(call, got, want, f"a and b {shape}, {dtype}", dtype)
    a, b = torch.randint(-9, 9, (2, 3, 7), generator=numbers)
    want = torch.cat([a, b, a * 0.25 + b * 0.75], dim=1)
    try:
        same("mix(a, b, 0.25)", mix(a, b, 0.25), want, "a and b of integers")
    except LearnerError as error:
        raise Failure(
            f"with integers, mix ends with an error ({error}): does it still call blend, as it did?"
        ) from None
