"""A plan for 1,000 workers: measures, predicts small clusters and compares, then simulates large ones.

    python -m tests.bench.cluster_plan [--turns N] [--save FILE] [--load FILE] [--page FILE]

Needs Dask's distributed. --save keeps what was measured, --load takes it instead of measuring; --page puts
the tables between the marks of a page.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
from pathlib import Path

from . import costs, measured, plan

LOCAL = (1, 2, 4)
STAND_IN = (1, 10, 100, 1000)


def measure(turns: int) -> measured.Measured:
    """Local clusters, and hosts of workers that stand in."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = costs.build(folder)
        stand_in = [measured.measure_stand_in(program, count, folder, turns) for count in STAND_IN]
        local = [measured.measure_local(program, count, folder, turns) for count in LOCAL]
    return measured.Measured(os.cpu_count() or 1, turns, local, stand_in)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=4, help="of each measurement, of which the best counts")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--load", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    found = pickle.loads(options.load.read_bytes()) if options.load else measure(options.turns)
    if options.save:
        options.save.write_bytes(pickle.dumps(found))
    text = "\n".join(plan.report(found)) + "\n"
    print(text)
    if options.page:
        plan.put_on_page(options.page, text)


if __name__ == "__main__":
    main()
