"""How many work-items per vector a kernel gets when the setting leaves it to the driver."""

from __future__ import annotations

from cl_driver.jit.target import Target
from cl_driver.spirv.module import Function, Kind, Type

# Bytes of registers that one value of all lanes may take: with more, code grows and spills.
_VALUE_BYTES = 512


def choose(functions: list[Function], required_local_size, target: Target) -> int:
    """functions: the kernel and what it calls."""
    if target.width:
        return target.width
    lanes = target.vector_bits // 32
    if 0 < required_local_size[0] < lanes:
        return 1
    widest = max((_bits(i.type) for f in functions for b in f.blocks for i in b.instructions), default=0)
    while lanes > 1 and lanes * widest > 8 * _VALUE_BYTES:
        lanes //= 2
    return lanes


def _bits(type_: Type | None) -> int:
    if type_ is None:
        return 0
    if type_.kind is Kind.VECTOR:
        return type_.count * type_.element.width
    return type_.width if type_.kind in (Kind.INT, Kind.FLOAT) else 0
