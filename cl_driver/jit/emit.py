"""LLVM IR text to a relocatable object, through llvmlite. Runs in compiler processes only.

LLVM of the wheel has assertions on and ends the process on what it dislikes, so the text is parsed and
verified first, and the process is one whose end is a build failure and nothing worse (jit/client.py).
"""

from __future__ import annotations

import functools

try:
    import llvmlite.binding as llvm
except ModuleNotFoundError:
    import site  # a compiler process starts without site-packages but those of cl_driver.conf

    site.main()
    import llvmlite.binding as llvm

from cl_driver.jit.elf import undefined_symbols
from cl_driver.jit.errors import CompileError
from cl_driver.jit.symbols import loader_symbols
from cl_driver.jit.target import Target


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.lru_cache(maxsize=8)
def _machine(target: Target, level: int):
    """The target machine: position-independent code of the small model, as the code loader wants it."""
    _initialize()
    try:
        found = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise CompileError(f"LLVM has no back end for {target.triple}: {error}") from error
    return found.create_target_machine(
        cpu="", features=target.feature_string, opt=level, reloc="pic", codemodel="small"
    )


def warm_up() -> None:
    """Loads what the first compilation would otherwise wait for."""
    _initialize()


def _parse(text: str):
    """A verified module in a context of its own: the global one would keep every type for ever."""
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"the code generator made LLVM IR that is not valid: {error}") from error
    return module


def _options(level: int, vectorize: bool):
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.loop_interleaving = options.slp_vectorization = vectorize
    options.loop_unrolling = level > 0
    return options


def _optimize(module, machine, passes: str) -> None:
    if passes == "short":
        builder = llvm.create_pass_builder(machine, _options(2, False))
        manager = llvm.create_new_module_pass_manager()
        for name in SHORT_LIST:
            getattr(manager, f"add_{name}_pass")()
    else:
        level = 2 if passes == "scalar" else int(passes[1])
        builder = llvm.create_pass_builder(machine, _options(level, level > 1 and passes != "scalar"))
        manager = builder.getModulePassManager()
    manager.run(module, builder)


# For text that is vector code already (SIMD.md measured this order). Builtin functions arrive as internal
# ones; those marked alwaysinline are inlined, and what is then called by nobody is dropped.
SHORT_LIST = (
    "always_inliner",
    "global_dead_code_eliminate",
    "sroa",
    "simplify_cfg",
    "new_gvn",
    "instruction_combine",
    "simplify_cfg",
)


def _optimized(text: str, target: Target, passes: str, level: int):
    """The target machine and the module after LLVM's passes."""
    machine = _machine(target, level)
    module = _parse(text)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    _optimize(module, machine, passes)
    return machine, module


def compile_ir(text: str, target: Target, passes: str = "O2", level: int = 2) -> bytes:
    """The object code of one LLVM module.

    passes: "O0" to "O3", LLVM's own pipelines; "scalar", O2 without the vectorisers; or "short", for text
    that is vector code already. level: of the code generator, 0 to 3. CompileError says what was wrong.
    """
    machine, module = _optimized(text, target, passes, level)
    data = machine.emit_object(module)
    unknown = [name for name in undefined_symbols(data) if name not in loader_symbols()]
    if unknown:
        raise CompileError(f"the kernel needs functions that the driver does not have: {', '.join(unknown)}")
    return data


def assembly(text: str, target: Target, passes: str = "O2", level: int = 2) -> str:
    """The same as compile_ir() as assembly text, for those who want to read it."""
    machine, module = _optimized(text, target, passes, level)
    return machine.emit_assembly(module)


def commented_assembly(text: str, target: Target, passes: str, level: int) -> tuple[str, str]:
    """Assembly with LLVM's comments on blocks, loops and spilled registers, and the IR it was made of."""
    machine, module = _optimized(text, target, passes, level)
    machine.set_asm_verbosity(True)
    try:
        return machine.emit_assembly(module), str(module)
    finally:
        machine.set_asm_verbosity(False)
