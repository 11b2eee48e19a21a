"""Ids of work-items where lanes follow the linear local id, across rows: passes/ir/plan.py, linear_lanes."""

from __future__ import annotations

from ...spirv.enums import BuiltIn
from ..layout import abi
from ..layout.abi_fields import AbiFields
from ..layout.lanes import LaneEmitter

# What differs between lanes then without being affine.
LINEAR_IDS = (BuiltIn.LocalInvocationId, BuiltIn.GlobalInvocationId, BuiltIn.GlobalLinearId)


def reciprocals(e: AbiFields) -> list[str]:
    """2^32 / size, rounded up, of dimensions 0 and 1 of the group."""
    quotients = [e.emit(f"udiv i64 4294967295, {size}") for size in e.group_sizes[:2]]
    return [e.emit(f"add i64 {quotient}, 1") for quotient in quotients]


def id_components(e: LaneEmitter, builtin: BuiltIn, reciprocals: list[str]) -> list[str]:
    """`<W x i64>` of each component of one of FLAT_IDS."""
    f = e.form
    if builtin == BuiltIn.LocalInvocationId:
        return _local_ids(e, reciprocals)
    local = _local_ids(e, reciprocals)
    ids = [
        e.emit(f"add {f('i64')} {id_}, {e.splat(origin, 'i64', f)}")
        for id_, origin in zip(local, e.group_origins, strict=True)
    ]
    if builtin == BuiltIn.GlobalInvocationId:
        return ids
    total = ""
    for k in (2, 1, 0):
        offset = e.launch_field(abi.LAUNCH_GLOBAL_OFFSET + 8 * k, "i64")
        distance = e.emit(f"sub {f('i64')} {ids[k]}, {e.splat(offset, 'i64', f)}")
        if total:
            size = e.launch_field(abi.LAUNCH_GLOBAL_SIZE + 8 * k, "i64")
            total = e.emit(f"mul {f('i64')} {total}, {e.splat(size, 'i64', f)}")
            distance = e.emit(f"add {f('i64')} {total}, {distance}")
        total = distance
    return [total]


def _local_ids(e: LaneEmitter, reciprocals: list[str]) -> list[str]:
    """x = i mod lx, y = i / lx mod ly, z = i / lx / ly of the linear local id i.

    Divisions are multiplications with the reciprocals, shifted by 32: exact, for i is below 2^16.
    """
    f = e.form
    steps = ", ".join(f"i64 {k}" for k in range(e.width))
    index = e.emit(f"add {f('i64')} {e.splat(e.local_ids[0], 'i64', f)}, <{steps}>")
    found = []
    for reciprocal, size in zip(reciprocals, e.group_sizes, strict=False):
        product = e.emit(f"mul {f('i64')} {index}, {e.splat(reciprocal, 'i64', f)}")
        quotient = e.emit(f"lshr {f('i64')} {product}, {f.splat('i64', '32')}")
        whole = e.emit(f"mul {f('i64')} {quotient}, {e.splat(size, 'i64', f)}")
        found.append(e.emit(f"sub {f('i64')} {index}, {whole}"))
        index = quotient
    return [*found, index]
