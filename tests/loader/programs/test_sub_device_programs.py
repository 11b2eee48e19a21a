"""Programs on sub-devices (API specification, 5.8)."""

import ctypes

from cl_driver.api.generated import enums as cl

SOURCE = "kernel void k(global int *a) { a[get_global_id(0)] += 7; }"


def test_what_is_built_for_the_parent_serves_its_sub_devices(opencl):
    root = opencl.device()
    units = opencl.integer("clGetDeviceInfo", root, cl.CL_DEVICE_MAX_COMPUTE_UNITS)
    if units < 2:
        # One compute unit cannot be divided: the error code is what can be checked.
        assert (
            opencl.call("clCreateSubDevices", root, [cl.CL_DEVICE_PARTITION_EQUALLY, 1, 0], 0, None, None)
            == cl.CL_DEVICE_PARTITION_FAILED
        )
        return
    parts = opencl.sub_devices(root, cl.CL_DEVICE_PARTITION_EQUALLY, 1)
    context = opencl.context(*parts, root)
    program = opencl.program(context, SOURCE)

    def status(device):
        return opencl.integer("clGetProgramBuildInfo", program, device, cl.CL_PROGRAM_BUILD_STATUS)

    none = cl.CL_BUILD_NONE & 0xFFFFFFFF
    assert [status(device) for device in (*parts, root)] == [none] * (len(parts) + 1)
    opencl.ok("clBuildProgram", program, 1, [root], None, None, None)
    assert [status(device) for device in (*parts, root)] == [cl.CL_BUILD_SUCCESS] * (len(parts) + 1)
    kernel = opencl.make("clCreateKernel", program, b"k")
    data = (ctypes.c_int32 * 16)()
    size = ctypes.sizeof(data)
    buffer = opencl.make("clCreateBuffer", context, 0, size, None)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_void_p(buffer))
    for device in parts:
        queue = opencl.make("clCreateCommandQueue", context, device, 0)
        opencl.ok("clEnqueueWriteBuffer", queue, buffer, 1, 0, size, (ctypes.c_int32 * 16)(), 0, None, None)
        opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [16], None, 0, None, None)
        opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, size, data, 0, None, None)
        assert list(data) == [7] * 16
        opencl.ok("clReleaseCommandQueue", queue)
    for handle, release in (
        (buffer, "clReleaseMemObject"),
        (kernel, "clReleaseKernel"),
        (program, "clReleaseProgram"),
        (context, "clReleaseContext"),
        *((device, "clReleaseDevice") for device in parts),
    ):
        opencl.ok(release, handle)
