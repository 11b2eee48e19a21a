"""A cluster on this machine: prints its scheduler's address, then the workers' processes in the order of the
workers' addresses. Ends with its standard input.

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
        addresses = {worker.worker_address: worker.pid for worker in cluster.workers.values()}
        print(cluster.scheduler_address, *(addresses[name] for name in sorted(addresses)), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
