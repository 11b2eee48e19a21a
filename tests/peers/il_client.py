"""Runs modules of il.py on the platform that the loader finds first: il_client.py FOLDER NAME [first].

Reads FOLDER/jobs.json, a list of [number, work-items, local size]; for each, builds FOLDER/number.spv, runs
its kernel k(out, in) and writes FOLDER/number.NAME: `out` as it is then, or the error as text in
number.NAME.error. Prints each number before it starts, so that a crash costs one module.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

SUCCESS, READ_WRITE_COPY, CPU, BUILD_LOG = 0, 1 | 32, 0xFFFFFFFF, 0x1183


class Failed(Exception):
    """A call that failed, or a program that did not build."""


class Platform:
    """One device with a context and a queue."""

    def __init__(self):
        self.cl = ctypes.CDLL("libOpenCL.so.1")
        for name in (
            "CreateContext",
            "CreateCommandQueue",
            "CreateProgramWithIL",
            "CreateKernel",
            "CreateBuffer",
        ):
            getattr(self.cl, f"cl{name}").restype = ctypes.c_void_p
        platform, self.device = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("GetPlatformIDs", 1, ctypes.byref(platform), None)
        self.call("GetDeviceIDs", platform, ctypes.c_uint64(CPU), 1, ctypes.byref(self.device), None)
        self.context = self.make("CreateContext", None, 1, ctypes.byref(self.device), None, None)
        self.queue = self.make("CreateCommandQueue", self.context, self.device, ctypes.c_uint64(0))

    def call(self, name: str, *arguments) -> None:
        status = getattr(self.cl, f"cl{name}")(*arguments)
        if status != SUCCESS:
            raise Failed(f"cl{name}: {status}")

    def make(self, name: str, *arguments) -> ctypes.c_void_p:
        status = ctypes.c_int32()
        made = getattr(self.cl, f"cl{name}")(*arguments, ctypes.byref(status))
        if status.value != SUCCESS:
            raise Failed(f"cl{name}: {status.value}")
        return ctypes.c_void_p(made)

    def log(self, program) -> str:
        text = ctypes.create_string_buffer(1 << 16)
        arguments = (BUILD_LOG, ctypes.c_size_t(len(text)), text, None)
        self.cl.clGetProgramBuildInfo(program, self.device, *arguments)
        return text.value.decode(errors="replace")

    def run(self, spirv: bytes, given: bytes, out: bytearray, items: int, local: int) -> None:
        """Builds and runs one module; `out` is changed in place."""
        program = self.make("CreateProgramWithIL", self.context, spirv, ctypes.c_size_t(len(spirv)))
        if self.cl.clBuildProgram(program, 1, ctypes.byref(self.device), None, None, None) != SUCCESS:
            raise Failed(f"build: {self.log(program)}")
        kernel = self.make("CreateKernel", program, b"k")
        target = (ctypes.c_char * len(out)).from_buffer(out)
        flags = ctypes.c_uint64(READ_WRITE_COPY)
        buffers = [
            self.make("CreateBuffer", self.context, flags, ctypes.c_size_t(len(data)), data)
            for data in (target, given)
        ]
        for index, buffer in enumerate(buffers):
            self.call("SetKernelArg", kernel, index, ctypes.c_size_t(8), ctypes.byref(buffer))
        sizes = [ctypes.byref(ctypes.c_size_t(number)) for number in (items, local)]
        self.call("EnqueueNDRangeKernel", self.queue, kernel, 1, None, *sizes, 0, None, None)
        whole = (ctypes.c_size_t(0), ctypes.c_size_t(len(out)))
        self.call("EnqueueReadBuffer", self.queue, buffers[0], 1, *whole, target, 0, None, None)
        for buffer in buffers:
            self.call("ReleaseMemObject", buffer)
        self.call("ReleaseKernel", kernel)
        self.call("ReleaseProgram", program)


def main(folder: Path, name: str, first: int = 0) -> None:
    platform = Platform()
    for number, items, local in json.loads((folder / "jobs.json").read_text()):
        if number < first:
            continue
        print(number, flush=True)
        out = bytearray((folder / f"{number}.before").read_bytes())
        spirv, given = ((folder / f"{number}.{kind}").read_bytes() for kind in ("spv", "in"))
        try:
            platform.run(spirv, given, out, items, local)
            (folder / f"{number}.{name}").write_bytes(out)
        except Failed as error:
            (folder / f"{number}.{name}.error").write_text(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
