"""The compiler: a pure function from (source or SPIR-V, options, specialisation, target) to an Executable.

    source ─frontend─► SPIR-V ─read, link, validate─► module ─passes─► plan ─codegen─► LLVM IR ─jit─► object

Each stage can be run alone. What is wrong with a program is a CompileError whose message is for the build log.
Runs in compiler processes (jit/jobs.py); nothing of it is imported by the host's process.
"""

from __future__ import annotations

import os

from cl_driver.jit.errors import CompileError
from cl_driver.jit.executable import Executable, KernelInfo
from cl_driver.jit.target import Target

# A module of more instructions per kernel than this is optimised less: LLVM's time grows faster than the text.
_LARGE_TEXT = 2_000_000


class Context:
    """What all stages of a build share. options: as the application gave them; settings: {name: text};
    folder: where relative include folders start."""

    def __init__(self, target: Target, options: str, settings: dict[str, str], folder: str):
        from cl_driver.frontend import options as option_parser

        self.target = target
        self.text = options
        self.settings = settings
        self.folder = folder
        try:
            self.options = option_parser.parse(options)
        except option_parser.OptionError:
            try:
                self.options = option_parser.parse(options, option_parser.LINK)
            except option_parser.OptionError as error:
                raise CompileError(f"options: {error}\n") from error

    @property
    def dump(self) -> str:
        """The folder for what every stage made, "" for none."""
        return self.settings.get("CL_DRIVER_DUMP", "")


def warm_up() -> None:
    """Imports every stage, so that the first build does not wait for it."""
    from cl_driver.codegen import kernel
    from cl_driver.frontend import clang
    from cl_driver.passes import pipeline
    from cl_driver.spirv import link, reader, reflect, validate

    del kernel, clang, pipeline, link, reader, reflect, validate


def compile_source(source: bytes, headers: dict[str, bytes], context: Context):
    """OpenCL C to SPIR-V: a FrontendResult(spirv or None, log, dependencies)."""
    from cl_driver.frontend import clang

    clang_path = context.settings.get("CL_DRIVER_CLANG", "")
    return clang.compile(source, context.options, headers, folder=context.folder, clang=clang_path)


class Prepared:
    """A program that was read, specialised, linked and checked.

    names: of its kernels, in order; variables: ProgramVariables; log: for the build log.
    """

    def __init__(self, context: Context, modules: list[bytes], specialisation: dict[int, bytes]):
        from cl_driver.jit.variables import ProgramVariables
        from cl_driver.spirv import reflect

        self.context = context
        self.modules = modules
        self.specialisation = specialisation
        self.log = ""
        self.module = _linked(modules, specialisation)
        self.reflections = {r.name: r for r in reflect.reflect(self.module)}
        self.entry_points = {entry.name: entry for entry in self.module.entry_points}
        self.names = list(self.entry_points)
        self.variables = ProgramVariables(self.module)

    def weight(self, name: str) -> int:
        """About how long a kernel takes to compile, in instructions."""
        return sum(len(block.instructions) for block in self.entry_points[name].function.blocks)

    def executable(self, kernels: list[tuple[KernelInfo, bytes]]) -> Executable:
        """The executable of these kernels; more can be added to it."""
        made = Executable(
            target=self.context.target.key,
            options=self.context.text,
            kernels=[],
            objects=[],
            globals=self.variables.memory,
            modules=self.modules,
            specialisation=[list(pair) for pair in sorted(self.specialisation.items())],
        )
        for info, data in kernels:
            made.add(info, data)
        return made


def _linked(modules: list[bytes], specialisation: dict[int, bytes]):
    from cl_driver.spirv import link, reader, validate
    from cl_driver.spirv.errors import SpirvError
    from cl_driver.spirv.types import TypeTable

    table = TypeTable()
    try:
        read = [reader.read(data, specialisation, table) for data in modules]
        module = link.link(read)
        validate.validate(module)
    except SpirvError as error:
        raise CompileError(f"{error}\n") from error
    return module


def prepare(modules: list[bytes], specialisation: dict[int, bytes], context: Context) -> Prepared:
    """The part of a build that all kernels of a program share."""
    return Prepared(context, modules, specialisation)


def kernel(program: Prepared, name: str) -> tuple[KernelInfo, bytes]:
    """Compiles one kernel of a program."""
    from cl_driver.codegen.errors import CodegenError
    from cl_driver.jit import emit
    from cl_driver.passes import pipeline as passes
    from cl_driver.spirv.errors import SpirvError

    context = program.context
    try:
        plan = passes.plan(program.module, program.entry_points[name], plan_options(context))
        text, info = generate(program, plan)
    except (passes.PlanError, CodegenError, SpirvError) as error:
        raise CompileError(f"kernel '{name}': {error}\n") from error
    _dump(context, f"{name}.ll", text)
    try:
        return info, emit.compile_ir(text, context.target)
    except CompileError as error:
        raise CompileError(f"kernel '{name}': {error}\n") from error


def build(modules: list[bytes], options: str, specialisation: dict[int, bytes], target: Target) -> Executable:
    """All stages after the front end, for all kernels, in this process."""
    program = prepare(modules, specialisation, Context(target, options, {}, "/"))
    return program.executable([kernel(program, name) for name in program.names])


def _dump(context: Context, name: str, content: str | bytes) -> None:
    if not context.dump:
        return
    try:
        os.makedirs(context.dump, exist_ok=True)
        with open(os.path.join(context.dump, name), "w" if isinstance(content, str) else "wb") as file:
            file.write(content)
    except OSError:
        pass  # the build must not fail because nobody can look at it
