"""Kernels whose sub-groups may wait for one another (passes/groups/sub_group_turns.py).

The kernel's function is then one for a single sub-group of a single group. The data plane calls it on a stack
of its own for each of them (native_shim/src/loader/sub_groups.c). Regions have no loops over work-items.
Between regions each sub-group waits until all others have come there, and all go on to the same region.
"""

from __future__ import annotations

from collections.abc import Callable

from ...passes.ir.ops import REGION_END, PassOp
from ...spirv.enums import Op
from ...spirv.module import Instruction
from ..atomic.emitter import AtomicEmitter
from ..layout.scratch import Scratch
from ..llvm.emitter import FunctionEmitter
from ..llvm.registry import lowers, lowers_wide
from ..llvm.versioning import emit_versions
from ..ops.atomics import fence


def own_function(symbol: str) -> tuple[str, str]:
    """How the definition of the function for one sub-group begins, and its parameters behind those of all
    kernels: which sub-group it is."""
    return f'define internal void @"{symbol}.sub_group"', ", ptr %self, i64 %index"


def entry_text(symbol: str, width: int, scratch: Scratch) -> list[str]:
    """What the data plane calls: it has the groups' sub-groups executed in turns."""
    name = f"{symbol}.layout"
    return [
        f'@"{name}" = internal constant [2 x i64] [i64 {width}, i64 {scratch.stack_size}], align 8',
        "declare void @cld_sub_groups_run(ptr, ptr, ptr, ptr, ptr, i64, i64)",
        "declare void @cld_sub_group_yield(ptr)",
        "declare i32 @cld_sub_group_join(ptr, i32)",
        "declare void @cld_sub_group_meet(ptr, i32)",
        f'define void @"{symbol}"(ptr %launch, ptr %args, ptr %thread, i64 %first, i64 %last) #0 {{',
        f'  call void @cld_sub_groups_run(ptr @"{symbol}.sub_group", ptr @"{name}", ptr %launch, ptr %args, '
        "ptr %thread, i64 %first, i64 %last)",
        "  ret void",
        "}",
    ]


def join(e: FunctionEmitter, following: str) -> str:
    """Waits for all sub-groups of the group. Gives the greatest of what they ask to go on to: those of which
    all work-items have returned have no say, and REGION_END is the least."""
    return e.emit(f"call i32 @cld_sub_group_join(ptr %self, i32 {following})")


def wait_for_loads() -> str:
    """The line that has none go on before all have read what the group has one of, for some set it anew."""
    return f"  call i32 @cld_sub_group_join(ptr %self, i32 {REGION_END})"


@lowers(PassOp.Yield)
def let_others_go_on(e: FunctionEmitter, _: Instruction) -> None:
    """Another sub-group's turn."""
    e.emit_void("call void @cld_sub_group_yield(ptr %self)")


@lowers_wide(PassOp.Yield)
def let_others_go_on_with_lanes(e: AtomicEmitter, i: Instruction) -> None:
    """The same if some lane still waits."""
    _if_any_lane(e, i, lambda: let_others_go_on(e, i))


@lowers(Op.MemoryNamedBarrier)
def meet(e: FunctionEmitter, i: Instruction) -> None:
    """OpMemoryNamedBarrier."""
    _meet(e, i, e.operand(i.operands[0]))


@lowers_wide(Op.MemoryNamedBarrier)
def meet_with_lanes(e: AtomicEmitter, i: Instruction) -> None:
    """The same for the sub-group's lanes, if any of them comes here."""
    barrier, mask = i.operands[0], e.mask_of(i)
    if e.is_varying(barrier):
        word = e.first_active("i32", e.leaf(barrier), mask)
    else:
        word = e.operand(barrier)
    _if_any_lane(e, i, lambda: _meet(e, i, word))


def _if_any_lane(e: AtomicEmitter, i: Instruction, effect: Callable[[], None]) -> None:
    mask = e.mask_of(i)
    if mask is None:
        effect()
        return

    def nothing() -> None:
        pass

    emit_versions(e, e.any_lane(e.frozen(e.form, "i1", mask)), [], effect, nothing)


def _meet(e: FunctionEmitter, i: Instruction, barrier: str) -> None:
    fence(e, i.operands[1], i.operands[2])
    e.emit_void(f"call void @cld_sub_group_meet(ptr %self, i32 {barrier})")
