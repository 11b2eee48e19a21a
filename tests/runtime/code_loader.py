"""The code loader (native_shim/src/loader) as a library of its own for tests, through ctypes."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIM = ROOT / "native_shim" / "src"
SOURCES = [  # tests have a printf of their own
    *(path for path in sorted((SHIM / "loader").glob("*.c")) if path.stem != "printf"),
    SHIM / "base" / "quirks.c",
    SHIM / "base" / "settings.c",
    SHIM / "base" / "stacks.c",
]
HERE = Path(__file__).resolve().parent / "jit" / "c"
FLAGS = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{SHIM}"]

KERNEL = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64
)


def compile_c(output: Path, *arguments: str, compiler: str = "gcc", own: str = "code_link.c") -> Path:
    """Runs a compiler over the loader's sources and one of the tests' own."""
    for name in ("quirks", "settings"):
        (output.parent / f"{name}_table.h").write_text(_table(name))
    command = [compiler, *FLAGS, f"-I{output.parent}", *map(str, SOURCES), str(HERE / own), *arguments]
    subprocess.run([*command, "-o", str(output)], check=True, timeout=120)
    return output


def _table(name: str) -> str:
    """What the build generates (native_shim/gen/settings.py and so on)."""
    path = ROOT / "native_shim" / "gen" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"cld_gen_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate()


@functools.cache
def library() -> ctypes.CDLL:
    """The loader, built once per test run."""
    folder = tempfile.TemporaryDirectory(prefix="cld-code-")
    lib = ctypes.CDLL(str(compile_c(Path(folder.name) / "libcode.so", "-shared", "-fPIC")))
    lib._folder = folder
    lib.cld_code_load.restype = ctypes.c_void_p
    lib.cld_code_load.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    lib.cld_code_symbol.restype = ctypes.c_void_p
    lib.cld_code_symbol.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.cld_code_set_terminated.restype = None
    lib.cld_code_set_terminated.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    lib.cld_code_unload.restype = None
    lib.cld_code_unload.argtypes = [ctypes.c_void_p]
    lib.link_object.restype = ctypes.c_size_t
    lib.link_object.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_uint64), ctypes.c_char_p, ctypes.c_size_t,
    ]  # fmt: skip
    lib.line_table.restype = ctypes.c_size_t
    lib.line_table.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t
    ]  # fmt: skip
    lib.find_line.restype = ctypes.c_uint32
    lib.find_line.argtypes = [
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t
    ]  # fmt: skip
    lib.relocate.argtypes = [
        ctypes.c_int, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64
    ]  # fmt: skip
    return lib


# What code that looks whether its context was terminated looks at.
TERMINATED = ctypes.c_uint32()


class LoadError(Exception):
    """The loader refused an object; the message is its reason."""


class Code:
    """A loaded object."""

    def __init__(self, data: bytes):
        reason = ctypes.create_string_buffer(200)
        self.handle = library().cld_code_load(data, len(data), reason, len(reason))
        if not self.handle:
            raise LoadError(reason.value.decode())
        library().cld_code_set_terminated(self.handle, ctypes.byref(TERMINATED))

    def address(self, name: str) -> int | None:
        return library().cld_code_symbol(self.handle, name.encode())

    def kernel(self, name: str = "kernel"):
        """A symbol as a function with the kernels' signature."""
        return KERNEL(self.address(name))

    def unload(self) -> None:
        library().cld_code_unload(self.handle)
        self.handle = None


def link(data: bytes, base: int, aarch64: bool = False) -> tuple[bytes, list[int]]:
    """The image of an object at an address, and where its read-only and writable parts start."""
    image = ctypes.create_string_buffer(1 << 20)
    starts = (ctypes.c_uint64 * 2)()
    reason = ctypes.create_string_buffer(200)
    size = library().link_object(
        aarch64, data, len(data), base, image, len(image), starts, reason, len(reason)
    )
    if not size:
        raise LoadError(reason.value.decode())
    return image.raw[:size], list(starts)


def line_of(data: bytes, address: int, base: int = 0, aarch64: bool = False) -> tuple[str, int] | None:
    """File and line of an address of an object that is loaded at base."""
    table, file = ctypes.create_string_buffer(1 << 20), ctypes.create_string_buffer(200)
    size = library().line_table(aarch64, data, len(data), base, table, len(table))
    line = library().find_line(table, size, address, file, len(file)) if size else 0
    return (file.value.decode(), line) if line else None


def relocate(place: bytes, type_: int, address: int, target: int, addend: int = 0, aarch64: bool = False):
    """The bytes after one relocation; None if the value does not fit; LoadError if the type is unknown."""
    patched = ctypes.create_string_buffer(place, len(place))
    result = library().relocate(aarch64, type_, patched, address, target, addend)
    if result < 0:
        raise LoadError(f"type {type_}")
    return patched.raw if result else None
