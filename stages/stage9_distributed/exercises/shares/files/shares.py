"""The samples that a process trains on in a step."""

import torch


def rows_of(samples, batch_size, seed, step, rank, world_size):
    """The indices, a tensor (R), of this process's share of a batch. Every process calls this with its own rank."""
    # BEGIN SOLUTION: these lines contain three mistakes.
    batches = -(-samples // batch_size)
    epoch, k = divmod(step, batches)
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed + epoch))
    return order[k * batch_size : (k + 1) * batch_size][rank::world_size]
    # BEGIN STARTER
    # batches = samples // batch_size
    # k = step % batches
    # order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed + rank))
    # return order[k * batch_size : (k + 1) * batch_size][rank::world_size]
    # END STARTER
    # END SOLUTION
