"""Programs to reports: built once more, as the driver builds them, with lines and with decisions noted."""

from __future__ import annotations

import os
import re
from collections import Counter

from ..compiler import pipeline
from ..compiler.source import Context, compile_source, opener
from ..jit.errors import CompileError
from ..spirv import reflect
from .alternatives import NOTHING, Asked
from .html import report_html
from .report import Report, kernel_report
from .text import report_text

_DEBUG = re.compile(
    r",? !dbg !\d+|^!\d{7,} = .*\n|^!llvm\.(?:dbg|module)\..*\n|^ +#dbg_declare.*\n", re.MULTILINE
)


def explain_source(
    source: bytes,
    headers: dict[str, bytes],
    context: Context,
    kernel: str | None = None,
    local_size: list[int] | None = None,
    asked: Asked = NOTHING,
) -> Report:
    """The report on a program in OpenCL C, or on one kernel of it, for groups of a size too where these have
    code of their own. context.source_copy: the source's name; asked: of the launch that is estimated.

    CompileError has the log where it does not build.
    """
    lined = Context(
        context.target,
        f"{context.text} -g -cl-kernel-arg-info",
        context.settings,
        context.folder,
        context.source_copy,
    )
    result = compile_source(source, headers, lined)
    if result.spirv is None:
        raise CompileError(result.log)
    program = pipeline.prepare(result.spirv, lined)
    file = context.source_copy or _main_file(program)
    report = _report(program, file, source.decode("utf-8", "replace").split("\n"), kernel, local_size, asked)
    report.file = context.source_copy or "a program in OpenCL C"
    if context.text.strip():
        report.about.append(f"options: {context.text.strip()}")
    if not context.options.debug:
        plain = compile_source(source, headers, context)
        if plain.spirv is None or not _is_same_code(program, pipeline.prepare(plain.spirv, context), kernel):
            report.about.append("built with -g, as for this report, the program has other code than without")
    report.about += [line for line in result.log.split("\n") if "warning:" in line]
    return report


def explain_il(
    il: bytes,
    context: Context,
    kernel: str | None = None,
    local_size: list[int] | None = None,
    asked: Asked = NOTHING,
) -> Report:
    """The report on SPIR-V (jit/bundle.py); lines are known if it has debug information. CompileError where
    it does not build."""
    program = pipeline.prepare(il, context)
    file = _main_file(program)
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            source = opened.read().split("\n")
    except (OSError, ValueError):
        source = []
    return _report(program, file, source, kernel, local_size, asked)


def write(report: Report, folder: str, digest: str) -> str:
    """Leaves a report in a folder as text and as a page, named after a kernel and what it was made of. The
    name without its ending; "" where the folder cannot be written to."""
    first = re.sub(r"\W", "_", report.kernels[0].name) if report.kernels else "no_kernel"
    name = f"{first}-{digest[:12]}"
    try:
        os.makedirs(folder, exist_ok=True)
        for ending, text in (("txt", report_text(report)), ("html", report_html(report))):
            path = os.path.join(folder, f"{name}.{ending}")
            with open(path, "w", encoding="utf-8", opener=opener) as file:
                file.write(text)
    except OSError:
        return ""  # the program goes on, though nobody can look at it
    return name


def _report(
    program: pipeline.Prepared,
    file: str,
    source: list[str],
    kernel: str | None,
    local_size: list[int] | None,
    asked: Asked,
) -> Report:
    if kernel is not None and kernel not in program.names:
        raise CompileError(f"no kernel {kernel}; there are {', '.join(program.names) or 'none'}\n")
    program.explains = True
    target = program.context.target
    report = Report(file, source)
    report.about.append(f"for {target.architecture}, vectors of {target.vector_bits} bits")
    wanted = [name for name in program.names if kernel in (None, name)]
    report.kernels = [kernel_report(program, name, file, local_size, asked) for name in wanted]
    return report


def _main_file(program: pipeline.Prepared) -> str:
    """The file that most instructions of the kernels come from; "" without debug information."""
    files: Counter[str] = Counter()
    for entry in program.entry_points.values():
        for function in reflect.called(entry.function):
            for block in function.blocks:
                files.update(i.line.file for i in block.instructions if i.line is not None)
    return files.most_common(1)[0][0] if files else ""


def _is_same_code(lined: pipeline.Prepared, plain: pipeline.Prepared, kernel: str | None) -> bool:
    """Whether two builds of a program have the same LLVM IR, debug information apart."""

    def text(program: pipeline.Prepared, name: str) -> str:
        return _DEBUG.sub("", pipeline.entry(program, name).text)

    names = [name for name in lined.names if kernel in (None, name)]
    return lined.names == plain.names and all(text(lined, name) == text(plain, name) for name in names)
