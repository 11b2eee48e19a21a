"""Kernel argument information: names, type names and qualifiers as the source has them; and vec_type_hint,
of which SPIR-V keeps no signedness.

clang's SPIR-V back end does not write them. LLVM IR's metadata of kernels has them, and what is preloaded
into clang tells it (native_shim/clang/kernels.c). Where that cannot be, clang is asked a second time, for
LLVM IR: with -cl-kernel-arg-info, and where a kernel has a vec_type_hint. The answer travels in the SPIR-V,
as one OpString per kernel: linking, caching and binaries keep it; spirv/reflect.py reads it.
"""

from __future__ import annotations

import struct

from ..late_patterns import pattern
from . import clang as clang_
from . import find_clang
from .effort import Allowance
from .includes import FIELD
from .options import BuildOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Argument: TypeAlias = tuple[int, int, str, int, str]
    Information: TypeAlias = dict[str, tuple[list[Argument], str]]

PREFIX = "cl_driver.kernel_arguments."  # spirv/reflect.py has the same

# CL_KERNEL_ARG_ADDRESS_*, by SPIR's numbers of address spaces.
_ADDRESSES = {0: 0x119E, 1: 0x119B, 2: 0x119D, 3: 0x119C, 4: 0x119B}
_ACCESSES = {"read_only": 0x11A0, "write_only": 0x11A1, "read_write": 0x11A2, "none": 0x11A3}
_QUALIFIERS = {"const": 1, "restrict": 2, "volatile": 4, "pipe": 8}

_KERNEL = pattern(r'(?m)^define [^@]*\bspir_kernel\b[^@]*@"?([^"(]+)"?\(.*\)([^)]*![^)]*)\{$')
_NODE = pattern(r"(?m)^!(\d+) = (?:distinct )?!\{(.*)\}$")
_ATTACHED = pattern(r"!(\w+) !(\d+)")
_ITEM = pattern(r'!"((?:[^"\\]|\\[0-9A-Fa-f]{2})*)"|i32 (-?\d+)')
_ESCAPED = pattern(r"\\([0-9A-Fa-f]{2})")
_HINT = pattern(r"(.*) \w+, i32 (\d)")
_HINTED = pattern(r"(?:<(\d+) x )?(\w+)>?\Z")
_FIELDS = ("addr_space", "access_qual", "type", "type_qual", "name")

OP_STRING, OP_EXECUTION_MODE, OP_EXECUTION_MODE_ID = 7, 16, 331
_BEFORE_STRINGS = frozenset({17, 10, 11, 14, 15, OP_EXECUTION_MODE, OP_EXECUTION_MODE_ID})


def ask(
    source: bytes,
    options: BuildOptions,
    headers: dict[str, bytes] | None = None,
    language: clang_.Language | None = None,
    folder: str | None = None,
    clang: str = "",
    allowance: Allowance | None = None,
) -> Information:
    """{kernel: ([(address, access, type name, type qualifiers, name) of each argument], vector type hint)},
    in the API's numbers (5.9.4, clGetKernelArgInfo). Empty if the source does not compile.

    The arguments are those of opencl_c.compile.
    """
    language = language or clang_.device_language()
    headers = headers or {}
    try:
        found = find_clang.find(clang)
        arguments = [
            *clang_.base_arguments(found),
            *clang_.device_arguments(language, options),
            *options.replace(opt_disable=True).clang_arguments(language.fma),
            *(
                "-cl-kernel-arg-info",
                "-w",
                "-Xclang",
                "-disable-llvm-passes",
                "-S",
                "-emit-llvm",
                "-o",
                "-",
                "-",
            ),
        ]
        text = clang_.marked_source(source, options, language)
        done = clang_.run(found, arguments, text, headers, folder, allowance)
    except (find_clang.ClangError, OSError, ValueError):
        return {}
    return parse(done.output.decode("utf-8", "replace")) if done.status == 0 else {}


def of_fields(fields: list[str]) -> Information | None:
    """The same of what native_shim/clang/kernels.c tells; None if that is not all."""
    out: Information = {}
    given = iter(fields)
    try:
        for name in given:
            count = int(next(given))
            out[name] = (
                [_row(*(next(given) for _ in _FIELDS)) for _ in range(count)],
                _hint_of(next(given), next(given)),
            )
    except (StopIteration, RuntimeError, TypeError, ValueError):
        return None
    return out


def _row(address: str, access: str, type_: str, qualifiers: str, name: str) -> Argument:
    bits = sum(_QUALIFIERS.get(word, 0) for word in qualifiers.split())
    return _ADDRESSES.get(int(address), 0x119E), _ACCESSES.get(access, 0x11A3), type_, bits, name


def parse(text: str) -> Information:
    """The metadata of the kernels in the text of LLVM IR; see ask()."""
    nodes: dict[str, str] = dict(_NODE.findall(text))
    out: Information = {}
    for name, attached in _KERNEL.findall(text):
        of = {kind: nodes.get(number, "") for kind, number in _ATTACHED.findall(attached)}
        addresses, *columns = (_ITEM.findall(of.get(f"kernel_arg_{field}", "")) for field in _FIELDS)
        if any(len(column) != len(addresses) for column in columns):
            continue
        texts = [[_unescape(string) for string, _ in column] for column in columns]
        rows = [
            _row(number or "0", *of_argument)
            for (_, number), *of_argument in zip(addresses, *texts, strict=True)
        ]
        out[name] = rows, _hint(of.get("vec_type_hint", ""))
    return out


_SCALARS = {"i8": "char", "i16": "short", "i32": "int", "i64": "long"}


def _hint(node: str) -> str:
    """The type of vec_type_hint, from `<4 x i32> poison, i32 1`: a value, and whether it is signed."""
    match = _HINT.match(node)
    return _hint_of(*match.groups()) if match else ""


def _hint_of(type_: str, signed: str) -> str:
    """The same of LLVM's name of the type, "" for none."""
    match = _HINTED.match(type_) if type_ else None
    if not match:
        return ""
    count, scalar = match.groups()
    name = _SCALARS.get(scalar, scalar)
    return ("u" if scalar in _SCALARS and signed == "0" else "") + name + (count or "")


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)), text)


def embed(spirv: bytes, information: Information, with_arguments: bool) -> bytes:
    """The module (of little-endian words) with the information in it; without that of arguments if the
    program was not built with -cl-kernel-arg-info."""
    position = 20
    while position < len(spirv):
        (word,) = struct.unpack_from("<I", spirv, position)
        if word & 0xFFFF not in _BEFORE_STRINGS or word < 0x10000:
            break
        position += 4 * (word >> 16)
    (bound,) = struct.unpack_from("<I", spirv, 12)
    strings = b""
    for name, (rows, hint) in information.items():
        shown = [str(field) for row in rows for field in row] if with_arguments else []
        text = (PREFIX + FIELD.join([name, hint, "01"[with_arguments], *shown])).encode() + b"\0"
        text += b"\0" * (-len(text) % 4)
        size = 2 + len(text) // 4
        if size < 0x10000:
            strings += struct.pack("<II", size << 16 | OP_STRING, bound) + text
            bound += 1
    return spirv[:12] + struct.pack("<I", bound) + spirv[16:position] + strings + spirv[position:]
