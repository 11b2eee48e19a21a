"""What the compiler hands to LLVM for the benchmark's kernels: whether a change of the driver changed it.

    python -m tests.bench.texts > BEFORE          # a line for each text: md5, CPU level, kernel, code
    python -m tests.bench.texts --against BEFORE  # only the lines that differ; exit status 1 if any does

Codes are the entry and the variants that a launch may get (cl_driver/compiler/variants.py), for AVX2 and for
AVX-512, whatever this machine is. This machine's clang makes the SPIR-V: compare on one machine. --write
FOLDER keeps the texts.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from cl_driver.compiler import pipeline, variants
from cl_driver.compiler.source import Context, compile_source
from cl_driver.jit.errors import CompileError
from tests.bench.cases import BENCHMARKS
from tests.pages.stages import target

LEVELS = ("x86-64-v3", "x86-64-v4")
GROUPS = ((64, 1, 1), (256, 1, 1), (16, 16, 1))  # local sizes that get code of their own


def codes(program: pipeline.Prepared, name: str) -> Iterator[tuple[str, str]]:
    """(code, LLVM text) of a kernel: the entry, and those of the variants that there can be."""
    entry = pipeline.entry(program, name)
    yield "entry", entry.text
    wanted: list[tuple[str, str, tuple[int, ...]]] = [("more", variants.MORE, ())] if entry.has_more else []
    if entry.has_narrow:
        wanted.append(("narrow", variants.NARROW, ()))
    if entry.has_rest:
        wanted.append(("rest", variants.REST, (entry.width, *entry.tile)))
    if entry.tiles is not None:
        wanted.append(("tiled", variants.TILED, (entry.tiles.width, *entry.tile_of_tiles)))
    if entry.is_for_any_image:
        wanted.append(("any", variants.ANY, ()))
    if entry.may_run_in_lockstep:
        wanted += [("group " + "x".join(map(str, size)), variants.GROUP, size) for size in GROUPS]
    for code, variant, size in wanted:
        try:
            yield code, variants.variant(program, name, variant, list(size), entry.apart_args).text
        except CompileError as error:
            yield code, f"none: {error}"


def texts(level: str, names: list[str]) -> Iterator[tuple[str, str, str]]:
    """(kernel, code, LLVM text) of all benchmarks' kernels for a level of CPUs, of those with a name among
    `names` if there are any."""
    sources = {(b.topic, b.entry_point): b.source for b in BENCHMARKS.values()}
    context = Context(target(level), "-cl-std=CL3.0", {})
    for (topic, _), source in sorted(sources.items()):
        spirv = compile_source(source, {}, context)
        if spirv.spirv is None:
            raise RuntimeError(f"{topic}: {spirv.log}")
        program = pipeline.prepare(spirv.spirv, context)
        for name in program.names:
            if not names or name in names:
                for code, text in codes(program, name):
                    yield name, code, text


def main() -> int:
    """Prints; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="kernels; all without one")
    parser.add_argument("--against", type=Path, metavar="BEFORE", help="what an earlier run printed")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="keep the texts there")
    arguments = parser.parse_args()
    before = arguments.against and set(arguments.against.read_text().splitlines())
    found = set()
    for level in LEVELS:
        for name, code, text in texts(level, arguments.names):
            line = f"{hashlib.md5(text.encode()).hexdigest()} {level} {name} {code}"
            found.add(line)
            if before is None or line not in before:
                print(line, flush=True)
            if arguments.write:
                arguments.write.mkdir(parents=True, exist_ok=True)
                (arguments.write / f"{name}.{code}.{level}.ll".replace(" ", ".")).write_text(text)
    if before is None:
        return 0
    made = {line.partition(" ")[2] for line in found}
    gone = {what for line in before if (what := line.partition(" ")[2]) not in made}
    if arguments.names:
        gone = {what for what in gone if what.split()[1] in arguments.names}
    print(*(f"gone: {what}" for what in sorted(gone)), sep="\n", end="\n" if gone else "")
    counts = f"{len(found - before)} of them not as before, {len(gone)} gone"
    print(f"{len(found)} texts, {counts}", file=sys.stderr)
    return 1 if gone or found - before else 0


if __name__ == "__main__":
    sys.exit(main())
