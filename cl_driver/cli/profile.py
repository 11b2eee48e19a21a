"""Make a page of a profile: what kernels, transfers, builds and waits took, and a roofline plot.

FILE is what a program has written that ran with CL_DRIVER_PROFILE=FILE, or by cl-driver run --profile FILE.
The page needs nothing else: it may be sent and kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command line may have."""
    parser.add_argument("file", metavar="FILE", help="a profile, as JSON")
    parser.add_argument(
        "-o", "--output", metavar="PAGE", help="the page; FILE with .html in its place otherwise"
    )


def run(options: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 for a file that is no profile."""
    from ..profile.page import page_html
    from ..profile.read import NotAProfileError, read

    page = Path(options.output) if options.output else Path(options.file).with_suffix(".html")
    try:
        profile = read(Path(options.file))
    except NotAProfileError as error:
        print(f"cl-driver profile: {error}", file=sys.stderr)
        return 1
    page.write_text(page_html(profile), encoding="utf-8")
    print(page)
    return 0
