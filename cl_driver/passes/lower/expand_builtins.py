"""Puts functions of the builtin library in place of the instructions and calls that stand for them.

At widths above 1 only: inlined before linearisation, a library function becomes vector code with everything
around it; a call would be made once per lane. What the library does not have stays as it is.

The library's module and the program's share their table of types (ir/library.py).
"""

from __future__ import annotations

from ...spirv.enums import Op, OpenCLStd, StorageClass
from ...spirv.module import Block, Function, Instruction, Kind, MemoryAccess, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import EXTINST_WITH_EFFECT, append, instruction_count
from ..ir.layout import size_of
from ..ir.library import Library
from ..ir.link_names import stays_a_call

MAX_CALLEE = 1_000  # instructions of one library function
MAX_TOTAL = 8_000  # instructions that one kernel may grow by


_SIN_AND_COS = (OpenCLStd.sin, OpenCLStd.cos)


def expand_builtins(function: Function, types: TypeTable, library: Library) -> bool:
    """Makes calls of library functions with bodies; the caller inlines them. True if there are any."""
    return _Expansion(function, types, library).run()


class _Expansion:
    def __init__(self, function: Function, types: TypeTable, library: Library) -> None:
        self.function = function
        self.types = types
        self.library = library
        self.sizes: dict[Function, int] = {}
        self.grown = 0

    def run(self) -> bool:
        for block in self.function.blocks:
            if not any(i.op is Op.ExtInst or i.op is Op.FunctionCall for i in block.instructions):
                continue
            old, block.instructions = self.with_sincos(block), []
            for instruction in old:
                count = len(block.instructions)
                if not self.expand(instruction):
                    block.instructions.append(instruction)
                for made in block.instructions[count:]:
                    made.line = instruction.line
        return self.grown > 0

    def with_sincos(self, block: Block) -> list[Instruction]:
        """The instructions of a block, sin and cos of one number being one instruction, sincos."""
        wanted: dict[Value, dict[int, Instruction]] = {}
        for i in block.instructions:
            if i.op is Op.ExtInst and i.operands[1] in _SIN_AND_COS:
                wanted.setdefault(i.operands[2], {}).setdefault(i.operands[1], i)
        pairs = {i for both in wanted.values() if len(both) == 2 for i in both.values()}
        made: dict[Value, dict[int, Instruction]] = {}
        result = []
        for i in block.instructions:
            if i not in pairs:
                result.append(i)
                continue
            name, _, x = i.operands
            if x not in made:  # the first of the two
                variable = self.variable(i.type)
                sincos = Instruction(Op.ExtInst, i.type, [name, OpenCLStd.sincos, x, variable], block)
                cosine = Instruction(Op.Load, i.type, [variable], block)
                cosine.memory = MemoryAccess()
                sincos.line = cosine.line = i.line
                result += (sincos, cosine)
                made[x] = {OpenCLStd.sin: sincos, OpenCLStd.cos: cosine}
            i.op, i.operands = Op.CopyObject, [made[x][i.operands[1]]]
            result.append(i)
        return result

    def expand(self, instruction: Instruction) -> bool:
        if instruction.op is Op.FunctionCall:
            return self.expand_call(instruction)
        if instruction.op is Op.ExtInst and instruction.type.kind is not Kind.VOID:
            return self.expand_instruction(instruction)
        return False

    def expand_call(self, call: Instruction) -> bool:
        declared = call.operands[0]
        if declared.blocks or not declared.linkage:
            return False
        if stays_a_call(declared.linkage[0]):
            return False
        callee = self.library.function(declared.linkage[0])
        if callee is None or not self.affordable(callee, call.operands[1:], 1):
            return False
        # Declarations that clang makes of builtin functions have pointers to char.
        arguments = [
            argument if argument.type is wanted else append(call.block, Op.Bitcast, wanted, [argument])
            for argument, wanted in zip(call.operands[1:], callee.type.members, strict=True)
        ]
        call.operands = [callee, *arguments]
        call.block.instructions.append(call)
        return True

    def affordable(self, callee: Function, arguments: list[Value], copies: int) -> bool:
        """False for functions that are too large, or that speak of types of another table."""
        parameters = callee.type.members
        if len(parameters) != len(arguments):
            return False
        if not all(_fits(p, a.type) for p, a in zip(parameters, arguments, strict=True)):
            return False
        size = self.size(callee) * copies
        if self.sizes[callee] > MAX_CALLEE or self.grown + size > MAX_TOTAL:
            return False
        self.grown += size
        return True

    def size(self, function: Function) -> int:
        """Instructions of a function and all that it calls."""
        found = self.sizes.get(function)
        if found is None:
            self.sizes[function] = MAX_CALLEE + 1  # while in work: a recursion is not affordable
            found = instruction_count(function)
            for block in function.blocks:
                for i in block.instructions:
                    if i.op is Op.FunctionCall:
                        found += self.size(i.operands[0])
            self.sizes[function] = found
        return found

    def expand_instruction(self, instruction: Instruction) -> bool:
        """One call per component. Results through a pointer go by way of a variable of the library's type."""
        number, *arguments = instruction.operands[1:]
        type_ = instruction.type
        scalar = type_.element if type_.kind is Kind.VECTOR else type_
        floating = arguments[0].type if arguments else type_
        callee = self.library.instruction(number, floating)
        if callee is None:
            return False
        pointer = arguments.pop() if number in EXTINST_WITH_EFFECT else None
        if pointer is not None and pointer.type.kind is not Kind.POINTER:
            return False
        if [a.type for a in arguments] == list(callee.type.members) and callee.type.element is type_:
            return self.expand_as_call(instruction, callee, arguments)
        count = type_.count if type_.kind is Kind.VECTOR else 1
        wanted = [self.component_type(a) for a in arguments]
        if callee.type.element is not scalar or list(callee.type.members)[: len(wanted)] != wanted:
            return False
        if len(callee.type.members) != len(wanted) + (pointer is not None):
            return False
        size = self.size(callee)
        if size > MAX_CALLEE or self.grown + size * count > MAX_TOTAL:
            return False
        self.grown += size * count
        block = instruction.block
        variable = self.result_variable(callee.type.members[-1]) if pointer is not None else None
        results: list[Value] = []
        seconds: list[Value] = []
        for k in range(count):
            scalars = [self.component(block, a, k) for a in arguments]
            if variable is not None:
                scalars.append(variable)
            if count == 1 and variable is None:
                # The instruction itself becomes the call, so that its users need no change.
                instruction.op = Op.FunctionCall
                instruction.operands = [callee, *scalars]
                block.instructions.append(instruction)
                return True
            results.append(append(block, Op.FunctionCall, scalar, [callee, *scalars]))
            if variable is not None:
                seconds.append(append(block, Op.Load, variable.type.element, [variable], MemoryAccess()))
        if variable is not None and pointer is not None:
            self.store_second(block, pointer, seconds)
        instruction.op = Op.CompositeConstruct if count > 1 else Op.CopyObject
        instruction.operands = results
        block.instructions.append(instruction)
        return True

    def expand_as_call(self, instruction: Instruction, callee: Function, arguments: list[Value]) -> bool:
        """One call with the instruction's own operands."""
        if not self.affordable(callee, arguments, 1):
            return False
        instruction.op = Op.FunctionCall
        instruction.operands = [callee, *arguments]
        instruction.block.instructions.append(instruction)
        return True

    def component_type(self, value: Value) -> Type:
        return value.type.element if value.type.kind is Kind.VECTOR else value.type

    def component(self, block: Block, value: Value, k: int) -> Value:
        if value.type.kind is not Kind.VECTOR:
            return value
        return append(block, Op.CompositeExtract, value.type.element, [value, k])

    def variable(self, type_: Type) -> Instruction:
        return self.result_variable(self.types.pointer(StorageClass.Function, type_))

    def result_variable(self, type_: Type) -> Instruction:
        """A Function variable, given the type of its pointer."""
        entry = self.function.blocks[0]
        variable = Instruction(Op.Variable, type_, [StorageClass.Function], entry)
        entry.instructions.insert(0, variable)
        return variable

    def store_second(self, block: Block, pointer: Value, seconds: list[Value]) -> None:
        value = seconds[0]
        if len(seconds) > 1:
            vector = self.types.vector(value.type, len(seconds))
            value = append(block, Op.CompositeConstruct, vector, seconds)
        if pointer.type.element is not value.type:
            wanted = self.types.pointer(pointer.type.storage, value.type)
            pointer = append(block, Op.Bitcast, wanted, [pointer])
        append(block, Op.Store, None, [pointer, value], MemoryAccess(size_of(value.type)))


def _fits(parameter: Type, argument: Type) -> bool:
    """True for the same type, and for pointers into one storage class."""
    if parameter is argument:
        return True
    return parameter.kind is Kind.POINTER is argument.kind and parameter.storage is argument.storage
