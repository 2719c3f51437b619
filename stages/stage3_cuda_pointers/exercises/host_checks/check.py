import torch

from common.exercises.judge import Failure, LearnerError, agree, cases

B, I, S = 3, 5, 70
NAMES = ("input", "weights", "bias", "old_h", "old_cell")


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
        given = f"{name} of {what} {shown(tensor, what)}"
        if name == "input":  # which one does not fit is a matter of taste
            turned_away(work, right | {name: tensor}, NAMES, given)
        else:
            turned_away(work, right | {name: tensor}, (name,), given, shown(tensor, what))
    every = {name: tensor.half() for name, tensor in right.items()}
    turned_away(
        work, every, ("input",), "dtype Half, which the kernels are not made for, in all five tensors", "Half"
    )
    every = {name: tensor.to("meta") for name, tensor in right.items()}
    turned_away(work, every, ("input",), "device meta, which is not CUDA, in all five tensors", "meta")
    agree(work.cell(), cases(work, [(B, I, S), (1, 1, 1), (0, 4, 8)]))


SHAPES = [
    *(("input", shape) for shape in ((B, I + 1), (B + 1, I), (B, I, 1), (I,))),
    *(("weights", shape) for shape in ((3 * S, S + I + 1), (3 * S + 1, S + I), (S + I, 3 * S), (3 * S,))),
    *(("bias", shape) for shape in ((S,), (1, 3 * S), (1,))),
    *((name, shape) for name in ("old_h", "old_cell") for shape in ((B, S - 6), (B - 1, S), (S, B), (B * S,))),
]


def turned_away(work, arguments, names, given, value=""):
    """Raises `Failure` unless forward refuses the arguments with a message that has one of `names`, and the value."""
    try:
        work.load("_C").forward(*arguments.values())
    except LearnerError as error:
        said = str(error).strip().partition("\n")[0]
        if said.startswith("the emulator found"):
            raise Failure(f"{given} is not refused, and this is what comes of it:\n{error}") from None
        if not any(name in said for name in names) or value not in said:
            named = names[0] if len(names) == 1 else "the argument"
            raise Failure(
                f"{given} is refused, but with a message that does not help:\n  {said}\n"
                f"It should name {named}, say what it is{f' ({value})' if value else ''}, and what it should be"
            ) from None
    else:
        raise Failure(f"{given} is not refused. B={B}, I={I}, S={S} here; the shapes are in lltm.py")


def shown(tensor, what):
    """What is wrong with a tensor, as TORCH_CHECK writes it."""
    dtype = {torch.float64: "Double", torch.half: "Half"}.get(tensor.dtype, "Float")
    return {"dtype": dtype, "shape": str(list(tensor.shape)), "device": tensor.device.type}[what]
