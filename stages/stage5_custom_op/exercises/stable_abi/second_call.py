"""What a second call of gates::elu does to the result of the first. It runs in the learner's process."""

import torch


def changes_result(first, second):
    """Whether the result of a call with `first` is different after a call with `second`."""
    elu = torch.ops.gates.elu
    kept = elu(first)
    before = kept.clone()
    elu(second)
    return not torch.equal(kept, before)
