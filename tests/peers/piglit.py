"""Debian's piglit, its OpenCL profile: python tests/peers/piglit.py [--least N] [--filter REGEX]

Prints the counts and every sub-test that failed; exits with 1 on a crash or a time-out, or if fewer than
--least sub-tests (3,900 of 4,085) pass.
"""

from __future__ import annotations

import argparse
import bz2
import json
import shutil
import subprocess
import sys
from collections import Counter

from peers import WORK, environment, need

LEAST = 3900
TEST_SECONDS = "120"  # of one test


def results(folder) -> dict:
    """{sub-test: outcome} of a finished run, counted as `piglit summary console` counts."""
    packed = folder / "results.json.bz2"
    text = bz2.decompress(packed.read_bytes()) if packed.exists() else (folder / "results.json").read_bytes()
    outcomes = {}
    for name, test in json.loads(text)["tests"].items():
        parts = dict(test.get("subtests") or {})
        parts.pop("__type__", None)
        if parts:
            outcomes.update({f"{name}/{part}": outcome for part, outcome in parts.items()})
        else:
            outcomes[name] = test["result"]
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least", type=int, default=LEAST)
    parser.add_argument("--filter", help="only tests whose name matches; then --least does not apply")
    arguments = parser.parse_args()
    need("piglit")
    folder = WORK / "piglit"
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    selection = ["-t", arguments.filter] if arguments.filter else []
    subprocess.run(
        ["piglit", "run", "--timeout", TEST_SECONDS, *selection, "cl", folder],
        env=environment(),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=3000,
    )
    outcomes = results(folder)
    counts = Counter(outcomes.values())
    for name, outcome in sorted(outcomes.items()):
        if outcome not in ("pass", "skip"):
            print(f"{outcome:8} {name}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()), f"of {len(outcomes)}")
    if counts["crash"] or counts["timeout"] or counts["incomplete"]:
        return 1
    return bool(not arguments.filter and counts["pass"] < arguments.least)


if __name__ == "__main__":
    sys.exit(main())
