"""Devices of a cluster of this machine (cluster.c), beside what Dask does with as many bytes.

Usage: python tests/bench/cluster.py [WORKERS], with a Python that has Dask's distributed.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from distributed import Client, LocalCluster

BYTES = 128 << 20
TURNS = 4
HERE = Path(__file__).parent


def make(turn):
    """So many bytes, new ones for each turn."""
    return bytes([turn]) * BYTES


def between_workers(client):
    """Bytes a second from one worker to another, the best of some turns."""
    first, second = sorted(client.scheduler_info()["workers"])[:2]
    best = 0.0
    for turn in range(TURNS):
        made = client.submit(make, turn, workers=[first], pure=False)
        made_size = client.submit(len, made, workers=[first], pure=False).result()
        start = time.monotonic()
        size = client.submit(len, made, workers=[second], pure=False).result()
        taken = time.monotonic() - start
        assert size == made_size == BYTES
        best = max(best, BYTES / taken)
    return best


def main():
    """The program."""
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    root = str(HERE.parent.parent)
    sys.path.insert(0, root)  # which workers inherit
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "cluster"))
        subprocess.run(["cc", "-O2", str(HERE / "cluster.c"), "-o", program, "-lOpenCL"], check=True)
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            before = between_workers(client)
            environment = os.environ | {
                "CL_DRIVER_CLUSTER": cluster.scheduler_address,
                "CL_DRIVER_CLUSTER_PYTHON": sys.executable,
                "OCL_ICD_VENDORS": str(Path(root, "build", "vendors")) + "/",
            }
            subprocess.run([program, "1", "2"], env=environment, check=True)
            after = between_workers(client)
            print(f"dask_mb_per_second {max(before, after) / 1e6:.0f}")


if __name__ == "__main__":
    main()
