"""One kernel that the compile service is asked for, and what it takes to run what comes back."""

import ctypes

from cl_driver.codegen.layout import abi
from cl_driver.jit.executable import Executable
from tests.runtime.code_loader import Code

SOURCE = b"kernel void scale(global float *a, float f) { a[get_global_id(0)] *= f; }\n"


# Whole tiles of all widths.
ITEMS = 512


def run_1d(executable: Executable, name: str, items: int, *args: bytes) -> None:
    """Runs a kernel of an executable over one dimension in groups of a tile; args: the argument block's
    parts."""
    info = executable.kernel(name)
    group = info.tile_width
    block = ctypes.create_string_buffer(info.block_size)
    for arg, data in zip(info.args, args, strict=True):
        ctypes.memmove(ctypes.addressof(block) + arg.offset, data, len(data))
    launch = bytearray(abi.LAUNCH_SIZE)
    for offset, values in (
        (abi.LAUNCH_GLOBAL_SIZE, (items, 1, 1)),
        (abi.LAUNCH_LOCAL_SIZE, (group, 1, 1)),
        (abi.LAUNCH_NUM_GROUPS, (items // group, 1, 1)),
    ):
        for i, value in enumerate(values):
            launch[offset + 8 * i : offset + 8 * i + 8] = value.to_bytes(8, "little")
    launch[0] = 1
    scratch = ctypes.create_string_buffer(info.scratch_fixed + info.scratch_per_item * group + 256)
    local = ctypes.create_string_buffer(info.local_static + 256)
    thread = (
        b"".join(
            (-(-ctypes.addressof(memory) // 128) * 128).to_bytes(8, "little") for memory in (local, scratch)
        )
        + info.local_static.to_bytes(8, "little")
        + bytes(16)
    )
    code = Code(executable.objects[info.object_index])
    thread = ctypes.create_string_buffer(thread)
    launch = ctypes.create_string_buffer(bytes(launch))
    code.kernel(info.symbol)(launch, block, thread, 0, items // group)
    code.unload()


def pointer(array) -> bytes:
    return ctypes.addressof(array).to_bytes(8, "little")


def scaled(executable: Executable) -> list[float]:
    values = (ctypes.c_float * ITEMS)(*range(ITEMS))
    run_1d(executable, "scale", ITEMS, pointer(values), bytes(ctypes.c_float(2.5)))
    return list(values)


EXPECTED = [2.5 * i for i in range(ITEMS)]
