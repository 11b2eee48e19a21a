"""Runs the modules of the table in this process: the interpreter, and compiled at several widths.

    python -m tests.instructions.run [--types i32,f32] [--counts 1,4] [--widths 1,4,8,16] [--modes ...]
                                     [--items N]

runs the cross product of what is given, everything by default, and prints what differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from cl_driver.interp.run import run as interpret
from cl_driver.spirv.reading.reader import read
from cl_driver.spirv.types import TypeTable
from cl_driver.spirv.validation.validate import validate
from tests.instructions import spec_constants, special_more, table
from tests.instructions.compare import report
from tests.instructions.module import Kernel
from tests.runtime.kernel_harness import Program, builtin_library


def interpreted(kernel: Kernel, data: bytes):
    """`out` as the interpreter leaves it."""
    out = kernel.output()
    module = read(data, None, TypeTable(builtin_library().types))
    validate(module)
    interpret(module, "k", [out, kernel.input()], (kernel.items,), (kernel.local,), library=builtin_library())
    return out


def compiled(kernel: Kernel, data: bytes, width: int, options=None):
    """`out` as compiled code leaves it."""
    out = kernel.output()
    Program(data, options, width).run("k", kernel.items, kernel.local, out, kernel.input())
    return out


def check(kernel: Kernel, widths, options=None) -> list[str]:
    """What differs between the interpreter and compiled code at those widths, with those CodegenOptions."""
    data = kernel.module()
    wanted = interpreted(kernel, data)
    lines = spec_constants.unequal(kernel, wanted)
    for width in widths:
        got = compiled(kernel, data, width, options)
        lines += report(kernel, got, wanted, (f"width {width}", "interpreter"))
    return lines


def chosen(options) -> Iterator[Kernel]:
    """The kernels that the command line asks for."""
    if options.special is not None:
        yield from (kernel for kernel in special_more.kernels() if options.special in kernel.name)
        return
    for mode in options.modes.split(","):
        for scalar in options.types.split(","):
            for count in map(int, options.counts.split(",")):
                yield from table.kernels(scalar, count, options.items, mode)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--types", default=",".join((*table.INTEGERS, *table.FLOATS)))
    parser.add_argument("--counts", default=",".join(map(str, table.COUNTS)))
    parser.add_argument("--widths", default="1,4,8,16")
    parser.add_argument("--modes", default=",".join(table.MODES))
    parser.add_argument("--items", type=int, default=37)
    parser.add_argument(
        "--special", nargs="?", const="", help="instead: the modules of special*.py (of that name)"
    )
    options = parser.parse_args()
    widths = [int(width) for width in options.widths.split(",")]
    bad = total = 0
    for kernel in chosen(options):
        start = time.monotonic()
        try:
            lines = check(kernel, widths)
        except Exception as error:
            lines = [f"{kernel.name}: {type(error).__name__}: {error}"[:400]]
        bad, total = bad + len(lines), total + len(kernel.results)
        print(f"{kernel.name}: {len(kernel.results)} results, {time.monotonic() - start:.1f} s", flush=True)
        for line in lines:
            print("   ", line, flush=True)
    print(f"{total} results at widths {options.widths}, {bad} differ")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
