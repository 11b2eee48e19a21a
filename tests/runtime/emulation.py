"""AArch64 code of kernels, executed by qemu's user emulation: `CL_DRIVER_TEST_CPU=aarch64`.

Debian: qemu-user, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross. The tests of tests/runtime that run kernels
through kernel_harness.py then test the code that is made for NEON, and the AArch64 half of the code loader.
"""

from __future__ import annotations

import functools
import os
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import Target
from cl_driver.jit import emit
from cl_driver.records import replace
from tests.runtime.code_loader import compile_c

IS_NATIVE = os.uname().machine == "aarch64"
IS_EMULATED = os.environ.get("CL_DRIVER_TEST_CPU") == "aarch64" and not IS_NATIVE
IS_ARM = IS_NATIVE or IS_EMULATED
PAGE = 4096
TARGET = Target("aarch64-unknown-linux-gnu", ("fp-armv8", "neon"), 128)


def options_for(options: CodegenOptions) -> CodegenOptions:
    """The options with that CPU in place of theirs."""
    return replace(options, features=frozenset(TARGET.features), vector_bits=128, aarch64=True)


class Places:
    """Where arrays are in the memory of kernels: where they are, or at addresses of the emulator's.

    Pages of their own and none between them, so that what goes beyond an array by more than a page faults.
    """

    def __init__(self, first: int = 1 << 36):
        self.next = first
        self.regions: list[tuple[int, np.ndarray]] = []

    def of(self, array: np.ndarray) -> int:
        """The address of an array's first byte."""
        if not IS_EMULATED or not array.size:
            return array.ctypes.data
        for address, known in self.regions:
            if known is array:
                return address
        address = self.next + array.ctypes.data % PAGE
        self.next = (address + array.nbytes + 2 * PAGE - 1) // PAGE * PAGE
        self.regions.append((address, array))
        return address


class Kernel:
    """A kernel as a callable of (places, addresses of launch, arguments and thread, first and last group)."""

    def __init__(self, code, printer):
        self.symbol = code.symbol.encode()
        self.object = emit.compile_ir(code.text, TARGET, "short" if code.width > 1 else "O2", 2)
        self.printer = printer

    def __call__(self, places: Places, launch: int, block: int, thread: int, first: int, last: int) -> None:
        """Runs groups on copies of the memory, which gets what has become of them."""
        process = _runner()
        flat = [(address, array.reshape(-1).view(np.uint8)) for address, array in places.regions]
        message = [_sized(self.object), _sized(self.symbol), struct.pack("<Q", len(flat))]
        for address, region in flat:
            message += [struct.pack("<QQ", address, region.nbytes), region.tobytes()]
        message.append(struct.pack("<5Q", launch, block, thread, first, last))
        process.stdin.write(b"".join(message))
        process.stdin.flush()
        while size := _number(process):
            text = process.stdout.read(_number(process))
            self.printer(text, process.stdout.read(size - 1))
        if length := _number(process):
            raise RuntimeError(process.stdout.read(length).decode())
        for _, region in flat:
            data = process.stdout.read(region.nbytes)
            if region.flags.writeable:
                region[:] = np.frombuffer(data, np.uint8)


def _sized(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def _number(process) -> int:
    data = process.stdout.read(8)
    if len(data) < 8:
        _runner.cache_clear()
        raise RuntimeError(f"the emulated kernel ended with status {process.wait()}")
    return struct.unpack("<Q", data)[0]


@functools.cache
def _runner() -> subprocess.Popen:
    with tempfile.TemporaryDirectory() as folder:
        runner = Path(folder) / "kernel_runner"
        compile_c(runner, "-static", compiler="aarch64-linux-gnu-gcc", own="kernel_runner.c")
        # The static executable is read when the emulator starts: its first answer says that it has been.
        process = subprocess.Popen(["qemu-aarch64", runner], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(struct.pack("<QQQ5Q", 0, 0, 0, 0, 0, 0, 0, 0))
        process.stdin.flush()
        assert _number(process) == 0
        process.stdout.read(_number(process))
        return process
