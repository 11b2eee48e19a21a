"""Runs a program in gdb, which finds its kernels: cl-driver gdb -- PROGRAM ARGUMENTS.

Kernels are to be built with -g -cl-opt-disable for their variables to be shown. The program runs on this
driver, and gdb has the commands "info kernel", "info work-items" and "work-item X Y Z".
"""

from __future__ import annotations

import argparse
import os
import sys

from ..debugger import GDB_SCRIPT
from .run import environment


def arguments(parser: argparse.ArgumentParser) -> None:
    """The program."""
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...", help="with its arguments"
    )


def run(options: argparse.Namespace) -> int:
    """The subcommand: becomes gdb. Exit status 127 if there is none."""
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        print("cl-driver gdb: which program? cl-driver gdb -- PROGRAM ARGUMENTS", file=sys.stderr)
        return 2
    command = ["gdb", "-x", str(GDB_SCRIPT), "-ex", "set breakpoint pending on", "--args", *program]
    sys.stdout.flush()
    try:
        os.execvpe("gdb", command, environment(os.environ) | {"CL_DRIVER_JIT_DEBUG": "gdb"})
    except FileNotFoundError:
        print("cl-driver gdb: there is no gdb: apt install gdb", file=sys.stderr)
        return 127
