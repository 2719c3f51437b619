"""Prints, as JSON, what happens with each operator of liars.py. Usage: measure.py FOLDER_OF_LIARS."""

import json
import sys

import torch
import torch._inductor.config as settings

sys.path.insert(0, sys.argv[1])
import liars

FAKES = ("shape", "strides", "dtype")
# What every torch from 2.11 on reports; newer ones also report the dtype, and their opcheck also the strides.
ALWAYS_LOUD, ALWAYS_FOUND = ("shape", "strides"), ("shape", "dtype", "writes")
x = torch.randn(4, 6)


def becomes(name, backend, asserts=True):
    """ "error", or whether the sums of the rows are "right" or "wrong"."""
    torch._dynamo.reset()
    want = liars.rows(name)(x)
    with settings.patch(size_asserts=asserts):
        try:
            got = torch.compile(liars.rows(name), fullgraph=True, backend=backend)(x)
        except Exception:
            return "error"
    return "right" if got.shape == want.shape and torch.allclose(got.to(want.dtype), want) else "wrong"


def found(name):
    """Whether opcheck reports an error."""
    try:
        torch.library.opcheck(getattr(torch.ops.liars, name).default, (x.clone(),))
    except Exception:
        return True
    return False


checked = {name: becomes(name, "inductor") for name in ALWAYS_LOUD}
unchecked = {name: becomes(name, "inductor", asserts=False) for name in FAKES}
eager = {name: becomes(name, "aot_eager") for name in FAKES}
print(
    json.dumps(
        {
            "loud": sum(said == "error" for said in checked.values()),
            "without_asserts": sum(said == "error" for said in unchecked.values()),
            "aot_eager": sum(said != "right" for said in eager.values()),
            "writes": becomes("writes", "inductor"),
            "opcheck": sum(found(name) for name in ALWAYS_FOUND),
            "values": "yes" if found("values") else "no",
        }
    )
)
