"""Bodies for functions of named barriers, as Intel's compilers know them in OpenCL C and SYCL:

    local struct __namedBarrier *named_barrier_init(int sub_groups);
    void work_group_named_barrier(local struct __namedBarrier *, uint fences);

cl_khr_subgroup_named_barrier itself adds no functions to OpenCL C.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import MemorySemantics, Op, Scope, StorageClass
from ...spirv.errors import SpirvError
from ...spirv.module import Argument, Block, Constant, Function, Instruction, Kind, Type
from ..ir.link_names import NAMED_BARRIER_FUNCTIONS, NAMED_BARRIER_INIT

_ORDER = (
    MemorySemantics.AcquireRelease | MemorySemantics.WorkgroupMemory | MemorySemantics.CrossWorkgroupMemory
)


def define_functions(functions: Iterable[Function]) -> None:
    """Gives declarations of these functions their bodies. SpirvError for those of other types."""
    for function in functions:
        if function.blocks or not function.linkage or function.linkage[0] not in NAMED_BARRIER_FUNCTIONS:
            continue
        if not _define(function, function.linkage[0]):
            raise SpirvError(0, function.linkage[0], "it has other parameters, or another result")
        function.linkage = None


def _define(function: Function, name: str) -> bool:
    result, parameters = function.type.element, function.type.members
    arguments, block = [Argument(type_, k) for k, type_ in enumerate(parameters)], Block(function)
    if name in NAMED_BARRIER_INIT:
        if list(map(_is_word, parameters)) != [True] or not _is_local(result):
            return False
        made = Instruction(Op.NamedBarrierInitialize, result, arguments, block)
        block.instructions = [made, Instruction(Op.ReturnValue, None, [made], block)]
    else:
        is_so = len(parameters) in (2, 3) and _is_local(parameters[0])  # with or without a memory scope
        if not is_so or not all(map(_is_word, parameters[1:])) or result.kind is not Kind.VOID:
            return False
        scope, order = (Constant(parameters[1], value) for value in (Scope.Workgroup, _ORDER))
        waits = Instruction(Op.MemoryNamedBarrier, None, [arguments[0], scope, order], block)
        block.instructions = [waits, Instruction(Op.Return, None, [], block)]
    function.arguments, function.blocks = arguments, [block]
    return True


def _is_word(type_: Type) -> bool:
    return type_.kind is Kind.INT and type_.width == 32


def _is_local(type_: Type) -> bool:
    return type_.kind is Kind.POINTER and type_.storage == StorageClass.Workgroup
