"""CL_OUT_OF_HOST_MEMORY of extensions' entry points (c/extensions/out_of_memory.c)."""

from tests.loader.command_buffers.recorder import COMMANDS

ALLOCATING = {
    "clHostMemAllocINTEL",
    "clDeviceMemAllocINTEL",
    "clSharedMemAllocINTEL",
    "clMemBlockingFreeINTEL",
    "clEnqueueMemFillINTEL",
    "clEnqueueMemsetINTEL",
    "clEnqueueMemcpyINTEL",
    "clEnqueueMigrateMemINTEL",
    "clEnqueueMemAdviseINTEL",
    "clCreateCommandBufferKHR",
    "clFinalizeCommandBufferKHR",
    "clEnqueueCommandBufferKHR",
    "clUpdateMutableCommandsKHR",
    "clRemapCommandBufferKHR",
    "clCreateBufferWithProperties",
    "clGetMemObjectInfo",
    *COMMANDS,
}


def test_allocations_that_fail(run_client):
    assert set(run_client("extensions/out_of_memory").stdout.split()) == ALLOCATING
