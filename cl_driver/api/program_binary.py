"""Program binaries: what CL_PROGRAM_BINARIES gives and clCreateProgramWithBinary takes, in any process.

A binary is code that runs with all rights of the process that loads it. The digest finds damage, not malice.

It has magic, a digest of all that follows, digests of the build of this driver and of the CPU that it was
made by and for, and a body. What another build made need not fit this one's library, and code for another CPU
may not run here: both are refused when they are loaded, so that programs that keep binaries turn to their
sources in time. The body of an executable is jit/executable.py's own bytes, object code and the SPIR-V that
code for some launches is made of; of compiled objects and libraries, which are SPIR-V, wire values [kind,
options, those that concern code, SPIR-V].
"""

from __future__ import annotations

from .. import wire
from ..jit import identity
from ..jit.executable import Executable, ExecutableError, blake2b, is_executable
from .errors import CLError
from .generated import enums as cl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .program import DeviceBuild

MAGIC = b"CLDBIN\x00\x02"
DIGEST = 16
BUILD = len(MAGIC) + DIGEST  # where the digest of the build begins
CPU = BUILD + DIGEST
BODY = CPU + DIGEST

OBJECT_KINDS = (cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT, cl.CL_PROGRAM_BINARY_TYPE_LIBRARY)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST).digest()


def _target() -> str:
    from ..service import client

    return client.service().target.key


def seal(body: bytes) -> bytes:
    """A binary of this build for this CPU."""
    rest = _digest(identity.compiler(whole=True).encode()) + _digest(_target().encode()) + body
    return MAGIC + _digest(rest) + rest


def pack_executable(executable: Executable) -> bytes:
    """The binary of a built program."""
    return seal(executable.to_bytes())


def pack_object(build: DeviceBuild) -> bytes:
    """The binary of what is a compiled object or library."""
    return seal(wire.encode([build.binary_type, build.options, sorted(build.code_options), build.spirv]))


# What programs give by mistake, by how it begins.
_STRANGERS = {
    b"\x03\x02\x23\x07": "SPIR-V, which clCreateProgramWithIL takes",
    b"\x07\x23\x02\x03": "SPIR-V, which clCreateProgramWithIL takes",
    b"BC\xc0\xde": "LLVM bitcode",
    b"\x7fELF": "an ELF file, as other drivers make",
}


def _require(condition: bool, why: str) -> None:
    if not condition:
        raise CLError(cl.CL_INVALID_BINARY, why)


def _stranger(data: bytes) -> str:
    """What bytes are that no version of the driver may have made."""
    if what := _STRANGERS.get(data[:4]):
        return f"it is {what}"
    return f"it begins with {data[: len(MAGIC)]!r}, not with {MAGIC!r}"


def _check(data: bytes) -> None:
    """CL_INVALID_BINARY, and what is wrong, unless the bytes are as this driver made them, for this CPU."""
    version = len(MAGIC) - 1
    if data[:version] == MAGIC[:version] and data[version:] and data[version] != MAGIC[version]:
        its, own = data[version], MAGIC[version]
        _require(False, f"the binary is of another version of the driver: its format is {its}, not {own}")
    _require(data[: len(MAGIC)] == MAGIC, f"not a binary of this driver: {_stranger(data)}")
    _require(len(data) >= BODY, f"the binary is cut off: it has {len(data)} bytes, at least {BODY}")
    kept, found = data[len(MAGIC) : BUILD], _digest(data[BUILD:])
    how = f"the digest of its {len(data)} bytes is {found.hex()}, not {kept.hex()}"
    _require(kept == found, f"the binary is damaged or cut off: {how}")
    made_by = data[BUILD:CPU] == _digest(identity.compiler(whole=True).encode())
    _require(made_by, "the binary was made by another build of the driver: build the program from its source")
    right = data[CPU:BODY] == _digest(_target().encode())
    _require(right, "the binary was made for another CPU or width: build the program from its source")


def unpack(data: bytes, build: DeviceBuild) -> None:
    """Puts what a binary holds into a DeviceBuild. CL_INVALID_BINARY, and why, if it is not one of this build
    for this CPU."""
    data = bytes(data)
    _check(data)
    body = data[BODY:]
    if is_executable(body):
        try:
            executable = Executable.from_bytes(body)
        except ExecutableError as error:
            raise CLError(cl.CL_INVALID_BINARY, str(error)) from error
        _require(executable.target == _target(), "the binary holds code for another CPU")
        build.binary_type = cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE
        build.options, build.executable = executable.options, executable
        return
    try:
        kind, options, code_options, spirv = wire.decode(body)
    except (ValueError, TypeError) as error:
        raise CLError(cl.CL_INVALID_BINARY, f"the binary is malformed: {error}") from error
    types = [type(value) for value in (options, code_options, spirv)]
    good = kind in OBJECT_KINDS and types == [str, list, bytes] and {*map(type, code_options)} <= {str}
    _require(good, f"the binary is malformed: no compiled object or library of kind {kind!r}")
    build.binary_type, build.options, build.spirv = kind, options, spirv
    build.code_options = frozenset(code_options)
