from itertools import product

import torch

from common.exercises.judge import require, same, unchanged
from common.exercises.judging.programs import printed

FACTS = 14  # numbers that trial.cu prints before the results


def check(work):
    for file in ("tensor.cuh", "trial.cu"):
        unchanged(work, file, "Edit only scale.cuh")
    numbers = work.numbers()
    for (current, device), count in product(product(range(2), repeat=2), (70, 1)):
        case = f"a tensor of {count} on GPU {device}, while GPU {current} is current"
        x, factor = torch.randn(count, generator=numbers), torch.randn(1, generator=numbers)
        arguments = [current, device, factor, x]
        got, _ = printed(work, "trial.cu", arguments, (FACTS + count,), case, EMULATOR_DEVICES="2")
        facts = [int(fact) for fact in got[:FACTS]]
        judge(facts[:-7], current, device, case)
        same("out", got[FACTS:], factor * x, case, suspects={"this is x, unchanged": x})
    in_the_stream_of(1 - device, facts[-7], "after a call for the other GPU")
    nested(facts[-6:-3], current)
    of_two_threads(facts[-3:-1], current)
    for current, device in product(range(2), repeat=2):
        rejected_launch(work, current, device)
    require(
        facts[-1],
        "there is no GPU 2, but DeviceGuard guard(2) throws no exception: the code in its scope would run on another "
        "GPU. What does cudaSetDevice return?",
    )


def judge(facts, current, device, case):
    """Raises `Failure` unless the kernel ran on the tensor's device, and the caller's device is current again."""
    after, throws, after_error, in_stream, of_out, *launches = facts
    ran_on = [number for number, count in enumerate(launches) if count]
    require(
        ran_on == [device],
        f"{case}: scale_kernel ran on {' and '.join(f'GPU {number}' for number in ran_on) or 'no GPU'}, expected "
        f"GPU {device}, where the tensor is",
    )
    require(of_out == device, f"{case}: the result is on GPU {of_out}, expected GPU {device}")
    require(
        after == current,
        f"{case}: when scale has returned, GPU {after} is current. All later calls of the caller would use it",
    )
    require(throws, f"{case}: there is not enough memory for the result, but scale throws no exception")
    require(
        after_error == current,
        f"{case}: when scale has thrown an exception, GPU {after_error} is current. What runs even then?",
    )
    in_the_stream_of(device, in_stream, case)


def in_the_stream_of(device, count, case):
    """Raises `Failure` unless scale has put one kernel into the current stream of the tensor's device."""
    require(
        count == 1,
        f"{case}: scale puts {count} kernels into the current stream of GPU {device}, expected one. In another "
        "stream, scale_kernel does not wait for earlier work on x",
    )


def rejected_launch(work, current, device):
    """Raises `Failure` unless the caller's device is current after a launch that the device has rejected."""
    case = f"an empty tensor on GPU {device}, while GPU {current} is current"
    settings = {"EMULATOR_DEVICES": "2", "EMULATOR_CHECKS": "-launch"}  # the program itself checks launches
    got, _ = printed(work, "trial.cu", [current, device, 1], (2,), case, **settings)
    after, is_thrown = (int(one) for one in got)
    require(
        after == current,
        f"{case}: the launch of an empty grid fails, and then GPU {after} is current. What runs even then?",
    )
    require(
        is_thrown,
        f"{case}: the launch of an empty grid fails, but scale throws no exception, as the given code does. Is the "
        "error cleared before it is checked?",
    )


def of_two_threads(facts, current):
    """Raises `Failure` unless guards of two threads do not affect each other."""
    require(
        tuple(facts) == (current, 1 - current),
        f"with guards in two threads at a time, GPU {facts[0]} and GPU {facts[1]} are current after them, expected "
        f"GPU {current} and GPU {1 - current}. Each thread has a current device of its own",
    )


def nested(facts, current):
    """Raises `Failure` unless each guard restores the device that was current before it."""
    after_inner, after_outer, after_change = facts
    require(
        (after_inner, after_outer) == (1 - current, current),
        f"when a guard ends within the scope of another one, GPU {after_inner} is current, then GPU {after_outer}; "
        f"expected GPU {1 - current}, then GPU {current}. Does each guard keep the device that it restores?",
    )
    require(
        after_change == current,
        f"a guard for GPU {current}, which was current, ends after other code made GPU {1 - current} current, and "
        f"GPU {after_change} stays current. A guard restores the device in any case",
    )
