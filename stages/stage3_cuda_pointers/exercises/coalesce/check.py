import torch

from common.exercises.judge import Failure, find_host_calls, require, same
from common.exercises.judging.programs import printed

MANY = 40_000  # more elements than a small grid computes
FEW = (1, 2, 3)  # elements
LOST = "this is exp(x) - 1 computed directly, which loses the digits of an x near zero"


def check(work):
    on_the_host = find_host_calls(work.code("elu.cu", strings=False), "exp", "expm1")
    require(not on_the_host, f"host code calls {' and '.join(on_the_host)}: the kernel computes all values")
    numbers = work.numbers()
    for about in (3000, 1000, 0, *FEW, MANY):
        count = about if about in FEW else about + int(torch.randint(1, 100, (), generator=numbers))
        case = f"count={count}"
        x = torch.randn(count, generator=numbers)
        near_zero = torch.arange(count) % 4 == 0
        x[near_zero] *= 1e-4
        x[1:4] = torch.tensor([torch.nan, torch.inf, -torch.inf])[: count - 1]
        if about == MANY:  # short words, since a command line and a program's output have limits
            x = torch.randint(1, 9, (count,), generator=numbers).float()
        got, counted = printed(work, "elu.cu", [x], (count,), case)
        want = torch.nn.functional.elu(x.double())
        same("out", got, want, case, torch.float32, suspects={"this is x": x})
        lost = torch.exp(x[near_zero]) - 1
        same("out near zero", got[near_zero], want[near_zero], case, torch.float32, suspects={LOST: lost})
        stored, used = (counted.total("bytes", space=space) / 4 for space in ("global store", "global load"))
        if stored < count or used < count:
            raise Failure(f"{case}: the kernel does not access every element. Which thread computes the others?")
        if stored > count:
            raise Failure(
                f"{case}: right, but the kernel stores {stored:,.0f} results: some are computed more than once"
            )
        sectors, needed = counted.total("sectors", space="global"), 2 * -(-count // 8)
        if sectors > 1.05 * needed + 2:
            table = str(counted)
            raise Failure(
                f"{case}: right, but {sectors:,} sectors are moved, and the numbers fill only {needed:,}\n{table}"
            )
