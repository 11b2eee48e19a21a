"""Modules as clang makes them for chipStar, and kernels on memory that host and device share."""

from __future__ import annotations

import ctypes
import functools
import subprocess
from pathlib import Path

import numpy as np

from cl_driver.api.generated import enums as cl
from cl_driver.frontend.find_clang import find

from ..core.session import Local, Session, sizes
from ..core.test_svm import view

FOLDER = Path(__file__).parent
# As chipStar calls clang, but for its own headers and device library.
TO_LLVM = (
    "--offload=spirv64 -x hip -nogpulib -nogpuinc --cuda-device-only --no-gpu-bundle-output -fgpu-rdc "
    "-std=c++17 -fno-exceptions -Wall -Werror -emit-llvm -c -o -"
).split()
TO_SPIRV = "--target=spirv64 -Wno-override-module -x ir -c -o - -".split()
BUILD_OPTIONS = "-cl-kernel-arg-info -cl-std=CL3.0"


def _run(command: list[str], data: bytes) -> bytes:
    done = subprocess.run(command, input=data, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def to_spirv(llvm: bytes, level: str, extensions: str = "all") -> bytes:
    """SPIR-V of LLVM IR, text or bitcode."""
    return _run([find("").path, level, "-mllvm", f"-spirv-ext={extensions}", *TO_SPIRV], llvm)


@functools.lru_cache(maxsize=8)
def hip_module(name: str, level: str) -> bytes:
    """SPIR-V of one of the .hip files here."""
    return to_spirv(_run([find("").path, level, *TO_LLVM, str(FOLDER / name)], b""), level)


class Device(Session):
    """A session whose kernels get addresses of unified shared memory."""

    def __init__(self, opencl):
        super().__init__(opencl)
        self.allocate = opencl.extension(
            "clSharedMemAllocINTEL", ctypes.c_void_p, *[ctypes.c_void_p] * 3, ctypes.c_size_t,
            ctypes.c_uint32, ctypes.c_void_p,
        )  # fmt: skip
        self.free = opencl.extension("clMemFreeINTEL", ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        self.set_pointer = opencl.extension(
            "clSetKernelArgMemPointerINTEL", ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p
        )
        self.addresses: list[int] = []

    def close(self) -> None:
        self.finish()
        for address in self.addresses:
            assert self.free(self.context, address) == 0
        super().close()

    def array(self, data) -> np.ndarray:
        """A copy in shared memory."""
        data = np.asarray(data)
        status = ctypes.c_int32()
        address = self.allocate(self.context, self.device, None, data.nbytes, 0, ctypes.byref(status))
        assert address and status.value == cl.CL_SUCCESS
        self.addresses.append(address)
        made = view(address, data.dtype, data.size).reshape(data.shape)
        made[...] = data
        return made

    def zeros(self, shape, dtype=np.int32) -> np.ndarray:
        return self.array(np.zeros(shape, dtype))

    def load(self, il: bytes) -> int:
        """The program of a module."""
        made = self.made("clReleaseProgram", self.cl.make("clCreateProgramWithIL", self.context, il, len(il)))
        self.cl.build(made, BUILD_OPTIONS)
        return made

    def run(self, program: int, name: str, items, local, *arguments) -> None:
        """Launches a kernel that may reach all shared memory, and waits. Arrays are passed as addresses,
        bytes and numpy scalars by value."""
        kernel = self.kernel(program, name)
        indirect = ctypes.c_uint32(cl.CL_TRUE)
        flag = cl.CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL
        self.cl.ok("clSetKernelExecInfo", kernel, flag, 4, indirect)
        for index, value in enumerate(arguments):
            if isinstance(value, np.ndarray):
                assert self.set_pointer(kernel, index, value.ctypes.data) == cl.CL_SUCCESS
            elif isinstance(value, Local):
                self.cl.ok("clSetKernelArg", kernel, index, value.size, None)
            else:
                data = value if isinstance(value, bytes) else np.asarray(value).tobytes()
                self.cl.ok("clSetKernelArg", kernel, index, len(data), data)
        shape = sizes(items)
        where = (len(shape), None, shape, sizes(local), 0, None, None)
        self.cl.ok("clEnqueueNDRangeKernel", self.queue, kernel, *where)
        self.finish()
