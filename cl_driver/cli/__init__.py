"""The cl-driver command. Every module of this package that has a function `run` is a subcommand.

A subcommand's module has: a docstring, whose first line is its help; arguments(parser), optional;
run(arguments) -> exit status; TAKES_BUILD_OPTIONS, if what argparse does not know are options of
clBuildProgram, which run() finds in arguments.build_options. Its name is the module's with - for _.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from types import ModuleType

from ..version import VERSION


def commands() -> dict[str, ModuleType]:
    """The modules of the subcommands, by the name that is typed."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(loaded, "run"):
            found[module.name.replace("_", "-")] = loaded
    return found


def main(argv: list[str] | None = None) -> int:
    """Runs a command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="cl-driver", description="An OpenCL driver for CPUs: registers it, checks it, shows its stages."
    )
    parser.add_argument("--version", action="version", version=f"cl_driver {VERSION}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    modules = commands()
    for name, module in modules.items():
        text = (module.__doc__ or "").strip()
        sub = subparsers.add_parser(
            name, help=text.splitlines()[0].rstrip(".") if text else "", description=text
        )
        if hasattr(module, "arguments"):
            module.arguments(sub)
    arguments, rest = parser.parse_known_args(argv)
    if rest and not hasattr(modules[arguments.command], "TAKES_BUILD_OPTIONS"):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    arguments.build_options = rest
    try:
        status: int = modules[arguments.command].run(arguments)
        return status
    except BrokenPipeError:
        return 1
    except OSError as error:
        print(f"cl-driver {arguments.command}: {error}", file=sys.stderr)
        return 1
