import re

import torch

from common.exercises.judge import Failure, require
from common.exercises.judging.programs import printed

FUNCTIONS = {"place_of": ["int"] * 4, "number_of": ["unsigned"] * 3, "blocks_for": ["int"] * 3}  # parameters
SAME = {"int32_t": "int", "unsigned int": "unsigned", "uint32_t": "unsigned"}
SMALL = (100, 3, 70, 70, 1000, 256, 256)  # upper bounds of the numbers in a question: see places.cu
LARGE = (2_000_000, 3, 40_000, 40_000, 2**31 - 1, 1024, 1024)
WIDE = (3, 3, 2**31 - 1, 2**31 - 1, 1000, 4, 4)  # gate * S alone exceeds 2**31
TALL = (2**31 - 2, 3, 4, 4, 1000, 256, 256)  # 3 * B alone exceeds 2**31
HUGE = (2**31 - 2, 3, 2**30, 2**30, 2**31 - 1, 1024, 1024)  # products above 2**53, which double rounds
MIDDLE = (100_000, 3, 13_000, 13_000, 2**23, 600, 256)  # many results lie between 2**31 and 2**32
EMPTY = torch.tensor([[3, 0, 0, 0, 0, 64, 0]])  # a question: gates without elements


ENDS = "The largest int is 2,147,483,647, and the largest unsigned int is 4,294,967,295"


def check(work):
    drawn = [draw(work.numbers(), most) for most in (SMALL, WIDE, TALL, MIDDLE, LARGE, HUGE)]
    questions = torch.cat([*drawn, EMPTY])
    row, gate, unit, S, block, threads, thread = questions.T
    want = torch.stack(
        [(row * 3 + gate) * S + unit, block * threads + thread, ((row + 1) * 3 * S + threads - 1) // threads], dim=1
    )
    got, _ = printed(work, "places.cu", [questions], want.shape, f"{len(questions)} questions", torch.int64)
    for name, answers, right in zip(FUNCTIONS, got.T, want.T, strict=True):
        if (answers != right).any():
            raise Failure(explained(name, questions, answers, right))
    for name, types in FUNCTIONS.items():
        found = parameter_types(work.code("places.h"), name)
        require(
            found == types,
            f"the parameters of {name} have the types {', '.join(found)}, expected {', '.join(types)}: the callers "
            "keep theirs, so convert inside the function",
        )


def parameter_types(code, function):
    """The types of a function's parameters, without `const`."""
    declared = re.search(rf"\b{function}\s*\(([^)]*)\)", code)
    parameters = declared[1].split(",") if declared else []
    types = (" ".join(word for word in one.split()[:-1] if word != "const") for one in parameters)
    return [SAME.get(one.removeprefix("std::"), one) for one in types]


def draw(numbers, most):
    """Draws 20 questions, (20, 7): numbers from the upper half of the range below `most`, and gates from 0 to 2."""
    most = torch.tensor(most)
    drawn = (most - torch.rand(20, len(most), generator=numbers, dtype=torch.float64) * most / 2 - 1).long()
    drawn[:, 1] = torch.randint(3, (20,), generator=numbers)
    return drawn


def explained(name, questions, got, want):
    """Describes the first wrong answer and its cause."""
    k = int((got != want).int().argmax())
    row, gate, unit, S, block, threads, thread = questions[k].tolist()
    call = {
        "place_of": f"place_of({row}, {gate}, {unit}, {S})",
        "number_of": f"number_of({block}, {threads}, {thread})",
        "blocks_for": f"blocks_for({row + 1}, {S}, {threads})",
    }[name]
    lines = [
        f"{call} is {got[k]:,}, expected {want[k]:,}; {int((got != want).sum())} of {len(got)} answers are wrong"
    ]
    off = got - want
    if name == "blocks_for":
        lines.append(wrong_blocks((row + 1) * 3 * S, int(off[k]), int(want[k])))
    elif (off % 2**32 == 0).all():
        lines.append(
            f"It is off by {abs(int(off[k])) // 2**32} times 2**32: a product is computed in 32 bits. {ENDS}"
        )
    else:
        lines.append("The error is not a multiple of 2**32, so this is not an overflow. Is the result rounded?")
    return "\n".join(lines)


def wrong_blocks(elements, off, want):
    """The cause of a wrong number of blocks."""
    if elements == 0:
        return "Without elements, no block is needed. C++ rounds a quotient towards zero: -1 / 64 is 0, and not -1"
    if elements < 2**31 or (abs(off) == 1 and elements < 2**53):
        return "This is not an overflow. Is the number of elements divided by the threads of a block, and rounded up?"
    if abs(off) < 1e-6 * want:
        return "The result is rounded: a float has 24 significant bits, and a double 53. Compute in int64_t"
    return f"The {elements:,} elements are counted in 32 bits. {ENDS}"
