"""What LLVM's machine code analyser says of instructions and loops, where it is installed.

llvm-mca simulates a core by the tables that LLVM schedules by. It reads assembly, so the report's own table
(cost.py) is needed only where there is no llvm-mca.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, NamedTuple

from ..device.target import Target
from .assembly import Code

_NAMES = ("llvm-mca-22", "llvm-mca-21", "llvm-mca")
_SECONDS = 60
_ITERATIONS = 100
_MOST = 4000  # instructions of a loop: a simulation takes longer than a reader waits


class Figures(NamedTuple):
    """Of one instruction. latency: cycles until its result is there; throughput: cycles from one to the next
    of many that are independent."""

    operations: int
    latency: int
    throughput: float

    def words(self) -> str:
        """In words, for the line of assembly."""
        count = f"{self.operations} \N{GREEK SMALL LETTER MU}op{'' if self.operations == 1 else 's'}"
        return f"{count}, {self.throughput:.2g} cycles each, latency {self.latency}"


class Simulated(NamedTuple):
    """Of a loop: cycles of an iteration, and what they would be if nothing waited for a result."""

    cycles: float
    least: float


class Analyser:
    """An llvm-mca for the CPU that code is made for."""

    def __init__(self, path: str, target: Target) -> None:
        self.path = path
        self.cpu = cpu_of(target)
        self._known: dict[str, Figures | None] = {}

    def figures(self, codes: list[Code]) -> dict[str, Figures]:
        """Of these instructions, by their text; without those that it does not know."""
        texts = [text for text in dict.fromkeys(code.text for code in codes) if text not in self._known]
        for text in texts:
            self._known[text] = None
        for text, region in zip(texts, self._run([[text] for text in texts], 1), strict=False):
            views = region.get("InstructionInfoView", {}).get("InstructionList", [])
            if len(views) == 1 and not text.startswith("call"):
                one = views[0]
                self._known[text] = Figures(one["NumMicroOpcodes"], one["Latency"], one["RThroughput"])
        return {code.text: found for code in codes if (found := self._known.get(code.text)) is not None}

    def loops(self, loops: list[list[Code]]) -> list[Simulated | None]:
        """Of the instructions of each loop; None for what it cannot simulate: calls, unknown ones."""
        asked: list[list[str]] = []
        for codes in loops:
            is_simple = len(codes) <= _MOST and not any(c.mnemonic.startswith("call") for c in codes)
            asked.append([code.text for code in codes] if is_simple else [])
        found: list[Simulated | None] = []
        for texts, region in zip(asked, self._run(asked, _ITERATIONS), strict=False):
            summary = region.get("SummaryView", {})
            is_whole = texts and len(region.get("Instructions", [])) == len(texts)
            if is_whole and summary.get("Iterations"):
                cycles = summary["TotalCycles"] / summary["Iterations"]
                found.append(Simulated(cycles, summary["BlockRThroughput"]))
            else:
                found.append(None)
        return found or [None] * len(loops)

    def _run(self, regions: list[list[str]], iterations: int) -> list[dict[str, Any]]:
        """What it writes of each of the regions, in order; [] where it fails."""
        lines: list[str] = []
        for number, texts in enumerate(regions):
            begin = f"# LLVM-MCA-BEGIN {number}"
            lines += [begin, *(texts or ["nop"]), f"# LLVM-MCA-END {number}"]
        command = [self.path, "-mtriple=x86_64-unknown-linux-gnu", f"-mcpu={self.cpu}", "--json"]
        command += [f"-iterations={iterations}", "--skip-unsupported-instructions=any", "-"]
        try:
            done = subprocess.run(
                command, input="\n".join([*lines, ""]), capture_output=True, text=True, timeout=_SECONDS
            )
            answered = json.loads(done.stdout)["CodeRegions"]
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
            return []
        by_name = {region.get("Name"): region for region in answered}
        return [by_name.get(str(number), {}) for number in range(len(regions))]


def cpu_of(target: Target) -> str:
    """The level of x86-64 that has the features of a target: LLVM has the table of one CPU for each."""
    features = target.features
    return "x86-64-v4" if "avx512f" in features else "x86-64-v3" if "avx2" in features else "x86-64-v2"


def find(target: Target, clang: str) -> Analyser | None:
    """The one beside clang, or of PATH. None: there is none, or it has no tables for the architecture."""
    if target.architecture != "x86_64":
        return None
    beside = os.path.dirname(os.path.realpath(clang)) if os.path.isabs(clang) else ""
    found = (shutil.which(name, path=folder) for folder in (beside, None) if folder != "" for name in _NAMES)
    path = next(filter(None, found), None)
    return Analyser(path, target) if path else None


def about(analyser: Analyser | None) -> str:
    """Whose figures a report has, in a sentence."""
    if analyser is None:
        return "no llvm-mca: what instructions take is by a table of the report's own"
    return f"what instructions take is by {os.path.basename(analyser.path)}, for {analyser.cpu}"
