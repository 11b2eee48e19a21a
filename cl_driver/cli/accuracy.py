"""Measure the errors of built-in functions on the device, and how long they take.

Each function is called as programs call it, at the default width, for special values, random ones and all
ranges that matter; the reference is the C library's functions of wider types, of quadruple precision for
double where it has them, compiled at the start (it needs a C compiler, and the Python package numpy; for
plots matplotlib). Writes accuracy.md, accuracy.html and plots. The exit status is 1 if a function is over the
bound of the specification.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command line may have."""
    parser.add_argument("--functions", default="", metavar="A,B", help="only these; all without it")
    parser.add_argument("--types", default="float,double,half", help="of float,double,half")
    parser.add_argument(
        "--count", type=int, default=300_000, help="arguments per function, about; special values come on top"
    )
    parser.add_argument("--no-time", action="store_true", help="leave out the cycles")
    parser.add_argument(
        "--options", default="", help="build options of the kernels: --options=-cl-mad-enable"
    )
    parser.add_argument("--output", type=Path, default=Path("accuracy"), help="folder of the report")
    parser.add_argument(
        "--readme", type=Path, metavar="FILE", help="put an overview between the marks 'table' of this file"
    )


def run(args: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 if a function is over its bound, or nothing could be measured."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("cl-driver accuracy needs numpy: pip install numpy", file=sys.stderr)
        return 1
    from ..accuracy.functions import FUNCTIONS, TYPES

    names = args.functions.split(",") if args.functions else list(FUNCTIONS)
    unknown = [name for name in names if name not in FUNCTIONS]
    unknown += [name for name in args.types.split(",") if name not in TYPES]
    if unknown or args.count < 1:
        print(f"unknown: {', '.join(unknown)}" if unknown else "--count must be positive", file=sys.stderr)
        return 1
    return _measure(args, names)


def _measure(args: argparse.Namespace, names: list[str]) -> int:
    from ..accuracy import report
    from ..accuracy.device import Device
    from ..accuracy.functions import TYPES
    from ..accuracy.measure import measure
    from ..api.generated import enums as cl

    device, rows = Device(args.options), []
    types = [TYPES[name] for name in args.types.split(",") if device.supports(TYPES[name])]
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(device, types, names, args.count, Path(folder), not args.no_time):
            rows.append(row)
            mark = "  OVER ITS BOUND" if row.is_over else ""
            print(f"{row.name:10} {row.type:7} {row.error:.3g} ulp{mark}", file=sys.stderr, flush=True)
    about = f"{device.info(cl.CL_DEVICE_NAME)}, cl_driver {device.info(cl.CL_DRIVER_VERSION)}"
    args.output.mkdir(parents=True, exist_ok=True)
    plots = report.plots(rows, args.output)
    if not plots:
        print("no plots: pip install matplotlib", file=sys.stderr)
    (args.output / "accuracy.md").write_text(report.markdown(rows, about))
    (args.output / "accuracy.html").write_text(report.html(rows, about, plots))
    if args.readme:
        report.put_between(args.readme, "table", report.overview(rows))
    print("\n".join(report.summary(rows)))
    return int(any(row.is_over for row in rows))
