"""Five operators that double, each with one thing that is not true, and what is computed with each."""

import torch

library = torch.library.Library("liars", "DEF")


def operator(name, double, fake, schema="(Tensor x) -> Tensor"):
    """Registers `double` for the CPU, and `fake` for whoever wants to know what comes out."""
    library.define(name + schema)
    library.impl(name, double, "CPU")
    torch.library.register_fake(f"liars::{name}", fake)


def double(x):
    return torch.add(x, x).contiguous()


def in_place(x):
    x.add_(x)


def truth(x):
    return x.new_empty(x.shape)


# What is said of the result: the shape turned round, the strides turned round, another dtype.
operator("shape", double, lambda x: x.new_empty(x.shape[1], x.shape[0]))
operator("strides", double, lambda x: x.new_empty(x.shape[1], x.shape[0]).t())
operator("dtype", double, lambda x: x.new_empty(x.shape, dtype=torch.bfloat16))
# Doubles in place, as its schema does not say.
operator("writes", in_place, lambda x: None, "(Tensor x) -> ()")
# Says what comes out, and something else is in it.
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
