"""Module to bytes: a little-endian binary that means the same as what was read.

Specialisation constants come out as the constants that they are by then, merge instructions and what loops
were asked to do are gone (module.py), and so is what the reader leaves out. Bodies are decoded if need be.
"""

from __future__ import annotations

import struct

from .enums import Decoration, ExecutionMode, MemoryModel, Op
from .enums import MemoryAccess as MemoryOperands
from .module import (
    Argument,
    Block,
    Constant,
    ConstantExpr,
    Function,
    InlineAssembly,
    Instruction,
    Kind,
    MemoryAccess,
    Module,
    Operand,
    Type,
    Undef,
    Variable,
)
from .tables import CONTINUED, MANY

GENERATOR = 0  # not registered with Khronos


def write(module: Module) -> bytes:
    """The module's binary."""
    return _Writer(module).bytes()


def _string(text: str) -> list[int]:
    data = text.encode("utf-8", "replace") + b"\0"
    data += b"\0" * (-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def _instruction(op: int, *operands: int) -> list[int]:
    if len(operands) < MANY:
        return [len(operands) + 1 << 16 | op, *operands]
    rest = _CONTINUED_BY[op]
    out = [MANY << 16 | op, *operands[: MANY - 1]]
    for start in range(MANY - 1, len(operands), MANY - 1):
        out += _instruction(rest, *operands[start : start + MANY - 1])
    return out


_CONTINUED_BY = {int(head): int(rest) for rest, head in CONTINUED.items()}


class _Writer:
    """One writing: sections of words, and the ids given so far."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.ids: dict[int, int] = {}  # id() of an object: its id
        self.kept: list[object] = []  # keeps the objects of `ids` alive
        self.strings: dict[str, int] = {}
        self.debug: list[int] = []  # OpString
        self.names: list[int] = []
        self.annotations: list[int] = []
        self.globals: list[int] = []  # types, constants, variables
        self.functions: list[int] = []
        self.open: set[int] = set()  # structures whose members are being written
        self.promised: list[Type] = []  # pointers declared ahead
        self.count = 0

    def new(self, thing: object | None = None) -> int:
        self.count += 1
        if thing is not None:
            self.ids[id(thing)] = self.count
            self.kept.append(thing)
        return self.count

    def bytes(self) -> bytes:
        module = self.module
        head: list[int] = []
        for capability in sorted(module.capabilities):
            head += _instruction(Op.Capability, capability)
        for extension in sorted(module.extensions):
            head += _instruction(Op.Extension, *_string(extension))
        self.set_id = self.new()
        head += _instruction(Op.ExtInstImport, self.set_id, *_string("OpenCL.std"))
        head += _instruction(Op.MemoryModel, 2 if module.address_bits == 64 else 1, MemoryModel.OpenCL)
        for function in module.functions:
            self.new(function)
        for variable in module.variables:
            self.value(variable)
        for function in sorted(module.functions, key=lambda f: bool(f.blocks)):
            self.function(function)
        for entry in module.entry_points:
            interface = [self.ids[id(v)] for v in entry.interface]
            head += _instruction(
                Op.EntryPoint, 6, self.ids[id(entry.function)], *_string(entry.name), *interface
            )
        for entry in module.entry_points:
            for mode, literals in entry.modes.items():
                head += self.mode(self.ids[id(entry.function)], mode, literals)
        source = _instruction(Op.Source, *module.source) if module.source else []
        for text in module.strings:
            self.string(text)
        version = module.version[0] << 16 | module.version[1] << 8
        words = [
            0x07230203,
            version,
            GENERATOR,
            self.count + 1,
            0,
            *head,
            *self.debug,
            *source,
            *self.names,
            *self.annotations,
            *self.globals,
            *self.functions,
        ]
        return struct.pack(f"<{len(words)}I", *words)

    def mode(self, function: int, mode: ExecutionMode, literals: tuple[int, ...]) -> list[int]:
        if mode in (
            ExecutionMode.DenormPreserve,
            ExecutionMode.DenormFlushToZero,
            ExecutionMode.RoundingModeRTE,
            ExecutionMode.SignedZeroInfNanPreserve,
            ExecutionMode.RoundingModeRTZ,
        ):
            return [w for width in literals for w in _instruction(Op.ExecutionMode, function, mode, width)]
        if mode == ExecutionMode.FPFastMathDefault:
            out = []
            for width, mask in zip(literals[::2], literals[1::2], strict=True):
                ids = (
                    self.type(self.module.types.float(width)),
                    self.value(self.module.types.integer(32, mask)),
                )
                out += _instruction(Op.ExecutionModeId, function, mode, *ids)
            return out
        return _instruction(Op.ExecutionMode, function, mode, *literals)

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = self.new()
            self.debug += _instruction(Op.String, self.strings[text], *_string(text))
        return self.strings[text]

    # Types.

    def type(self, type_: Type) -> int:
        found = self.ids.get(id(type_))
        if found is not None:
            return found
        kind = type_.kind
        if kind is Kind.STRUCT:
            self.open.add(id(type_))
            members = [self.member(m) for m in type_.members]
            self.open.discard(id(type_))
            number = self.new(type_)
            self.globals += _instruction(Op.TypeStruct, number, *members)
            if type_.packed:
                self.annotations += _instruction(Op.Decorate, number, Decoration.CPacked)
            self.name(number, type_.name)
            due = [p for p in self.promised if id(p.element) in self.ids]
            self.promised = [p for p in self.promised if id(p.element) not in self.ids]
            for pointer in due:
                self.globals += _instruction(Op.TypePointer, self.ids[id(pointer)], pointer.storage, number)
            return number
        operands = self.type_operands(type_)
        # An operand may have led back here through a structure that points to itself.
        if id(type_) in self.ids:
            return self.ids[id(type_)]
        op = type_.op or _TYPE_OPS[kind]
        if kind is Kind.POINTER and type_.element is None:
            op = Op.TypeUntypedPointerKHR
        number = self.new(type_)
        self.globals += _instruction(op, number, *operands)
        return number

    def member(self, type_: Type) -> int:
        """A structure's member; a pointer back to a structure that is being written is declared ahead."""
        if (
            type_.kind is Kind.POINTER
            and type_.element is not None
            and id(type_.element) in self.open
            and id(type_) not in self.ids
        ):
            number = self.new(type_)
            self.globals += _instruction(Op.TypeForwardPointer, number, type_.storage)
            self.promised.append(type_)
        return self.type(type_)

    def type_operands(self, type_: Type) -> list[int]:
        kind = type_.kind
        if kind is Kind.INT:
            return [type_.width, 0]
        if kind is Kind.FLOAT:
            return [type_.width, *type_.operands]
        if kind is Kind.VECTOR:
            return [self.type(type_.element), type_.count]
        if kind is Kind.ARRAY:
            width = 32 if type_.count < 1 << 32 else 64
            return [self.type(type_.element), self.value(self.module.types.integer(width, type_.count))]
        if kind is Kind.POINTER:
            return [type_.storage] if type_.element is None else [type_.storage, self.type(type_.element)]
        if kind is Kind.FUNCTION:
            return [self.type(type_.element), *map(self.type, type_.members)]
        if kind is Kind.OPAQUE:
            out: list[int] = []
            for operand in type_.operands:
                if isinstance(operand, Type):
                    out.append(self.type(operand))
                elif isinstance(operand, str):
                    out += _string(operand)
                else:
                    out.append(operand)
            return out
        return []

    # Values outside of functions.

    def value(self, value: Operand) -> int:
        found = self.ids.get(id(value))
        if found is not None:
            return found
        type_ = self.type(value.type)
        if isinstance(value, Variable):
            initializer = [] if value.initializer is None else [self.value(value.initializer)]
            number = self.new(value)
            self.globals += _instruction(Op.Variable, type_, number, value.type.storage, *initializer)
            self.describe(number, value)
            return number
        if isinstance(value, InlineAssembly):
            return self.assembly(value)
        if isinstance(value, Undef):
            op, operands = Op.Undef, []
        elif isinstance(value, ConstantExpr) and value.op is Op.ConstantFunctionPointerINTEL:
            op, operands = value.op, [self.ids[id(value.operands[0])]]
        elif isinstance(value, ConstantExpr):
            operands = [value.op, *(o if isinstance(o, int) else self.value(o) for o in value.operands)]
            op = Op.SpecConstantOp
        else:
            op, operands = self.constant(value)
        number = self.new(value)
        self.globals += _instruction(op, type_, number, *operands)
        return number

    def assembly(self, value: InlineAssembly) -> int:
        target, number = self.new(), self.new(value)
        self.globals += _instruction(Op.AsmTargetINTEL, target, *_string(value.target))
        result, type_ = self.type(value.type.element), self.type(value.type)
        texts = (*_string(value.text), *_string(value.constraints))
        self.globals += _instruction(Op.AsmINTEL, result, number, type_, target, *texts)
        self.name(number, value.name)
        if value.has_effects:
            self.annotations += _instruction(Op.Decorate, number, Decoration.SideEffectsINTEL)
        return number

    def constant(self, value: Constant) -> tuple[Op, list[int]]:
        type_ = value.type
        if value.value is None:
            return Op.ConstantNull, []
        if type_.kind is Kind.BOOL:
            return Op.ConstantTrue if value.value else Op.ConstantFalse, []
        if type_.kind in (Kind.INT, Kind.FLOAT):
            bits = value.value
            return Op.Constant, [bits >> k & 0xFFFFFFFF for k in range(0, type_.width, 32)]
        if type_.op == Op.TypeSampler:
            return Op.ConstantSampler, list(value.value)
        if type_.op == Op.TypePipeStorage:
            return Op.ConstantPipeStorage, list(value.value)
        constituents = [self.value(v) for v in value.value]
        # Whatever stands on an address is a constant instruction of its own: a composite of those is special.
        special = any(isinstance(v, ConstantExpr) for v in value.value)
        return Op.SpecConstantComposite if special else Op.ConstantComposite, constituents

    def name(self, number: int, text: str) -> None:
        if text:
            self.names += _instruction(Op.Name, number, *_string(text))

    def describe(self, number: int, value: Operand) -> None:
        """Name, linkage and decorations."""
        self.name(number, value.name)
        linkage = getattr(value, "linkage", None)
        if linkage:
            self.annotations += _instruction(
                Op.Decorate, number, Decoration.LinkageAttributes, *_string(linkage[0]), linkage[1]
            )
        for decoration, literals in value.decorations.items():
            if decoration == Decoration.FuncParamAttr:
                for attribute in sorted(literals):
                    self.annotations += _instruction(Op.Decorate, number, decoration, attribute)
            elif decoration in (Decoration.SpecId, Decoration.CPacked):
                continue
            elif literals is True:
                self.annotations += _instruction(Op.Decorate, number, decoration)
            else:
                words = [literals] if isinstance(literals, int) else list(literals)
                self.annotations += _instruction(Op.Decorate, number, decoration, *words)

    # Functions.

    def function(self, function: Function) -> None:
        number = self.ids[id(function)]
        out = _instruction(
            Op.Function, self.type(function.type.element), number, function.control, self.type(function.type)
        )
        self.describe(number, function)
        for argument, type_ in zip(function.arguments, function.type.members, strict=True):
            out += _instruction(Op.FunctionParameter, self.type(type_), self.new(argument))
            self.describe(self.ids[id(argument)], argument)
        for block in function.blocks:
            self.new(block)
            for instruction in block.instructions:
                if instruction.type is not None:
                    self.new(instruction)
        for block in function.blocks:
            out += _instruction(Op.Label, self.ids[id(block)])
            self.name(self.ids[id(block)], block.name)
            line = None
            for instruction in block.instructions:
                if instruction.line != line:
                    line = instruction.line
                    out += (
                        _instruction(Op.NoLine)
                        if line is None
                        else _instruction(Op.Line, self.string(line.file), line.line, line.column)
                    )
                out += self.instruction(instruction)
        out += _instruction(Op.FunctionEnd)
        self.functions += out

    def operand(self, value: Operand) -> int:
        if isinstance(value, Block | Instruction | Argument | Function):
            return self.ids[id(value)]
        return self.type(value) if isinstance(value, Type) else self.value(value)

    def instruction(self, instruction: Instruction) -> list[int]:
        op, operands = instruction.op, instruction.operands
        words: list[int] = []
        if instruction.type is not None:
            number = self.ids[id(instruction)]
            words += [self.type(instruction.type), number]
            if instruction.name or instruction.decorations:
                self.describe(number, instruction)
        if op == Op.ExtInst:
            words += [
                self.set_id,
                operands[1],
                *(o if isinstance(o, int) else self.operand(o) for o in operands[2:]),
            ]
        elif op == Op.Switch:
            wide = operands[0].type.width == 64
            for operand in operands:
                if isinstance(operand, int):
                    words += [operand & 0xFFFFFFFF, operand >> 32] if wide else [operand]
                else:
                    words.append(self.operand(operand))
        else:
            for operand in operands:
                if isinstance(operand, str):
                    words += _string(operand)
                else:
                    words.append(operand if isinstance(operand, int) else self.operand(operand))
        if instruction.memory is not None:
            words += self.memory(instruction.memory)
        return _instruction(op, *words)

    def memory(self, access: MemoryAccess) -> list[int]:
        mask = MemoryOperands.Volatile * access.volatile | MemoryOperands.Nontemporal * access.nontemporal
        if access.alignment:
            return [mask | MemoryOperands.Aligned, access.alignment]
        return [mask]


_TYPE_OPS = {
    Kind.VOID: Op.TypeVoid,
    Kind.BOOL: Op.TypeBool,
    Kind.INT: Op.TypeInt,
    Kind.FLOAT: Op.TypeFloat,
    Kind.VECTOR: Op.TypeVector,
    Kind.ARRAY: Op.TypeArray,
    Kind.POINTER: Op.TypePointer,
    Kind.FUNCTION: Op.TypeFunction,
}
