"""The tables of lowerings: which function lowers which instruction.

Every lowering has the signature lower(emitter, instruction). Component-wise instructions are written once,
as a function of the LLVM type forms and operands of one vector; the decorator makes the lowering of it.
"""

from __future__ import annotations

from collections.abc import Callable

from ...fast_typing import Any, TypeVar
from ...spirv.enums import Op
from ...spirv.module import Instruction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# What is registered takes the emitter of its own room, and the tables are called with that of all rooms: any
# FunctionEmitter for the first two, the emitter of wide code (simd/emitter.py) for the wide ones.
Lowering: TypeAlias = Callable[[Any, Instruction], None]
# build(emitter, form, instruction, *operands) -> operand
Builder: TypeAlias = Callable[..., str]

K = TypeVar("K", bound=int)
L = TypeVar("L", bound=Lowering)
B = TypeVar("B", bound=Builder)

LOWERINGS: dict[Op, Lowering] = {}
EXTENDED: dict[int, Lowering] = {}  # by the number of the OpenCL.std instruction
COMPONENTWISE: dict[Lowering, Builder] = {}  # lowerings made by componentwise()
WIDE: dict[Op, Lowering] = {}  # of instructions whose result or effect varies between lanes
WIDE_EXTENDED: dict[int, Lowering] = {}  # the same for OpenCL.std instructions


def _register(table: dict[K, Lowering], keys: tuple[K, ...], lowering: Lowering, what: str) -> None:
    """Puts a lowering into a table, in which each key has one."""
    for key in keys:
        if key in table:
            raise ValueError(f"two {what} {key}")
        table[key] = lowering


# Of instructions; of OpenCL.std instructions, whose arguments are instruction.operands[2:]. The wide ones are
# for values that vary between lanes: without one, each lane is lowered by itself.


def lowers(*keys: Op) -> Callable[[L], L]:
    """A decorator for the lowering of instructions of the core set, or of the passes' own."""

    def register(lowering: L) -> L:
        _register(LOWERINGS, keys, lowering, "lowerings of")
        return lowering

    return register


def lowers_extended(*keys: int) -> Callable[[L], L]:
    """The same for instructions of OpenCL.std."""

    def register(lowering: L) -> L:
        _register(EXTENDED, keys, lowering, "lowerings of OpenCL.std")
        return lowering

    return register


def lowers_wide(*keys: Op) -> Callable[[L], L]:
    """A decorator for the lowering of instructions whose result or effect varies between lanes."""

    def register(lowering: L) -> L:
        _register(WIDE, keys, lowering, "wide lowerings of")
        return lowering

    return register


def lowers_wide_extended(*keys: int) -> Callable[[L], L]:
    """The same for instructions of OpenCL.std."""

    def register(lowering: L) -> L:
        _register(WIDE_EXTENDED, keys, lowering, "wide lowerings of OpenCL.std")
        return lowering

    return register


def _lowering_of(build: Builder, first: int) -> Lowering:
    """The lowering by a builder; first: the first operand of the instruction that is an argument."""

    def lowering(emitter: Any, instruction: Instruction) -> None:
        emitter.componentwise(instruction, instruction.operands[first:], build)

    COMPONENTWISE[lowering] = build
    return lowering


def componentwise(*keys: Op) -> Callable[[B], B]:
    """A decorator for build(emitter, form, instruction, *operands) -> operand, applied to whole vectors."""

    def register(build: B) -> B:
        lowers(*keys)(_lowering_of(build, 0))
        return build

    return register


def componentwise_extended(*keys: int) -> Callable[[B], B]:
    """The same for instructions of OpenCL.std."""

    def register(build: B) -> B:
        lowers_extended(*keys)(_lowering_of(build, 2))
        return build

    return register
