import torch
from torch import nn

from common.exercises.judge import Failure, require, same, unchanged


def check(work):
    unchanged(work, "trial.py", "Edit only average.py")
    numbers = work.numbers()
    for sizes in ([3, 3], [5, 2], [4, 1, 2], [2, 0, 1], [1, 0], [3, 1, 2, 5]):
        inputs = torch.randn(sum(sizes), 3, generator=numbers, dtype=torch.float64)
        targets = torch.randn(sum(sizes), generator=numbers, dtype=torch.float64)
        network = nn.Sequential(nn.Linear(3, 4), nn.PReLU(4), nn.Linear(4, 1, bias=False)).double()
        weights = [torch.randn(p.shape, generator=numbers, dtype=torch.float64) for p in network.parameters()]
        shares = f"shares of {', '.join(map(str, sizes))} samples"
        again = f"{shares}, the second call for the same network, whose parameters have no gradient again"
        for found, case in zip(
            work.load("trial").trial(weights, inputs, targets, sizes), (shares, again), strict=True
        ):
            if isinstance(found, str):
                raise Failure(describe(found, case))
            gradients, as_before = zip(*found, strict=True)
            compare(gradients, network, weights, inputs, targets, sizes, case)
            require(
                all(as_before),
                f"average_gradients changes loss_sum, which belongs to the caller ({case}): an operation such as /= "
                "writes its result into the same tensor",
            )


def describe(error, shares):
    if error == "waits":
        return (
            f"a process waits in all_reduce for another one that never calls it ({shares}): each process must call "
            "it equally often, even without samples"
        )
    return f"{error} ({shares})"


def compare(found, network, weights, inputs, targets, sizes, shares):
    """Raises `Failure` unless every process has the gradients of the whole batch."""
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), weights, strict=True):
            parameter.copy_(value)
    losses = (network(inputs)[:, 0] - targets).square()
    parameters = list(network.parameters())
    whole = torch.autograd.grad(losses.mean(), parameters, retain_graph=True)
    present = [share.mean() for share in losses.split(sizes) if len(share)]
    means = torch.autograd.grad(sum(present) / len(sizes), parameters)
    names = [name for name, _ in network.named_parameters()]
    for rank, gradients in enumerate(found):
        for name, got, want, mean in zip(names, gradients, whole, means, strict=True):
            require(got is not None, f"{name} has no gradient in process {rank} ({shares})")
            suspects = {
                "this is the sum over the samples, not their mean": want * len(losses),
                "this is the sum of the processes' means: divide by the number of all samples": mean * len(sizes),
                "this is the mean of the processes' means, in which samples of a small share count more": mean,
            }
            same(f"the gradient of {name} in process {rank}", got, want, shares, torch.float64, suspects=suspects)
