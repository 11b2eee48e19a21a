"""A cluster on this machine: prints its scheduler's address, then the workers' processes in the order of the
workers' addresses. These it prints again for each line that it reads. Ends with its standard input.

Usage: local_cluster.py WORKERS
"""

import sys

from distributed import LocalCluster


def main():
    """The program."""
    count = int(sys.argv[1])
    with LocalCluster(
        n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None, scheduler_port=0
    ) as cluster:
        while True:
            pids = {worker.worker_address: worker.pid for worker in cluster.workers.values()}
            known = sorted(name for name in cluster.scheduler_info["workers"] if name in pids)
            print(cluster.scheduler_address, *(pids[name] for name in known), flush=True)
            if not sys.stdin.readline():
                return
            cluster.scale(count)  # a worker that is killed as it starts is not begun anew by itself


if __name__ == "__main__":
    main()
