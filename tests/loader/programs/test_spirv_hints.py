"""Kernels with the hints of Intel's SPIR-V extensions: they run, and are kept to where they limit groups."""

from __future__ import annotations

import ctypes

import pytest

from cl_driver.api.generated import enums as cl
from tests.pure.spirv.assembler import assemble

MODULE = """
OpCapability Addresses
OpCapability Kernel
OpCapability Int64
OpCapability UnstructuredLoopControlsINTEL
OpCapability CacheControlsINTEL
OpCapability GlobalVariableHostAccessINTEL
OpCapability KernelAttributesINTEL
OpCapability FPGAKernelAttributesINTEL
OpCapability DebugInfoModuleINTEL
OpExtension "SPV_INTEL_unstructured_loop_controls"
OpExtension "SPV_INTEL_cache_controls"
OpExtension "SPV_INTEL_global_variable_host_access"
OpExtension "SPV_INTEL_kernel_attributes"
OpExtension "SPV_INTEL_debug_module"
%debug = OpExtInstImport "OpenCL.DebugInfo.100"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k" %gid %lsize
OpExecutionMode %k MaxWorkgroupSizeINTEL 6 4 1
OpExecutionMode %k MaxWorkDimINTEL 2
OpExecutionMode %k NoGlobalOffsetINTEL
OpExecutionMode %k NumSIMDWorkitemsINTEL 4
OpExecutionMode %k SchedulerTargetFmaxMhzINTEL 300
%empty = OpString "module"
OpDecorate %gid BuiltIn GlobalInvocationId
OpDecorate %lsize BuiltIn WorkgroupSize
OpDecorate %three HostAccessINTEL ReadWriteINTEL "three"
OpDecorate %place CacheControlStoreINTEL 0 StreamingINTEL
OpDecorate %place CacheControlStoreINTEL 1 WriteThroughINTEL
%void = OpTypeVoid
%bool = OpTypeBool
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%v3 = OpTypeVector %i64 3
%pin = OpTypePointer Input %v3
%pi = OpTypePointer CrossWorkgroup %i32
%fn = OpTypeFunction %void %pi
%z = OpConstant %i32 0
%one = OpConstant %i32 1
%n3 = OpConstant %i32 3
%thousand = OpConstant %i32 1000
%gid = OpVariable %pin Input
%lsize = OpVariable %pin Input
%three = OpVariable %pi CrossWorkgroup %n3
%information = OpExtInst %void %debug 0
%named = OpExtInst %void %debug 36 %empty %information %information 1 %empty %empty %empty 0
%k = OpFunction %void None %fn
%out = OpFunctionParameter %pi
%entry = OpLabel
%id3 = OpLoad %v3 %gid
%id = OpCompositeExtract %i64 %id3 0
%wide3 = OpLoad %v3 %lsize
%wide = OpCompositeExtract %i64 %wide3 0
%size = OpUConvert %i32 %wide
%count = OpUConvert %i32 %id
%step = OpLoad %i32 %three
%sized = OpIMul %i32 %size %thousand
OpBranch %head
%head = OpLabel
%i = OpPhi %i32 %z %entry %ni %body
%sum = OpPhi %i32 %sized %entry %nsum %body
%more = OpULessThan %bool %i %count
OpLoopControlINTEL 256 4
OpBranchConditional %more %body %done
%body = OpLabel
%nsum = OpIAdd %i32 %sum %step
%ni = OpIAdd %i32 %i %one
OpBranch %head
%done = OpLabel
%place = OpInBoundsPtrAccessChain %pi %out %id
OpStore %place %sum
OpReturn
OpFunctionEnd
"""
ITEMS = 37


@pytest.fixture
def launch(opencl):
    """launch(global sizes, local sizes or None): status, and what the kernel wrote."""
    context = opencl.context()
    data = assemble(MODULE, (1, 6))
    program = opencl.make("clCreateProgramWithIL", context, data, len(data))
    opencl.build(program)
    kernel = opencl.make("clCreateKernel", program, b"k")
    queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)

    def do(sizes, local):
        array = (ctypes.c_int32 * ITEMS)()
        size = ctypes.sizeof(array)
        buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, size, array)
        opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
        status = opencl.call(
            "clEnqueueNDRangeKernel", queue, kernel, len(sizes), None, sizes, local, 0, None, None
        )
        opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, size, array, 0, None, None)
        opencl.ok("clReleaseMemObject", buffer)
        return status, list(array)

    do.kernel = kernel
    yield do
    for release, handle in (
        ("clReleaseCommandQueue", queue), ("clReleaseKernel", kernel), ("clReleaseProgram", program),
        ("clReleaseContext", context),
    ):  # fmt: skip
        opencl.ok(release, handle)


def test_results(launch):
    """A group of six at most, although the driver would take all."""
    status, out = launch([ITEMS], None)
    sizes = {(value - 3 * i) // 1000 for i, value in enumerate(out)}
    assert status == cl.CL_SUCCESS
    assert [value % 1000 for value in out] == [3 * i for i in range(ITEMS)]
    assert max(sizes) <= 6


@pytest.mark.parametrize(
    ("sizes", "local", "status"),
    [
        ([36], [6], cl.CL_SUCCESS),
        ([35], [7], cl.CL_INVALID_WORK_GROUP_SIZE),
        ([36, 8], [6, 4], cl.CL_SUCCESS),
        ([36, 10], [2, 5], cl.CL_INVALID_WORK_GROUP_SIZE),
        ([36], [36], cl.CL_INVALID_WORK_GROUP_SIZE),
    ],
)
def test_largest_groups(opencl, launch, sizes, local, status):
    assert launch(sizes, local)[0] == status


def test_the_query(opencl, launch):
    """CL_KERNEL_WORK_GROUP_SIZE is what all dimensions together allow."""
    most = opencl.integer(
        "clGetKernelWorkGroupInfo", launch.kernel, opencl.device(), cl.CL_KERNEL_WORK_GROUP_SIZE
    )
    assert most == 24
