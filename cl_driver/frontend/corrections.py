"""Bodies of the built-in functions that clang's SPIR-V back end (20 to 22) makes wrong code of: libraries in
LLVM's bitcode, which clang links into programs before it optimises. Of what a program does not call, or
defines itself, nothing comes with it; its text knows nothing of all this. But each function of a library
costs time in every build that has it; hence there are several (Part).

Conversions: convert_T(x) of an integer to an integer becomes an instruction that is chosen by the signedness
of T: convert_int(char) extends with zeros, convert_uchar_sat(ushort) treats its operand as signed. The bodies
are casts and clamps. Those that come out right have none: what makes integers smaller, or extends them as T
is not. Where both have one size, SPIR-V has no such instruction.
(convert_double and convert_half, which it leaves as calls, get bodies from spirv/conversion_functions.py.)

vloada_half3: it makes the instruction of vload_half3, which steps by 3 halves instead of 4.

async_work_group_copy: a local array that only built-in functions use shrinks to one element. Offsets of 0,
which the optimiser cannot know, are such a use.

atomic_fetch_add and others of C11 without an order: they come out relaxed, at the scope of the work-group.
atomic_load_explicit: its order and scope become the instruction's scope and semantics as they are; the body
asks for the strongest, as that back end does for every atomic_store_explicit.

Images: it forgets levels of detail and gradients of read_image, and takes the level of write_image for the
colour. The bodies call functions of other names, which passes/lower/images.py knows. To what
get_image_channel_data_type returns CLK_SNORM_INT8 is added: the back end gives SPIR-V's number, which counts
from 0.

"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import product

from .. import trust
from ..fast_typing import Enum
from ..jit import clang_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

SIZES = ("", "2", "3", "4", "8", "16")
ROUNDINGS = ("_rte", "_rtz", "_rtp", "_rtn")
# Widths, and whether they are signed.
INTEGERS = {
    "char": (8, True),
    "uchar": (8, False),
    "short": (16, True),
    "ushort": (16, False),
    "int": (32, True),
    "uint": (32, False),
    "long": (64, True),
    "ulong": (64, False),
}
FLOATS = ("half", "float", "double")

# Image type: its coordinates as int and float vectors, and the gradients'.
_COORDINATES = {
    "image1d_t": ("", ""),
    "image1d_array_t": ("2", ""),
    "image2d_t": ("2", "2"),
    "image2d_array_t": ("4", "2"),
    "image3d_t": ("4", "4"),
}
_DEPTH = {"image2d_depth_t": ("2", "2"), "image2d_array_depth_t": ("4", "2")}

_PREFIX, _SUFFIX = "corrections-", ".bc"  # of files with libraries, around version and part

_SPACES = ("__generic", "__global", "__local")

# The names of functions in object code, and how to call the one that the back end makes of it: a suffix that
# it, but no linker, sees through.
_SEEN_THROUGH = ".cl_driver"


class Part(Enum):
    """A library; the value is in its file's name."""

    ALWAYS = ""
    ATOMICS = "-atomics"  # of C11, which clang declares from OpenCL C 2.0 on
    SELDOM = "-seldom"  # asks_for_seldom() tells by a module that was made without it


_OPTIONS = (
    "-target", "spirv64", "-x", "cl", "-cl-std=CL3.0", "-O1", "-w",
    "-Xclang", "-cl-ext=+all", "-fno-vectorize", "-fno-slp-vectorize", "-S", "-emit-llvm", "-o", "-", "-",
)  # fmt: skip
_AS_BITCODE = "-target spirv64 -x ir -w -Xclang -disable-llvm-passes -c -emit-llvm -o - -".split()

TIME_LIMIT = 300  # seconds, of one run of clang


class CorrectionsError(Exception):
    """There are no corrections for this clang; the message says why."""


