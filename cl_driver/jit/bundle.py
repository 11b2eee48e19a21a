"""A program's intermediate language as one byte string: SPIR-V as it is, or several modules in a container.

Linking happens when an executable is made, of the modules as they were compiled; so what clLinkProgram makes
of several modules (a library), and a module whose specialisation constants were set, are containers: magic,
then the wire value [[SPIR-V, {SpecId: bytes}], ...].
"""

from __future__ import annotations

from .. import wire

MAGIC = b"CLDIL\x00\x00\x01"


class BundleError(ValueError):
    """Bytes that begin as a container and are none."""


def pack(parts: list[tuple[bytes, dict[int, bytes]]]) -> bytes:
    """One byte string of (SPIR-V, specialisation) pairs."""
    if len(parts) == 1 and not parts[0][1]:
        return parts[0][0]
    return MAGIC + wire.encode([[spirv, dict(sorted(constants.items()))] for spirv, constants in parts])


def unpack(data: bytes) -> list[tuple[bytes, dict[int, bytes]]]:
    """The pairs. BundleError for a malformed container; what is no container is taken for SPIR-V."""
    if data[: len(MAGIC)] != MAGIC:
        return [(data, {})]
    try:
        values = wire.decode(data[len(MAGIC) :])
    except wire.WireError as error:
        raise BundleError(str(error)) from error
    if type(values) is not list:
        raise BundleError("not a list of modules")
    for pair in values:
        if (
            type(pair) is not list
            or len(pair) != 2
            or type(pair[0]) is not bytes
            or type(pair[1]) is not dict
        ):
            raise BundleError("not a module")
        if not all(type(k) is int and type(v) is bytes for k, v in pair[1].items()):
            raise BundleError("not a specialisation")
    return [(spirv, constants) for spirv, constants in values]


def join(modules: list[bytes]) -> bytes:
    """One byte string of several. Raises BundleError for one that is malformed."""
    return pack([pair for data in modules for pair in unpack(data)])


def specialise(data: bytes, constants: dict[int, bytes]) -> bytes:
    """The same program with specialisation constants set: {SpecId: bytes}. Raises BundleError."""
    return pack([(spirv, before | constants) for spirv, before in unpack(data)])
