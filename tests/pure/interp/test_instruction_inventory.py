"""Every instruction that a module for this device may contain is lowered, interpreted and tested."""

from __future__ import annotations

import struct

import pytest

from cl_driver.codegen.kernel import emit as _codegen  # fills the tables of lowerings
from cl_driver.codegen.llvm.registry import EXTENDED, LOWERINGS
from cl_driver.device import capabilities
from cl_driver.device.cpu import host_cpu
from cl_driver.interp import core, effects, opencl_memory
from cl_driver.passes.lower import images
from cl_driver.passes.program import device_enqueue, pipes, variable_arrays
from cl_driver.spirv.enums import Capability, Op, OpenCLStd
from cl_driver.spirv.tables import OPENCL_STD, ROWS
from cl_driver.spirv.validation.validate import accepted_capabilities
from tests.instructions import special_more, table

# Classes whose instructions the reader consumes: nothing of them is left for later stages.
DECLARATIONS = frozenset((
    "Debug", "Extension", "Mode-Setting", "Type-Declaration", "Constant-Creation", "Annotation", "Function",
))  # fmt: skip
# What the reader, the passes or the interpreter's loop take care of, where others have a table entry.
ALIASES = {"AliasDomainDeclINTEL", "AliasScopeDeclINTEL", "AliasScopeListDeclINTEL"}
READ = {"Label", "Phi", "LoopMerge", "LoopControlINTEL", "SelectionMerge"} | ALIASES
RUN = {"Branch", "BranchConditional", "Switch", "Return", "ReturnValue", "Unreachable", "Variable", "ExtInst"}
# Collectives of work-groups and sub-groups: passes/ makes loops or lane operations of them.
PASSES = {op.name for op in Op if op.name.startswith(("Group", "SubgroupShuffle"))}
PASSES |= {op.name for op in images.LOWERINGS}
# What passes/program/ makes plain SPIR-V of.
PASSES |= {
    "FunctionPointerCallINTEL",
    "ConstantFunctionPointerINTEL",
    "ConstantPipeStorage",
    "NamedBarrierInitialize",
    *(op.name for op in variable_arrays.OPS),
    *(op.name for op in pipes.RULES),
    *(op.name for op in device_enqueue.RULES),
}

# Tested, but by other files than tests/runtime/codegen/ops/test_instructions.py: beginnings of names.
ELSEWHERE = {
    **dict.fromkeys((op.name for op in variable_arrays.OPS), "tests/runtime/program/test_variable_arrays.py"),
    **dict.fromkeys((op.name for op in pipes.RULES), "tests/runtime/program/test_pipes.py"),
    **dict.fromkeys((op.name for op in device_enqueue.RULES), "tests/loader/launches/test_device_enqueue.py"),
    "TypeQueue": "tests/loader/launches/test_device_enqueue.py",
    "TypeDeviceEvent": "tests/loader/launches/test_device_enqueue.py",
    "NamedBarrierInitialize": "tests/runtime/codegen/kernel/test_named_barriers.py",
    "MemoryNamedBarrier": "tests/runtime/codegen/kernel/test_named_barriers.py",
    "TypeNamedBarrier": "tests/runtime/codegen/kernel/test_named_barriers.py",
    "TypePipe": "tests/runtime/program/test_pipes.py",
    "TypeReserveId": "tests/runtime/program/test_pipes.py",
    "ConstantPipeStorage": "tests/runtime/program/test_pipes.py",
    "FunctionPointerCallINTEL": "tests/runtime/program/test_function_pointers.py",
    "ConstantFunctionPointerINTEL": "tests/runtime/program/test_function_pointers.py",
    "LoopControlINTEL": "tests/runtime/codegen/ops/test_hints.py",
    "Alias": "tests/loader/programs/test_il_of_other_compilers.py",
    "printf": "tests/loader/c/programs.c",
    "GroupNonUniform": "tests/runtime/codegen/simd/test_subgroups.py",
    "Subgroup": "tests/runtime/codegen/simd/test_subgroups.py",
    "AtomicF": "tests/runtime/codegen/atomic/test_atomics.py",
    "Image": "tests/runtime/images/test_images.py",
    "SampledImage": "tests/runtime/images/test_images.py",
    "TypeImage": "tests/runtime/images/test_images.py",
    "TypeSample": "tests/runtime/images/test_images.py",
    "ConstantSampler": "tests/runtime/images/test_images.py",
}
IMAGE_TYPES = (Op.TypeImage, Op.TypeSampler, Op.TypeSampledImage, Op.ImageTexelPointer)
# Atomics on images and multisampled images, which OpenCL does not have; the build fails.
REFUSED = ("ImageTexelPointer", "ImageQuerySamples")


