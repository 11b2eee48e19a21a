"""Program binaries: what CL_PROGRAM_BINARIES gives and clCreateProgramWithBinary takes, in any process.

Executables are jit/executable.py's own bytes: object code with the SPIR-V that it was made of, so that a
binary from another CPU can be built again. Compiled objects and libraries are SPIR-V in a container:
magic, digest of the rest, wire values [kind, options, those that concern code, SPIR-V].
"""

from __future__ import annotations

from cl_driver.api.errors import CLError
from cl_driver.api.generated import enums as cl
from cl_driver.jit import wire
from cl_driver.jit.executable import Executable, ExecutableError, blake2b, is_executable

MAGIC = b"CLDOBJ\x00\x02"
DIGEST = 16
HEADER = len(MAGIC) + DIGEST

OBJECT_KINDS = (cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT, cl.CL_PROGRAM_BINARY_TYPE_LIBRARY)


def pack_object(build) -> bytes:
    """The binary of a DeviceBuild that is a compiled object or library."""
    body = wire.encode([build.binary_type, build.options, sorted(build.code_options), build.spirv])
    return MAGIC + blake2b(body, digest_size=DIGEST).digest() + body


def unpack(data: bytes, build) -> None:
    """Puts what a binary holds into a DeviceBuild. CL_INVALID_BINARY if it is none."""
    if is_executable(data):
        try:
            executable = Executable.from_bytes(data)
        except ExecutableError as error:
            raise CLError(cl.CL_INVALID_BINARY, str(error)) from error
        build.binary_type = cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE
        build.options, build.executable = executable.options, executable
        return
    if data[: len(MAGIC)] != MAGIC:
        raise CLError(cl.CL_INVALID_BINARY, "not a binary of this version of the driver")
    body = bytes(data[HEADER:])
    if blake2b(body, digest_size=DIGEST).digest() != data[len(MAGIC) : HEADER]:
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
