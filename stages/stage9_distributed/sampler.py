"""Which samples a step trains on, and which of them a process takes."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Sampler:
    """The batches of all steps. They follow from the seed alone, so a resumed run needs only the number of its step.

    Every process draws the same batch and takes its own share, so all need the same seed. Each epoch has another
    order. The last batch of an epoch is smaller if the batch size does not divide the number of samples.
    """

    samples: int
    batch_size: int
    seed: int

    @property
    def steps_per_epoch(self):
        """The number of batches that contain every sample once."""
        return -(-self.samples // self.batch_size)

    def batch(self, step):
        """The indices of the samples of a step, for all processes together."""
        epoch, k = divmod(step, self.steps_per_epoch)
        order = torch.randperm(self.samples, generator=torch.Generator().manual_seed(self.seed + epoch))
        return order[k * self.batch_size : (k + 1) * self.batch_size]


def share(rows, rank, world_size):
    """The part of some rows that one process takes: the sizes of the parts differ by one at most."""
    return rows[rank::world_size]
