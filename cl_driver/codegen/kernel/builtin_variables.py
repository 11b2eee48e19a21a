"""Built-in variables (SPIR-V 1.6, section 3.21; OpenCL SPIR-V environment 2.9): ids and sizes.

A component is computed at the head of the region's body when it is first asked for; LLVM moves what does not
depend on the work-item out of the loops.
"""

from __future__ import annotations

from ...passes.ir.ops import PassBuiltIn
from ...spirv.enums import BuiltIn
from ...spirv.module import Kind, Variable
from ..layout import abi
from ..layout.abi_fields import AbiFields
from ..llvm.errors import CodegenError

_LAUNCH_ARRAYS = {
    BuiltIn.GlobalSize: abi.LAUNCH_GLOBAL_SIZE, BuiltIn.GlobalOffset: abi.LAUNCH_GLOBAL_OFFSET,
    BuiltIn.EnqueuedWorkgroupSize: abi.LAUNCH_LOCAL_SIZE, BuiltIn.NumWorkgroups: abi.LAUNCH_NUM_GROUPS,
}  # fmt: skip


def component(e: AbiFields, builtin: BuiltIn, k: int) -> str:
    """The i64 operand of one component of a built-in variable, valid in the whole body of the region."""
    launch = _LAUNCH_ARRAYS.get(builtin)
    if launch is not None:
        return e.launch_field(launch + 8 * k, "i64")
    if builtin == BuiltIn.WorkDim:
        return e.emit_prologue(f"zext i16 {e.launch_field(abi.LAUNCH_WORK_DIM, 'i16')} to i32")
    if builtin == PassBuiltIn.GroupOrigin:
        return e.group_origins[k]
    if builtin == BuiltIn.WorkgroupId:
        return e.group_ids[k]
    if builtin == BuiltIn.WorkgroupSize:
        return e.group_sizes[k]
    key = builtin, k, 0
    found = e.builtin_cache.components.get(key)
    if found is None:
        outer, e.lines = e.lines, e.head
        found = e.builtin_cache.components[key] = _item_component(e, builtin, k)
        e.lines = outer
    return found


def _item_component(e: AbiFields, builtin: BuiltIn, k: int) -> str:
    """What differs between work-items."""
    if builtin == BuiltIn.LocalInvocationId:
        return e.local_ids[k]
    if builtin == BuiltIn.GlobalInvocationId:
        return e.emit(f"add i64 {e.group_origins[k]}, {e.local_ids[k]}")
    if builtin == BuiltIn.LocalInvocationIndex:
        return e.item_index()
    if builtin == BuiltIn.GlobalLinearId:
        return _global_linear_id(e)
    if builtin in (BuiltIn.SubgroupLocalInvocationId, PassBuiltIn.Lane):
        return "0"  # of lane 0
    if builtin == BuiltIn.SubgroupId:
        return _sub_groups(e, component(e, BuiltIn.LocalInvocationIndex, 0), 0)
    if builtin == BuiltIn.NumSubgroups:
        return _sub_groups(e, e.group_items(), e.width - 1)
    if builtin == BuiltIn.NumEnqueuedSubgroups:
        return _sub_groups(e, e.enqueued_items(), e.width - 1)
    if builtin == BuiltIn.SubgroupSize:
        left = e.emit(f"sub i64 {e.group_items()}, {component(e, BuiltIn.LocalInvocationIndex, 0)}")
        return e.emit(f"call i64 @llvm.umin.i64(i64 {left}, i64 {e.width})")
    raise CodegenError(f"the built-in variable {builtin.name} is not supported")


def _sub_groups(e: AbiFields, items: str, rounding: int) -> str:
    """Whole sub-groups of so many work-items."""
    if rounding:
        items = e.emit(f"add i64 {items}, {rounding}")
    return e.emit(f"lshr i64 {items}, {e.width.bit_length() - 1}")


def _global_linear_id(e: AbiFields) -> str:
    """OpenCL C 6.15.1, get_global_linear_id: without the global offset, x fastest."""

    def relative(k: int) -> str:
        offset = e.launch_field(abi.LAUNCH_GLOBAL_OFFSET + 8 * k, "i64")
        return e.emit(f"sub i64 {component(e, BuiltIn.GlobalInvocationId, k)}, {offset}")

    total = relative(2)
    for k in (1, 0):
        size = e.launch_field(abi.LAUNCH_GLOBAL_SIZE + 8 * k, "i64")
        total = e.emit(f"mul i64 {total}, {size}")
        total = e.emit(f"add i64 {total}, {relative(k)}")
    return total


def components(e: AbiFields, variable: Variable) -> tuple[list[str], str]:
    """The components of an Input variable in the width of its type, and that type. CodegenError for one that
    is no built-in variable."""
    type_ = variable.type.element
    builtin = variable.builtin
    if builtin is None:
        raise CodegenError(f"{variable.name} is no built-in variable")
    is_vector = type_.kind is Kind.VECTOR
    width = (type_.element if is_vector else type_).width
    held = 32 if builtin == BuiltIn.WorkDim else 64
    scalars = []
    for k in range(type_.count if is_vector else 1):
        operand = component(e, builtin, k)
        if width != held:
            key = builtin, k, width
            converted = e.builtin_cache.components.get(key)
            if converted is None:
                outer, e.lines = e.lines, e.head
                converted = e.to_width(f"i{held} {operand}", f"i{width}")
                e.lines = outer
                e.builtin_cache.components[key] = converted
            operand = converted
        scalars.append(operand)
    return scalars, f"i{width}"
