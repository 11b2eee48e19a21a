"""Program binaries: what CL_PROGRAM_BINARIES gives and clCreateProgramWithBinary takes, in any process.

A binary begins with magic, and with the identity of the build of this driver that made it: object code and
SPIR-V of another build need not fit this one's library, and so are refused here, not when they are linked.
What follows is, of executables, jit/executable.py's own bytes: object code with the SPIR-V that it was made
of, so that a binary from another CPU can be built again; of compiled objects and libraries, which are SPIR-V,
digest of the rest and wire values [kind, options, those that concern code, SPIR-V].
"""

from __future__ import annotations

from ..jit import identity, wire
from ..jit.executable import Executable, ExecutableError, blake2b, is_executable
from .errors import CLError
from .generated import enums as cl

MAGIC = b"CLDBIN\x00\x01"
DIGEST = 16
HEADER = len(MAGIC) + DIGEST

OBJECT_KINDS = (cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT, cl.CL_PROGRAM_BINARY_TYPE_LIBRARY)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST).digest()


def _header() -> bytes:
    """What the binaries of this build begin with."""
    return MAGIC + _digest(identity.compiler().encode())


def pack_executable(build) -> bytes:
    """The binary of a DeviceBuild that is an executable."""
    return _header() + build.executable.to_bytes()


def pack_object(build) -> bytes:
    """The binary of a DeviceBuild that is a compiled object or library."""
    body = wire.encode([build.binary_type, build.options, sorted(build.code_options), build.spirv])
    return _header() + _digest(body) + body


def unpack(data: bytes, build) -> None:
    """Puts what a binary holds into a DeviceBuild. CL_INVALID_BINARY if it is none, or of another build."""
    if data[: len(MAGIC)] != MAGIC:
        raise CLError(cl.CL_INVALID_BINARY, "not a binary of this driver")
    if data[:HEADER] != _header():
        raise CLError(cl.CL_INVALID_BINARY, "the binary was made by another build of the driver")
    data = data[HEADER:]
    if is_executable(data):
        try:
            executable = Executable.from_bytes(data)
        except ExecutableError as error:
            raise CLError(cl.CL_INVALID_BINARY, str(error)) from error
        build.binary_type = cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE
        build.options, build.executable = executable.options, executable
        return
    body = bytes(data[DIGEST:])
    if _digest(body) != data[:DIGEST]:
        raise CLError(cl.CL_INVALID_BINARY, "the binary is damaged")
    try:
        kind, options, code_options, spirv = wire.decode(body)
    except ValueError as error:
        raise CLError(cl.CL_INVALID_BINARY, "the binary is malformed") from error
    types = [type(value) for value in (options, code_options, spirv)]
    if kind not in OBJECT_KINDS or types != [str, list, bytes] or {*map(type, code_options)} - {str}:
        raise CLError(cl.CL_INVALID_BINARY, "the binary is malformed")
    build.binary_type, build.options, build.spirv = kind, options, spirv
    build.code_options = frozenset(code_options)
