"""Processes that add tensors, as threads. Do not change this file; edit average.py."""

import threading

import torch
from torch import nn

from .average import average_gradients


class Meeting:
    """Where the processes meet: `all_reduce` waits until all have called it."""

    def __init__(self, world_size):
        self.barrier = threading.Barrier(world_size, timeout=3)
        self.given = [None] * world_size

    def all_reduce(self, rank, tensor):
        """Replaces a tensor by the sum of the tensors of all processes."""
        self.given[rank] = tensor.detach().clone()
        self.barrier.wait()
        total = sum(self.given[1:], self.given[0])
        self.barrier.wait()
        with torch.no_grad():
            tensor.copy_(total)


def run_processes(world_size, function):
    """Calls `function(rank, all_reduce)` in every process; the results by rank, or a text with an error."""
    meeting, results, errors = Meeting(world_size), [None] * world_size, []

    def process(rank):
        try:
            results[rank] = function(rank, lambda tensor: meeting.all_reduce(rank, tensor))
        except threading.BrokenBarrierError:
            errors.append("waits")
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
            meeting.barrier.abort()

    threads = [threading.Thread(target=process, args=(rank,)) for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return next((error for error in errors if error != "waits"), errors[0]) if errors else results


def make_network(features):
    """A small network with parameters of several kinds, in float64."""
    return nn.Sequential(nn.Linear(features, 4), nn.PReLU(4), nn.Linear(4, 1, bias=False)).double()


def trial(weights, inputs, targets, sizes):
    """For each of two calls for the same networks, the gradients of each process, and whether its loss is as before.

    `sizes` are those of the shares.
    """
    shares = list(zip(inputs.split(sizes), targets.split(sizes), strict=True))
    networks = [make_network(inputs.size(1)) for _ in sizes]

    def process(rank, all_reduce):
        network, (numbers, wanted) = networks[rank], shares[rank]
        network.zero_grad(set_to_none=True)
        loss = (network(numbers)[:, 0] - wanted).square().sum()
        before = loss.item()
        average_gradients(network, loss, len(numbers), all_reduce)
        return [parameter.grad for parameter in network.parameters()], loss.item() == before

    with torch.no_grad():
        for network in networks:
            for parameter, value in zip(network.parameters(), weights, strict=True):
                parameter.copy_(value)
    return [run_processes(len(sizes), process) for _ in range(2)]