def path(clang: str, major: int, part: Part = Part.ALWAYS) -> str:
    """The library for that clang: one that was built for its version or an older one, which any clang reads,
    or else one that this process makes and keeps. Raises CorrectionsError."""
    if (clang, part) in _settled:
        return _settled[clang, part]
    folder = _folder()
    names = [name for name in _names(folder) if name.startswith(_PREFIX) and name.endswith(_SUFFIX)]
    versions = [name.removeprefix(_PREFIX).removesuffix(_SUFFIX) for name in names]
    built = [int(version) for version in versions if version.isdecimal()]
    fitting = [version for version in built if version <= major]
    if fitting:
        return os.path.join(folder, _name(max(fitting), part))
    if (clang, part) not in _made:
        file = os.memfd_create("corrections")
        _made[clang, part] = file
        with open(file, "wb", closefd=False) as out:
            out.write(bitcode(clang, part))
    return f"/proc/{os.getpid()}/fd/{_made[clang, part]}"


def settle(clang: str, major: int) -> list[str]:
    """The libraries for that clang, which are not looked for again: this process will not find them."""
    _settled.update({(clang, part): path(clang, major, part) for part in Part})
    return [_settled[clang, part] for part in Part]


_made: dict[tuple[str, Part], int] = {}
_settled: dict[tuple[str, Part], str] = {}


def _folder() -> str:
    from .. import native

    return native.folder()


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _name(major: int, part: Part) -> str:
    return f"{_PREFIX}{major}{part.value}{_SUFFIX}"


def update(folder: Path, clang: str, major: int) -> None:
    """Makes all libraries in a folder, unless they are newer than this file. The package's build does."""
    for part in reversed(Part):  # the one that path() looks for comes last
        target = folder / _name(major, part)
        if not target.exists() or target.stat().st_mtime_ns < os.stat(__file__).st_mtime_ns:
            new = target.with_suffix(".new")
            new.write_bytes(bitcode(clang, part))
            new.replace(target)


