"""What extensions of SPIR-V add, made plain SPIR-V in all functions that kernels reach.

Once for a program, before anything looks at its kernels: reflection, passes and code generation know nothing
of these extensions.
"""

from __future__ import annotations

from ...spirv.enums import Capability
from ...spirv.module import Function, Module
from ...spirv.reflect import called, called_by_address
from .function_pointers import lower_function_pointers
from .integers import lower_integers
from .max_errors import keep_bounds
from .untyped_pointers import type_pointers
from .variable_arrays import end_with_functions

_BY_POINTER = {Capability.FunctionPointersINTEL, Capability.IndirectReferencesINTEL}


def lower_extensions(module: Module, is_relaxed: bool = False) -> None:
    """Changes a linked and valid module. is_relaxed: see max_errors.py.

    SpirvError for what cannot be done."""
    if Capability.UntypedPointersKHR in module.capabilities:
        type_pointers(_all(module), module.types)
    if not _BY_POINTER.isdisjoint(module.capabilities):
        lower_function_pointers(module)
    if Capability.ArbitraryPrecisionIntegersALTERA in module.capabilities:
        lower_integers(_reached(module), module.types)
    if Capability.VariableLengthArrayINTEL in module.capabilities:
        entries = {id(entry.function) for entry in module.entry_points}
        end_with_functions([f for f in _reached(module) if id(f) not in entries], module.types)
    if Capability.FPMaxErrorINTEL in module.capabilities:
        keep_bounds(_reached(module), module.types, is_relaxed)


def _all(module: Module) -> list[Function]:
    """The functions that calls through pointers may reach, too."""
    found = {id(function): function for function in _reached(module)}
    for target in called_by_address(module):
        found.update((id(function), function) for function in called(target))
    return list(found.values())


def _reached(module: Module) -> list[Function]:
    """The functions that kernels are made of, each once."""
    found: dict[int, Function] = {}
    for entry in module.entry_points:
        found.update((id(function), function) for function in called(entry.function))
    return list(found.values())
