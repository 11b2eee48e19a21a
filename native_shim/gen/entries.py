"""What fills entries of the dispatch table, beside the C functions of their names."""

# Entry points of features that this driver does not have. They answer CL_INVALID_OPERATION.
ABSENT_PREFIXES = (
    "clCreateFromGL",
    "clGetGL",
    "clEnqueueAcquireGL",
    "clEnqueueReleaseGL",
    "clCreateEventFromGL",
    "clCreateFromEGL",
    "clEnqueueAcquireEGL",
    "clEnqueueReleaseEGL",
    "clCreateEventFromEGL",
    "clGetDeviceIDsFromD3D",
    "clCreateFromD3D",
    "clEnqueueAcquireD3D",
    "clEnqueueReleaseD3D",
    "clGetDeviceIDsFromDX9",
    "clCreateFromDX9",
    "clEnqueueAcquireDX9",
    "clEnqueueReleaseDX9",
    "clCreateSubDevicesEXT",  # cl_ext_device_fission: clCreateSubDevices with other constants
)

# Extension functions that are the core function under another name: served if the core function is there.
ALIASES = {
    "clCreateProgramWithILKHR": "clCreateProgramWithIL",
    "clCreateCommandQueueWithPropertiesKHR": "clCreateCommandQueueWithProperties",
    "clGetKernelSuggestedLocalWorkSizeKHR": "clGetKernelSuggestedLocalWorkSize",
    "clGetKernelSuggestedLocalWorkSizeINTEL": "clGetKernelSuggestedLocalWorkSize",
    "clCreateBufferWithPropertiesINTEL": "clCreateBufferWithProperties",
    "clGetKernelSubGroupInfoKHR": "clGetKernelSubGroupInfo",
    "clRetainDeviceEXT": "clRetainDevice",
    "clReleaseDeviceEXT": "clReleaseDevice",
}
