"""Program binaries: what CL_PROGRAM_BINARIES gives and clCreateProgramWithBinary takes, in any process.

Executables are jit/executable.py's own bytes: object code with the SPIR-V that it was made of, so that a
binary from another CPU can be built again. Compiled objects and libraries are SPIR-V in a container:
magic, digest of the rest, wire values [kind, options, SPIR-V].
"""

from __future__ import annotations

from cl_driver.api.errors import CLError
from cl_driver.api.generated import enums as cl
from cl_driver.jit import wire
from cl_driver.jit.executable import Executable, ExecutableError, blake2b, is_executable

MAGIC = b"CLDOBJ\x00\x01"
DIGEST = 16
HEADER = len(MAGIC) + DIGEST

OBJECT_KINDS = (cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT, cl.CL_PROGRAM_BINARY_TYPE_LIBRARY)


def pack_object(kind: int, options: str, spirv: bytes) -> bytes:
    """A compiled object or library."""
    body = wire.encode([kind, options, spirv])
    return MAGIC + blake2b(body, digest_size=DIGEST).digest() + body


def unpack(data: bytes) -> tuple[int, str, bytes | None, Executable | None]:
    """(binary type, options, SPIR-V of an object or library, executable). CL_INVALID_BINARY if it is none."""
    if is_executable(data):
        try:
            executable = Executable.from_bytes(data)
        except ExecutableError as error:
            raise CLError(cl.CL_INVALID_BINARY, str(error)) from error
        return cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE, executable.options, None, executable
    if data[: len(MAGIC)] != MAGIC:
        raise CLError(cl.CL_INVALID_BINARY, "not a binary of this version of the driver")
    body = bytes(data[HEADER:])
    if blake2b(body, digest_size=DIGEST).digest() != data[len(MAGIC) : HEADER]:
        raise CLError(cl.CL_INVALID_BINARY, "the binary is damaged")
    try:
        kind, options, spirv = wire.decode(body)
    except ValueError as error:
        raise CLError(cl.CL_INVALID_BINARY, "the binary is malformed") from error
    if kind not in OBJECT_KINDS or type(options) is not str or type(spirv) is not bytes:
        raise CLError(cl.CL_INVALID_BINARY, "the binary is malformed")
    return kind, options, spirv, None
