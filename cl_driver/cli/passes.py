"""Show what the passes make of a kernel: its plan, or the function after each pass.

The plan is printed with the lane stride of every value behind it and the masks of instructions (widths above
1). --after NAME prints the function after a pass ("all" for every one), on standard error.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..builtins.library import Library
    from ..spirv.module import Module


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command line may have."""
    parser.add_argument("file", help="a .spv file, or OpenCL C source")
    parser.add_argument("kernel", nargs="?", help="only this kernel")
    parser.add_argument("--width", type=int, default=1, help="work-items per vector")
    parser.add_argument("--linear-lanes", action="store_true", help="lanes follow the linear local id")
    parser.add_argument("--parts", default="1x", help="vectors executed together and their dimension: 4x, 4y")
    parser.add_argument("--library", action="store_true", help="expand built-in functions (widths above 1)")
    parser.add_argument("--options", default="", help="build options for OpenCL C")
    parser.add_argument("--after", action="append", default=[], metavar="PASS", help="print after this pass")
    parser.add_argument("--times", action="store_true", help="how long each pass took, on standard error")


def run(args: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 for a program that is wrong."""
    from .. import settings
    from ..device.target import PARTS
    from ..passes.ir.dump import plan_text
    from ..passes.ir.plan import PlanError, PlanOptions
    from ..passes.ir.verify import VerifyError
    from ..passes.pipeline import plan, timings
    from ..spirv.errors import SpirvError

    if args.width < 1 or args.width & (args.width - 1):
        print(f"a width of {args.width} is not a power of two", file=sys.stderr)
        return 1
    if not args.parts or args.parts not in PARTS:
        wanted = settings.SETTINGS["CL_DRIVER_PARTS"].wanted
        print(f"'{args.parts}' for --parts must be {wanted}", file=sys.stderr)
        return 1
    data = Path(args.file).read_bytes()
    if not args.file.endswith(".spv"):
        compiled = _compile(data, args.options)
        if compiled is None:
            return 1
        data = compiled
    options = PlanOptions(
        args.width,
        args.linear_lanes,
        parts=int(args.parts[:-1]),
        part_axis="xy".index(args.parts[-1]),
        verify=True,
        show=tuple(args.after),
    )
    try:
        module, library = _read(data, args.library)
        entries = [e for e in module.entry_points if args.kernel in (None, e.name)]
        if not entries:
            print(f"no kernel {args.kernel}", file=sys.stderr)
            return 1
        for entry_point in entries:
            timings.clear()
            start = time.perf_counter()
            made = plan(module, entry_point, options, library)
            seconds = time.perf_counter() - start
            print(plan_text(made))
            if args.times:
                times = ", ".join(f"{name} {1e3 * t:.2f}" for name, t in timings.items())
                print(f"{entry_point.name}: {1e3 * seconds:.2f} ms with verifier: {times}", file=sys.stderr)
    except (PlanError, SpirvError, VerifyError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _read(data: bytes, with_library: bool) -> tuple[Module, Library | None]:
    """The linked module, and the builtin library if it is to be expanded."""
    from ..spirv import link
    from ..spirv.reading import reader
    from ..spirv.types import TypeTable

    library: Library | None = None
    table = None
    if with_library:
        from ..compiler.pipeline import library as builtin_library

        library = builtin_library()
        table = TypeTable(library.types)
    return link.link([reader.read(data, None, table)], lambda name: True), library


def _compile(source: bytes, text: str) -> bytes | None:
    from .. import settings
    from ..frontend import opencl_c, options

    try:
        parsed = options.parse(text)
    except options.OptionError as error:
        print(error, file=sys.stderr)
        return None
    result = opencl_c.compile(source, parsed, clang=settings.text("CL_DRIVER_CLANG"))
    sys.stderr.write(result.log)
    return result.spirv
