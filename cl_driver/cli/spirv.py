"""Show, check or count a SPIR-V module, run passes on it, or compile OpenCL C to one.

dis: the module as text. val: what is wrong with it for this machine's device, if anything, as word offset,
instruction and rule. stats: instructions and functions. run-pass: each kernel with its calls inlined, after
the passes that --pass names, in that order and no others (`cl-driver passes` shows what a build runs).
compile: OpenCL C source to SPIR-V with the options of clBuildProgram.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

# The passes on whole functions, by name: where they are. inline, which makes the function, has always run.
PASSES = {
    "simplify": ("scalar.simplify", "simplify"),
    "sroa": ("scalar.sroa", "promote"),
    "reducible": ("scalar.reducible", "make_reducible"),
    "lcssa": ("ir.lcssa", "close_loops"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command line may have."""
    parser.add_argument("action", choices=("dis", "val", "run-pass", "stats", "compile"))
    parser.add_argument("file", help="a .spv file, or a .cl file for compile")
    parser.add_argument("-o", "--output", help="where compile writes the module")
    parser.add_argument("--options", default="", help="build options for compile")
    parser.add_argument(
        "--any-device", action="store_true", help="val: devices may have all that is declared"
    )
    parser.add_argument(
        "--pass", dest="passes", action="append", default=[], metavar="PASS", help=f"of {', '.join(PASSES)}"
    )
    parser.add_argument("--kernel", help="run-pass: only this kernel")


def run(args: argparse.Namespace) -> int:
    """The subcommand. Exit status 1 for a module or program that is wrong."""
    data = Path(args.file).read_bytes()
    if args.action == "compile":
        return _compile(data, args)
    from ..passes.ir.plan import PlanError
    from ..spirv.errors import SpirvError

    actions = {"dis": _dis, "val": _val, "run-pass": _run_pass, "stats": _stats}
    try:
        return actions[args.action](data, args)
    except (SpirvError, PlanError) as error:
        print(f"{args.file}: {error}{_guess(data)}", file=sys.stderr)
        return 1


def _guess(data: bytes) -> str:
    """What a file that is no module may be."""
    if data[:4] in (b"\x03\x02#\x07", b"\x07#\x02\x03"):
        return ""
    if data[:4] == b"BC\xc0\xde":
        return " (this is LLVM bitcode; clang writes SPIR-V with -target spirv64)"
    if data[:4] == b"\x7fELF":
        return " (this is an ELF file)"
    if data and data.isascii():
        return " (this is text: assembly is for spirv-as, OpenCL C for `cl-driver spirv compile`)"
    return " (this is not SPIR-V)"


def _dis(data: bytes, args: argparse.Namespace) -> int:
    from ..spirv.reading.dis import disassemble

    sys.stdout.write(disassemble(data))
    return 0


def _val(data: bytes, args: argparse.Namespace) -> int:
    from ..device import capabilities
    from ..device.cpu import host_cpu
    from ..spirv import link
    from ..spirv.reading import reader
    from ..spirv.validation import validate

    allowed: tuple[frozenset[int] | None, tuple[str, ...] | None] = (None, None)
    if not args.any_device:
        cpu = host_cpu()
        allowed = (
            validate.accepted_capabilities(capabilities.spirv_capabilities(cpu)),
            capabilities.spirv_extensions(cpu),
        )
    validate.validate(link.link([reader.read(data)]), *allowed, everything=True)
    return 0


def _run_pass(data: bytes, args: argparse.Namespace) -> int:
    from importlib import import_module

    from ..passes.ir.dump import function_text
    from ..passes.ir.verify import verify
    from ..passes.lower.inline import inline
    from ..spirv import link
    from ..spirv.reading import reader
    from ..spirv.validation import validate

    unknown = [name for name in args.passes if name not in PASSES]
    if unknown:
        print(f"no pass {unknown[0]}; there are {', '.join(PASSES)}", file=sys.stderr)
        return 1
    module = link.link([reader.read(data)])
    validate.validate(module)
    entries = [e for e in module.entry_points if args.kernel in (None, e.name)]
    if not entries:
        print(f"no kernel {args.kernel or 'in the module'}", file=sys.stderr)
        return 1
    for entry in entries:
        function = inline(module, entry.function)
        for name in args.passes:
            file, function_name = PASSES[name]
            getattr(import_module(f"..passes.{file}", __package__), function_name)(function, module.types)
            verify(function, name)
        print(f"; kernel {entry.name}\n{function_text(function)}")
    return 0


def _stats(data: bytes, args: argparse.Namespace) -> int:
    from ..spirv.reading import reader
    from ..spirv.validation import validate

    start = time.perf_counter()
    module = reader.read(data)
    counts = Counter(i.op for f in module.functions for b in f.blocks for i in b.instructions)
    seconds = time.perf_counter() - start
    validate.validate(module, everything=True)
    print(
        f"SPIR-V {module.version[0]}.{module.version[1]}, {len(data)} bytes, read in {seconds * 1e3:.1f} ms"
    )
    print("capabilities:", ", ".join(sorted(c.name for c in module.capabilities)))
    print("extensions:", ", ".join(sorted(module.extensions)) or "none")
    print("kernels:", ", ".join(entry.name for entry in module.entry_points) or "none")
    for function in module.functions:
        size = sum(len(block.instructions) for block in function.blocks)
        what = f"{len(function.blocks)} blocks, {size} instructions" if function.blocks else "declared only"
        print(f"  {function.name or '(no name)'}: {what}")
    for op, count in counts.most_common():
        print(f"{count:7}  Op{op.name}")
    return 0


def _compile(source: bytes, args: argparse.Namespace) -> int:
    from .. import settings
    from ..frontend import opencl_c, options

    try:
        parsed = options.parse(args.options)
    except options.OptionError as error:
        print(error, file=sys.stderr)
        return 1
    result = opencl_c.compile(source, parsed, clang=settings.text("CL_DRIVER_CLANG"))
    sys.stderr.write(result.log)
    if result.spirv is None:
        return 1
    output = args.output or Path(args.file).with_suffix(".spv")
    Path(output).write_bytes(result.spirv)
    return 0
