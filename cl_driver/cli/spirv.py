"""Show, check or count a SPIR-V module, or compile OpenCL C to one.

dis: the module as text; val: what is wrong with it, if anything; stats: instructions and functions;
compile: OpenCL C source to SPIR-V with the options of clBuildProgram.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path


def arguments(parser) -> None:
    parser.add_argument("action", choices=("dis", "val", "stats", "compile"))
    parser.add_argument("file", help="a .spv file, or a .cl file for compile")
    parser.add_argument("-o", "--output", help="where compile writes the module")
    parser.add_argument("--options", default="", help="build options for compile")


def run(args) -> int:
    data = Path(args.file).read_bytes()
    if args.action == "compile":
        return _compile(data, args)
    from cl_driver.spirv.errors import SpirvError

    try:
        return {"dis": _dis, "val": _val, "stats": _stats}[args.action](data)
    except SpirvError as error:
        print(error, file=sys.stderr)
        return 1


def _dis(data: bytes) -> int:
    from cl_driver.spirv.dis import disassemble

    sys.stdout.write(disassemble(data))
    return 0


def _val(data: bytes) -> int:
    from cl_driver.spirv import link, reader, validate

    validate.validate(link.link([reader.read(data)]), everything=True)
    return 0


def _stats(data: bytes) -> int:
    from cl_driver.spirv import reader, validate

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


def _compile(source: bytes, args) -> int:
    from cl_driver import settings
    from cl_driver.frontend import clang, options

    try:
        parsed = options.parse(args.options)
    except options.OptionError as error:
        print(error, file=sys.stderr)
        return 1
    result = clang.compile(source, parsed, clang=settings.text("CL_DRIVER_CLANG"))
    sys.stderr.write(result.log)
    if result.spirv is None:
        return 1
    output = args.output or Path(args.file).with_suffix(".spv")
    Path(output).write_bytes(result.spirv)
    return 0
