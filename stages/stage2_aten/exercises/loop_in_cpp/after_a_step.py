"""A call of sequence after its arguments were changed in place, as an optimizer does. In the learner's process."""


def outputs_after_a_step(first, second):
    """The outputs for the numbers of `second`, in the tensors of an earlier call with `first`."""
    from ._C import sequence

    arguments = [one.clone() for one in first]
    sequence(*arguments)
    for one, other in zip(arguments, second, strict=True):
        one.copy_(other)
    return sequence(*arguments)
