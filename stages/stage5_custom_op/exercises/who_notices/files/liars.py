"""Five operators that should double a tensor, each with one error, and a function that uses them."""

import torch

library = torch.library.Library("liars", "DEF")


def operator(name, double, fake, schema="(Tensor x) -> Tensor"):
    """Registers `double` as the kernel for the CPU, and `fake` as the fake kernel."""
    library.define(name + schema)
    library.impl(name, double, "CPU")
    torch.library.register_fake(f"liars::{name}", fake)


def double(x):
    return torch.add(x, x).contiguous()


def in_place(x):
    x.add_(x)


def truth(x):
    return x.new_empty(x.shape)


# The fake kernels return the sizes in reverse order, the strides in reverse order, or another dtype.
operator("shape", double, lambda x: x.new_empty(x.shape[1], x.shape[0]))
operator("strides", double, lambda x: x.new_empty(x.shape[1], x.shape[0]).t())
operator("dtype", double, lambda x: x.new_empty(x.shape, dtype=torch.bfloat16))
# Doubles in place, but its schema does not say so.
operator("writes", in_place, lambda x: None, "(Tensor x) -> ()")
# The fake kernel is right, but the operator computes wrong values.
operator("values", lambda x: double(x) + 1, truth)


def rows(name):
    """A function of x (B, S): the sums of the rows of twice x."""

    def sums(x):
        if name != "writes":
            return getattr(torch.ops.liars, name)(x).sum(dim=1)
        state = x.clone()
        torch.ops.liars.writes(state)
        return state.sum(dim=1)

    return sums
