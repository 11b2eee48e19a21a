"""Debug metadata of one kernel: line tables and subprograms, with the calls that were inlined.

For kernels whose instructions have a `line` (spirv/reading/debug_info.py); others pay one look for it.
Private variables are described where they are in memory (debug_variables.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...passes.ir.ops import PassOp
from ...passes.ir.plan import KernelPlan
from ...spirv.enums import Op
from ...spirv.location import DebugFunction, DebugVariable, Location
from ...spirv.module import Instruction
from .debug_variables import VariableMetadata
from .types import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .emitter import FunctionEmitter

# Above what kernel/kernel_emitter.py numbers, and whatever else uses small numbers.
_FIRST = 1 << 20
_UNIT, _TYPE, _FORMAT, _DWARF, _KERNEL = range(_FIRST, _FIRST + 5)


def locations(plan: KernelPlan) -> bool:
    """Whether any instruction of the kernel knows where it comes from."""
    return next(_locations(plan), None) is not None


def _locations(plan: KernelPlan) -> Iterator[Location]:
    """The Locations of its instructions."""
    for region in plan.regions:
        for block in region.function.blocks:
            for instruction in block.instructions:
                if instruction.line is not None:
                    yield instruction.line


def _quoted(text: str) -> str:
    """A metadata string."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else _escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


