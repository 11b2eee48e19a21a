"""Runs a program on this driver, and no other: cl-driver run [OPTIONS] -- PROGRAM ARGUMENTS.

Nothing need be registered, and no variable set. --trace FILE writes what the program does with OpenCL, by
time: open FILE in ui.perfetto.dev, or make a page of it with cl-driver trace. --profile prints what took its
time when it ends; --profile FILE writes the same as JSON, for cl-driver profile.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections.abc import Mapping
from typing import Any

from .. import native


def _path(text: str) -> str:
    return os.path.abspath(text)


def _path_or_dash(text: str) -> str:
    return text if text == "-" else _path(text)


# Options that are settings: the option, its setting, and what argparse is told of it (a flag sets the setting
# to 1). Paths are made absolute, for the program may go elsewhere.
_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--trace", "CL_DRIVER_TRACE", {"metavar": "FILE", "type": _path, "help": "write a trace of it"}),
    (
        "--profile",
        "CL_DRIVER_PROFILE",
        {
            "metavar": "FILE",
            "type": _path_or_dash,
            "nargs": "?",
            "const": "-",
            "help": "print or write a profile",
        },
    ),
    ("--check", "CL_DRIVER_CHECK", {"action": "store_true", "help": "check what its kernels do"}),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options, and the program."""
    for option, setting, more in _OPTIONS:
        parser.add_argument(option, dest=setting, **more)
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...", help="with its arguments"
    )


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """What tells every loader of this driver: ocl-icd takes a library in place of a folder, where Khronos'
    loader finds nothing, but that one reads another variable, too."""
    library = str(native.library())
    others = {name: value for name, value in base.items() if name != "OPENCL_VENDOR_PATH"}
    return others | {"OCL_ICD_VENDORS": library, "OCL_ICD_FILENAMES": library}


def _begin_trace(path: str) -> None:
    """Makes the file anew, and has the program hold the lock that keeps others from doing so: what it starts
    adds to the file, at the same time or one after the other (native_shim/src/trace/writer.c)."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    fcntl.flock(file, fcntl.LOCK_SH)
    os.set_inheritable(file, True)


def _chosen(options: argparse.Namespace) -> dict[str, str]:
    """The settings of the options that were given."""
    values = {setting: getattr(options, setting, None) for _, setting, _ in _OPTIONS}
    return {name: "1" if value is True else value for name, value in values.items() if value}


def run(options: argparse.Namespace) -> int:
    """The subcommand: becomes the program. Exit status 127 if there is none, 126 if it cannot be run."""
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        print("cl-driver run: which program? cl-driver run -- PROGRAM ARGUMENTS", file=sys.stderr)
        return 2
    if not native.library().exists():
        print(f"cl-driver run: there is no {native.library()}: build it first (make setup)", file=sys.stderr)
        return 1
    chosen = _chosen(options)
    trace = chosen.get("CL_DRIVER_TRACE", "")
    if trace and "%p" not in trace:
        _begin_trace(trace)
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environment(os.environ) | chosen)
    except FileNotFoundError:
        print(f"cl-driver run: {command[0]}: there is no such program", file=sys.stderr)
        return 127
    except OSError as error:
        print(f"cl-driver run: {command[0]}: {error.strerror}", file=sys.stderr)
        return 126
