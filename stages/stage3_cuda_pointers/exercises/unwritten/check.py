import torch

from common.exercises.judge import require, same
from common.exercises.judging.programs import printed


def check(work):
    numbers = work.numbers()
    # A row of 700 numbers has several blocks. Three orders of the threads are enough to find a race between them.
    for B, S, seed in ((3, 70, None), (2, 64, None), (5, 1, None), (1, 131, None), *((1, 700, k) for k in (1, 2, 3))):
        case = f"B={B}, S={S}"
        x = torch.randn(B, S, generator=numbers)
        seed = str(seed or int(torch.randint(1, 1000, (), generator=numbers)))  # the order of threads
        got, counted = printed(work, "squares.cu", [B, S, x], (B,), case, EMULATOR_SEED=seed)
        same("sums", got, x.double().square().sum(1), case, torch.float32, 1e-5)
        added = counted.total("lanes", space="global atomic")
        require(added >= B * -(-S // 4), f"{case}: the squares are not added up on the device, four at a time")
    rows = torch.full((1, 5), torch.inf)
    infinite, _ = printed(work, "squares.cu", [1, 5, rows], (1,), "a row of five infinite numbers")
    require(
        infinite.item() == torch.inf,
        f"the sum of the squares of five infinite numbers is {infinite.item()}: what lies behind the row must be 0",
    )
    zero, _ = printed(work, "squares.cu", [1, 5, torch.zeros(5)], (1,), "a row of five zeros")
    require(zero.item() == 0, f"the sum of the squares of five zeros is {zero.item()}: where does the sum begin?")
