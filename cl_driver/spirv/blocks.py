"""Blocks that programs enqueue, as the front end names them (native_shim/clang/blocks.c).

clang makes a kernel of each. What enqueues it, or asks for a size of it, is a call of a function that is
defined nowhere, with the kernel's name in its own: two modules may have blocks of one name, so these get the
module's number as well, and a space, for no kernel of a program's has a name like that.
"""

from __future__ import annotations

from .enums import LinkageType
from .module import Module

# Before the name of what clang calls; behind that follows the kernel's, with a dot between them.
_CALL = "__cld_"
_BLOCK = "block "
# What is in the names of the kernels that clang makes of blocks.
_OF_CLANG = "_block_invoke"

# Without a kernel, renamed for clang's back end.
NULL_EVENT = "_Z16__cld_null_eventv"  # frontend/prelude.py
MARKER = "_Z14enqueue_marker9cld_queuejPU3AS4K12cld_clkeventPU3AS4S0_"


def kernel_of_call(name: str) -> tuple[str, str] | None:
    """What clang calls, without underscores, and the name of the block's kernel, by a link name."""
    call, dot, kernel = name.partition(".")
    if not dot or not call.startswith(_CALL) or not kernel:
        return None
    return call.removeprefix(_CALL).strip("_"), kernel


def is_call(name: str) -> bool:
    """Whether a link name is that of a function that passes/program/device_enqueue.py makes something of."""
    return name in (MARKER, NULL_EVENT) or kernel_of_call(name) is not None


def block_name(module: int, name: str) -> str:
    """The name of a block."""
    return f"{_BLOCK}{module} {name}"


def name_blocks(module: Module, number: int) -> None:
    """Gives the blocks of a module names that no other has; those that nobody enqueues are no kernels."""
    kernels = {entry.name for entry in module.entry_points}
    named: dict[str, str] = {}
    for function in module.functions:
        if function.linkage is None or function.linkage[1] != LinkageType.Import:
            continue
        found = kernel_of_call(function.linkage[0])
        if found is not None and found[1] in kernels:
            named[found[1]] = block_name(number, found[1])
            call = function.linkage[0].partition(".")[0]
            function.linkage = f"{call}.{named[found[1]]}", LinkageType.Import
    stay = []
    for entry in module.entry_points:
        if entry.name in named:
            entry.name, entry.is_block = named[entry.name], True
        elif entry.name.startswith("__") and _OF_CLANG in entry.name:
            continue
        stay.append(entry)
    module.entry_points = stay
