"""Debian's clblast-tests: python tests/peers/clblast.py [routine...]

Each test program compares CLBlast on this driver with a CPU BLAS over all precisions and options; without
arguments those of xaxpy, xdot, xgemv and xgemm. Exits with 1 if one fails, and prints its last lines.
"""

from __future__ import annotations

import subprocess
import sys

from peers import environment, need

ROUTINES = ("xaxpy", "xdot", "xgemv", "xgemm")


def main() -> int:
    need("clblast-tests")
    failed = 0
    for routine in sys.argv[1:] or ROUTINES:
        done = subprocess.run(
            [f"/usr/bin/clblast_test_{routine}"],
            env=environment(),
            text=True,
            capture_output=True,
            timeout=3000,
            check=False,
        )
        passed = done.returncode == 0
        failed += not passed
        lines = [line.strip() for line in done.stdout.splitlines() if "test(s)" in line]
        print(f"{routine}: {'passed' if passed else f'FAILED ({done.returncode})'}")
        print(
            "\n".join(f"  {line}" for line in lines) if passed else done.stdout[-2000:] + done.stderr[-2000:]
        )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
