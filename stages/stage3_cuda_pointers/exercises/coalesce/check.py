import torch

from common.counts import as_table
from common.exercises.judge import Failure, same
from common.exercises.programs import printed


def check(work):
    numbers = work.numbers()
    for about in (3000, 1000, 0):
        count = about + int(torch.randint(1, 100, (), generator=numbers))
        case = f"count={count}"
        x = torch.randn(count, generator=numbers)
        got, counted = printed(work, "elu.cu", [x], (count,), case)
        same("out", got, torch.nn.functional.elu(x.double()), case, torch.float32, suspects={"this is x": x})
        stored, used = (counted.total("bytes", space=space) / 4 for space in ("global store", "global load"))
        if stored < count or used < count:
            raise Failure(f"{case}: the kernel does not touch every element; who computes the others?")
        if stored > count:
            raise Failure(f"{case}: right, but {stored:,.0f} results are stored: some are computed more than once")
        sectors, needed = counted.total("sectors", space="global"), 2 * -(-count // 8)
        if sectors > 1.05 * needed + 2:
            table = as_table(counted)
            raise Failure(
                f"{case}: right, but {sectors:,} sectors are moved where the numbers fill {needed:,}\n{table}"
            )
