"""PTX instructions that access memory."""

from __future__ import annotations

from .translation import (
    BITS,
    PTX,
    TYPES,
    Instruction,
    UnsupportedPtx,
    address,
    call,
    name_register,
    read,
    split_vector,
    write,
)

U32, U64 = BITS[32], BITS[64]
SCOPES = ("cta", "cluster", "gpu", "sys")
SPACES = {
    **{"global": "global", "const": "global"},
    **dict.fromkeys(("shared", "shared::cta", "shared::cluster"), "shared"),
}
CACHE_HINTS = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")
CACHE_LEVELS = ("L1::", "L2::")
ATOMICS = ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas")


def take_memory_modifiers(i: Instruction) -> tuple[str, str]:
    """The state space and the order of an access. Removes the modifiers that change no result."""
    space = i.take(*SPACES)
    order = "weak"
    if i.take("relaxed", "volatile", "mmio"):
        order = "relaxed"
    elif i.take("acquire", "release", "acq_rel"):
        order = "ordered"
    i.take("weak")
    i.take(*SCOPES)
    i.take(*CACHE_HINTS)
    has_policy = "L2::cache_hint" in i.modifiers
    i.modifiers[:] = [each for each in i.modifiers if not each.startswith(CACHE_LEVELS)]
    if has_policy:
        i.operands.pop()
    return SPACES.get(space, "generic"), f"{PTX}Order::{order}"


def load(i: Instruction) -> str:
    """`ld.global.v4.f32 {a, b, c, d}, [p]`."""
    space, order = take_memory_modifiers(i)
    vector, ptx_type = i.take("v2", "v4"), i.take_type()
    i.expect_operands(2)
    to, pointer = split_vector(i.operands[0]), address(i.operands[1], space)
    if len(to) != int((vector or "v1")[1:]):
        raise i.unsupported()
    if not vector:
        return write(to[0], call("load", [pointer], TYPES[ptx_type], order))
    names = [name_register(each) if each != "_" else "emulator_sink" for each in to]
    loaded = call("load_vector", [pointer, *names], TYPES[ptx_type], order)
    return f"{{ [[maybe_unused]] {U64} emulator_sink; {loaded}; }}"


def store(i: Instruction) -> str:
    """`st.shared.v2.u32 [p], {a, b}`."""
    space, order = take_memory_modifiers(i)
    vector, ptx_type = i.take("v2", "v4"), i.take_type()
    i.expect_operands(2)
    values = [read(each, TYPES[ptx_type]) for each in split_vector(i.operands[1])]
    if len(values) != int((vector or "v1")[1:]):
        raise i.unsupported()
    function = "store_vector" if vector else "store"
    return call(function, [address(i.operands[0], space), *values], TYPES[ptx_type], order) + ";"


def update(i: Instruction) -> str:
    """`atom.add.u32 d, [p], b`, and `red`, which has no result."""
    space, order = take_memory_modifiers(i)
    order = order.replace("weak", "relaxed")
    operation = i.take(*ATOMICS)
    i.take("noftz")
    ptx_type = i.take_type()
    has_result = i.opcode.startswith("atom.")
    if not operation:
        raise i.unsupported()
    operands = i.operands if has_result else ["_", *i.operands]
    if len(operands) != (4 if operation == "cas" else 3):
        raise i.unsupported()
    values = [read(each, TYPES[ptx_type]) for each in operands[2:]]
    return write(
        operands[0], call(f"atom_{operation}", [address(operands[1], space), *values], TYPES[ptx_type], order)
    )


def convert_address(i: Instruction) -> str:
    """`cvta.to.shared.u64 d, a`: between addresses of a state space and generic ones."""
    is_to, space = i.take("to"), i.take(*SPACES)
    ptx_type = i.take_type()
    i.expect_operands(2)
    if not space:
        raise i.unsupported()
    value = read(i.operands[1], TYPES[ptx_type])
    if SPACES[space] == "shared":
        if is_to:
            value = f"::emulator::shared_address(reinterpret_cast<const void*>({read(i.operands[1], U64)}))"
        else:
            value = f"reinterpret_cast<{U64}>(::emulator::shared_pointer({read(i.operands[1], U32)}))"
    return write(i.operands[0], value)


