"""PTX instructions for which threads wait for each other: barriers, and functions of a warp."""

from __future__ import annotations

from .memory import SCOPES, SPACES
from .translation import BITS, TYPES, Instruction, address, call, read, write

U32, U64 = BITS[32], BITS[64]
BARRIERS = ("bar", "bar.cta", "barrier", "barrier.cta")


def fence(i: Instruction) -> str:
    """`fence.acq_rel.gpu`, `membar.gl`, `fence.proxy.async`: all are as strong as `__threadfence`."""
    i.modifiers.clear()
    return "::emulator::fence();"


def wait_at_barrier(i: Instruction) -> str:
    """`bar.sync number, count` and `bar.arrive`; without a count, all threads of the block meet."""
    i.take("aligned")
    is_arrival = "arrive" in i.opcode
    i.expect_operands(*((2,) if is_arrival else (1, 2)))
    number, count = (read(each, U32) for each in (*i.operands, "0")[:2])
    function = "arrive_at_named_barrier" if is_arrival else "sync_named_barrier"
    return f"::emulator::{function}({number}, {count}, ::emulator::Position::current());"


def reduce_at_barrier(i: Instruction) -> str:
    """`bar.red.popc.u32 d, 0, p`."""
    i.take("aligned")
    operation, ptx_type = i.take("popc", "and", "or"), i.take_type()
    i.expect_operands(3)
    if i.operands[1] != "0" or not operation:
        raise i.unsupported()
    function = {"popc": "__syncthreads_count", "and": "__syncthreads_and", "or": "__syncthreads_or"}[operation]
    return write(i.operands[0], f"{TYPES[ptx_type]}(::{function}({read(i.operands[2], 'bool')}))")


def wait_for_cluster(i: Instruction) -> str:
    """`barrier.cluster.arrive.release.aligned` and `barrier.cluster.wait.acquire.aligned`."""
    i.take("acquire", "release", "relaxed")
    i.take("aligned")
    return f"::__cluster_barrier_{'arrive' if 'arrive' in i.opcode else 'wait'}();"


def wait_for_warp(i: Instruction) -> str:
    """`bar.warp.sync mask`."""
    i.expect_operands(1)
    return f"::__syncwarp({read(i.operands[0], U32)});"


def shuffle(i: Instruction) -> str:
    """`shfl.sync.down.b32 d|p, a, b, c, mask`."""
    mode = i.take("up", "down", "bfly", "idx")
    if i.take_type() != "b32" or not mode:
        raise i.unsupported()
    i.expect_operands(5)
    to = [each.strip() for each in i.operands[0].split("|")]
    operation = {"up": "shfl_up", "down": "shfl_down", "bfly": "shfl_xor", "idx": "shfl"}[mode]
    arguments = [read(each, U32) for each in i.operands[1:]]
    value = call("shfl_sync", [*arguments, "emulator_is_inside"], f"::emulator::Operation::{operation}")
    is_inside = write(to[1], "emulator_is_inside") if len(to) > 1 else ""
    return f"{{ bool emulator_is_inside; {write(to[0], value)} {is_inside} }}"


def vote(i: Instruction) -> str:
    """`vote.sync.ballot.b32 d, p, mask`."""
    mode = i.take("all", "any", "uni", "ballot")
    i.take_type()
    i.expect_operands(3)
    if not mode:
        raise i.unsupported()
    return write(i.operands[0], call(f"vote_{mode}", [read(i.operands[1], "bool"), read(i.operands[2], U32)]))


def match(i: Instruction) -> str:
    """`match.any.sync.b32 d, a, mask`, and `match.all.sync.b32 d|p, a, mask`."""
    mode, _ = i.take("any", "all"), i.take("sync")
    ptx_type = i.take_type()
    i.expect_operands(3)
    arguments = [read(i.operands[1], TYPES[ptx_type]), read(i.operands[2], U32)]
    if mode == "any":
        return write(i.operands[0], call("match_any", arguments))
    to = [each.strip() for each in i.operands[0].split("|")]
    value = write(to[0], call("match_all", [*arguments, "emulator_is_same"]))
    return f"{{ bool emulator_is_same; {value} {write(to[1], 'emulator_is_same') if len(to) > 1 else ''} }}"


def activemask(i: Instruction) -> str:
    """`activemask.b32 d`."""
    i.take_type()
    return write(i.operands[0], "::__activemask()")