def elsewhere(name: str) -> bool:
    return name.startswith(tuple(ELSEWHERE))


def reachable() -> list[Op]:
    """The instructions of the capabilities and extensions that the device claims."""
    cpu = host_cpu()
    names = capabilities.spirv_capabilities(cpu)
    claimed = accepted_capabilities(names)
    extensions = set(capabilities.spirv_extensions(cpu))
    found = []
    for number in ROWS.lines:
        row = ROWS[number]
        if row.op.name in REFUSED:
            continue
        if row.capabilities and not claimed & set(row.capabilities):
            continue
        if row.class_ == "Device-Side_Enqueue" and Capability.DeviceEnqueue not in claimed:
            continue  # those of SubgroupDispatch take what only device-side enqueue has
        if (row.class_ == "Image" or row.op in IMAGE_TYPES) and Capability.ImageBasic not in claimed:
            continue  # for which the grammar names no capability
        if row.version is not None or extensions & set(row.extensions):
            found.append(row.op)
    return found


def opcodes(data: bytes) -> set[Op]:
    """The instructions in a module's words; those of OpenCL.std as text."""
    words = struct.unpack(f"<{len(data) // 4}I", data)
    at, found = 5, set()
    while at < len(words):
        op = Op(words[at] & 0xFFFF)
        found.add(op)
        if op is Op.ExtInst:
            found.add(f"OpenCL.std {words[at + 4]}")
        at += words[at] >> 16
    return found


@pytest.fixture(scope="module")
def tested() -> set:
    """All instructions of the generated modules."""
    found = set()
    for scalar in (*table.INTEGERS, *table.FLOATS):
        for count in (1, 4):
            for kernel in table.kernels(scalar, count, 1):
                found |= opcodes(kernel.module())
    for kernel in special_more.kernels():
        found |= opcodes(kernel.module())
    return found


def test_every_instruction_has_a_case(tested):
    missing = [op.name for op in reachable() if op not in tested and not elsewhere(op.name)]
    assert not missing


def test_every_opencl_std_instruction_has_a_case(tested):
    assert not [
        OpenCLStd(n).name
        for n in OPENCL_STD
        if f"OpenCL.std {n}" not in tested and not elsewhere(OpenCLStd(n).name)
    ]


def test_every_instruction_is_lowered():
    handled = READ | PASSES
    assert not [
        op.name
        for op in reachable()
        if ROWS[op].class_ not in DECLARATIONS and op not in LOWERINGS and op.name not in handled
    ]
    assert not [OpenCLStd(n).name for n in OPENCL_STD if n not in EXTENDED]


def test_every_instruction_is_interpreted():
    handled = (
        READ
        | RUN
        | PASSES
        | {"ControlBarrier", "MemoryNamedBarrier", "Load", "Store", "FunctionCall", "Line", "NoLine"}
    )
    assert not [
        op.name
        for op in reachable()
        if ROWS[op].class_ not in DECLARATIONS
        and op not in core.RULES
        and op not in effects.EFFECTS
        and op.name not in handled
    ]
    assert not [OpenCLStd(n).name for n in OPENCL_STD if n not in opencl_memory.RULES]


def test_every_claimed_capability_has_a_number():
    claimed = capabilities.spirv_capabilities(host_cpu())
    assert {name: Capability[name] for name in claimed} == {
        name: capabilities.SPIRV_NUMBERS[name] for name in claimed
    }


assert _codegen.emit
