"""Runs one kernel in this process, without the data plane: SPIR-V ► plan ► LLVM IR ► object ► ctypes.

Objects are made by the LLVM that the driver would use (CL_DRIVER_LLVM), and linked by llvmlite's.
Builds the structures of native_shim/src/abi/kernel_abi.h by hand, with numpy arrays as global memory.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import os
import struct
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from cl_driver import native, settings
from cl_driver.builtins import build
from cl_driver.builtins.library import Library, suitable
from cl_driver.codegen.kernel.emit import emit
from cl_driver.codegen.layout import abi
from cl_driver.codegen.layout.arguments import LOCAL, STRUCT, VALUE
from cl_driver.codegen.layout.program_globals import layout_globals
from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.compiler.pipeline import usual_passes
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import Target, make_target
from cl_driver.frontend import opencl_c
from cl_driver.frontend.options import parse
from cl_driver.jit import emit as emit_object
from cl_driver.jit import identity
from cl_driver.passes.ir.plan import PlanOptions
from cl_driver.passes.pipeline import plan, version_by_guards
from cl_driver.passes.program.lower import lower_extensions
from cl_driver.spirv.link import link
from cl_driver.spirv.reading.reader import read
from cl_driver.spirv.types import TypeTable
from tests.cpus import SKYLAKE
from tests.runtime import code_loader, emulation
from tests.runtime.emulation import IS_ARM, IS_EMULATED, IS_NATIVE, Places

_counter = itertools.count()
ENTRY = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64
)
PRINTF = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint32)


@functools.lru_cache(maxsize=64)  # the same source for several widths
def compile_c(source: str, options: str = "-cl-std=CL3.0") -> bytes:
    """OpenCL C to SPIR-V as the driver does it."""
    result = opencl_c.compile(source.encode(), parse(options))
    if result.spirv is None:
        raise RuntimeError(result.log)
    return result.spirv


def assemble(text: str, version: str = "1.4") -> bytes:
    """SPIR-V assembly to a module."""
    done = subprocess.run(
        ["spirv-as", "--target-env", f"spv{version}", "-o", "-", "-"],
        input=text.encode(),
        capture_output=True,
        timeout=60,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    return done.stdout


@functools.cache
def builtin_library() -> Library:
    """The driver's builtin library, compiled if its sources changed."""
    return Library(build.update(native.directory() / "builtins.spv").read_bytes())


# Work-items per vector, and vectors executed together ("4x", "2y"), for a whole run of the tests.
WIDTH = int(os.environ.get("CL_DRIVER_TEST_WIDTH") or 1)
PARTS = os.environ.get("CL_DRIVER_TEST_PARTS", "1x")


@functools.cache
def default_options() -> CodegenOptions:
    """Those of a whole run of the tests: code for CL_DRIVER_TEST_CPU, the same whichever CPU is there."""
    level = os.environ.get("CL_DRIVER_TEST_CPU", "")
    if not level or IS_EMULATED:
        return CodegenOptions()
    made_for = make_target(SKYLAKE, level)
    return CodegenOptions(frozenset(made_for.features), made_for.vector_bits)


class Local:
    """A local-memory argument of so many bytes."""

    def __init__(self, size: int):
        self.size = size


