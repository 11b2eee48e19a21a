"""Say what bounds a kernel and what to change, and show line by line how it was compiled, and why.

FILE is OpenCL C source or a .spv file; build options follow it. For each kernel: work-items per vector and
vectors at a time, what is kept across barriers, spilled registers, calls, loops with an estimate of their
cycles, and for each line of the source how it was done. What other widths would cost is estimated for a
launch (--global-size, --local-size, --value n=1024), and shown with what launches took (--profile FILE).
--html FILE writes the same as a page.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..explain.measured import Measured

TAKES_BUILD_OPTIONS = True

_MOST_LOCAL, _MOST_ITEMS = 4096, 1 << 31


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command line may have."""
    parser.add_argument("file", help="OpenCL C source, or a .spv file; options of clBuildProgram may follow")
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel")
    parser.add_argument("--width", type=int, default=0, metavar="N", help="work-items per vector")
    parser.add_argument("--parts", default="", help="vectors executed together and their dimension: 4x, 4y")
    parser.add_argument("--cpu", default="", help="the CPU to make code for, as in CL_DRIVER_CPU")
    parser.add_argument(
        "--local-size", metavar="XxYxZ", help="code for groups of this size, where there is any"
    )
    parser.add_argument("--global-size", metavar="XxYxZ", help="the launch that costs are estimated for")
    parser.add_argument(
        "--value", action="append", default=[], metavar="NAME=N", help="an integer argument of it"
    )
    parser.add_argument(
        "--profile", metavar="FILE", help="what launches took: JSON that CL_DRIVER_PROFILE has written"
    )
    parser.add_argument("--html", metavar="FILE", help="write a page as well")


def run(args: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 if there is no report."""
    from .. import settings
    from ..compiler.source import Context
    from ..device import target
    from ..device.cpu import host_cpu
    from ..explain import mca
    from ..explain.alternatives import Asked
    from ..explain.html import report_html
    from ..explain.program import explain_il, explain_source
    from ..explain.text import report_text
    from ..jit.bundle import BundleError
    from ..jit.errors import CompileError
    from ..profile.read import NotAProfileError

    cpu = args.cpu or settings.text("CL_DRIVER_CPU")
    problems = target.complaints(host_cpu(), cpu, args.width, args.parts)
    size = _sizes(args.local_size, _MOST_LOCAL)
    if size == []:
        problems.append(f"a local size of '{args.local_size}' is not of the form 256, 16x16 or 8x8x4")
    items = _sizes(args.global_size, _MOST_ITEMS)
    if items == []:
        problems.append(f"a global size of '{args.global_size}' is not of the form 65536 or 512x512")
    values: dict[str, int] = {}
    for word in args.value:
        name, _, number = word.partition("=")
        try:
            values[name] = int(number, 0)
        except ValueError:
            problems.append(f"'{word}' is not of the form NAME=NUMBER")
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    width = args.width or settings.integer("CL_DRIVER_WIDTH")
    try:
        measured = _measured(args.profile)
    except NotAProfileError as error:
        print(f"cl-driver explain: {error}", file=sys.stderr)
        return 1
    made = target.host_target(cpu, width, args.parts or settings.text("CL_DRIVER_PARTS"))
    analyser = mca.find(made, settings.text("CL_DRIVER_CLANG"))
    asked = Asked(tuple(items or ()), values, measured, analyser)
    path = Path(args.file)
    data = path.read_bytes()
    chosen = {"CL_DRIVER_CLANG": settings.text("CL_DRIVER_CLANG")}
    options = " ".join(_quoted(option) for option in args.build_options)
    try:
        context = Context(made, options, chosen, os.getcwd(), str(path.absolute()))
        if path.suffix == ".spv":
            report = explain_il(data, context, args.kernel, size, asked)
        else:
            report = explain_source(data, {}, context, args.kernel, size, asked)
    except (CompileError, BundleError) as error:
        print(str(error).rstrip(), file=sys.stderr)
        return 1
    report.about.append(mca.about(analyser))
    missing = [kernel.name for kernel in report.kernels if args.profile and kernel.measured is None]
    report.about += [f"the profile has no launch of {', '.join(missing)}"] if missing else []
    sys.stdout.write(report_text(report))
    if args.html:
        Path(args.html).write_text(report_html(report), encoding="utf-8")
    return 0


def _measured(path: str | None) -> dict[str, Measured]:
    """Kernels of a profile by their names. NotAProfileError, OSError."""
    from ..explain.measured import Measured
    from ..profile.read import read

    if not path:
        return {}
    profile = read(Path(path))
    return {
        row.name: Measured(
            profile.program,
            row.commands,
            row.items or 0,
            row.time,
            row.least,
            row.bytes_per_second,
            row.operations_per_second,
        )
        for row in profile.rows
        if row.is_kernel and row.commands and row.items
    }


def _sizes(text: str | None, most: int) -> list[int] | None:
    """Three sizes from 16x16 and the like; [] for what has no such meaning, None for no text."""
    if text is None:
        return None
    parts = text.split("x")
    if len(parts) > 3 or not all(
        part.isascii() and part.isdigit() and 0 < int(part) <= most for part in parts
    ):
        return []
    return [*map(int, parts), 1, 1][:3]


def _quoted(option: str) -> str:
    """An option as clBuildProgram wants it: in quotes if it has spaces."""
    return f'"{option}"' if " " in option else option
