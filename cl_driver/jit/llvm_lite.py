"""LLVM as the llvmlite wheel brings it: everywhere the same, but with assertions on, which cost a third of
its time and end the process on what LLVM dislikes, and with one lock around everything."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

try:
    import llvmlite.binding as llvm
except ModuleNotFoundError:
    import site  # a compiler process starts without site-packages but those of cl_driver.conf

    site.main()
    import llvmlite.binding as llvm

from .. import stages
from ..device.target import Target
from .errors import NOT_VALID, CompileError
from .printed_ir.change import changed

# Classes of llvmlite, which has no types.
Machine: TypeAlias = Any
Module: TypeAlias = Any

# A step of the short list that llvmlite does not have, and the others as methods of its pass manager.
_LACKING = "early-cse"
_METHODS = {
    "always-inline": "always_inliner",
    "globaldce": "global_dead_code_eliminate",
    "sroa": "sroa",
    "simplifycfg": "simplify_cfg",
    "newgvn": "new_gvn",
    "instcombine": "instruction_combine",
}


class Lite:
    """See emit.py for what the arguments are."""

    def __init__(self, options: tuple[str, ...], short_list: tuple[str, ...]) -> None:
        self._short_list = short_list
        self._running: list[Any] = []  # what keeps code that runs in this process
        for option in options:
            llvm.set_option("cl_driver", option)
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        llvm.initialize_native_asmparser()  # for inline assembly

    def generate(
        self, text: str, target: Target, passes: str, level: int, form: str = "object"
    ) -> tuple[bytes, str]:
        """As Library.generate()."""
        machine = _machine(target, level)
        module = _parse(text)
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        with stages.stage("optimise", passes):
            self.optimize(module, machine, passes)
        other = changed(text, lambda: str(module), target, passes) if level else None
        if other is not None:
            module = _parse(other)
        if form == "object":
            with stages.stage("generate code"):
                return machine.emit_object(module), ""
        machine.set_asm_verbosity(form == "comments")
        return machine.emit_assembly(module).encode(), str(module) if form == "comments" else ""

    def version(self) -> tuple[int, ...]:
        """LLVM's."""
        return tuple(llvm.llvm_version_info)

    def run_here(self, data: bytes, name: str) -> int:
        """As Library.run_here()."""
        jit = llvm.create_lljit_compiler()
        tracker = llvm.JITLibraryBuilder().add_object_img(data).export_symbol(name).link(jit, name)
        self._running.append((jit, tracker))
        address: int = tracker[name]
        return address

    def optimize(self, module: Module, machine: Machine, passes: str) -> None:
        """Runs a list of passes."""
        if passes in ("short", "ordered"):
            builder = llvm.create_pass_builder(machine, _options(2, False))
            manager = llvm.create_new_module_pass_manager()
            for name in self._short_list:
                if name != _LACKING:
                    getattr(manager, f"add_{_METHODS[name]}_pass")()
        else:
            level = 2 if passes == "scalar" else int(passes[1])
            builder = llvm.create_pass_builder(machine, _options(level, level > 1 and passes != "scalar"))
            manager = builder.getModulePassManager()
        manager.run(module, builder)


@functools.lru_cache(maxsize=8)
def _machine(target: Target, level: int) -> Machine:
    """The target machine: position-independent code of the small model, as the code loader wants it."""
    try:
        found = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise CompileError(f"LLVM has no back end for {target.triple}: {error}") from error
    return found.create_target_machine(
        cpu="", features=target.feature_string, opt=level, reloc="pic", codemodel="small"
    )


def _parse(text: str) -> Module:
    """A verified module in a context of its own: the global one would keep every type for ever."""
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"{NOT_VALID}{error}") from error
    return module


def _options(level: int, vectorize: bool) -> Any:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.loop_interleaving = options.slp_vectorization = vectorize
    options.loop_unrolling = level > 0
    return options