def reduce(i: Instruction) -> str:
    """`redux.sync.add.s32 d, a, mask`."""
    operation, ptx_type = i.take("add", "min", "max", "and", "or", "xor"), i.take_type()
    i.expect_operands(3)
    if not operation or ptx_type not in ("u32", "s32", "b32"):
        raise i.unsupported()
    arguments = [read(i.operands[1], TYPES[ptx_type]), read(i.operands[2], U32)]
    return write(i.operands[0], call(f"redux_{operation}", arguments, TYPES[ptx_type]))


def elect(i: Instruction) -> str:
    """`elect.sync d|p, mask`."""
    i.expect_operands(2)
    to = [each.strip() for each in i.operands[0].split("|")]
    if len(to) != 2:
        raise i.unsupported()
    value = write(to[0], call("elect", [read(i.operands[1], U32), "emulator_is_elected"]))
    return f"{{ bool emulator_is_elected; {value} {write(to[1], 'emulator_is_elected')} }}"


def take_barrier(i: Instruction, operand: int) -> str:
    """The pointer to an mbarrier. Removes the modifiers that all of its instructions share."""
    space = i.take(*SPACES)
    i.take("acquire", "release", "relaxed")
    i.take(*SCOPES)
    if i.take_type() != "b64" or operand >= len(i.operands):
        raise i.unsupported()
    return address(i.operands[operand], SPACES.get(space, "generic"))


def begin_barrier(i: Instruction) -> str:
    """`mbarrier.init.shared.b64 [p], count`."""
    pointer = take_barrier(i, 0)
    i.expect_operands(2)
    return call("mbarrier_init", [pointer, read(i.operands[1], U32)]) + ";"


def end_barrier(i: Instruction) -> str:
    """`mbarrier.inval.shared.b64 [p]`: the memory may be used for something else."""
    return call("mbarrier_inval", [take_barrier(i, 0)]) + ";"


def arrive_at_barrier(i: Instruction) -> str:
    """`mbarrier.arrive.expect_tx.shared.b64 state, [p], bytes`; a count without `.expect_tx`."""
    has_state = not i.operands[0].startswith("[")
    expects, drops = i.take("expect_tx"), "mbarrier.arrive_drop" in i.opcode
    pointer = take_barrier(i, int(has_state))
    rest = [read(each, U32) for each in i.operands[1 + has_state :]]
    if len(rest) > 1 or (expects and not rest):
        raise i.unsupported()
    count, size = ("1", rest[0]) if expects else (rest[0] if rest else "1", "0")
    arrived = call("mbarrier_arrive", [pointer, count, size], str(drops).lower())
    return write(i.operands[0], arrived) if has_state else arrived + ";"


def count_bytes(i: Instruction) -> str:
    """`mbarrier.expect_tx.shared.b64 [p], bytes`, and `mbarrier.complete_tx`."""
    function = "_".join(i.opcode.split(".")[:2])
    pointer = take_barrier(i, 0)
    i.expect_operands(2)
    return call(function, [pointer, read(i.operands[1], U32)]) + ";"


def test_barrier(i: Instruction) -> str:
    """`mbarrier.try_wait.parity.shared.b64 p, [a], parity`; a time that is given as well is ignored."""
    is_parity = i.take("parity")
    pointer = take_barrier(i, 1)
    i.expect_operands(3, 4)
    function, kind = ("mbarrier_test_parity", U32) if is_parity else ("mbarrier_test", U64)
    return write(i.operands[0], call(function, [pointer, read(i.operands[2], kind)]))


THREADS = {
    "fence": fence,
    "membar": fence,
    **{f"{name}.{action}": wait_at_barrier for name in BARRIERS for action in ("sync", "arrive")},
    **{f"{name}.red": reduce_at_barrier for name in BARRIERS},
    **dict.fromkeys(("barrier.cluster.arrive", "barrier.cluster.wait"), wait_for_cluster),
    "bar.warp.sync": wait_for_warp,
    "shfl.sync": shuffle,
    "vote.sync": vote,
    "match": match,
    "activemask": activemask,
    "redux.sync": reduce,
    "elect.sync": elect,
    "mbarrier.init": begin_barrier,
    "mbarrier.inval": end_barrier,
    **dict.fromkeys(("mbarrier.arrive", "mbarrier.arrive_drop"), arrive_at_barrier),
    **dict.fromkeys(("mbarrier.expect_tx", "mbarrier.complete_tx"), count_bytes),
    **dict.fromkeys(("mbarrier.test_wait", "mbarrier.try_wait"), test_barrier),
}
