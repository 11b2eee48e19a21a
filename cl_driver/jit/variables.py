"""Program-scope variables: where each lives in the program's memory, and what that memory begins as.

Decided from the linked module alone and in its order, so that all compiler processes that work on one program
decide the same. A constant variable that a program-scope variable points to lives there too: code has its own
constants, but data cannot point into code.
"""

from __future__ import annotations

from cl_driver.jit.errors import CompileError
from cl_driver.jit.executable import NO_GLOBALS, Globals
from cl_driver.passes.describe import variable_alignment
from cl_driver.passes.layout import member_offset, size_of
from cl_driver.spirv.enums import Op, StorageClass
from cl_driver.spirv.module import Constant, ConstantExpr, Function, Kind, Module, Type, Undef, Variable

_CASTS = (Op.Bitcast, Op.PtrCastToGeneric, Op.GenericCastToPtr, Op.ConvertPtrToU, Op.ConvertUToPtr)
_CHAINS = (Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain)


class ProgramVariables:
    """offsets: {Variable: its place in the memory}; memory: Globals."""

    def __init__(self, module: Module):
        self.offsets: dict[Variable, int] = {}
        self._image = bytearray()
        self._fixups: list[list[int]] = []
        self._size, self._align = 0, 1
        for variable in module.variables:
            if variable.type.storage is StorageClass.CrossWorkgroup:
                self._place(variable)
        pending = list(self.offsets)
        while pending:
            found = [v for variable in pending for v in _pointed_to(variable.initializer) if v not in self.offsets]
            pending = list(dict.fromkeys(found))
            for variable in pending:
                self._place(variable)
        for variable, offset in self.offsets.items():
            if variable.initializer is not None:
                self._write(offset, variable.type.element, variable.initializer)
        self.memory = NO_GLOBALS
        if self.offsets:
            image = bytes(self._image)
            self.memory = Globals(size=self._size, align=self._align, image=image, fixups=sorted(self._fixups))

    def _place(self, variable: Variable) -> None:
        align = variable_alignment(variable)
        offset = -(-self._size // align) * align
        self.offsets[variable] = offset
        self._size = offset + max(1, size_of(variable.type.element))
        self._align = max(self._align, align)

    def _put(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        if any(data):  # what is zero at the end need not be stored
            self._image.extend(bytes(max(0, end - len(self._image))))
            self._image[offset:end] = data

    def _write(self, offset: int, type_: Type, value) -> None:
        """The bytes of an initialiser at an offset of the memory."""
        if isinstance(value, Undef) or (isinstance(value, Constant) and value.value is None):
            return
        if type_.kind is Kind.POINTER or not isinstance(value, Constant):
            variable, target = _address(value)
            if variable not in self.offsets:
                raise CompileError(f"program-scope data has the address of '{value.name}', which is not data")
            self._fixups.append([offset, self.offsets[variable] + target])
        elif type_.kind in (Kind.INT, Kind.FLOAT):
            size = max(1, type_.width // 8)
            self._put(offset, (value.value & ((1 << 8 * size) - 1)).to_bytes(size, "little"))
        elif type_.kind is Kind.BOOL:
            self._put(offset, bytes([value.value]))
        elif type_.kind in (Kind.VECTOR, Kind.ARRAY):
            step = size_of(type_.element)
            for i, part in enumerate(value.value):
                self._write(offset + i * step, type_.element, part)
        elif type_.kind is Kind.STRUCT:
            for i, part in enumerate(value.value):
                self._write(offset + member_offset(type_, i), type_.members[i], part)
        else:
            raise CompileError(f"a program-scope variable of type {type_.kind.value} has an initialiser")


def _pointed_to(value) -> list[Variable]:
    """The variables whose addresses an initialiser contains."""
    if isinstance(value, Variable):
        return [value]
    if isinstance(value, ConstantExpr):
        parts = value.operands
    elif isinstance(value, Constant) and isinstance(value.value, tuple):
        parts = value.value
    else:
        return []
    return [variable for part in parts for variable in _pointed_to(part)]


def _address(value) -> tuple[Variable, int]:
    """A constant address as a variable and an offset in bytes."""
    if isinstance(value, Variable):
        return value, 0
    if isinstance(value, Constant) and value.type.kind is Kind.POINTER and value.value is not None:
        return _address(value.value)
    if isinstance(value, ConstantExpr):
        if value.op in _CASTS:
            return _address(value.operands[0])
        if value.op in _CHAINS:
            return _chain(value)
        if value.op in (Op.IAdd, Op.ISub) and isinstance(value.operands[1], Constant):
            variable, offset = _address(value.operands[0])
            return variable, offset + _signed(value.operands[1]) * (1 if value.op is Op.IAdd else -1)
    what = "a function" if isinstance(value, Function) else "something that is not constant"
    raise CompileError(f"program-scope data has the address of {what}")


def _chain(expression: ConstantExpr) -> tuple[Variable, int]:
    base, *indices = expression.operands
    variable, offset = _address(base)
    type_ = base.type.element
    if expression.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        offset += _signed(indices.pop(0)) * size_of(type_)
    for index in indices:
        if type_.kind is Kind.STRUCT:
            offset += member_offset(type_, index.value or 0)
            type_ = type_.members[index.value or 0]
        else:
            type_ = type_.element
            offset += _signed(index) * size_of(type_)
    return variable, offset


def _signed(constant: Constant) -> int:
    value, width = constant.value or 0, constant.type.width
    return value - (1 << width) if value >> (width - 1) else value
