"""Rows of the door: entry points whose C side is nothing but checking handles and passing values on.

A row names the API function; what kind each parameter is, in the order of the C prototype, stands beside it.
gen/stubs.py writes the C function. Everything with a rule of its own (arrays, property lists, callbacks,
answers that contain handles) is written by hand in src/api_*.c instead.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Handle:
    """A handle: checked to be live and of that kind; its peer's key goes through the door."""

    kind: str  # CLD_CONTEXT ...
    invalid: str  # the error code of a handle that is not
    nullable: bool = False  # NULL goes through as None


@dataclass(frozen=True)
class Int:
    """An integer or enum, as it is."""


@dataclass(frozen=True)
class String:
    """A C string; NULL goes through as None."""


@dataclass(frozen=True)
class Info:
    """The three parameters param_value_size, param_value, param_value_size_ret: Python answers with bytes."""


@dataclass(frozen=True)
class Row:
    """An entry point that returns cl_int. Python's function gets the parameters before the first Info."""

    name: str
    parameters: tuple


ROWS: tuple[Row, ...] = ()

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
    "clGetKernelSubGroupInfoKHR": "clGetKernelSubGroupInfo",
    "clRetainDeviceEXT": "clRetainDevice",
    "clReleaseDeviceEXT": "clReleaseDevice",
}
