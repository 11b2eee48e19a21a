"""The work-item that a kernel is at, in memory for debuggers: cl_item, a structure of its ids and sizes.

Only in kernels with debug information that are not optimised, whose work-items are executed one by one.
"""

from __future__ import annotations

from ...spirv.location import DebugType, DebugVariable
from ..layout import abi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .kernel_emitter import KernelEmitter

NAME = "cl_item"
_PARTS = ("global_id", "local_id", "group_id", "local_size", "num_groups")
_UNSIGNED = 7  # DWARF's encoding


def _type() -> DebugType:
    number, three = DebugType("basic", "unsigned long", 64, _UNSIGNED), DebugType("array", size=3 * 64)
    three.base, three.counts = number, [3]
    whole = DebugType("struct", NAME, len(_PARTS) * 3 * 64)
    whole.members = [(name, three, 3 * 64 * k) for k, name in enumerate(_PARTS)]
    return whole


def describe_item(e: KernelEmitter) -> None:
    """Writes down the work-item whose body begins."""
    if e.debug is None or not e.plan.options.skip or e.width > 1 or e.plan.takes_turns:
        return
    memory = e.debug.places.get(NAME)
    if memory is None:
        memory = e.debug.places[NAME] = e.alloca(f"[{3 * len(_PARTS)} x i64]", 16)
        e.debug.declare(e.lines, e.debug.of_variable(DebugVariable(NAME, _type(), 0)), memory)
    local = [e.local_ids[k] for k in range(3)]
    numbers = [
        *(e.emit(f"add i64 %o{axis}, {own}") for axis, own in zip("xyz", local, strict=True)),
        *local,
        *(f"%g{axis}" for axis in "xyz"),
        *(f"%l{axis}" for axis in "xyz"),
        *(e.launch_field(abi.LAUNCH_NUM_GROUPS + 8 * k, "i64") for k in range(3)),
    ]
    for k, number in enumerate(numbers):
        place = e.emit(f"getelementptr inbounds i64, ptr {memory}, i64 {k}")
        e.emit_void(f"store volatile i64 {number}, ptr {place}, align 8")
