"""Places of a kernel that are checked when it runs: what native_shim/src/check is told of each."""

from __future__ import annotations

from ...records import record
from ...spirv.location import Location
from ...spirv.module import Argument, Instruction, Variable

LOAD, STORE, ATOMIC, BARRIER, FENCE, SHIFT, DIVIDE, REMAINDER, CONVERT, WAIT = range(10)

# Of an access to a pixel, in Site.bytes beside the number of its dimensions: the image has layers, there is a
# sampler, it says which level, coordinates are floating-point numbers, pixels are.
LAYERS, SAMPLED, LEVEL, PLACES, NUMBERS = 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12


@record(eq=False, slots=True)
class Site:
    """An access, a barrier, a fence, a wait, or an operation that may have no result.

    kind: LOAD to WAIT. size, alignment: of the access, in bytes; size of an operation: of an element.
    root: what the address is computed from, where that is one thing. runs: (offset, size) of the bytes that a
    load is after or that a store sets, of a vector of which others are of no matter. has_value: a store that
    hands over what it stores. any_content: a load of what need not have been written. acquires, releases,
    no_read, no_write: atomics. orders_local, orders_global: barriers and fences. is_signed: the result of an
    operation; rounding: FPRoundingMode of a conversion; chosen: the check has a condition behind its
    operands, and the result is wanted only where that is if_true.
    """

    kind: int
    line: Location | None
    size: int = 0
    alignment: int = 1
    storage: int = 0
    root: Argument | Variable | Instruction | None = None
    name: str = ""
    bytes: int = 0
    runs: tuple[tuple[int, int], ...] = ()
    has_value: bool = False
    any_content: bool = False
    acquires: bool = False
    releases: bool = False
    orders_local: bool = False
    orders_global: bool = False
    no_read: bool = False
    no_write: bool = False
    is_signed: bool = False
    rounding: int = 0
    chosen: bool = False
    if_true: bool = False
