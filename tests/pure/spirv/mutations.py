"""Mutates modules and runs the compiler's stages on them; they compile or are refused cleanly.

    python -m tests.pure.spirv.mutations --count 200000 [--first 0] [--stages passes|codegen] [--step 500]

prints each defect with the seed that repeats it (--only SEED), and the figures.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import signal
import struct
import sys
import time
import traceback
from collections import Counter

from cl_driver.codegen.kernel.emit import emit
from cl_driver.codegen.layout.program_globals import layout_globals
from cl_driver.codegen.llvm.errors import CodegenError
from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.compiler.pipeline import library
from cl_driver.compiler.prepared import is_builtin
from cl_driver.passes.pipeline import PlanError, PlanOptions, plan
from cl_driver.spirv import link, reflect
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.reading.dis import disassemble
from cl_driver.spirv.types import TypeTable
from cl_driver.spirv.validation import validate

from .corpus import modules

SECONDS = 5  # of processor time that one module may take
MEMORY = 3 << 30  # bytes of address space
CLEAN = (SpirvError, PlanError, CodegenError)


class Hang(BaseException):
    """A module took longer than SECONDS of processor time."""


def instructions(words: list[int]) -> list[int]:
    """The offsets of the instructions, as far as the word counts make sense."""
    found, p = [], 5
    while p < len(words) and words[p] >> 16:
        found.append(p)
        p += words[p] >> 16
    return found


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One module with one to four changes: of bits, words, ids, opcodes, whole instructions, its length."""
    words = list(struct.unpack(f"<{len(data) // 4}I", data))
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3, 4))):
        change(words, rng)
    data = struct.pack(f"<{len(words)}I", *words)
    return data[: rng.randrange(len(data))] if rng.random() < 0.01 else data


def change(words: list[int], rng: random.Random) -> None:
    starts = instructions(words)
    if len(words) < 8 or len(starts) < 3:
        return
    i, j = rng.randrange(5, len(words)), rng.randrange(5, len(words))
    a, b = sorted(rng.sample(starts, 2))
    size_a, size_b = words[a] >> 16, words[b] >> 16
    kind = rng.randrange(14)
    if kind == 0:
        words[rng.randrange(len(words)) if rng.random() < 0.1 else i] ^= 1 << rng.randrange(32)
    elif kind == 1:
        words[i], words[j] = words[j], words[i]
    elif kind == 2:
        del words[i if rng.random() < 0.1 else b :]
    elif kind in (3, 4, 5):  # an id for another, in an instruction's operands
        p = rng.randrange(b + 1, b + size_b) if size_b > 1 else i
        if p < len(words):
            words[p] = rng.randrange(1, max(2, min(words[3], 1 << 20) + 1))
    elif kind == 6:
        words[i] = rng.choice((0, 1, 2, 3, 4, 8, 16, 64, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))
    elif kind == 7:
        words[b] = words[b] & ~0xFFFF | rng.choice((rng.randrange(450), words[a] & 0xFFFF))
    elif kind == 8:  # two instructions change places
        words[a : b + size_b] = words[b : b + size_b] + words[a + size_a : b] + words[a : a + size_a]
    elif kind == 9:  # an instruction moves
        moved = words[b : b + size_b]
        del words[b : b + size_b]
        words[a:a] = moved
    elif kind == 10:  # an instruction again, with a new result
        copy = words[a : a + size_a]
        if size_a > 2:
            copy[2] = words[3]
            words[3] += 1
        words[b:b] = copy
    elif kind == 11:
        del words[b : b + size_b]
    elif kind == 12:  # two ids change places, everywhere
        x, y = (rng.randrange(1, max(2, min(words[3], 1 << 20))) for _ in range(2))
        swap = {x: y, y: x}
        for start in starts:
            for p in range(start + 1, min(start + (words[start] >> 16), len(words))):
                words[p] = swap.get(words[p], words[p])
    else:
        words[i:i] = words[j : j + rng.randrange(1, 8)]


def case(seed: int, corpus: list[bytes]) -> bytes:
    """The module of a seed."""
    rng = random.Random(seed)
    return mutate(rng.choice(corpus), rng)


def compile_all(data: bytes, widths=(1, 8), codegen: bool = False) -> str:
    """All stages. What they made of the module: the stage that refused it, or "compiled"."""
    stage = "reader"
    try:
        module = link.link([reader.read(data, None, TypeTable(library().types))], is_builtin)
        stage = "validator"
        validate.validate(module)
        reflect.reflect(module)
        layout = layout_globals(module)
        for entry in module.entry_points:
            for width in widths:
                stage = "passes"
                made = plan(module, entry, PlanOptions(width=width, verify=True), library())
                if codegen:
                    stage = "codegen"
                    emit(made, CodegenOptions(), library(), layout)
    except CLEAN as error:
        if not str(error).strip():
            raise AssertionError(f"{type(error).__name__} without a message") from error
        return stage
    return "compiled"


def try_one(data: bytes, **options) -> str:
    """compile_all and the disassembler within the limit of time. Raises what is a defect."""

    def late(_signal, _frame):
        raise Hang(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with contextlib.suppress(SpirvError):
            disassemble(data)
        return compile_all(data, **options)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run(seeds, codegen: bool, seen: Counter) -> Counter:
    """Runs the modules of some seeds; defects are printed, once for each place in the code."""
    corpus, outcomes = modules(), Counter()
    for seed in seeds:
        try:
            outcomes[try_one(case(seed, corpus), codegen=codegen)] += 1
        except (Exception, Hang) as problem:
            outcomes["defect"] += 1
            trace = traceback.extract_tb(problem.__traceback__)
            last = next((f for f in reversed(trace) if "cl_driver" in f.filename), trace[-1])
            place = f"{last.filename.split('/cl_driver/')[-1]}:{last.lineno} {last.name}"
            key = f"{type(problem).__name__} in {place}"
            seen[key] += 1
            if seen[key] == 1:
                print(f"seed {seed}: {key}: {str(problem)[:200]}", flush=True)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="one seed, with its traceback")
    parser.add_argument("--save", help="with --only: where the module is left")
    parser.add_argument("--step", type=int, default=500, help="modules after which it says how far it is")
    parser.add_argument("--stages", choices=("passes", "codegen"), default="codegen")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if args.only is not None:
        data = case(args.only, modules())
        if args.save:
            with open(args.save, "wb") as out:
                out.write(data)
        print(try_one(data, codegen=args.stages == "codegen"))
        return 0
    start, seen, outcomes = time.perf_counter(), Counter(), Counter()
    for first in range(args.first, args.first + args.count, args.step):
        last = min(first + args.step, args.first + args.count)
        outcomes += run(range(first, last), args.stages == "codegen", seen)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"{last - args.first} of {args.count} modules, {time.perf_counter() - start:.0f} s, {peak} MiB: "
            + ", ".join(f"{what} {count}" for what, count in outcomes.most_common()),
            flush=True,
        )
    for key, count in seen.most_common():
        print(f"{count:6} {key}")
    return outcomes["defect"] > 0


if __name__ == "__main__":
    sys.exit(main())