def map_address(i: Instruction) -> str:
    """`mapa.shared::cluster.u32 d, a, rank`: the same place in another block of the cluster."""
    space, ptx_type = i.take("shared::cluster"), i.take_type()
    i.expect_operands(3)
    rank = read(i.operands[2], U32)
    if space:
        return write(i.operands[0], f"::emulator::address_in_cluster({read(i.operands[1], U32)}, {rank})")
    own = f"reinterpret_cast<const void*>({read(i.operands[1], TYPES[ptx_type])})"
    return write(i.operands[0], f"reinterpret_cast<{U64}>(::__cluster_map_shared_rank({own}, {rank}))")


def store_async(i: Instruction) -> str:
    """`st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [p], {a, b}, [barrier]`."""
    i.take("weak")
    if not (i.take("shared::cluster") and i.take("mbarrier::complete_tx::bytes")):
        raise i.unsupported()
    vector, ptx_type = i.take("v2", "v4"), i.take_type()
    i.expect_operands(3)
    values = [read(each, TYPES[ptx_type]) for each in split_vector(i.operands[1])]
    if len(values) != int((vector or "v1")[1:]):
        raise i.unsupported()
    arguments = [address(i.operands[0], "shared"), f"{{{{{', '.join(values)}}}}}", address(i.operands[2], "shared")]
    return call("st_async", arguments, TYPES[ptx_type], str(len(values))) + ";"


def test_address(i: Instruction) -> str:
    """`isspacep.shared p, a`."""
    space = i.take("shared", "shared::cta", "global")
    i.expect_operands(2)
    test = f"::emulator::is_shared(reinterpret_cast<const void*>({read(i.operands[1], U64)}))"
    if not space:
        raise i.unsupported()
    return write(i.operands[0], f"!{test}" if space == "global" else test)


def copy_async(i: Instruction) -> str:
    """`cp.async.cg.shared.global [to], [from], 16, source_size`."""
    level, space = i.take("ca", "cg"), i.take("shared", "shared::cta")
    has_policy = "L2::cache_hint" in i.modifiers
    i.modifiers[:] = [each for each in i.modifiers if not each.startswith("L2::")]
    if has_policy:
        i.operands.pop()
    i.expect_operands(3, 4)
    if not level or not space or not i.take("global"):
        raise i.unsupported()
    if i.operands[2] in ("4", "8") and level == "cg":
        raise UnsupportedPtx(f"{i.opcode} copies 16 bytes, not {i.operands[2]}")
    size = read(i.operands[2], U32)
    source_size = read(i.operands[3], U32) if len(i.operands) == 4 else size
    pointers = [address(i.operands[0], "shared"), address(i.operands[1], "global")]
    return call("cp_async", [*pointers, size, source_size]) + ";"


def commit_copies(i: Instruction) -> str:
    """`cp.async.commit_group`."""
    return call("cp_async_commit_group", []) + ";"


def wait_for_copies(i: Instruction) -> str:
    """`cp.async.wait_group n`."""
    i.expect_operands(1)
    return call("cp_async_wait_group", [read(i.operands[0], U32)]) + ";"


def wait_for_all_copies(i: Instruction) -> str:
    """`cp.async.wait_all`."""
    return call("cp_async_wait_all", []) + ";"


def arrive_after_copies(i: Instruction) -> str:
    """`cp.async.mbarrier.arrive.noinc.shared.b64 [p]`; without `.noinc` it expects one arrival more."""
    count, space = "1" if i.take("noinc") else "0", i.take(*SPACES)
    i.take_type()
    i.expect_operands(1)
    return call("cp_async_mbarrier_arrive", [address(i.operands[0], SPACES.get(space, "generic")), count]) + ";"


MEMORY = {
    "ld": load,
    "st": store,
    "atom": update,
    "red": update,
    "cvta": convert_address,
    "isspacep": test_address,
    "mapa": map_address,
    "st.async": store_async,
    "cp.async": copy_async,
    "cp.async.commit_group": commit_copies,
    "cp.async.wait_group": wait_for_copies,
    "cp.async.wait_all": wait_for_all_copies,
    "cp.async.mbarrier.arrive": arrive_after_copies,
}
