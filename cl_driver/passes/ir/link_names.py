"""What the link name of a function says of it."""

from __future__ import annotations

# Functions of the builtin library for images: builtins/cl/image/.
IMAGE_PREFIX = "__cld_image_"

# Those for pipes: builtins/cl/pipe.cl.
PIPE_RESERVE, PIPE_COMMIT, PIPE_PACKETS = "__cld_pipe_reserve", "__cld_pipe_commit", "__cld_pipe_packets"
PIPE_FUNCTIONS = frozenset((PIPE_RESERVE, PIPE_COMMIT, PIPE_PACKETS))
# Of all lanes: codegen/simd/pipes.py calls them.
PIPE_OF_LANES = {PIPE_RESERVE: "__cld_pipe_reserve_lanes", PIPE_COMMIT: "__cld_pipe_commit_lanes"}

# Functions of named barriers: program/named_barrier_functions.py.
NAMED_BARRIER_INIT = frozenset(("named_barrier_init", "_Z18named_barrier_initi", "_Z18named_barrier_initj"))
NAMED_BARRIER_FUNCTIONS = NAMED_BARRIER_INIT | {
    "work_group_named_barrier",
    "_Z24work_group_named_barrierPU3AS314__namedBarrierj",
    "_Z24work_group_named_barrierPU3AS314__namedBarrierj12memory_scope",
}


def source_name(name: str) -> str:
    """The name in OpenCL C of a function by its link name (Itanium C++ ABI, 5.1.2: <source-name>).

    A name that is not mangled is returned as it is.
    """
    rest = name.removeprefix("_Z")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    return rest[digits : digits + int(rest[:digits])] if digits and rest is not name else name


def stays_a_call(name: str) -> bool:
    """Whether calls of a function of the builtin library are not to be inlined: it is much code, for images
    of any format, or what lanes do together (codegen/simd/pipes.py)."""
    return name.startswith(IMAGE_PREFIX) or name in PIPE_FUNCTIONS
