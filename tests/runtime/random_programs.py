"""Compares thousands of random kernels of all types with the interpreter, at several widths.

    python -m tests.runtime.random_programs [--count N] [--seed FIRST] [--widths 1,8,16] [--jobs N]

Each is run by the interpreter as clang wrote it, and by the code of each width, above 1 with random parts. Of
every second one the functions stay calls at width 1, however small they are.
Kernels run in processes of their own, so that one that crashes is found, too. Prints the seeds that fail.
"""

from __future__ import annotations

import contextlib
import random
import re
import sys

from tests.runtime.random_shares import failure, main

WIDTHS = (1, 8, 16)


@contextlib.contextmanager
def all_calls_kept(wanted: bool = True):
    """Whatever may stay a call does, while this lasts; with lanes, as PlanOptions.keeps_calls asks for it."""
    from unittest.mock import patch

    from cl_driver.passes.lower import kept_calls

    with contextlib.ExitStack() as stack:
        for name, value in (("FEW", 0), ("SMALL", 0), ("LEAST_CALLS", 1), ("LARGE", 0)) if wanted else ():
            stack.enter_context(patch.object(kept_calls, name, value))
        yield


def check(seed: int, widths=WIDTHS, split: int = 1) -> None:
    """One random kernel; raises AssertionError where the code differs from the interpreter."""
    import numpy as np

    from cl_driver.interp.run import run as interpret
    from tests.pure.random.typed import COUNTERS, OWN, TypedKernel
    from tests.runtime.kernel_harness import Program, builtin_library, compile_c

    kernel = TypedKernel(seed)
    calls = seed % 2 == 1
    noinline = r"__attribute__((noinline)) \1" if calls else r"\1"
    data = compile_c(re.sub(r"^(\w+ (?:h\d+|mixed)\()", noinline, kernel.source, flags=re.MULTILINE))
    items = int(np.prod(kernel.global_size))
    draw = np.random.default_rng(seed)
    given = draw.integers(-50, 100, 32).astype(np.int32)
    memory = draw.integers(-(1 << 31), 1 << 31, items * OWN).astype(np.int32)
    counters = draw.integers(0, 1 << 32, COUNTERS).astype(np.uint32)
    want = None
    for width in widths:
        choice = random.Random(f"{seed} {width}")
        parts, axis = choice.choice(((1, 0), (1, 0), (2, 0), (2, 1), (4, 1), (3, 0)))
        if width == 1:
            parts = axis = 0
        program = Program(data, width=width, parts=max(parts, 1), part_axis=axis)
        if want is None:
            want = [np.zeros(items, np.int32), memory.copy(), counters.copy()]
            arguments = [want[0], given.copy(), 5, *want[1:]]
            sizes = kernel.global_size, kernel.local_size
            interpret(program.module, "k", arguments, *sizes, library=builtin_library())
        got = [np.zeros(items, np.int32), memory.copy(), counters.copy()]
        arguments = [got[0], given.copy(), np.int32(5), *got[1:]]
        with all_calls_kept(calls):
            program.run("k", kernel.global_size, kernel.local_size, *arguments, split=split)
        for name, a, b in zip(("out", "memory", "counters"), want, got, strict=True):
            where = np.flatnonzero(a != b)[:4]
            assert not len(where), (
                f"seed {seed} at width {width}, {parts} parts along {axis}: {name}{where} is {b[where]}, "
                f"not {a[where]}; {kernel.global_size} in groups of {kernel.local_size}\n{kernel.source}"
            )


def work(first: int, end: int, widths) -> None:
    """A process's share: says `start SEED`, then `ok` or what is wrong."""
    for seed in range(first, end):
        print(f"start {seed}", flush=True)
        try:
            check(seed, widths)
            print("ok", flush=True)
        except Exception as problem:
            print(failure(problem), flush=True)


if __name__ == "__main__":
    sys.exit(main(__spec__.name, __doc__.splitlines()[0], ",".join(map(str, WIDTHS)), work))
