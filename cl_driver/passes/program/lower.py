"""What extensions of SPIR-V add, made plain SPIR-V in all functions that kernels reach.

Once for a program, before anything looks at its kernels: reflection, passes and code generation know nothing
of these extensions.
"""

from __future__ import annotations

from ...spirv.enums import Capability, StorageClass
from ...spirv.module import Function, Module
from ...spirv.reflect import called, called_by_address
from ..ir.link_names import NAMED_BARRIER_FUNCTIONS

# With those that imply them.
_UNTYPED = {Capability.UntypedPointersKHR, Capability.UntypedVariableLengthArrayINTEL}
_VARIABLE_ARRAYS = {Capability.VariableLengthArrayINTEL, Capability.UntypedVariableLengthArrayINTEL}
_BFLOAT16 = {Capability.BFloat16TypeKHR, Capability.BFloat16DotProductKHR}
_VECTORS = {Capability.LongVectorEXT, Capability.VectorAnyINTEL, Capability.MaskedGatherScatterINTEL}
_BLOCKS = {Capability.DeviceEnqueue, Capability.SubgroupDispatch}
_PIPES = {Capability.Pipes, Capability.PipeStorage}
_BY_POINTER = {Capability.FunctionPointersINTEL, Capability.IndirectReferencesINTEL}

# What C++ puts in tables of virtual functions where there is no function to call (Itanium C++ ABI, 3.2.6).
WITHOUT_BODY = frozenset(("__cxa_pure_virtual", "__cxa_deleted_virtual"))


def has_variable_arrays(module: Module) -> bool:
    """Whether kernels may have arrays whose length is a value."""
    return not _VARIABLE_ARRAYS.isdisjoint(module.capabilities)


def may_enqueue(module: Module) -> bool:
    """Whether kernels may enqueue kernels, or ask for sizes of blocks that they could enqueue."""
    return not _BLOCKS.isdisjoint(module.capabilities)


def lower_extensions(module: Module, is_relaxed: bool = False, tells: bool = False) -> dict[str, int]:
    """Changes a linked and valid module. is_relaxed: see max_errors.py; tells: see device_enqueue.py. Passes
    are imported when needed.

    Returns the addresses of functions that hosts may ask for, by their names. SpirvError for what cannot be
    done."""
    capabilities, types = module.capabilities, module.types
    addresses: dict[str, int] = {}
    if not _UNTYPED.isdisjoint(capabilities):
        from .untyped_pointers import type_pointers

        type_pointers(_all(module), types)
    if not _BY_POINTER.isdisjoint(capabilities):
        from .function_pointers import lower_function_pointers

        addresses = lower_function_pointers(module)
    if may_enqueue(module):
        from .device_enqueue import lower_device_enqueue

        lower_device_enqueue(module, tells)
    if any(f.linkage and f.linkage[0] in NAMED_BARRIER_FUNCTIONS for f in module.functions):
        from .named_barrier_functions import define_functions

        define_functions(module.functions)
    if not _PIPES.isdisjoint(capabilities):
        from .pipes import lower_pipes

        lower_pipes(module, _reached(module))
    if Capability.Int4TypeINTEL in capabilities:
        from ..numbers.int4 import lower_int4

        lower_int4(module, _reached(module))
    if Capability.Float8EXT in capabilities:
        from ..numbers.float8 import lower_float8

        lower_float8(_reached(module), types)
    if not _BFLOAT16.isdisjoint(capabilities):
        from ..numbers.bfloat16 import lower_bfloat16

        lower_bfloat16(_reached(module), types)
    if Capability.ArbitraryPrecisionIntegersALTERA in capabilities:
        from ..numbers.integers import lower_integers

        lower_integers(_reached(module), types)
    if not _VECTORS.isdisjoint(capabilities):
        from .vectors import split_vectors

        split_vectors(_reached(module), [entry.function for entry in module.entry_points], types)
    if has_variable_arrays(module):
        from .variable_arrays import end_with_functions

        entries = {id(entry.function) for entry in module.entry_points}
        end_with_functions([f for f in _reached(module) if id(f) not in entries], types)
    if any(v.initializer is not None for v in module.variables if v.type.storage is StorageClass.Workgroup):
        from .local_initializers import initialise_local_memory

        initialise_local_memory(module)
    if Capability.FPMaxErrorINTEL in capabilities:
        from .max_errors import keep_bounds

        keep_bounds(_reached(module), types, is_relaxed)
    return addresses


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
