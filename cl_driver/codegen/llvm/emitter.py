"""Emits the body of one LLVM function: values, blocks, phis, and the component-wise scheme.

Blocks are emitted in reverse postorder, so that every operand but those of phis is there when it is used;
phis are completed when all blocks are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ...fast_typing import Protocol, final
from ...passes.ir.instructions import reverse_postorder
from ...passes.ir.plan import PrivateVariable, Slot
from ...passes.ir.remarks import Remarks
from ...spirv.enums import Op, OpenCLStd
from ...spirv.module import (
    Argument,
    Block,
    Constant,
    ConstantExpr,
    Function,
    Instruction,
    Kind,
    Type,
    Undef,
    Value,
    Variable,
)
from .alias import AliasScopes
from .debug import DebugEmitter
from .errors import CodegenError
from .fast_math import FastMath
from .forms import Form, form
from .options import CodegenOptions
from .registry import EXTENDED, LOWERINGS, Builder
from .text import FunctionText
from .types import (
    Lines,
    component_count,
    constant_text,
    element_type,
    ir_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


# The word of an object that has the address of another one, which is not 0 once the context is terminated
# (native_shim/src/loader/load.c); and the block where functions end for that.
TERMINATED = "cld_terminated"


@final
class Components(tuple[str, ...]):
    """A single OpenCL vector that is so far known component by component.

    The components are scalar operands that are valid from the head of the body on.
    """

    __slots__ = ()


class BuiltinAddress:
    """The address of a built-in variable, or of one component of it, which only loads may use."""

    __slots__ = ("index", "variable")

    def __init__(self, variable: Variable, index: int | None) -> None:
        self.variable = variable
        self.index = index  # of the component; None: of all


class ModuleText(Protocol):
    """What a function needs of the LLVM module that it is in: library/functions.py has it."""

    options: CodegenOptions
    globals_offsets: dict[Variable, int]  # in the memory of program-scope variables

    def constant_variable(self, variable: Variable) -> str:
        """The address of a UniformConstant variable."""

    def constant_address(self, value: Value) -> str:
        """An address inside a constant, as LLVM text."""

    def library_function(self, name: str) -> str:
        """The symbol of a function of the builtin library."""

    def function_symbol(self, function: Function) -> str:
        """The symbol of a function."""

    def is_of_program(self, function: Function) -> bool:
        """Whether a function that has a symbol is none of the builtin library."""

    def shared_function(self, key: Hashable, define: Callable[[str], str]) -> str:
        """The symbol of a function that define() makes the text of, given the symbol: one for each key."""

    def declare(self, text: str) -> None:
        """A declaration of the module."""


class FunctionEmitter(FunctionText):
    """State while one LLVM function is emitted.

    module: the ModuleEmitter that collects constants and library functions. operands: LLVM operand of each
    Value that has one.
    """

    width = 1
    believes_bounds = True  # that access chains which are said to stay in bounds do
    current: Block  # the SPIR-V block at hand

    def __init__(self, module: ModuleText, fast_math: FastMath | None = None) -> None:
        super().__init__(module.options)
        self.module = module
        self.fast_math = fast_math or FastMath()
        self.operands: dict[Value, str | Components] = {}
        self.builtin_addresses: dict[Value, BuiltinAddress] = {}  # of access chains into Input variables
        self.labels: dict[Block, str] = {}
        self.exits: dict[Block, str] = {}  # label of the LLVM block that a SPIR-V block ends in
        self.before_jumps: dict[Block, Lines] = {}  # places before the branches of SPIR-V blocks
        self.access_group = ""  # metadata of accesses that do not depend on other work-items' ones
        self.aliases: AliasScopes | None = None  # of what is emitted, in kernels
        self.debug: DebugEmitter | None = None  # for kernels with debug information
        self.at_hand: Instruction | None = None  # what is being lowered, where some of it may wait for others
        self.remarks: Remarks | None = None  # where somebody wants to know
        # Phis that wait for their operands: where their text goes, name, instruction, block.
        self._phis: list[tuple[Lines, int, str, Instruction, Block]] = []
        # A function, and its instructions' places in it, once somebody asked (expand/ternary_logic.py).
        self.order: tuple[Function | None, dict[Value, int]] | None = None
        self.is_terminable = False  # see CodegenOptions.terminable; not in functions of the builtin library
        self._may_end = False  # there are jumps to where the function ends for that
        self._order: dict[Block, int] = {}  # of blocks in the text

    # Operands.

    def operand(self, value: Value) -> str:
        """The LLVM operand, without its type, of a single value."""
        found = self.operands.get(value)
        if found is None:
            found = self.materialise(value)
        elif type(found) is Components:
            outer, self.lines = self.lines, self.head
            found = self.operands[value] = self.build_vector(value.type, found)
            self.lines = outer
        return found

    def typed(self, value: Value) -> str:
        """Type and operand of a single value."""
        return f"{ir_type(value.type)} {self.operand(value)}"

    def materialise(self, value: Value) -> str:
        """The operand of a value that no instruction has defined: constants and module-scope variables.
        CodegenError for others."""
        if isinstance(value, (Constant, Undef)):
            text = constant_text(value, self.module.constant_address)
        elif isinstance(value, Variable):
            text = self.variable_address(value)
        elif isinstance(value, (Instruction, Argument)):
            raise CodegenError(f"{describe(value)} is used where it is not defined")
        elif isinstance(value, Function):
            raise CodegenError(f"the address of function {value.name} is taken")
        else:
            text = self.constant_expression(value)
        self.operands[value] = text
        return text

    def variable_address(self, variable: Variable) -> str:
        """The address of a module-scope variable. Kernels know more of them: see kernel.KernelEmitter."""
        return self.module.constant_variable(variable)

    def constant_expression(self, expression: Value) -> str:
        """An address computed from constants and variables: emitted like the instruction, once. CodegenError
        for instructions that have no such form."""
        if not isinstance(expression, ConstantExpr):
            raise CodegenError(f"{describe(expression)} is no constant")
        instruction = Instruction(expression.op, expression.type, expression.operands)
        outer, self.lines = self.lines, []
        LOWERINGS[expression.op](self, instruction)
        self.prologue += self.lines
        self.lines = outer
        return self.operand(instruction)

    def define(self, value: Value, operand: str | Components) -> None:
        """Binds a value to its LLVM operand."""
        self.operands[value] = operand

    def integer(self, value: Value) -> int | None:
        """The value of an integer constant, None if it is not one."""
        if isinstance(value, Constant) and value.type.kind is Kind.INT:
            return value.value or 0
        return None

    def member_number(self, type_: Type, index: Value) -> int:
        """The number of a structure's member that an access chain goes to. CodegenError if it is none."""
        number = self.integer(index)
        if number is None or number >= len(type_.members):
            raise CodegenError("a structure's member is selected by something that is not its number")
        return number

    # Vectors.

    def form_of(self, type_: Type) -> Form:
        """The form in which a single value of this type is held."""
        return form(type_.count if type_.kind is Kind.VECTOR else 0)

    def build_vector(self, type_: Type, components: Sequence[str | None]) -> str:
        """The LLVM vector of scalar operands; None leaves a component undefined."""
        text, element = ir_type(type_), ir_type(type_.element)
        vector = "poison"
        for i, component in enumerate(components):
            if component is not None:
                scalar = f"{element} {self.element(component)}"
                vector = self.emit(f"insertelement {text} {vector}, {scalar}, i32 {i}")
        return vector

    def components(self, value: Value) -> list[str]:
        """The scalar operands that a single scalar or vector value consists of."""
        found = self.operands.get(value)
        if type(found) is Components:
            return list(found)
        if value.type.kind is not Kind.VECTOR:
            return [self.operand(value)]
        if isinstance(value, Constant):
            if value.value is None:
                zero = constant_text(Undef(value.type.element))
                return [zero] * value.type.count
            return [self.operand(component) for component in value.value]
        text = self.typed(value)
        return [self.emit(f"extractelement {text}, i32 {i}") for i in range(value.type.count)]

    def define_components(self, value: Value, components: list[str]) -> None:
        """Binds a scalar or vector value to its components."""
        if value.type.kind is Kind.VECTOR:
            self.operands[value] = self.build_vector(value.type, components)
        else:
            self.operands[value] = components[0]

    def componentwise(self, instruction: Instruction, operands: Sequence[Value], build: Builder) -> None:
        """Lowers an instruction whose operands and result have the same number of components.

        A scalar among vector operands (OpSelect's condition apart, which LLVM takes as it is) is splatted.
        """
        f = self.form_of(instruction.type)
        self.operands[instruction] = build(self, f, instruction, *[self.spread(o, f) for o in operands])

    def spread(self, value: Value, f: Form) -> str:
        """The operand of a value in a form: scalars are splatted where the form is a vector."""
        operand = self.operand(value)
        if f.count and value.type.kind is not Kind.VECTOR:
            return self.splat(operand, ir_type(value.type), f)
        return operand

    def is_same_in_lanes(self, value: Value) -> bool:
        """True in code at a width above 1 for scalars that are known to be the same in all lanes."""
        return False

    def uniform_divisor(self, value: Value, signed: bool) -> tuple[str, str]:
        """All lanes of an integer that is the same in them, 1 in place of 0, and of its reciprocal
        (expand/float_division.py)."""
        self._missing("lanes")

    def spacing(self, pointer: Value) -> int:
        """Bytes in memory that a byte of the type that a pointer points to stands for
        (layout/private_layout.py). Of memory that is spread over all work-items of a group: of lanes."""
        return 1

    def is_spread(self, pointer: Value) -> bool:
        """Whether it is such memory: what a byte stands for is known when the kernel runs."""
        return False

    def scaled(self, pointer: Value, offset: int) -> str:
        """How far an offset in bytes is in memory, as an i64."""
        return str(offset * self.spacing(pointer))

    def frozen(self, f: Form, element: str, operand: str) -> str:
        """An operand that is no poison. At width 1 none is, but for what a program must not do."""
        return operand

    def note_frozen(self, result: str, *operands: str) -> None:
        """Notes that a result is no poison, if none of these operands, which alone make it, is."""

    def flags(self, instruction: Instruction) -> str:
        """LLVM's fast-math flags of an instruction, each followed by a space."""
        return self.fast_math.of(instruction)

    def alias_metadata(self, pointer: Value, is_load: bool = False) -> str:
        """What is known of the accesses that a load or store does not meet: see alias.py."""
        return self.aliases.of(pointer, is_load) if self.aliases is not None else ""

    def note(self, how: str, why: str = "", masked: bool = False) -> None:
        """Tells who wants to know how the instruction at hand is lowered: passes/ir/remarks.py."""
        if self.remarks is not None:
            self.remarks.note(how, why, masked)

    # What there is in some functions only: kernels have more than functions of the builtin library.

    def _missing(self, what: str) -> NoReturn:
        raise CodegenError(f"{what} outside of a kernel")

    def emit_return(self, value: Value | None) -> None:
        """OpReturn, OpReturnValue: of a library function."""
        self._missing("a return")

    def private_memory(self, instruction: Instruction) -> str:
        """The address of an OpVariable's memory."""
        self._missing("a variable")

    def define_builtin(self, instruction: Instruction, variable: Variable) -> None:
        """Binds the result of an OpLoad of an Input variable."""
        self._missing(variable.name)

    def define_builtin_component(
        self, instruction: Instruction, variable: Variable, indices: Sequence[Value]
    ) -> None:
        """Binds the result of an access chain into an Input variable."""
        self._missing(variable.name)

    def builtin_element(self, address: BuiltinAddress) -> str | Components:
        """What a load through such an access chain gives."""
        self._missing(address.variable.name)

    def context_memory(self, variable: PrivateVariable) -> str:
        """The address of this work-item's memory of a PrivateVariable."""
        self._missing("private memory across barriers")

    def slot_load(self, slot: Slot, item: Value | None) -> str:
        """The value of a slot for one work-item, by its linear local id; None: for this one."""
        self._missing("a context slot")

    def slot_store(self, slot: Slot, item: Value | None, value: Value) -> None:
        """Sets a slot for one work-item, by its linear local id; None: for this one."""
        self._missing("a context slot")

    def emit_region_exit(self, next_region: int, left: Value | None = None) -> None:
        """The end of a work-item's way through its region: see PassOp.RegionExit."""
        self._missing("the end of a region")

    def group_items(self) -> str:
        """Work-items of this group, an i64."""
        self._missing("the size of a group")

    def counted_loop(self, count: str, body: Callable[[str], None]) -> None:
        """Emits body(index operand) for each i64 index below count."""
        self._missing("a copy of a group")

    def local_memory(self) -> str:
        """The address of the group's local memory."""
        self._missing("local memory")

    def local_memory_size(self) -> str:
        """Its size, an i64."""
        self._missing("local memory")

    def in_private_memory(self, pointer: str) -> str:
        """i1: whether an address is of private memory."""
        self._missing("private memory")

    def printf_buffer(self) -> str:
        """What cld_printf gets first."""
        self._missing("printf")

    def note_load(self, pointer: Value, address: str, size: int) -> None:
        """Tells who fetches ahead of a load of `size` bytes: access/prefetch.py."""

    # Library calls.

    def library_call(self, name: str, arguments: list[tuple[str, str]], result: str) -> str:
        """Calls a scalar library function; arguments are (type, operand). See library/names.py."""
        symbol = self.module.library_function(name)
        typed = ", ".join(f"{t} {operand}" for t, operand in arguments)
        return self.emit(f"call {result} {symbol}({typed})")

    # Blocks.

    def emit_blocks(self, function: Function, prefix: str) -> None:
        """Emits the body of a SPIR-V function; its first block continues the current LLVM block."""
        order = reverse_postorder(function)
        labels = self.labels
        for i, block in enumerate(order):
            labels[block] = f"{prefix}{i}"
            self._order[block] = i
        self.emit_void(f"br label %{labels[order[0]]}")
        for block in order:
            self.begin_block(labels[block])
            self.current = block
            self.emit_instructions(block.instructions)
            self.exits[block] = self.label
        self.finish_phis()

    def before_jump(self) -> None:
        """Before the branch of a block: one that leads back may end the function, and what loops want from
        before them may be put there."""
        order = self._order
        if self.is_terminable and min(order[b] for b in self.current.successors()) <= order[self.current]:
            self.end_if_terminated()
        before: Lines = []
        self.before_jumps[self.current] = before
        self.lines.append(before)

    def end_if_terminated(self) -> None:
        """Ends a function whose context was terminated, whatever it was about to do. The loader says where to
        look."""
        if not self.is_terminable:
            return
        where = self.emit(f"load ptr, ptr @{TERMINATED}, align 8, !invariant.load !1")
        word = self.emit(f"load volatile i32, ptr {where}, align 4")
        ends, on = self.emit(f"icmp ne i32 {word}, 0"), self.new_label("on")
        self.emit_void(f"br i1 {ends}, label %{TERMINATED}, label %{on}")
        self.begin_block(on)
        self._may_end = True

    def terminated_block(self, result: str) -> list[str]:
        """Where it ends then, of that type: whoever called it looks, too."""
        if not self._may_end:
            return []
        return [f"{TERMINATED}:", f"  ret {result}{'' if result == 'void' else ' zeroinitializer'}"]

    def emit_instructions(self, instructions: Sequence[Instruction]) -> None:
        """Lowers the instructions of one block. CodegenError for those that have no lowering."""
        lowerings, debug = LOWERINGS, self.debug
        for instruction in instructions:
            start = len(self.lines)
            lowering = lowerings.get(instruction.op)
            if lowering is None:
                raise CodegenError(f"{instruction_name(instruction)} is not supported")
            lowering(self, instruction)
            if debug is not None:
                debug.attach(self.lines, start, instruction)
                if instruction.line is not None and instruction.line.variable is not None:
                    debug.describe(self, instruction)

    def mark(self, start: int, instruction: Instruction | None) -> None:
        """Says what lines[start:] was made of: an instruction that has waited for others."""
        if self.debug is not None and instruction is not None:
            self.debug.attach(self.lines, start, instruction)

    def phi(self, instruction: Instruction) -> None:
        """Emits a phi to be completed by finish_phis."""
        name = self.name("v")
        self.operands[instruction] = name
        self._phis.append((self.lines, len(self.lines), name, instruction, self.current))
        self.lines.append("")

    def finish_phis(self) -> None:
        """Fills in the phis, now that all their operands exist. CodegenError for one without a
        predecessor."""
        for lines, position, name, instruction, block in self._phis:
            text = ir_type(instruction.type)
            edges = [
                f"[ {self.phi_operand(value, before)}, %{self.exits[before]} ]"
                for value, before in self.phi_edges(instruction, block)
            ]
            if not edges:
                raise CodegenError("a phi without a predecessor")
            lines[position] = f"  {name} = phi {text} {', '.join(edges)}"
        self._phis.clear()

    def phi_edges(self, instruction: Instruction, block: Block) -> list[tuple[Value, Block]]:
        """Value and predecessor of a phi for each edge: LLVM wants one per case of a switch."""
        edges: list[tuple[Value, Block]] = []
        operands = instruction.operands
        for value, before in zip(operands[::2], operands[1::2], strict=True):
            if before in self.exits:
                terminator = before.terminator
                count = terminator.operands.count(block) if terminator.op is Op.Switch else 1
                edges += [(value, before)] * count
        return edges

    def phi_operand(self, value: Value, block: Block) -> str:
        """The operand of a phi; what must be computed for it goes to the entry block."""
        outer, self.lines = self.lines, self.prologue
        try:
            return self.operand(value)
        finally:
            self.lines = outer


def describe(value: Value) -> str:
    """What to call a value in messages."""
    if isinstance(value, Instruction):
        return f"the result of {instruction_name(value)}"
    return f"{type(value).__name__.lower()} {value.name}"


def instruction_name(instruction: Instruction) -> str:
    """The instruction's name in the SPIR-V specification."""
    if instruction.op == Op.ExtInst:
        set_name, number = instruction.operands[:2]
        if number in OpenCLStd:
            return f"OpenCL.std {OpenCLStd(number).name}"
        return f"{set_name} instruction {number}"
    return f"Op{instruction.op.name}"


def lower_extended(emitter: FunctionEmitter, instruction: Instruction) -> None:
    """OpExtInst: by the number in OpenCL.std, the only set that the reader leaves in bodies. CodegenError for
    those that have no lowering."""
    lowering = EXTENDED.get(instruction.operands[1])
    if lowering is None:
        raise CodegenError(f"{instruction_name(instruction)} is not supported")
    lowering(emitter, instruction)


LOWERINGS[Op.ExtInst] = lower_extended

__all__ = ["Components", "FunctionEmitter", "component_count", "describe", "element_type", "instruction_name"]
