"""Two tasks for a recurrent network. Inputs are (N, T, I): N sequences of T steps with I numbers in each."""

import torch


def read_pixels(pixels, pixels_a_step):
    """Images (N, P) as sequences (N, P / pixels_a_step, pixels_a_step), in the order in which they are stored."""
    # BEGIN SOLUTION pixels: each step gets pixels from all over the image.
    return pixels.reshape(len(pixels), -1, pixels_a_step)
    # BEGIN STARTER
    # return pixels.reshape(len(pixels), pixels_a_step, -1).transpose(1, 2)
    # END STARTER
    # END SOLUTION


def adding(count, length, seed):
    """Inputs (N, T, 2) and targets (N) of the adding problem, the same for the same seed; N is count, T is length.

    A step is a number from 0 to 1 and a mark. Two steps have the mark 1, all others 0, and every two steps are
    equally likely. The target is the sum of the two numbers that are marked.
    """
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.rand(count, length, generator=generator)
    # BEGIN SOLUTION marks: some sequences have one mark.
    marked = torch.rand(count, length, generator=generator).topk(2, dim=1).indices
    # BEGIN STARTER
    # marked = torch.randint(length, (count, 2), generator=generator)
    # END STARTER
    # END SOLUTION
    marks = torch.zeros(count, length).scatter_(1, marked, 1.0)
    return torch.stack([numbers, marks], dim=2), (numbers * marks).sum(dim=1)


def constant_loss(targets):
    """The smallest mean squared error that one constant answer has for all targets (N), as a number."""
    # BEGIN SOLUTION constant: this is the loss of the answer 0.
    return (targets - targets.mean()).square().mean().item()
    # BEGIN STARTER
    # return targets.square().mean().item()
    # END STARTER
    # END SOLUTION
