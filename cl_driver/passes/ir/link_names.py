"""What the link name of a function says of it."""

from __future__ import annotations

# Functions of the builtin library for images: builtins/cl/image/.
IMAGE_PREFIX = "__cld_image_"

# Those for pipes: builtins/cl/pipe.cl.
PIPE_RESERVE, PIPE_COMMIT, PIPE_PACKETS = "__cld_pipe_reserve", "__cld_pipe_commit", "__cld_pipe_packets"
PIPE_FUNCTIONS = frozenset((PIPE_RESERVE, PIPE_COMMIT, PIPE_PACKETS))
# Of all lanes: codegen/simd/pipes.py calls them.
PIPE_OF_LANES = {PIPE_RESERVE: "__cld_pipe_reserve_lanes", PIPE_COMMIT: "__cld_pipe_commit_lanes"}

# Of the data plane: what enqueues kernels from kernels (native_shim/src/launch/device_enqueue.h), with their
# parameters and results as LLVM has them.
ENQUEUE_KERNEL, BLOCK_SIZE = "cld_enqueue_kernel", "cld_block_size"
DEVICE_FUNCTIONS = {
    ENQUEUE_KERNEL: "i32 (ptr, i32, ptr, i32, ptr, ptr, i32, ptr, i32, i32, i32, ptr)",
    "cld_enqueue_marker": "i32 (ptr, i32, ptr, ptr, i32)",
    BLOCK_SIZE: "i32 (i32, i32, ptr, i32)",
    "cld_default_queue": "ptr ()",
    "cld_create_user_event": "ptr ()",
    "cld_retain_event": "void (ptr)",
    "cld_release_event": "void (ptr)",
    "cld_is_valid_event": "i32 (ptr)",
    "cld_set_user_event_status": "void (ptr, i32)",
    "cld_capture_event_profiling_info": "void (ptr, i32, ptr)",
}

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
    of any format, what lanes do together (codegen/simd/pipes.py), or the data plane's."""
    return name.startswith(IMAGE_PREFIX) or name in PIPE_FUNCTIONS or name in DEVICE_FUNCTIONS
