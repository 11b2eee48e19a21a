"""A cluster on this machine: prints its scheduler's address, then the workers' processes in the order of the
workers' addresses. These it prints again for each line that it reads. Ends with its standard input.

Usage: local_cluster.py WORKERS [--one-process] [--tls]
--one-process: the workers are in this one. --tls: with the certificates of Dask's configuration.
"""

import os
import sys

from distributed import LocalCluster
from distributed.security import Security


def main():
    """The program."""
    count = int(sys.argv[1])
    is_one, has_tls = "--one-process" in sys.argv, "--tls" in sys.argv
    with LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=not is_one,
        memory_limit=0 if is_one else "auto",  # it is the process's, of which each would think it its own
        protocol="tls://" if has_tls else "tcp://",
        security=Security(require_encryption=has_tls),
        dashboard_address=None,
        scheduler_port=0,
    ) as cluster:
        while True:
            workers = cluster.workers.values()
            pids = {worker.worker_address: getattr(worker, "pid", os.getpid()) for worker in workers}
            known = sorted(name for name in cluster.scheduler.workers if name in pids)
            print(cluster.scheduler_address, *(pids[name] for name in known), flush=True)
            if not sys.stdin.readline():
                return
            cluster.scale(count)  # a worker that is killed as it starts is not begun anew by itself


if __name__ == "__main__":
    main()
