"""Hints of Intel's extensions: loop controls, cache controls, host access, attributes of kernels."""

from __future__ import annotations

import pytest

from cl_driver.spirv.enums import Decoration, HostAccessQualifier, LoadCacheControl
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.reflect import reflect
from cl_driver.spirv.validation import validate

from .assembler import PREAMBLE, TYPES, assemble

LOOP = """
OpBranch %head
%head = OpLabel
%i = OpPhi %i32 %c0 %entry %n %head
%n = OpIAdd %i32 %i %c1
%more = OpULessThan %bool %n %c7
CONTROL
OpBranchConditional %more %head %done
%done = OpLabel
"""


def module(capability="", extension="", modes="", decorations="", variables="", body="", version=(1, 6)):
    preamble = PREAMBLE.replace("%std =", f'OpExtension "{extension}"\n%std =') if extension else PREAMBLE
    head = "".join(f"OpCapability {name}\n" for name in capability.split()) + preamble
    text = (
        f'{head}OpEntryPoint Kernel %k "k"\n{modes}\n{decorations}\n{TYPES}{variables}\n'
        f"%k = OpFunction %void None %fn_gi32\n%p = OpFunctionParameter %gi32\n%entry = OpLabel\n{body}\n"
        "OpReturn\nOpFunctionEnd\n"
    )
    read = reader.read(assemble(text, version))
    validate.validate(read)
    return read


LOOP_CONTROLS = ("UnstructuredLoopControlsINTEL", "SPV_INTEL_unstructured_loop_controls")


@pytest.mark.parametrize(
    ("control", "expected"), [("1", (1, ())), ("256 4", (256, (4,))), ("136 2 3", (136, (2, 3)))]
)
def test_loop_controls(control, expected):
    read = module(*LOOP_CONTROLS, body=LOOP.replace("CONTROL", f"OpLoopControlINTEL {control}"))
    assert [b.loop_control for b in read.functions[0].blocks if b.loop_control] == [expected]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (LOOP.replace("CONTROL", "OpLoopControlINTEL 256"), "0 parameters, where the loop control has 1"),
        (LOOP.replace("CONTROL", "OpLoopControlINTEL 1 4"), "1 parameters, where the loop control has 0"),
        (LOOP.replace("CONTROL", "OpLoopControlINTEL"), "no loop control"),
        (LOOP.replace("CONTROL", "OpLoopControlINTEL 512"), "512 is no LoopControl"),
        (LOOP.replace("CONTROL", "OpLoopControlINTEL 65536 1"), "needs the capability FPGALoopControls"),
        (
            LOOP.replace("CONTROL", "OpLoopControlINTEL 1\nOpLoopControlINTEL 1"),
            "OpBranchConditional comes next",
        ),
        ("OpLoopControlINTEL 1\nOpStore %p %c1", "OpBranchConditional comes next"),
        ("OpLoopControlINTEL 1", "OpBranchConditional comes next"),
    ],
)
def test_wrong_loop_controls(body, rule):
    with pytest.raises(SpirvError, match=rule):
        module(*LOOP_CONTROLS, body=body)


def test_loop_controls_need_their_capability():
    with pytest.raises(SpirvError, match="needs the capability UnstructuredLoopControlsINTEL"):
        module(body=LOOP.replace("CONTROL", "OpLoopControlINTEL 1"))


CACHE = ("CacheControlsINTEL", "SPV_INTEL_cache_controls")


def test_cache_controls():
    read = module(
        *CACHE,
        decorations="OpDecorate %p CacheControlLoadINTEL 0 StreamingINTEL\n"
        "OpDecorate %p CacheControlLoadINTEL 1 CachedINTEL\n"
        "OpDecorate %p CacheControlStoreINTEL 0 WriteBackINTEL\n",
        body="%x = OpLoad %i32 %p\nOpStore %p %x",
    )
    (pointer,) = read.functions[0].arguments
    assert pointer.decorations[Decoration.CacheControlLoadINTEL] == {
        0: LoadCacheControl.StreamingINTEL, 1: LoadCacheControl.CachedINTEL
    }  # fmt: skip


