"""Many buffers, one after the other, each written whole by a kernel: how much memory the process has then.

    python -m tests.loader.check.many_buffers LOADER < [[name, buffers], ...] > {name: text}

as JSON; the text is a number of MiB.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.loader.core.session import Session
from tests.loader.opencl import OpenCL

MIB = 8  # of a buffer; each is a little larger than the last one, so that none has the place of another
SOURCE = "kernel void fill(global int *a) { a[get_global_id(0)] = 1; }"


def resident() -> int:
    """MiB."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[0]) >> 10


def main() -> None:
    """The program."""
    session = Session(OpenCL(sys.argv[1]))
    fill = session.kernel(SOURCE, "fill")
    found = {}
    size = MIB << 20
    for name, buffers in json.load(sys.stdin):
        for _ in range(buffers):
            size += 1 << 16
            buffer = session.buffer(size)
            session.launch(fill, size // 4, buffer)
            session.finish()
            session.cl.ok(*session.releases.pop())  # the buffer
        found[name] = str(resident())
    session.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
