"""Hints of SPIR-V extensions change no result, where lanes go different ways, too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.spirv_kernels import X, Y, same

LOOP = """
%n = OpBitwiseAnd %i32 %x %seven
OpBranch %head
%head = OpLabel
%i = OpPhi %i32 %zero %entry %ni %body
%sum = OpPhi %i32 %y %entry %nsum %body
%more = OpSLessThan %bool %i %n
OpLoopControlINTEL CONTROL
OpBranchConditional %more %body %done
%body = OpLabel
%square = OpIMul %i32 %i %i
%nsum = OpIAdd %i32 %sum %square
%ni = OpIAdd %i32 %i %one
OpBranch %head
%done = OpLabel
%r = OpCopyObject %i32 %sum
"""
CAPABILITIES = """
OpCapability UnstructuredLoopControlsINTEL
OpCapability CacheControlsINTEL
OpCapability KernelAttributesINTEL
OpCapability FPGAKernelAttributesINTEL
OpExtension "SPV_INTEL_unstructured_loop_controls"
OpExtension "SPV_INTEL_cache_controls"
OpExtension "SPV_INTEL_kernel_attributes"
"""
CONSTANTS = "%zero = OpConstant %i32 0\n%one = OpConstant %i32 1\n%seven = OpConstant %i32 7\n"


@pytest.mark.parametrize("control", ["1", "2", "256 4", "4", "8 3"])
def test_loop_controls(control):
    expected = [y + sum(i * i for i in range(x & 7)) for x, y in zip(X, Y, strict=True)]
    same(LOOP.replace("CONTROL", control), expected, capabilities=CAPABILITIES, types=CONSTANTS)


CONTROLS = ("UncachedINTEL", "CachedINTEL", "StreamingINTEL", "InvalidateAfterReadINTEL", "ConstCachedINTEL")


@pytest.mark.parametrize("load", CONTROLS)
@pytest.mark.parametrize("store", ["UncachedINTEL", "WriteThroughINTEL", "WriteBackINTEL", "StreamingINTEL"])
def test_cache_controls(load, store):
    decorations = f"""
OpDecorate %ax CacheControlLoadINTEL 0 {load}
OpDecorate %ax CacheControlLoadINTEL 2 {load}
OpDecorate %bx CacheControlLoadINTEL 1 {load}
OpDecorate %rx CacheControlStoreINTEL 0 {store}
"""
    same("%r = OpIAdd %i32 %x %y", X + Y, capabilities=CAPABILITIES, decorations=decorations, widths=(1, 8))


def test_attributes_of_kernels():
    modes = """
OpExecutionMode %main MaxWorkgroupSizeINTEL 13 1 1
OpExecutionMode %main MaxWorkDimINTEL 1
OpExecutionMode %main NoGlobalOffsetINTEL
OpExecutionMode %main NumSIMDWorkitemsINTEL 4
OpExecutionMode %main SchedulerTargetFmaxMhzINTEL 480
OpExecutionMode %main StreamingInterfaceINTEL 1
"""
    same("%r = OpISub %i32 %x %y", np.subtract(X, Y), capabilities=CAPABILITIES, modes=modes)
