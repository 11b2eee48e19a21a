"""Says as JSON which platform and device an environment leads to: the first platform's default device.

python -I -S device.py, with the environment of the programs that shall run on it. Run as a process of its
own, so that no driver is loaded into the runner. Features are what sub-tests are skipped for the lack of.
"""

import ctypes
import json

PLATFORM_VERSION, PLATFORM_NAME = 0x0901, 0x0902
DEVICE_TYPE_DEFAULT = 1
STRINGS = {"device": 0x102B, "driver version": 0x102D, "version": 0x102F, "extensions": 0x1030}
NUMBERS = {
    "images": 0x1016,
    "compute units": 0x1002,
    "SVM capabilities": 0x1053,
    "pipes": 0x1071,
    "device enqueue": 0x1070,
    "work-group functions": 0x1068,
    "generic address space": 0x1069,
    "independent forward progress": 0x105D,
}


def asked(function, handle, parameter: int) -> bytes:
    """An information query's answer; empty if the query is refused."""
    size = ctypes.c_size_t()
    if function(handle, parameter, 0, None, ctypes.byref(size)):
        return b""
    value = ctypes.create_string_buffer(size.value)
    return b"" if function(handle, parameter, size, value, None) else value.raw


def main() -> None:
    cl = ctypes.CDLL("libOpenCL.so.1")
    platform, device = ctypes.c_void_p(), ctypes.c_void_p()
    if cl.clGetPlatformIDs(1, ctypes.byref(platform), None):
        raise SystemExit("no OpenCL platform")
    if cl.clGetDeviceIDs(platform, ctypes.c_uint64(DEVICE_TYPE_DEFAULT), 1, ctypes.byref(device), None):
        raise SystemExit("the first OpenCL platform has no device")

    def text(function, handle, parameter: int) -> str:
        return asked(function, handle, parameter).rstrip(b"\0").decode(errors="replace").strip()

    told = {
        "platform": text(cl.clGetPlatformInfo, platform, PLATFORM_NAME),
        "platform version": text(cl.clGetPlatformInfo, platform, PLATFORM_VERSION),
        **{name: text(cl.clGetDeviceInfo, device, number) for name, number in STRINGS.items()},
        **{
            name: int.from_bytes(asked(cl.clGetDeviceInfo, device, number), "little")
            for name, number in NUMBERS.items()
        },
    }
    print(json.dumps(told))


main()
