"""Runs kernels in a process of its own, with checks, and gives what the log got of each.

    python -m tests.loader.check.runner LOADER < [[name, source, work-items, group], ...] > {name: text}

as JSON. Each source has a kernel k of (global int *a, global int *b, local int *t, int n): a and b have 64
elements, of which the host has written those of a, each its own index; t has one for each work-item of a
group, n is 64.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

import numpy as np

from tests.loader.core.session import Local, Session
from tests.loader.opencl import OpenCL

N = 64


def main() -> None:
    """The program."""
    log = Path(os.environ["CL_DRIVER_LOG_FILE"])
    session = Session(OpenCL(sys.argv[1]))
    found = {}
    for name, source, items, group in json.load(sys.stdin):
        log.write_text("")
        kernel = session.kernel(source, "k")
        a, b = session.buffer(np.arange(N, dtype=np.int32)), session.buffer(4 * N)
        session.launch(kernel, items, a, b, Local(4 * group), ctypes.c_int32(N), local=group)
        session.finish()
        found[name] = log.read_text()
    session.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
