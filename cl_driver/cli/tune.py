"""Try local sizes and build options of a kernel, and print what each takes.

FILE is OpenCL C source; build options follow it. Buffers are made as large as the launch accesses them where
the compiler can tell, and hold zeros; numbers, and what it cannot tell, are asked for. A kernel that has
memory which may be made for one local size is tried with those that --local-size names, the first being what
the others are compared with.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

TAKES_BUILD_OPTIONS = True

_MOST_ITEMS = 1 << 31


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command line may have."""
    parser.add_argument("file", help="OpenCL C source; options of clBuildProgram may follow")
    parser.add_argument("--kernel", metavar="NAME", help="which, if there are several")
    parser.add_argument("--global-size", metavar="XxYxZ", required=True, help="the launch: 65536, 512x512")
    parser.add_argument(
        "--local-size", metavar="XxYxZ", action="append", default=[], help="only this one; may be repeated"
    )
    parser.add_argument(
        "--arg", metavar="NAME=VALUE", action="append", default=[],
        help="a number, the bytes of a buffer, or those of local memory (4*items: 4 for each of a group)",
    )  # fmt: skip
    parser.add_argument("--no-options", action="store_true", help="try no other build options")


def run(args: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 if something is missing or wrong, which it says."""
    from ..compiler import pipeline
    from ..compiler.source import Context, compile_source
    from ..device import target
    from ..host_device import DeviceError
    from ..jit.errors import CompileError
    from ..tune.device import Device
    from ..tune.signature import MissingError, arguments_of, may_fit_one_size
    from ..tune.trials import OPTIONS, Trials, candidates, own_size, size_text, table

    def fail(text: str) -> int:
        print("\n".join(f"cl-driver tune: {line}" for line in text.rstrip().split("\n")), file=sys.stderr)
        return 1

    items = _sizes(args.global_size)
    wanted = [_sizes(text) for text in args.local_size]
    given = dict(word.partition("=")[::2] for word in args.arg)
    if not items:
        return fail(f"a global size of '{args.global_size}' is not of the form 65536 or 512x512")
    for text, size in zip(args.local_size, wanted, strict=True):
        if len(size) != len(items) or any(n % k for n, k in zip(items, size, strict=True)):
            return fail(f"a local size of '{text}' does not divide {args.global_size}")
    source = Path(args.file).read_bytes()
    options = " ".join(f'"{option}"' if " " in option else option for option in args.build_options)
    try:
        context = Context(target.host_target(), f"{options} -cl-kernel-arg-info", {}, os.getcwd())
        result = compile_source(source, {}, context)
        if result.spirv is None:
            return fail(result.log)
        program = pipeline.prepare(result.spirv, context)
    except CompileError as error:
        return fail(str(error))
    if args.kernel not in program.names and (args.kernel or len(program.names) != 1):
        return fail(
            f"--kernel must be one of {', '.join(program.names) or 'none: the program has no kernel'}"
        )
    name = args.kernel or program.names[0]
    required = program.reflections[name].required_local_size
    sizes: list[tuple[int, ...] | None] = [tuple(size) for size in wanted]
    if any(required):
        sizes = [tuple(required[: len(items)])]
    elif not sizes and may_fit_one_size(program, name):
        return fail(
            f"{name} has memory that may be made for one local size (local memory, or arrays by local ids): "
            "say which to try, --local-size 16x16, and again for others"
        )
    try:
        device = Device()
        if not sizes:
            kernel = device.kernel(source, name, options)
            tried = candidates(items, device.most_items(kernel))
            own_local = own_size(device, kernel, arguments_of(program, name, given, items, tried), items)
            device.release(kernel)
            sizes = [None, *tried]
            print(f"the driver's own local size: {size_text(own_local)}")
        else:
            own_local = sizes[0] or ()
        made = arguments_of(program, name, given, items, [size or own_local for size in sizes])
        for argument in made:
            if argument.why:
                each = " for each work-item of a group" if argument.per_item else ""
                print(f"{argument.name}: {argument.size} bytes{each}, {argument.why}")
        trials = Trials(device, source, name, made, items)
        found = trials.run(options, sizes)
        own = found[0]
        best = min((t for t in found if t.seconds), key=lambda t: t.seconds or 0.0, default=own)
        if not args.no_options and best.seconds:
            for more in OPTIONS:
                if more not in options:
                    found += trials.run(f"{options} {more}".strip(), [best.local])
    except (DeviceError, MissingError) as error:
        return fail(str(error))
    print(table(found, own))
    if not args.no_options:
        print(
            "own: the driver's own local size, or the first that was named, with the options as given. Other "
            "options may change results"
        )
    return 0 if own.seconds else 1


def _sizes(text: str) -> list[int]:
    """Sizes from 16x16 and the like; [] for what has no such meaning."""
    parts = text.split("x")
    if len(parts) > 3 or not all(p.isascii() and p.isdigit() and 0 < int(p) <= _MOST_ITEMS for p in parts):
        return []
    return [int(part) for part in parts]
