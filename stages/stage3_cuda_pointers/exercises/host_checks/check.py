import re

import torch

from common.exercises.judge import CALLS, Failure, LearnerError, agree, cases

B, I, S = 3, 5, 70
NAMES = ("input", "weights", "bias", "old_h", "old_cell")
UNSUPPORTED = {torch.half: "Half", torch.bfloat16: "BFloat16", torch.int64: "Long", torch.complex64: "Complex"}
# What a message may say of the right dtype, shape or device: the value itself, or where it follows from.
EXPECTED = {
    "dtype": r"(?i:float|double|input)",
    "shape": r"\d|\b[BIS]\b|(?i:dimension|matrix|input|weights)",
    "device": r"(?i:cuda|cpu|input)",
}


def check(work):
    shapes = {"input": (B, I), "weights": (3 * S, S + I), "bias": (3 * S,), "old_h": (B, S), "old_cell": (B, S)}
    right = {name: torch.randn(shape, generator=work.numbers(), device="cpu") for name, shape in shapes.items()}
    right = {name: tensor.to(work.device) for name, tensor in right.items()}
    wrong = [
        (name, tensor.to(dtype), "dtype") for name, tensor in right.items() for dtype in (torch.float64, torch.half)
    ]
    wrong += [(name, right[name].new_zeros(shape), "shape") for name, shape in SHAPES]
    wrong += [(name, tensor.to("meta"), "device") for name, tensor in right.items() if name != "input"]
    for name, tensor, what in wrong:
        given = f"{name} with {what} {shown(tensor, what)}"
        if name == "input":  # the message may name any argument that does not match the others
            expect_rejection(work, right | {name: tensor}, NAMES, given)
        else:
            expect_rejection(work, right | {name: tensor}, (name,), given, shown(tensor, what), what)
    elsewhere = work.beside(CALLS).call_with_elsewhere
    for number, name in enumerate(NAMES[1:], start=1):
        given = f"{name} on another CUDA device than input"
        expect_error(lambda: elsewhere("_C", "forward", number, *right.values()), (name,), given)  # noqa: B023 called at once
    longer = {name: right[name].new_zeros(3 * S + 1, *right[name].shape[1:]) for name in ("weights", "bias")}
    expect_rejection(work, right | longer, ("weights", "bias"), f"a call with weights and bias of {3 * S + 1} rows")
    for dtype, value in UNSUPPORTED.items():
        every = {name: tensor.to(dtype) for name, tensor in right.items()}
        given = f"dtype {value}, which the kernels do not support, in all five tensors"
        expect_rejection(work, every, ("input",), given, value, "dtype")
    every = {name: tensor.to("meta") for name, tensor in right.items()}
    expect_rejection(work, every, ("input",), "device meta, which is not CUDA, in all five tensors", "meta", "device")
    agree(work.cell(), cases(work, [(B, I, S), (4, 1, 1), (1, 1, 4), (0, 4, 8)]))


SHAPES = [
    *(("input", shape) for shape in ((B, I + 1), (B + 1, I), (B, I, 1), (I,))),
    *(
        ("weights", shape)
        for shape in ((3 * S, S + I + 1), (3 * S + 1, S + I), (S + I, 3 * S), (3 * S,), (3 * S, S + I, 1))
    ),
    *(("bias", shape) for shape in ((S,), (1, 3 * S), (1,), (3 * S, 2))),
    *(
        (name, shape)
        for name in ("old_h", "old_cell")
        for shape in ((B, S - 6), (B - 1, S), (1, S), (B, 1), (S, B), (B * S,), (B, S, 2))
    ),
]


def expect_rejection(work, arguments, names, given, value="", what=""):
    """Raises `Failure` unless forward rejects the arguments with a message that helps: see `expect_error`."""
    expect_error(lambda: work.load("_C").forward(*arguments.values()), names, given, value, what)


def expect_error(call, names, given, value="", what=""):
    """Raises `Failure` unless a call ends with a message that has one of `names`, `value`, and what is expected.

    `what` is the property that is wrong: a key of `EXPECTED`.
    """
    try:
        call()
    except LearnerError as error:
        said = str(error).strip().partition("\n")[0]
        if said.startswith(("the emulator found", "accepted")):
            raise Failure(f"{given} is accepted, with this result:\n{error}") from None
        if not any(name in said for name in names) or value.lower() not in said.lower():
            named = names[0] if len(names) == 1 else "the argument"
            raise Failure(
                f"{given} is rejected, but the message does not help:\n  {said}\n"
                f"It should name {named}, and say what it is{f' ({value})' if value else ''} and what it should be"
            ) from None
        rest = re.sub(re.escape(value), "", said.replace(names[0], ""), flags=re.IGNORECASE)
        if what and not re.search(EXPECTED[what], rest):
            raise Failure(
                f"{given} is rejected, but the message does not say what the {what} should be:\n  {said}"
            ) from None
    else:
        raise Failure(f"{given} is accepted. Here B={B}, I={I}, S={S}; lltm.py lists the expected shapes")


def shown(tensor, what):
    """The wrong property of a tensor, as TORCH_CHECK prints it."""
    dtype = {torch.float64: "Double", torch.half: "Half"}.get(tensor.dtype, "Float")
    return {"dtype": dtype, "shape": str(list(tensor.shape)), "device": tensor.device.type}[what]
