"""Emits the body of one LLVM function: values, blocks, phis, and the component-wise scheme.

Blocks are emitted in reverse postorder, so that every operand but those of phis is there when it is used;
phis are completed when all blocks are.
"""

from __future__ import annotations

from ...passes.ir.instructions import reverse_postorder
from ...spirv.enums import Op, OpenCLStd
from ...spirv.module import (
    Argument,
    Block,
    Constant,
    Function,
    Instruction,
    Kind,
    Type,
    Undef,
    Value,
    Variable,
)
from .debug import is_located
from .errors import CodegenError
from .fast_math import FastMath
from .forms import MANGLED, Form, form
from .registry import EXTENDED, LOWERINGS
from .types import component_count, constant_text, element_type, ir_type


class Components(tuple):
    """A single OpenCL vector that is so far known component by component.

    The components are scalar operands that are valid from the head of the body on.
    """

    __slots__ = ()


class FunctionEmitter:
    """State while one LLVM function is emitted.

    module: the ModuleEmitter that collects constants and library functions. lines: where instructions go, the
    text of the current block. prologue: instructions of the entry block, computed once per call; head: those
    before the body, computed once per work-item. operands: LLVM operand of each Value that has one.
    """

    width = 1

    def __init__(self, module, fast_math: FastMath | None = None):
        self.module = module
        self.options = module.options
        self.fast_math = fast_math or FastMath()
        self.allocas: list[str] = []
        self.prologue: list[str] = []
        self.head = self.prologue  # instructions that come before all blocks of the body
        self.lines: list[str] = []
        self.operands: dict[Value, str] = {}
        self.labels: dict[Block, str] = {}
        self.exits: dict[Block, str] = {}  # label of the LLVM block that a SPIR-V block ends in
        self.current: Block | None = None  # the SPIR-V block at hand
        self.label = "entry"  # of the LLVM block that lines go to
        self.access_group = ""  # metadata of accesses that do not depend on other work-items' ones
        self.aliases = None  # AliasScopes of what is emitted, in kernels
        self.debug = None  # a DebugEmitter, for kernels with debug information
        self.remarks = None  # passes/ir/remarks.py, where somebody wants to know
        self.ahead = None  # access/prefetch.py, in kernels
        self._phis: list = []
        self._next = 0

    # Text.

    def name(self, hint: str = "v") -> str:
        """A fresh local name."""
        self._next = number = self._next + 1
        return f"%{hint}{number}"

    def emit(self, text: str) -> str:
        """Appends an instruction with a result; its name."""
        self._next = number = self._next + 1
        name = f"%v{number}"
        self.lines.append(f"  {name} = {text}")
        return name

    def emit_void(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.lines.append("  " + text)

    def emit_prologue(self, text: str) -> str:
        """An instruction in the entry block, before all others."""
        self._next = number = self._next + 1
        name = f"%p{number}"
        self.prologue.append(f"  {name} = {text}")
        return name

    def begin_block(self, label: str) -> None:
        """Starts an LLVM block; the block before it must have its terminator."""
        self.label = label
        self.lines.append(f"{label}:")

    def new_label(self, hint: str = "b") -> str:
        """A fresh label, without the %."""
        self._next = number = self._next + 1
        return f"{hint}{number}"

    def alloca(self, type_text: str, alignment: int) -> str:
        """Stack memory of the LLVM function, reserved once per call."""
        name = self.name("a")
        self.allocas.append(f"  {name} = alloca {type_text}, align {alignment}")
        return name

    def call(self, name: str, result: str, *arguments: str, flags: str = "") -> str:
        """A call with a result; arguments are typed operands."""
        return self.emit(f"call {flags}{result} @{name}({', '.join(arguments)})")

    def intrinsic(
        self, name: str, f: Form, element: str, *arguments: str, extra: str = "", flags: str = ""
    ) -> str:
        """llvm.NAME over arguments and a result of one type; extra: further typed arguments."""
        t = f(element)
        typed = ", ".join([f"{t} {argument}" for argument in arguments])
        return self.emit(f"call {flags}{t} @llvm.{name}.{f.suffix(MANGLED[element])}({typed}{extra})")

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
        """The operand of a value that no instruction has defined: constants and module-scope variables."""
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

    def constant_expression(self, expression) -> str:
        """An address computed from constants and variables: emitted like the instruction, once."""
        instruction = Instruction(expression.op, expression.type, expression.operands)
        outer, self.lines = self.lines, []
        LOWERINGS[expression.op](self, instruction)
        self.prologue += self.lines
        self.lines = outer
        return self.operand(instruction)

    def define(self, value: Value, operand: str) -> None:
        """Binds a value to its LLVM operand."""
        self.operands[value] = operand

    def integer(self, value) -> int | None:
        """The value of an integer constant, None if it is not one."""
        if isinstance(value, Constant) and value.type.kind is Kind.INT:
            return value.value or 0
        return None

    # Vectors.

    def form_of(self, type_: Type) -> Form:
        """The form in which a single value of this type is held."""
        return form(type_.count if type_.kind is Kind.VECTOR else 0)

    def build_vector(self, type_: Type, components) -> str:
        """The LLVM vector of scalar operands; None leaves a component undefined."""
        text, element = ir_type(type_), ir_type(type_.element)
        vector = "poison"
        for i, component in enumerate(components):
            if component is not None:
                vector = self.emit(f"insertelement {text} {vector}, {element} {component}, i32 {i}")
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

    def componentwise(self, instruction: Instruction, operands, build) -> None:
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

    def splat(self, operand: str, element: str, f: Form) -> str:
        """A vector with a scalar in all elements."""
        if operand[0] != "%":
            return f.splat(element, operand)
        t = f(element)
        first = self.emit(f"insertelement {t} poison, {element} {operand}, i32 0")
        return self.emit(f"shufflevector {t} {first}, {t} poison, <{f.count} x i32> zeroinitializer")

    def is_same_in_lanes(self, value: Value) -> bool:
        """True in code at a width above 1 for scalars that are known to be the same in all lanes."""
        return False

    def spacing(self, pointer: Value) -> int:
        """Bytes in memory that a byte of the type that a pointer points to stands for
        (layout/private_layout.py)."""
        return 1

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
        self.emit_void(f"br label %{labels[order[0]]}")
        for block in order:
            self.begin_block(labels[block])
            self.current = block
            self.emit_instructions(block.instructions)
            self.exits[block] = self.label
        self.finish_phis()

    def emit_instructions(self, instructions) -> None:
        """Lowers the instructions of one block."""
        lowerings, debug = LOWERINGS, self.debug
        for instruction in instructions:
            start = len(self.lines)
            lowering = lowerings.get(instruction.op)
            if lowering is None:
                raise CodegenError(f"{instruction_name(instruction)} is not supported")
            lowering(self, instruction)
            if debug is not None and is_located(instruction):
                debug.attach(self.lines, start, instruction.line)

    def phi(self, instruction: Instruction) -> None:
        """Emits a phi to be completed by finish_phis."""
        name = self.name("v")
        self.operands[instruction] = name
        self._phis.append((self.lines, len(self.lines), name, instruction, self.current))
        self.lines.append("")

    def finish_phis(self) -> None:
        """Fills in the phis, now that all their operands exist."""
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
        edges = []
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
    """OpExtInst: by the number in OpenCL.std; non-semantic sets have nothing to execute."""
    set_name, number = instruction.operands[:2]
    lowering = EXTENDED.get(number) if set_name == "OpenCL.std" else None
    if lowering is None:
        if set_name.startswith("NonSemantic."):
            return
        raise CodegenError(f"{instruction_name(instruction)} is not supported")
    lowering(emitter, instruction)


LOWERINGS[Op.ExtInst] = lower_extended

__all__ = ["Components", "FunctionEmitter", "component_count", "describe", "element_type", "instruction_name"]
