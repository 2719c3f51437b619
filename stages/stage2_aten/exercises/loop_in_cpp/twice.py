"""Calls sequence twice and looks at the outputs of the first call. It runs in the learner's process."""


def keeps_outputs(first, second):
    """Whether the outputs of a call with the arguments `first` are the same after a call with `second`."""
    from ._C import sequence

    outputs = sequence(*first)
    before = outputs.clone()
    sequence(*second)
    return outputs.equal(before)
