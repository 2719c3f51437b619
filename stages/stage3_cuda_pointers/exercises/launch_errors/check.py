import re

import torch

from common.exercises.judge import Failure, require, same, stored_once


def check(work):
    numbers = work.numbers()
    for limit in (32 * draw(numbers, 8, 15), 32 * draw(numbers, 26, 30)):  # of this emulated device only
        launches(work, numbers, limit)
    after_another_error(work)
    too_many_blocks(work)


def launches(work, numbers, limit):
    """Launches with allowed and with rejected numbers of threads, in turn."""
    good = [limit, draw(numbers, 1, limit), draw(numbers, 1, limit)]
    bad = [draw(numbers, limit + 1, 1024), draw(numbers, 1025, 5000)]
    for count, threads in ((70, [good[0], *bad, *good[1:]]), (1, [bad[1], good[0]]), (0, [good[1], bad[1]])):
        case = (
            f"count={count}, launches with {', '.join(map(str, threads))} threads, at most {limit} allowed in a block"
        )
        x = torch.randn(count, generator=numbers)
        arguments = map(str, [count, *x.tolist(), *threads])
        ran = work.program("twice.cu", *arguments, counting=True, EMULATOR_DEVICE=f"maxThreadsPerBlock={limit}")
        lines = ran.output.split("the emulator found:")[0].split("emulator: ")[0].split()
        require(ran.counted is not None and len(lines) == len(threads) + count, f"{case}:\n{ran.output}")
        refused_before = False
        for one, said in zip(threads, lines, strict=False):
            is_refused = one > limit and count > 0
            if (said == "cudaSuccess") == is_refused:
                what = f"the launch with {one} threads {'is rejected' if is_refused else 'succeeds'}"
                what = what if count else f"doubling no numbers with {one} threads is not an error"
                why = explained(count, is_refused, refused_before)
                raise Failure(f"{case}:\n{what}, but {said} is returned.\n{why}".rstrip())
            refused_before = is_refused
        got = torch.tensor([float(line) for line in lines[len(threads) :]])
        done = sum(one <= limit for one in threads)
        same("x", got, x * 2**done, case)
        if count:
            stored_once(ran.counted, done * got.nbytes, case)
        require(ran.status == 0, f"{case}:\n{ran.output}")


def after_another_error(work):
    """The error of another call before the launch is not the launch's, and does not hide the same error of it."""
    for earlier, what, given, succeeds in (
        ("cudaSetDevice(99)", "a valid launch", ("1", "0.5", "32"), True),
        ("cudaSetDevice(99)", "doubling no numbers", ("0", "32"), True),
        ("elsewhere<<<1, 5000>>>()", "a valid launch", ("1", "0.5", "32"), True),
        ("elsewhere<<<1, 5000>>>()", "a launch with 5000 threads", ("1", "0.5", "5000"), False),
    ):
        file = work.folder / "after_another_error.cu"
        begin = rf"__global__ void elsewhere() {{}}\n\n\1\n  {earlier};"
        file.write_text(re.sub(r"(\bint main\([^)]*\)\s*{)", begin, work.text("twice.cu")), encoding="utf-8")
        try:
            said = work.program(file.name, *given).output.partition("\n")[0]
        finally:
            file.unlink()
        otherwise = (
            "that is the error of the earlier call, which cudaGetLastError still holds"
            if succeeds
            else "the same error from the earlier call hides that of this launch"
        )
        require(
            (said == "cudaSuccess") == succeeds, f"after {earlier}, which fails, {what} returns {said}: {otherwise}"
        )


def too_many_blocks(work):
    """A launch may be rejected for another reason than its number of threads."""
    given = ["70", *["0.5"] * 70, "64", "10", "64"]  # 2, 7 and 2 blocks
    said = work.program("twice.cu", *given, EMULATOR_DEVICE="maxGridSize.x=2").output.split()[:3]
    require(
        said[0] == said[2] == "cudaSuccess" != said[1],
        f"on a device that allows 2 blocks, launches with 2, 7 and 2 blocks return {', '.join(said)}: only the "
        "device knows all the reasons to reject a launch",
    )


def draw(numbers, least, most):
    """A random integer from `least` to `most`."""
    return int(torch.randint(least, most + 1, (), generator=numbers))


def explained(count, is_refused, refused_before):
    """The likely cause of a wrong return value."""
    if is_refused and refused_before:
        return (
            "The launch before it was rejected with the same error. Clear that error before the launch: a comparison "
            "of the two errors hides this one"
        )
    if is_refused:
        return "A rejected launch reports its error at once: there is no kernel to wait for"
    if count == 0:
        return "An empty grid is rejected, and so are too many threads. If there is nothing to do, do not launch"
    if refused_before:
        return "This is the error of the previous launch, which was not cleared"
    return "Only the device knows its limits: let it decide, and return what it says about this launch"