def bitcode(clang: str, part: Part) -> bytes:
    """The library, as that clang makes it. Raises CorrectionsError."""
    text = _run([*clang_paths.command(clang), *_OPTIONS], source(part).encode()).decode()
    # Functions that a program need not have and that may be in every module; no version and no types' names.
    import re

    text = re.sub(
        r"^define (?:dso_local )?spir_func", "define linkonce_odr spir_func", text, flags=re.MULTILINE
    )
    text = re.sub(r"^!.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r", ![\w.]+ !\d+", "", text)
    return _run([*clang_paths.command(clang), *_AS_BITCODE], text.encode())


def _run(command: list[str], given: bytes) -> bytes:
    import subprocess

    try:
        done = subprocess.run(
            command, input=given, capture_output=True, timeout=TIME_LIMIT, check=False, env=trust.FIXED
        )
    except (OSError, subprocess.SubprocessError) as why:
        raise CorrectionsError(f"{command[0]} made no corrections of its back end: {why}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace")
        raise CorrectionsError(f"{command[0]} made no corrections of its back end: {said[:1000]}")
    return done.stdout


def asks_for_seldom(spirv: bytes) -> bool:
    """Whether a module that was made without SELDOM needs it: it has events, or conversions of integers with
    a rounding mode: instructions that an FPRoundingMode decorates, which is for floating point."""
    words = memoryview(spirv).cast("I")
    decorate, rounding_mode, event, function = 71, 39, 34, 54
    conversions = (113, 114, 118, 119)  # OpUConvert, OpSConvert, OpSatConvertSToU, OpSatConvertUToS
    decorated: set[int] = set()
    position = 5
    while position < len(words):
        length, opcode = words[position] >> 16, words[position] & 0xFFFF
        if not length:
            return False  # malformed: the reader says so
        if opcode == event:
            return True
        if opcode == decorate and words[position + 2] == rounding_mode:
            decorated.add(words[position + 1])
        elif opcode == function and not decorated:
            return False
        elif opcode in conversions and words[position + 2] in decorated:
            return True
        position += length
    return False


_MADE_BY: dict[Part, Callable[[], Iterable[str]]] = {
    Part.ALWAYS: lambda: (*_conversions(), *_vectors(), *_images()),
    Part.ATOMICS: lambda: _atomics(),
    Part.SELDOM: lambda: (*_rounded_conversions(), *_copies()),
}


def source(part: Part) -> str:
    """The library in OpenCL C."""
    return "".join(line + "\n" for line in (*_head(), *_MADE_BY[part]()))


def _head() -> list[str]:
    return [
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable",
        "#define CLD_FUNCTION __attribute__((overloadable, always_inline))",
        "#define CLD_DECLARED __attribute__((overloadable))",
    ]


def _cast(value: str, type_: str, size: str) -> str:
    return f"__builtin_convertvector({value}, {type_}{size})" if size else f"({type_})({value})"


def _conversion(name: str, to: str, from_: str, size: str, value: str) -> str:
    cast = _cast(value, to, size)
    return f"CLD_FUNCTION __attribute__((const)) {to}{size} {name}({from_}{size} x) {{ return {cast}; }}"


def _conversions() -> list[str]:
    """Those that do not come out right by themselves."""
    out = []
    for size, to, from_ in _pairs():
        (width, signed), (from_width, from_signed) = INTEGERS[to], INTEGERS[from_]
        name = f"convert_{to}{size}"
        if width == from_width or (width > from_width and signed == from_signed):
            out.append(_conversion(name, to, from_, size, "x"))
        if signed == from_signed:
            out.append(_conversion(f"{name}_sat", to, from_, size, _saturated(to, from_)))
    return out


def _rounded_conversions() -> list[str]:
    """All of them: what the back end makes of one says that it rounds, which integers do not."""
    out = []
    for size, to, from_ in _pairs():
        for mode in ROUNDINGS:
            name = f"convert_{to}{size}"
            out.append(_conversion(name + mode, to, from_, size, "x"))
            if INTEGERS[to][1] == INTEGERS[from_][1]:
                out.append(_conversion(f"{name}_sat{mode}", to, from_, size, _saturated(to, from_)))
    return out


def _pairs() -> Iterable[tuple[str, str, str]]:
    """Sizes, and the types that are converted to and from."""
    return product(SIZES, INTEGERS, INTEGERS)


def _saturated(to: str, from_: str) -> str:
    width, signed = INTEGERS[to]
    return _clamped(from_, width, signed) if INTEGERS[from_][0] > width else "x"


def _clamped(type_: str, width: int, signed: bool) -> str:
    high = f"({type_}){(1 << (width - signed)) - 1:#x}"
    return f"clamp(x, ({type_})(-{high} - 1), {high})" if signed else f"min(x, {high})"


def _vectors() -> list[str]:
    return [
        f"CLD_FUNCTION float3 vloada_half3(size_t offset, const {space} half *p) "
        "{ return vloada_half4(offset, p).xyz; }"
        for space in ("__generic", "__global", "__local", "__private", "__constant")
    ]


def _copies() -> list[str]:
    out = []
    for scalar in (*INTEGERS, *FLOATS):
        for size in SIZES:
            t = scalar + size
            for to, from_ in (("__local", "__global"), ("__global", "__local")):
                for name, more, given in (("", "", ""), ("strided_", "size_t stride, ", "stride, ")):
                    name = f"async_work_group_{name}copy"
                    rest = f"{to} {t} *to, const {from_} {t} *from, size_t n, {more}event_t event"
                    mangled = _mangled_copy(name, scalar, size, to == "__local", bool(more))
                    alias = f"__cld_{name}"
                    out += [
                        f'CLD_DECLARED event_t {alias}({rest}) __asm__("{mangled}{_SEEN_THROUGH}");',
                        f"CLD_FUNCTION event_t {name}({rest}) {{ size_t none = get_work_dim() >> 2; "
                        f"return {alias}(to + none, from + none, n, {given}event); }}",
                    ]
    return out


_MANGLED = {
    "char": "c", "uchar": "h", "short": "s", "ushort": "t", "int": "i", "uint": "j", "long": "l",
    "ulong": "m", "half": "Dh", "float": "f", "double": "d",
}  # fmt: skip


def _mangled_copy(name: str, scalar: str, size: str, to_local: bool, strided: bool) -> str:
    to, from_ = ("3", "1") if to_local else ("1", "3")
    t = f"Dv{size}_{_MANGLED[scalar]}" if size else _MANGLED[scalar]
    again = "S_" if size else t  # the first thing that the name has, a vector
    number = "mm" if strided else "m"
    return f"_Z{len(name)}{name}PU3AS{to}{t}PU3AS{from_}K{again}{number}9ocl_event"


def _atomics() -> list[str]:
    everything = {t: t for t in ("int", "uint", "long", "ulong", "float", "double", "half")}
    out = []

    def without_an_order(name: str, object_: str, operand: str) -> None:
        for space in _SPACES:
            pointer = f"volatile {space} {object_} *"
            out.append(
                f"CLD_DECLARED {operand} {name}_explicit({pointer}, {operand}, memory_order, memory_scope);"
            )
            out.append(
                f"CLD_FUNCTION {operand} {name}({pointer}object, {operand} x) {{ return {name}_explicit("
                "object, x, memory_order_seq_cst, memory_scope_device); }"
            )

    for t in everything:
        without_an_order("atomic_exchange", f"atomic_{t}", t)
        for space in _SPACES:
            pointer = f"volatile {space} atomic_{t} *"
            out.append(f"CLD_DECLARED {t} atomic_load({pointer});")
            for rest in ("memory_order order", "memory_order order, memory_scope scope"):
                out.append(
                    f"CLD_FUNCTION {t} atomic_load_explicit({pointer}object, {rest}) "
                    "{ return atomic_load(object); }"
                )
    for operation in ("add", "sub"):
        for t in everything:
            without_an_order(f"atomic_fetch_{operation}", f"atomic_{t}", t)
        # clang declares that of half with a pointer to float.
        without_an_order(f"atomic_fetch_{operation}", "atomic_float", "half")
    for operation in ("or", "xor", "and"):
        for t in ("int", "uint", "long", "ulong"):
            without_an_order(f"atomic_fetch_{operation}", f"atomic_{t}", t)
    for operation in ("add", "sub"):  # of atomic_uintptr_t and ptrdiff_t
        for space in _SPACES:
            name, pointer = f"atomic_fetch_{operation}", f"volatile {space} atomic_ulong *"
            out.append(f"CLD_DECLARED ulong {name}_explicit({pointer}, long, memory_order, memory_scope);")
            out.append(
                f"CLD_FUNCTION ulong {name}({pointer}object, long x) {{ return {name}_explicit("
                "object, x, memory_order_seq_cst, memory_scope_device); }"
            )
    return out


def _images() -> list[str]:
    out = []
    for kind, scalar in (("f", "float"), ("i", "int"), ("ui", "uint")):
        for image, (at, gradient) in _COORDINATES.items():
            out += _read(kind, image, at, gradient, f"{scalar}4") + _write(kind, image, at, f"{scalar}4")
    for image, (at, gradient) in _DEPTH.items():
        out += _read("f", image, at, gradient, "float") + _write("f", image, at, "float")
    for image in (*_COORDINATES, *_DEPTH, "image1d_buffer_t"):
        for access in ("read_only", "write_only", "read_write"):
            type_ = f"ocl_{image.removesuffix('_t')}_{access[0]}{access.partition('_')[2][0]}"
            name = "get_image_channel_data_type"
            asked = "__cld_channel_data_type"
            out += [
                f'CLD_DECLARED int {asked}({access} {image}) __asm__("_Z{len(name)}{name}{len(type_)}{type_}'
                f'{_SEEN_THROUGH}");',
                f"CLD_FUNCTION __attribute__((const)) int {name}({access} {image} image) "
                f"{{ return {asked}(image) + 0x10D0; }}",
            ]
    return out


def _read(kind: str, image: str, at: str, gradient: str, result: str) -> list[str]:
    out = []
    for form, types in (("lod", ["float"]), ("gradient", [f"float{gradient}"] * 2)):
        name = f"__cld_read_image_{form}_{kind}"
        parameters = [f"read_only {image} image", "sampler_t sampler", f"float{at} at"]
        parameters += [f"{t} x{k}" for k, t in enumerate(types)]
        declared = ", ".join(parameters)
        given = ", ".join(p.rsplit(" ", 1)[1] for p in parameters)
        out += [
            f"CLD_DECLARED __attribute__((pure)) {result} {name}({declared});",
            f"CLD_FUNCTION __attribute__((pure)) {result} read_image{kind}({declared}) "
            f"{{ return {name}({given}); }}",
        ]
    return out


def _write(kind: str, image: str, at: str, colour: str) -> list[str]:
    name, rest = (
        f"__cld_write_image_lod_{kind}",
        f"write_only {image} image, int{at} at, int level, {colour} x",
    )
    return [
        f"CLD_DECLARED void {name}({rest});",
        f"CLD_FUNCTION void write_image{kind}({rest}) {{ {name}(image, at, level, x); }}",
    ]