class DebugEmitter:
    """Numbers the metadata of one kernel's LLVM function, which debuggers know by the kernel's name."""

    def __init__(self, plan: KernelPlan) -> None:
        self.name = plan.name
        self._lines: list[str] = []
        self._files: dict[str, int] = {}
        self._functions: dict[int, int] = {}
        self._attached: dict[Location, str] = {}
        self.places: dict[object, str] = {}  # memory that says where a variable is
        self.size = 0  # bytes that it has added to the text
        self._next = _KERNEL + 1
        self._variables = VariableMetadata(self._node, _quoted)
        self._kernel = self._kernel_function(plan)

    def _kernel_function(self, plan: KernelPlan) -> DebugFunction:
        """What the source calls the kernel: an outermost scope of its name, or anything in its place."""
        for line in _locations(plan):
            scope = line.outermost().scope
            if scope.name == self.name:
                return scope
        return DebugFunction(self.name, "", line.outermost().file, line.outermost().line)

    def _node(self, text: str) -> int:
        number = self._next
        self._next += 1
        self._lines.append(f"!{number} = {text}")
        return number

    def _file(self, name: str) -> int:
        if name not in self._files:
            folder, _, base = name.rpartition("/")
            self._files[name] = self._node(
                f"!DIFile(filename: {_quoted(base or 'program.cl')}, directory: {_quoted(folder)})"
            )
        return self._files[name]

    def _subprogram(self, function: DebugFunction) -> int:
        """The number of a DISubprogram. All that stand for the kernel, as clang's second function for it
        does, are one."""
        if function.name == self.name:
            return _KERNEL
        key = id(function)
        if key not in self._functions:
            self._functions[key] = self._node("distinct " + self._describe(function, function.linkage))
        return self._functions[key]

    def _describe(self, function: DebugFunction, linkage: str) -> str:
        file = self._file(function.file)
        other = f"linkageName: {_quoted(linkage)}, " if linkage and linkage != function.name else ""
        return (
            f"!DISubprogram(name: {_quoted(function.name)}, {other}scope: !{file}, file: !{file}, "
            f"line: {function.line}, scopeLine: {function.line}, type: !{_TYPE}, "
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{_UNIT})"
        )

    def attachment(self, location: Location) -> str:
        """What an instruction from there has at its end."""
        found = self._attached.get(location)
        if found is None:
            found = self._attached[location] = f", !dbg !{self._location(location)}"
        return found

    def _location(self, location: Location) -> int:
        scope, at = self._subprogram(location.scope), location.at
        if at is None and scope != _KERNEL:
            at = Location(self._kernel.file, 0, 0, self._kernel, None)  # nothing is known of the call
        if at is not None and scope == _KERNEL and self._subprogram(at.scope) == _KERNEL and at.at is None:
            at = None
        column = min(location.column, 0xFFFF)
        inlined = "" if at is None else f", inlinedAt: !{self._call(at)}"
        # A chunk of a file that is not the function's own would need a DILexicalBlockFile.
        if location.file != location.scope.file and location.line:
            scope = self._node(
                f"!DILexicalBlockFile(scope: !{scope}, file: !{self._file(location.file)}, discriminator: 0)"
            )
        return self._node(f"!DILocation(line: {location.line}, column: {column}, scope: !{scope}{inlined})")

    def _call(self, location: Location) -> int:
        return int(self.attachment(location).rpartition("!")[2])

    def attach(self, lines: Lines, start: int, instruction: Instruction) -> None:
        """Marks what lines[start:] holds with the place of the instruction that it was made of, but for what
        has a mark: that was made of another one, which has waited.

        Phis are completed later, and have no place of their own.
        """
        if instruction.line is None or instruction.op is Op.Phi or instruction.line.variable is not None:
            return
        attachment = self.attachment(instruction.line)
        for k in range(start, len(lines)):
            line = lines[k]
            if type(line) is str and line.startswith("  ") and ", !dbg !" not in line:
                lines[k] = line + attachment
                self.size += len(attachment)

    def describe(self, e: FunctionEmitter, instruction: Instruction) -> None:
        """Tells where a private variable is, which is there from here on."""
        place = instruction.line
        if place is None or instruction not in e.operands:
            return
        address = e.operand(instruction)
        if any(line.startswith(f"  {address} = ") for line in e.allocas):
            self.declare(e.lines, place, address)
            return
        # It is elsewhere for each work-item, and in a register that soon holds something else.
        key = instruction.operands[0] if instruction.op is PassOp.PrivatePointer else instruction
        known = self.places.get(key)
        if known is None:
            known = self.places[key] = e.alloca("ptr", 8)
            self.declare(e.lines, place, known, "DW_OP_deref")
        e.emit_void(f"store volatile ptr {address}, ptr {known}, align 8")

    def of_variable(self, variable: DebugVariable) -> Location:
        """The place of a variable of the kernel that the source does not have."""
        kernel = self._kernel
        return Location(kernel.file, kernel.line, 0, kernel, None, variable)

    def declare(self, lines: Lines, place: Location, address: str, then: str = "") -> None:
        """Says that the variable of a place is in memory there. then: operations on the address."""
        variable = place.variable
        if variable is None or not address.startswith("%"):
            return
        location = self._location(place)
        number = self._variables.variable(
            variable, self._subprogram(place.scope), self._file(place.file), place.line
        )
        lines.append(f"    #dbg_declare(ptr {address}, !{number}, !DIExpression({then}), !{location})")
        self.size += len(lines[-1])

    def of_kernel(self) -> str:
        """What the kernel's LLVM function has behind its attributes."""
        return f" !dbg !{_KERNEL}"

    def text(self) -> list[str]:
        """The metadata, once all instructions are emitted."""
        kernel = self._describe(self._kernel, "")
        file = self._file(self._kernel.file)
        made = [
            f"!llvm.dbg.cu = !{{!{_UNIT}}}",
            f"!llvm.module.flags = !{{!{_FORMAT}, !{_DWARF}}}",
            f'!{_FORMAT} = !{{i32 2, !"Debug Info Version", i32 3}}',
            f'!{_DWARF} = !{{i32 7, !"Dwarf Version", i32 4}}',
            f"!{_UNIT} = distinct !DICompileUnit(language: DW_LANG_OpenCL, file: !{file}, "
            'producer: "cl_driver", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)',
            f"!{_TYPE} = !DISubroutineType(types: !{{null}})",
            f"!{_KERNEL} = distinct {kernel}",
            *self._lines,
        ]
        self.size += sum(len(line) + 1 for line in made)
        return made
