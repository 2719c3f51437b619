import torch

from common.exercises.judge import Failure, enough_threads, find_host_calls, require, same, stored_once
from common.exercises.judging.programs import printed

BYTES = 16  # three numbers read and one written
MANY = 20_000  # more than the threads of a small grid


def check(work):
    on_the_host = find_host_calls(work.code("highway.cu", strings=False), "exp", "tanh")
    require(not on_the_host, f"host code calls {' and '.join(on_the_host)}: the kernel computes all values")
    numbers = work.numbers()
    for count in (500 + int(torch.randint(1, 100, (), generator=numbers)), 129, 128, 1, MANY):
        case = f"count={count}"
        a, b, x = torch.randn(3, count, generator=numbers)
        a[::3] *= 100  # here exp overflows, but sigmoid and tanh do not
        b[::2] *= 100
        if count == MANY:  # short words, since a command line and a program's output have limits
            a, b, x = torch.zeros(count), torch.zeros(count), torch.randint(1, 9, (count,), generator=numbers).float()
        got, counted = printed(work, "highway.cu", [count, a, b, x], (count,), case)
        gate, candidate = torch.sigmoid(a.double()), torch.tanh(b.double())
        other = (1 - gate) * candidate + gate * x
        suspects = {"gate and 1 - gate are exchanged": other, "this is x, unchanged": x}
        same("out", got, gate * candidate + (1 - gate) * x, case, torch.float32, suspects=suspects)
        stored_once(counted, got.nbytes, case)
        enough_threads(counted, 1, case)  # blocks of whole warps; each thread may compute several elements
        launches, moved = sum(one.launches for one in counted.launches), counted.total("bytes", space="global")
        names = ", ".join(one.kernel for one in counted.launches)
        require(launches == 1, f"{case}: right, but with {launches} launches ({names}): one is enough")
        if moved > BYTES * count:
            raise Failure(
                f"{case}: right, but {moved / count:g} bytes are moved for each element: {BYTES} are enough\n"
                f"{counted}"
            )
        require(
            moved == BYTES * count,
            f"{case}: the kernel does not access every element. Which thread computes the others?",
        )
    a, b, x = torch.full((40,), 100.0), torch.randn(40, generator=numbers), torch.full((40,), 1e8)
    got, _ = printed(work, "highway.cu", [40, a, b, x], (40,), "a gate of 1")
    suspects = {"x + gate * (tanh(b) - x) loses all digits of tanh(b) next to a large x": torch.zeros(40)}
    same("out", got, torch.tanh(b.double()), "a gate of 1, x = 1e8", torch.float32, suspects=suspects)
