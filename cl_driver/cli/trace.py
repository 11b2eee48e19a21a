"""Make a page of a trace: a timeline of calls, commands and threads, and a table of kernels.

FILE is what cl-driver run --trace FILE or CL_DRIVER_TRACE=FILE has left; of several, as of many processes,
one page is made. The page needs no network. ui.perfetto.dev opens FILE as it is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """Traces, and the page."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a trace")
    parser.add_argument("-o", dest="page", metavar="PAGE", help="the page; without it FILE.html")


def run(options: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 for what is no trace."""
    from ..trace.packets import whole_size
    from ..trace.page import page

    trace = b""
    for name in options.files:
        data = Path(name).read_bytes()
        try:
            size = whole_size(data)
        except ValueError as error:
            print(f"cl-driver trace: {name}: {error}", file=sys.stderr)
            return 1
        if size < len(data):
            print(f"cl-driver trace: {name}: the last packet is not whole, and is left out", file=sys.stderr)
        trace += data[:size]
    target = Path(options.page or f"{options.files[0]}.html")
    target.write_text(page(Path(options.files[0]).name, trace), encoding="utf-8")
    print(target)
    return 0
