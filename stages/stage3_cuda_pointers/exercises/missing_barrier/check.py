import re

import torch

from common.exercises.judge import Failure, require, same, stored_once
from common.exercises.judging.programs import printed


def check(work):
    numbers = work.numbers()
    for B, S in ((3, 70), (2, 300), (5, 1), (1, 128)):
        case = f"B={B}, S={S}"
        x = torch.randn(B, S, generator=numbers)
        seed = str(int(torch.randint(1, 1000, (), generator=numbers)))  # the order of threads
        try:
            got, counted = printed(work, "statistics.cu", [B, S, x], (B, 2), case, EMULATOR_SEED=seed)
        except Failure as failure:
            if "(races)" in str(failure) and "__syncwarp" in work.code("statistics.cu"):
                note = "__syncwarp waits only for the 32 threads of a warp, but a block has four warps"
                raise Failure(f"{failure}\n{note}") from None
            raise
        want = torch.stack([x.double().mean(1), x.double().var(1, unbiased=False)], dim=1)
        same("mean, variance", got, want, case, torch.float32, 1e-5)
        stored_once(counted, got.nbytes, case)
        require(
            "__syncthreads" not in outside_block_sum(work.text("statistics.cu")),
            "there is a barrier outside block_sum, but block_sum itself still cannot be called twice in a row: "
            "the next kernel that does so has the same race",
        )
        kernels = [kernel_of(text) for text in (work.text("statistics.cu"), given(work))]
        require(
            kernels[0] == kernels[1],
            "statistics_kernel has been changed. Fix block_sum itself: any kernel may then call it twice in a row",
        )
        require(
            counted.total("lanes", space="shared") > 0, f"{case}: the threads of a block no longer use shared memory"
        )


def given(work):
    """The program as it was handed out."""
    return (work.exercise.folder / "files" / "statistics.cu").read_text(encoding="utf-8")


def kernel_of(text):
    """The kernel's words, without comments."""
    return re.findall(r"__global__ .*", outside_block_sum(text).partition("int main(")[0], flags=re.DOTALL)[0].split()


def outside_block_sum(text):
    """The program without comments and without block_sum."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\bfloat block_sum\(.*?^}", "", code, flags=re.DOTALL | re.MULTILINE)
