"""Lists the devices of a Dask cluster: versions, latency and bandwidth of the connection with each worker.

Without an address it is CL_DRIVER_CLUSTER's. It needs Dask's distributed: pip install "cl_driver[cluster]".
With CL_DRIVER_CLUSTER_PYTHON, that Python does the work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from .. import native, settings

_AGAIN = (
    "import sys; sys.path[:0] = sys.argv[2:3]; from cl_driver.cluster import survey; survey.main(sys.argv[1])"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommand's arguments."""
    parser.add_argument("place", nargs="?", default="", help="a scheduler's address, or a scheduler file")


def run(options: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 if there is no cluster, or no device in it."""
    place = options.place or settings.text("CL_DRIVER_CLUSTER")
    if not place:
        print("no cluster: give an address, or set CL_DRIVER_CLUSTER", file=sys.stderr)
        return 1
    python = settings.text("CL_DRIVER_CLUSTER_PYTHON")
    if python and os.path.abspath(python) != os.path.abspath(sys.executable):
        done = subprocess.run([python, "-c", _AGAIN, place, native.packages()[0]], check=False)
        return done.returncode
    from ..cluster import survey

    return survey.show(place)