@pytest.mark.parametrize(
    ("decorations", "rule"),
    [
        (2 * "OpDecorate %p CacheControlLoadINTEL 0 StreamingINTEL\n", "of cache level 0 decorates id"),
        ("OpDecorate %p CacheControlStoreINTEL 0 9\n", "9 is no StoreCacheControl"),
    ],
)
def test_wrong_cache_controls(decorations, rule):
    with pytest.raises(SpirvError, match=rule):
        module(*CACHE, decorations=decorations)


def test_cache_controls_need_their_capability():
    with pytest.raises(SpirvError, match="needs the capability CacheControlsINTEL"):
        module(decorations="OpDecorate %p CacheControlLoadINTEL 0 StreamingINTEL\n")


ACCESS = ("GlobalVariableHostAccessINTEL", "SPV_INTEL_global_variable_host_access")
VARIABLES = "%a = OpVariable %gi32 CrossWorkgroup %z\n%b = OpVariable %gi32 CrossWorkgroup\n"
VARIABLES = VARIABLES.replace(" %z", "")


def test_host_access():
    read = module(
        *ACCESS,
        decorations='OpDecorate %a HostAccessINTEL ReadINTEL "first"\n'
        'OpDecorateString %b HostAccessINTEL ReadWriteINTEL "second"\n',
        variables=VARIABLES,
    )
    assert [v.decorations[Decoration.HostAccessINTEL] for v in read.variables] == [
        (HostAccessQualifier.ReadINTEL, "first"), (HostAccessQualifier.ReadWriteINTEL, "second")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("decorations", "rule"),
    [
        (
            'OpDecorate %a HostAccessINTEL ReadINTEL "one"\nOpDecorate %b HostAccessINTEL ReadINTEL "one"\n',
            "has the name 'one' again",
        ),
        ('OpDecorate %p HostAccessINTEL ReadINTEL "one"\n', "which is no variable of the module"),
        ('OpDecorate %a HostAccessINTEL 7 "one"\n', "7 is no HostAccessQualifier"),
        ("OpDecorate %a HostAccessINTEL ReadINTEL\n", "HostAccessINTEL has 2 parameters, not 1"),
    ],
)
def test_wrong_host_access(decorations, rule):
    with pytest.raises(SpirvError, match=rule):
        module(*ACCESS, decorations=decorations, variables=VARIABLES)


ATTRIBUTES = ("KernelAttributesINTEL FPGAKernelAttributesINTEL", "SPV_INTEL_kernel_attributes")


def test_attributes_of_kernels():
    read = module(
        *ATTRIBUTES,
        modes="OpExecutionMode %k MaxWorkgroupSizeINTEL 8 4 2\nOpExecutionMode %k MaxWorkDimINTEL 2\n"
        "OpExecutionMode %k NoGlobalOffsetINTEL\nOpExecutionMode %k NumSIMDWorkitemsINTEL 4\n"
        "OpExecutionMode %k SchedulerTargetFmaxMhzINTEL 300\nOpExecutionMode %k StreamingInterfaceINTEL 0\n",
    )
    (kernel,) = reflect(read)
    assert kernel.max_local_size == (8, 4, 2)


@pytest.mark.parametrize(
    ("modes", "rule"),
    [
        ("MaxWorkgroupSizeINTEL 8 4", "has 3 parameters, not 2"),
        ("MaxWorkgroupSizeINTEL 8 0 1", "MaxWorkgroupSizeINTEL of"),
        ("MaxWorkDimINTEL 4", "of 4 dimensions"),
        ("MaxWorkgroupSizeINTEL 8 8 8\nOpExecutionMode %k LocalSize 8 9 1", "is above MaxWorkgroupSizeINTEL"),
        ("MaxWorkDimINTEL 1\nOpExecutionMode %k LocalSize 8 2 1", "for MaxWorkDimINTEL of 1 dimensions"),
        ("MaxWorkDimINTEL 0\nOpExecutionMode %k LocalSize 8 1 1", "for MaxWorkDimINTEL of 0 dimensions"),
        ("RegisterMapInterfaceINTEL 0", "needs the capability FPGAKernelAttributesv2INTEL"),
    ],
)
def test_wrong_attributes(modes, rule):
    with pytest.raises(SpirvError, match=rule):
        module(*ATTRIBUTES, modes=f"OpExecutionMode %k {modes}")


def test_attributes_need_their_capability():
    with pytest.raises(SpirvError, match="needs the capability KernelAttributesINTEL"):
        module(modes="OpExecutionMode %k NoGlobalOffsetINTEL")