class Program:
    """A module whose kernels can be run."""

    def __init__(
        self, data: bytes, options: CodegenOptions | None = None, width: int = WIDTH, inner=False,
        **plan_options,
    ):  # fmt: skip
        """inner: with code for vectors away from edges; plan_options: of PlanOptions, besides the width."""
        self.inner = inner
        self.module = link([read(data, None, TypeTable(builtin_library().types))], lambda name: True)
        self.options = options or default_options()
        lower_extensions(self.module, is_relaxed=bool(self.options.fast_math_flags))
        if IS_ARM:
            self.options = emulation.options_for(self.options)
        self.width = width
        if width > 1 and not plan_options.get("sub_groups"):
            plan_options = {"parts": int(PARTS[:-1]), "part_axis": "xy".index(PARTS[-1])} | plan_options
        self.plan_options = PlanOptions(
            width=width, native_half=self.options.has_native_half, verify=True, **plan_options
        )
        self.globals_layout = layout_globals(self.module)
        memory = self.globals_layout
        self.globals = aligned(max(memory.size, 1))
        image = memory.image
        self.globals[: len(image)] = np.frombuffer(image, np.uint8)
        for offset, target in memory.fixups:
            self.globals[offset : offset + 8] = np.frombuffer(
                struct.pack("<Q", Places().of(self.globals) + target), np.uint8
            )
        self.printed: list[tuple[str, bytes]] = []
        self._kernels: dict = {}

    def code(self, name: str):
        """The KernelCode of a kernel."""
        entry = next(p for p in self.module.entry_points if p.name == name)
        functions = suitable(builtin_library(), self.options.features)
        planned = plan(self.module, entry, self.plan_options, functions)
        if self.inner:
            version_by_guards(planned)
        return emit(planned, self.options, builtin_library(), self.globals_layout)

    def kernel(self, name: str):
        """(KernelCode, callable) of a kernel. The test is skipped where this CPU cannot execute the code."""
        missing = set() if IS_ARM else self.options.features - set(host_cpu().features)
        if missing:
            pytest.skip(f"this CPU has no {', '.join(sorted(missing))}")
        if name not in self._kernels:
            code = self.code(name)
            if IS_EMULATED:
                self._kernels[name] = code, emulation.Kernel(code, self._printed)
            else:
                self._kernels[name] = (code, *load(code, self.options, self._print))
        return self._kernels[name][:2]

    def _print(self, _buffer, text, args, size):
        self._printed(text, ctypes.string_at(args, size))

    def _printed(self, text: bytes, args: bytes):
        self.printed.append((text.decode("latin-1"), args))

    def run(
        self,
        name: str,
        global_size,
        local_size,
        *arguments,
        offset=(0, 0, 0),
        split: int = 1,
        local_memory: int = 1 << 16,
        stream_bytes: int = 0,
        ahead_kib: int = 0,
        counts: np.ndarray | None = None,
        combines: bool = False,
    ):
        """Runs an NDRange; numpy arrays are buffers, Local local memory, bytes structures, others scalars.

        counts: what the thread has in place of the counted argument (codegen/atomic/privatised_histogram.py);
        combines: it is a table of sums.
        """
        code, entry = self.kernel(name)
        places = Places()
        places.of(self.globals)
        sizes, locals_, offsets = _three(global_size, 1), _three(local_size, 1), _three(offset, 0)
        groups = [-(-g // w) for g, w in zip(sizes, locals_, strict=True)]
        launch = struct.pack(
            "<HHI12QQQ",
            _dimensions(global_size),
            ahead_kib,
            stream_bytes,
            *sizes,
            *offsets,
            *locals_,
            *groups,
            places.of(self.globals),
            0x1234,
        )
        assert len(launch) == abi.LAUNCH_SIZE
        block = np.zeros(max(code.block_size, 16) + 128, np.uint8)
        block = block[-block.ctypes.data % 128 :]
        used = -(-code.local_static // 128) * 128
        for where, argument in zip(code.block, arguments, strict=True):
            if where.kind == LOCAL:
                data = struct.pack("<Q", used)
                used += -(-argument.size // 128) * 128
            elif isinstance(argument, np.ndarray) and where.kind not in (VALUE, STRUCT):
                data = struct.pack("<Q", places.of(argument))
            elif argument is None:
                data = struct.pack("<Q", 0)
            else:
                data = argument if isinstance(argument, bytes) else np.asarray(argument).tobytes()
                assert len(data) == where.size, (len(data), where)
            block[where.offset : where.offset + len(data)] = np.frombuffer(data, np.uint8)
        memory = aligned(max(used, 1) + 512)
        memory[:] = 0xA5
        items = int(np.prod(locals_))
        scratch_size = code.scratch_fixed + code.scratch_per_item * items
        scratch = aligned(scratch_size + 64)
        scratch[:] = 0xB6
        counted = (0, 0, 0)
        if counts is not None:
            counted = places.of(counts), 0 if combines else code.counted, code.counted if combines else 0
        thread = struct.pack("<7Q", places.of(memory), places.of(scratch), used, *counted, 0)
        assert len(thread) == abi.THREAD_SIZE
        thread = np.frombuffer(thread, np.uint8)
        launch_bytes = np.frombuffer(launch, np.uint8)
        if IS_EMULATED:
            entry = functools.partial(entry, places)
        total = int(np.prod(groups))
        step = -(-total // split)
        for first in range(0, total, step):
            entry(
                places.of(launch_bytes),
                places.of(block),
                places.of(thread),
                first,
                min(first + step, total),
            )
        assert (scratch[scratch_size:] == 0xB6).all(), "the kernel wrote past its scratch memory"
        assert (memory[max(used, 1) :] == 0xA5).all(), "the kernel wrote past its local memory"


def _three(value, fill) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values + [fill] * (3 - len(values))


def _dimensions(value) -> int:
    return 1 if isinstance(value, int) else len(value)


def aligned(size: int) -> np.ndarray:
    """Bytes that begin at a multiple of 128."""
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 128
    return memory[start : start + size]


def target(options: CodegenOptions) -> Target:
    """A target with the features of the options, as far as this CPU has them."""
    if options.aarch64:
        return Target(emulation.TARGET.triple, tuple(sorted(options.features)), options.vector_bits)
    features = tuple(sorted(options.features | {"sse4.2", "cx16", "popcnt"}))
    return Target("x86_64-unknown-linux-gnu", features, options.vector_bits)


@functools.cache
def objects() -> tuple[Path, bytes]:
    """(folder of the objects that earlier runs made, what these depend on besides text, target and passes).

    LLVM takes more than half of the time of these tests, and makes the same object of the same text.
    """
    folder = Path(__file__).resolve().parents[2] / "build" / "test" / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(Path(emit_object.__file__).parent.glob("*.py"))
    llvm_files = identity.tools("", settings.text("CL_DRIVER_LLVM"))
    version = (str(emit_object.choice()), llvm_files, [p.read_bytes() for p in sources])
    return folder, repr(version).encode()


def object_of(code, options: CodegenOptions) -> bytes:
    """The object of a kernel's LLVM text, by the LLVM and the passes that the driver uses."""
    folder, version = objects()
    passes = usual_passes(code)
    made_for = target(options)
    key = repr((code.text, made_for.key, passes)).encode()
    path = folder / hashlib.sha256(version + key).hexdigest()
    if path.exists():
        return path.read_bytes()
    data = emit_object.compile_ir(code.text, made_for, passes)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(data)
    fresh.replace(path)
    return data


@functools.cache
def _jit_machine():
    """The target machine of the linker, which makes no code."""
    emit_object.lite()
    found = llvm.Target.from_triple(emulation.TARGET.triple if IS_NATIVE else "x86_64-unknown-linux-gnu")
    return found.create_target_machine(reloc="pic", codemodel="small")


def load(code, options: CodegenOptions, printer):
    """The entry point as a callable, with what keeps it alive."""
    data = object_of(code, options)
    if options.terminable:
        loaded = code_loader.Code(data)
        return ENTRY(loaded.address(code.symbol)), loaded
    jit = llvm.create_lljit_compiler(_jit_machine(), use_jit_link=True, suppress_errors=False)
    callback = PRINTF(lambda *given: printer(*given) or 0)
    builder = llvm.JITLibraryBuilder().add_object_img(data).export_symbol(code.symbol)
    builder.import_symbol("cld_printf", ctypes.cast(callback, ctypes.c_void_p).value)
    libc = ctypes.CDLL(None)
    builder.import_symbol("cld_yield", ctypes.cast(libc.sched_yield, ctypes.c_void_p).value)
    for name in ("memcpy", "memmove", "memset"):
        builder.import_symbol(name, ctypes.cast(getattr(libc, name), ctypes.c_void_p).value)
    if code.takes_turns:
        for name in ("cld_sub_groups_run", "cld_sub_group_yield", "cld_sub_group_join", "cld_sub_group_meet"):
            function = getattr(code_loader.library(), name)
            builder.import_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    tracker = builder.link(jit, f"kernel{next(_counter)}")
    return ENTRY(tracker[code.symbol]), (jit, tracker, callback)
