"""printf (OpenCL.std 184): packs the arguments as kernel_abi.h says and calls the data plane, which
formats. Assertions that fail (spirv/assertions.py) come the same way.
"""

from __future__ import annotations

from ...spirv.enums import OpenCLStd as Std
from ...spirv.instruction_sets import ASSERTION
from ...spirv.module import Argument, Instruction, Kind
from ..llvm.emitter import FunctionEmitter
from ..llvm.errors import CodegenError
from ..llvm.registry import lowers_extended
from ..llvm.types import component_count, element_type, ir_type, size_of

INTEGER, FLOAT, POINTER = range(3)
_KINDS = {Kind.INT: INTEGER, Kind.FLOAT: FLOAT, Kind.POINTER: POINTER, Kind.BOOL: INTEGER}


@lowers_extended(Std.printf)
def printf(e: FunctionEmitter, i: Instruction) -> None:
    """Each argument: a tag word, padding to 8 bytes, then the elements, packed, padded to 8 bytes.
    CodegenError for what is neither a number nor a pointer."""
    text, arguments = i.operands[2], i.operands[3:]
    placed, size = [], 0
    for argument in arguments:
        type_ = element_type(argument.type)
        kind = _KINDS.get(type_.kind)
        if kind is None:
            raise CodegenError(f"printf of a value of type {type_.kind.value}")
        count = component_count(argument.type)
        element_size = size_of(type_)
        placed.append((argument, size, element_size | count << 8 | kind << 16))
        size += 8 + (element_size * count + 7) // 8 * 8
    block = e.alloca(f"[{max(size, 8)} x i8]", 8)
    for argument, offset, tag in placed:
        e.emit_void(f"store i32 {tag}, ptr {_at(e, block, offset)}, align 8")
        _store_packed(e, argument, _at(e, block, offset + 8))
    name = "cld_assert_fail" if i.operands[0] == ASSERTION else "cld_printf"
    buffer = e.printf_buffer()
    given = f"ptr {buffer}, ptr {e.operand(text)}, ptr {block}, i32 {size}"
    e.define(i, e.emit(f"call i32 @{name}({given})"))


def _at(e: FunctionEmitter, block: str, offset: int) -> str:
    return e.emit(f"getelementptr inbounds i8, ptr {block}, i64 {offset}") if offset else block


def _store_packed(e: FunctionEmitter, argument: Argument, address: str) -> None:
    type_ = element_type(argument.type)
    if type_.kind is Kind.BOOL:
        widened = e.emit(f"zext {e.typed(argument)} to i8")
        e.emit_void(f"store i8 {widened}, ptr {address}, align 8")
        return
    element, size = ir_type(type_), size_of(type_)
    if component_count(argument.type) == 1:
        e.emit_void(f"store {element} {e.operand(argument)}, ptr {address}, align 8")
        return
    for k, component in enumerate(e.components(argument)):
        e.emit_void(f"store {element} {component}, ptr {_at(e, address, k * size)}, align {size}")
