"""OpenCL C to SPIR-V as a compiler process does it, without importing the stages after it: clang runs while
they are loaded. cl_driver/compiler/pipeline.py has the whole."""

from __future__ import annotations

import os

from .. import stages
from ..device.target import Target
from ..frontend import clang, opencl_c
from ..frontend import options as option_parser
from ..jit.errors import CompileError


class Context:
    """What all stages of a build share.

    text: the options as the application gave them; options: the same parsed; settings: {name: text} of those
    that concern the compiler; folder: where relative include folders start; source_copy: a file with the
    source, for debuggers, or "".
    """

    def __init__(
        self, target: Target, options: str, settings: dict[str, str], folder: str = "/", source_copy: str = ""
    ) -> None:
        """Raises CompileError for options that nothing understands."""
        self.target = target
        self.text = options
        self.settings = settings
        self.folder = folder
        self.source_copy = source_copy
        self.options = _parse(options)
        self.debug = self.options.debug  # which programs may ask about
        if target.checks:  # clang would take out what a program does wrong, and lines with it
            self.options = self.options.replace(debug=True, opt_disable=True)

    def dump(self, name: str, content: str | bytes) -> None:
        """Leaves what a stage made in the folder of CL_DRIVER_DUMP, if there is one."""
        folder = self.settings.get("CL_DRIVER_DUMP", "")
        if not folder:
            return
        try:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name), "wb", opener=opener) as file:
                file.write(content.encode() if isinstance(content, str) else content)
        except OSError:
            pass  # the build must not fail because nobody can look at it


def opener(path: str, flags: int) -> int:
    """For open(): others may have put links and FIFOs into a folder of everybody's, under names that they can
    guess. Nothing is written through the ones, and nobody waits for the others."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def _parse(options: str) -> option_parser.BuildOptions:
    """The options of a build or compilation, or of a link: the API has checked already which of them."""
    try:
        return option_parser.parse(options, has_context=True)
    except option_parser.OptionError as first:
        try:
            return option_parser.parse(options, option_parser.LINK, has_context=True)
        except option_parser.OptionError:
            raise CompileError(f"options: {first}\n") from first


def compile_source(
    source: bytes,
    headers: dict[str, bytes],
    context: Context,
    is_whole: bool | None = False,
    as_before: dict[str, bytes] | None = None,
) -> clang.FrontendResult:
    """OpenCL C to SPIR-V. headers: name in #include to text; is_whole, as_before: see opencl_c.compile().
    Nothing is raised: see opencl_c.compile()."""
    language = clang.device_language(context.options.remote)._replace(
        fma=context.target.has_fma, half_fma=context.target.has_native_half
    )
    chosen = context.settings.get("CL_DRIVER_CLANG", "")
    with stages.stage("clang"):
        result = opencl_c.compile(
            source,
            context.options,
            headers,
            language,
            context.folder,
            chosen,
            source_copy=context.source_copy,
            is_whole=is_whole,
            as_before=as_before,
        )
    context.dump("source.cl", source)
    if result.spirv is not None:
        context.dump("source.spv", result.spirv)
    return result
