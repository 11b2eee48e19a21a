"""oclgrind's test-suite in the check mode: python tests/peers/check_oclgrind.py FOLDER [--filter REGEX]

FOLDER is a clone of github.com/jrprice/Oclgrind. Runs the kernel of each tests/kernels/*/*.sim with checks,
here and in Debian's oclgrind, and compares with what the .ref file expects: the same kinds of defects, at one
of the lines that oclgrind names. Prints a table; exits with 1 if a defect is missed, or told where there is
none.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import check_runs
import numpy as np
from check_runs import Argument

_TYPES = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
_FLAGS = {"ro": 4, "wo": 2}  # CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY
# Tests of oclgrind's debugger.
_LEFT_OUT = {"interactive/pointers", "interactive/struct_member"}


class Simulation:
    """A .sim file: its words, in order, with arguments' heads in one piece."""

    def __init__(self, path: Path):
        text = re.sub(r"#.*", "", path.read_text())
        self.words = re.findall(r"<[^>]*>|[^\s<>]+", text)
        self.program = path.parent / self.words.pop(0)
        self.kernel = self.words.pop(0)
        sizes = [int(self.words.pop(0)) for _ in range(6)]
        self.sizes = (sizes[:3], sizes[3:])

    def argument(self, index: int, argument: Argument) -> str:
        """The line of check_host.c of the next argument."""
        head = self.words.pop(0).strip("<>").split()
        values = dict(word.partition("=")[::2] for word in head)
        if "null" in values:
            return "null"
        size = int(values["size"])
        if argument.space in ("global", "constant") and not size:
            return "null"  # there are no buffers of 0 bytes
        if argument.space == "local":
            return f"local {size}"
        flags = next((flag for word, flag in _FLAGS.items() if word in values), 1)
        if "noinit" in values:
            return f"buffer {flags} {size} -"
        file = check_runs.file_of(f"argument{index}", self.content(size, values, argument).tobytes())
        return f"value {size} {file}" if argument.space == "private" else f"buffer {flags} {size} {file}"

    def content(self, size: int, values: dict, argument: Argument) -> np.ndarray:
        names = [name for name in _TYPES if name in values]
        # Without a type it is that of the kernel, without its vector's width; void counts as bytes.
        own = re.match(r"[a-z]+", argument.type.replace("unsigned ", "u"))
        kind = np.dtype(_TYPES.get(names[0] if names else own[0] if own else "", np.uint8))
        count = size // kind.itemsize

        def number(text: str):
            if kind.kind == "f":
                return float(text)
            value = int(text, 16 if "hex" in values else 10)
            return (
                value - (1 << 8 * kind.itemsize)
                if kind.kind == "i" and value >> (8 * kind.itemsize - 1) > 0
                else value
            )

        if "fill" in values:
            items = [number(values["fill"])] * count
        elif "range" in values:
            start, step, _ = map(number, values["range"].split(":"))
            items = [start + step * i for i in range(count)]
        else:
            items = [number(self.words.pop(0)) for _ in range(count)]
        if kind.kind == "u":
            items = [item % (1 << 8 * kind.itemsize) for item in items]
        return np.array(items, kind)


def expected(reference: Path) -> set[str]:
    """The kinds of the defects that a .ref file has."""
    errors = re.findall(r"(?m)^ERROR (.*)$", reference.read_text()) if reference.exists() else []
    return {check_runs.oclgrind_reports(error)[0].kind for error in errors}


def names_copy(program: Path, lines: set[int]) -> bool:
    """Whether one of the lines is that of a copy of the group: oclgrind names the one that waits for it."""
    text = program.read_text().splitlines()
    return any("async_work_group" in text[line - 1] for line in lines if line <= len(text))


def compare(name: str, program: Path, wanted: set[str], outcomes: dict) -> tuple[bool, str]:
    """Whether all is as it should be, and the line of the table."""
    ours, theirs = outcomes["ours"], outcomes["oclgrind"]
    # What a bad read has got is nobody's: a second report of the same defect.
    missed = wanted - ours.kinds() - ({"unwritten"} if "bounds" in ours.kinds() else set())
    alarms = ours.kinds() - wanted
    if "divergence" in wanted:  # what follows is as nobody meant it
        alarms -= {"race", "unwritten"}
    if "wait" in wanted:  # the copy goes on meanwhile
        alarms -= {"race"}
    elsewhere = {
        kind
        for kind in wanted & ours.kinds() & theirs.kinds()
        if theirs.lines(kind)
        and not ours.lines(kind) & theirs.lines(kind)
        and not names_copy(program, ours.lines(kind))
    }
    words = [f"{', '.join(sorted(wanted)) or 'clean':22}"]
    words += [f"missed {kind}" for kind in sorted(missed)]
    words += [f"false alarm {kind} at {sorted(ours.lines(kind))}" for kind in sorted(alarms)]
    words += [
        f"{kind} at {sorted(ours.lines(kind))}, not at {sorted(theirs.lines(kind))}"
        for kind in sorted(elsewhere)
    ]
    if ours.status:
        words.append(f"ended with {ours.status}: {ours.text[-200:]}")
    if theirs.kinds() != wanted:
        words.append(f"(oclgrind: {', '.join(sorted(theirs.kinds())) or 'nothing'})")
    is_right = not (missed or alarms or elsewhere or ours.status)
    return is_right, f"{'ok  ' if is_right else 'BAD '} {name:44} {' '.join(words)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--checker", choices=("ours", "oclgrind"), default="ours", help="what is looked at")
    arguments = parser.parse_args()
    host = check_runs.prepare()
    kernels = arguments.folder.resolve() / "tests" / "kernels"
    counts = {"ok": 0, "bad": 0, "left out": 0}
    for name in (kernels / "TESTS").read_text().split():
        if not re.search(arguments.filter, name):
            continue
        if name in _LEFT_OUT:
            counts["left out"] += 1
            continue
        simulation = Simulation(kernels / f"{name}.sim")
        options = "-cl-std=CL1.2"
        found = check_runs.signatures(host, simulation.program, options)
        if isinstance(found, str):
            options = "-cl-std=CL3.0"
            found = check_runs.signatures(host, simulation.program, options)
        if isinstance(found, str):
            print(f"BAD  {name:44} does not build: {found[-300:]}")
            counts["bad"] += 1
            continue
        lines = [simulation.argument(i, argument) for i, argument in enumerate(found[simulation.kernel])]
        described = (simulation.kernel, simulation.sizes, lines)
        theirs = check_runs.run(host, "oclgrind", check_runs.job(simulation.program, "", *described))
        ours = theirs
        if arguments.checker == "ours":
            ours = check_runs.run(host, "ours", check_runs.job(simulation.program, options, *described))
        outcomes = {"oclgrind": theirs, "ours": ours}
        is_right, line = compare(name, simulation.program, expected(kernels / f"{name}.ref"), outcomes)
        print(line, flush=True)
        counts["ok" if is_right else "bad"] += 1
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return bool(counts["bad"])


if __name__ == "__main__":
    sys.exit(main())
