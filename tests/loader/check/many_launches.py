"""More launches than cells of the check mode tell apart, on memory that only the first one has written.

    python -m tests.loader.check.many_launches LOADER < [[name, launches], ...] > {name: text}

as JSON. Then one launch in which work-items race.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.loader.core.session import Session
from tests.loader.opencl import OpenCL

N = 64
SOURCE = """
kernel void first(global int *a) { a[get_global_id(0)] = 1; }
kernel void others(global int *b, global const int *a) {
  int i = get_global_id(0); b[i] = a[get_global_size(0) - 1 - i]; }
kernel void racing(global int *a) { a[get_global_id(0) / 2] = get_global_id(0); }
"""


def main() -> None:
    """The program."""
    log = Path(os.environ["CL_DRIVER_LOG_FILE"])
    session = Session(OpenCL(sys.argv[1]))
    first, others, racing = (session.kernel(SOURCE, name) for name in ("first", "others", "racing"))
    found = {}
    for name, launches in json.load(sys.stdin):
        log.write_text("")
        a, b = session.buffer(4 * N), session.buffer(4 * N)
        session.launch(first, N, a)
        for _ in range(launches):
            session.launch(others, N, b, a)
        session.finish()
        found[name] = log.read_text()
    session.launch(racing, N, a)
    session.finish()
    found["a race"] = log.read_text()
    session.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
