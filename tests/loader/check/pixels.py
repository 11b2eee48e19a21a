"""Runs kernels on images in a process of its own, with checks, and gives what the log got of each.

    python -m tests.loader.check.pixels LOADER < [[name, source, items], ...] > {name: text}

as JSON. Each source has a kernel k of (read_only image2d_t from, read_only image2d_t whole,
write_only image2d_t to, write_only image2d_t levels, sampler_t s, global float4 *out). Images have 16 x 4
pixels of four channels of 8 bits, which are integers in `whole` alone; `levels` has two levels. s has
normalized coordinates, CL_ADDRESS_NONE and nearest filtering.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import Buffer, Session
from tests.loader.opencl import OpenCL

WIDTH, HEIGHT = 16, 4


def image(session: Session, type_: int = cl.CL_UNORM_INT8, levels: int = 0) -> Buffer:
    channels = (ctypes.c_uint32 * 2)(cl.CL_RGBA, type_)
    # type, width, height, depth, array size, row pitch, slice pitch, levels and samples, buffer
    desc = (ctypes.c_uint64 * 9)(cl.CL_MEM_OBJECT_IMAGE2D, WIDTH, HEIGHT, 0, 0, 0, 0, levels, 0)
    made = session.cl.make("clCreateImage", session.context, 0, channels, desc, None)
    return Buffer(session.made("clReleaseMemObject", made))


def main() -> None:
    """The program."""
    log = Path(os.environ["CL_DRIVER_LOG_FILE"])
    session = Session(OpenCL(sys.argv[1]))
    wanted = [
        cl.CL_SAMPLER_NORMALIZED_COORDS, 1, cl.CL_SAMPLER_ADDRESSING_MODE, cl.CL_ADDRESS_NONE,
        cl.CL_SAMPLER_FILTER_MODE, cl.CL_FILTER_NEAREST, 0,
    ]  # fmt: skip
    sampler = session.made(
        "clReleaseSampler", session.cl.make("clCreateSamplerWithProperties", session.context, wanted)
    )
    images = [image(session), image(session, cl.CL_UNSIGNED_INT8), image(session), image(session, levels=2)]
    out = session.buffer(16 * WIDTH)
    found = {}
    for name, source, items in json.load(sys.stdin):
        log.write_text("")
        session.launch(session.kernel(source), items, *images, Buffer(sampler), out, local=items)
        session.finish()
        found[name] = log.read_text()
    session.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
