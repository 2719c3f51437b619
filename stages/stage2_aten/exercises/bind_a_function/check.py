import torch

from common.exercises.judge import Failure, LearnerError, require, same


def check(work):
    bound = work.load("_C")
    require("d_elu" in dir(bound), "the module has no d_elu: m.def gives a function its name in Python")
    for shape in ((3, 70), (1, 33), (5,)):
        for dtype in (torch.float32, torch.float64):
            e = torch.randn(shape, generator=work.numbers(), dtype=dtype).clamp(min=-1)
            want = torch.where(e > 0, 1.0, e.double() + 1)
            same(
                "d_elu(e)",
                bound.d_elu(e),
                want,
                f"e {tuple(shape)}, {dtype}",
                dtype,
                suspects={"this is e, unchanged": e},
            )
    text = bound.d_elu.doc
    if "(e: " not in text.partition("\n")[0]:  # the line that pybind11 writes
        raise Failure(f"help(d_elu) shows {text.splitlines()[0]}: the argument has no name. py::arg gives it one")
    require(len(text.strip().splitlines()) > 1, "help(d_elu) shows no docstring: pass it to m.def as a string")
    try:
        bound.d_elu(e=torch.zeros(3))
    except LearnerError:
        raise Failure(
            "d_elu(e=x) fails: only the docstring mentions e, the argument itself has no name. py::arg gives it one"
        ) from None
