"""Gradients of a batch that several processes share."""

import torch


def average_gradients(network, loss_sum, count, all_reduce):
    """Sets `grad` of every parameter to the gradient of the mean loss over the samples of all processes.

    `loss_sum` is the sum of the losses of this process's `count` samples. No parameter has a gradient before.
    """
    # BEGIN SOLUTION: run backward and add up the gradients, so that each sample counts once.
    total = torch.tensor(float(count))
    all_reduce(total)
    (loss_sum / total).backward()
    for parameter in network.parameters():
        all_reduce(parameter.grad)
    # BEGIN STARTER
    # loss_sum.backward()
    # END STARTER
    # END SOLUTION
