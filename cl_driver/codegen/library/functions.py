"""The LLVM module of one kernel: constants and, on demand, functions of the builtin library.

The library is anything with `function(name) -> Function | None`; functions are emitted as internal ones with
everything they call. Constants are internal too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ...fast_typing import Protocol
from ...passes.ir.link_names import DEVICE_FUNCTIONS
from ...spirv.enums import StorageClass
from ...spirv.module import Function, Instruction, Kind, Value, Variable
from ..expand.ternary_logic import ternary_vector
from ..layout.program_globals import constant_offset, variable_alignment
from ..llvm.emitter import TERMINATED, FunctionEmitter
from ..llvm.errors import CodegenError
from ..llvm.options import CodegenOptions
from ..llvm.registry import Builder
from ..llvm.types import constant_text, flat, ir_type, size_of

# Library functions of at most so many instructions are inlined wherever they are called.
INLINE_LIMIT = 64

YIELD = "cld_yield"  # of the data plane, which the library calls
_NATIVE = {YIELD: "void ()", **DEVICE_FUNCTIONS}

UNSAFE_IN_NAMES = str.maketrans({'"': "_", "\\": "_", "\n": "_"})

OF_LANES = "lanes."  # how symbols of functions begin that do something for each lane


class Library(Protocol):
    """Where functions of the builtin library come from."""

    def function(self, name: str) -> Function | None:
        """The function of that name, None if there is none."""


class ModuleEmitter:
    """Collects the text of an LLVM module.

    globals_offsets: places of variables in the memory of program-scope variables, launch->globals.
    probes_stack: functions touch each page of the stack that they take, so that none passes over the guard
    below it.
    """

    def __init__(
        self,
        options: CodegenOptions,
        library: Library | None = None,
        globals_offsets: dict[Variable, int] | None = None,
        probes_stack: bool = False,
    ) -> None:
        self.options = options
        self.probes_stack = probes_stack
        self.library = library
        self.globals_offsets = globals_offsets or {}
        self.constants: list[str] = []
        self.functions: list[str] = []
        self._constant_names: dict[Variable, str] = {}
        self._symbols: dict[Function, str] = {}
        self._found: dict[str, Function] = {}
        self._pending: list[Function] = []
        self._of_program: set[Function] = set()
        self._in_library = False  # what is emitted is a function of the builtin library
        self._shared: dict[Hashable, str] = {}

    # Constants.

    def constant_variable(self, variable: Variable) -> str:
        """The address of a UniformConstant variable: an internal constant with its initialiser. CodegenError
        for other storage classes."""
        found = self._constant_names.get(variable)
        if found is not None:
            return found
        if variable.type.storage != StorageClass.UniformConstant or variable.initializer is None:
            storage = variable.type.storage
            raise CodegenError(
                f"variable {variable.name} in storage class "
                f"{getattr(storage, 'name', storage)} cannot be used here"
            )
        name = f"@constant{len(self._constant_names)}"
        self._constant_names[variable] = name
        text = constant_text(variable.initializer, self.constant_address)
        self.constants.append(
            f"{name} = internal constant {ir_type(variable.type.element)} {text}, "
            f"align {variable_alignment(variable)}"
        )
        return name

    def constant_address(self, value: Value) -> str:
        """An address inside a constant, as LLVM text. CodegenError if it is that of another variable."""
        base, offset = constant_offset(value)
        if base is None:
            if value.type.kind is Kind.POINTER:
                return f"inttoptr (i64 {offset} to ptr)" if offset else "null"
            return str(offset)
        if base in self.globals_offsets:
            raise CodegenError(f"the address of {base.name} is not known when the code is made")
        name = self.constant_variable(base)
        address = f"getelementptr (i8, ptr {name}, i64 {offset})" if offset else name
        return address if value.type.kind is Kind.POINTER else f"ptrtoint (ptr {address} to i64)"

    # Functions.

    def library_function(self, name: str) -> str:
        """The symbol of a library function, which will be emitted. CodegenError if the library has none."""
        function = self._found.get(name)
        if function is None:
            function = self.library.function(name) if self.library is not None else None
            if function is None:
                raise CodegenError(f"the builtin library has no function {name}")
            self._found[name] = function
        return self._library_symbol(function)

    def function_symbol(self, function: Function) -> str:
        """The symbol of a function; a declaration is looked up in the library under its link name,
        CodegenError if that has none."""
        found = self._symbols.get(function)
        if found is not None:
            return found
        name = function.linkage[0] if function.linkage else function.name
        if name in _NATIVE:
            symbol = f"@{name}"
            result, parameters = _NATIVE[name].split(" ", 1)
            if symbol not in self._symbols.values():  # declared with pointers to other memory
                self.constants.append(f"declare {result} {symbol}{parameters}")
        elif not function.blocks:
            defined = self.library.function(name) if self.library is not None else None
            if defined is None or not defined.blocks:
                raise CodegenError(f"call of the undefined function {name}")
            symbol = self._library_symbol(defined)
        else:
            symbol = f'@"{name.translate(UNSAFE_IN_NAMES)}.{len(self._symbols)}"'
            self._pending.append(function)
            if not self._in_library:
                self._of_program.add(function)
        self._symbols[function] = symbol
        return symbol

    def _library_symbol(self, function: Function) -> str:
        outer, self._in_library = self._in_library, True
        try:
            return self.function_symbol(function)
        finally:
            self._in_library = outer

    def is_of_program(self, function: Function) -> bool:
        """Whether a function that has a symbol is none of the builtin library."""
        return function in self._of_program

    def shared_function(self, key: Hashable, define: Callable[[str], str]) -> str:
        """The symbol of a function that define() makes the text of, given the symbol: one for each key."""
        symbol = self._shared.get(key)
        if symbol is None:
            symbol = self._shared[key] = f"@{OF_LANES}{len(self._shared)}"
            self.functions.append(define(symbol))
        return symbol

    def declare(self, text: str) -> None:
        """A declaration of the module. Where types of an instruction changed from one LLVM to the next, the
        older ones, which later LLVMs understand if they are declared."""
        if text not in self.constants:
            self.constants.append(text)

    def emit_pending(self) -> None:
        """Emits the functions that were asked for, and those that they ask for."""
        while self._pending:
            function = self._pending.pop()
            self._in_library = function not in self._of_program
            self.functions.append(emit_function(self, function, self._symbols[function]))

    def text(self, kernel: str) -> str:
        """The whole module."""
        # LLVM's own estimates of quotients under fast-math flags are up to a unit of the last place off where
        # the quotient is a float, and programs cut it to an integer.
        usual = f'nounwind "prefer-vector-width"="{self.options.vector_bits}" '
        usual += '"reciprocal-estimates"="!divf,!vec-divf"'
        if self.probes_stack:
            usual += ' "probe-stack"="inline-asm"'
        return "\n".join(
            [
                *self.constants,
                *([f"@{TERMINATED} = hidden global ptr null, align 8"] if self.options.terminable else []),
                "declare i32 @cld_printf(ptr, ptr, ptr, i32)",
                "declare i32 @cld_assert_fail(ptr, ptr, ptr, i32) cold noreturn",
                kernel,
                *self.functions,
                f'attributes #0 = {{ {usual} "no-builtin-strlen" "no-builtin-wcslen" }}',
                f"attributes #1 = {{ alwaysinline {usual} }}",
                *([f"attributes #2 = {{ noinline {usual} }}"] if self._shared else []),
                "!0 = !{i32 1}",
                "",
            ]
        )


class LibraryEmitter(FunctionEmitter):
    """Emits one ordinary function: arguments in, a value out."""

    def componentwise(self, instruction: Instruction, operands: Sequence[Value], build: Builder) -> None:
        """The builder, but for logic of vectors that has a way of its own."""
        made = ternary_vector(self, instruction)
        if made is None:
            super().componentwise(instruction, operands, build)
        else:
            self.operands[instruction] = made

    def emit_return(self, value: Value | None) -> None:
        """OpReturn, OpReturnValue."""
        self.emit_void("ret void" if value is None else f"ret {self.typed(value)}")

    def private_memory(self, instruction: Instruction) -> str:
        """Memory of an OpVariable."""
        return self.alloca(f"[{size_of(instruction.type.element)} x i8]", variable_alignment(instruction))


def emit_function(module: ModuleEmitter, function: Function, symbol: str) -> str:
    """The text of a library function."""
    e = LibraryEmitter(module)
    e.is_terminable = module.options.terminable and module.is_of_program(function)
    parameters = []
    for index, argument in enumerate(function.arguments):
        name = f"%arg{index}"
        e.define(argument, name)
        parameters.append(f"{ir_type(argument.type)} {name}")
    try:
        e.emit_blocks(function, "b")
    except CodegenError as error:
        raise CodegenError(f"in function {function.name}: {error}") from error
    count = sum(len(block.instructions) for block in function.blocks)
    attributes = "#1" if count <= INLINE_LIMIT else "#0"
    result = ir_type(function.type.element)
    return "\n".join(
        [
            f"define internal {result} {symbol}({', '.join(parameters)}) {attributes} {{",
            "entry:",
            *e.allocas,
            *flat(e.prologue),
            *flat(e.lines),
            *e.terminated_block(result),
            "}",
        ]
    )
