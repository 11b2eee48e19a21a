"""OpenCL C to SPIR-V: one program through clang, with what clang needs to be asked again."""

from __future__ import annotations

from . import bool_selects, corrections, effort, find_clang, long_composites, prelude, resident
from .clang import (
    SOURCE_NAME,
    WITHOUT_MEMSET,
    FrontendResult,
    Language,
    Run,
    base_arguments,
    device_arguments,
    device_language,
    has_vector_hint,
    link_arguments,
    marked_source,
    run,
)
from .find_clang import Clang
from .options import BuildOptions
from .resident import is_program

# Inline, so that it may be in every module of a link; its name is reserved.
KEEPER = b"\n__attribute__((always_inline)) void __cl_driver_keeps_variables(void) {}\n"

# What a program is tried as that does not compile, and names no version of OpenCL C.
_NEWEST = (3, 0)
_IS_LATER = (
    "note: the program was compiled as OpenCL C 1.2, as all that name no version; as OpenCL C 3.0 it "
    "compiles: build it with -cl-std=CL3.0\n"
)

# In the names of functions that need corrections.Part.SELDOM.
_ASYNCHRONOUS = b"async_work_group_"


def _has_no_function(spirv: bytes) -> bool:
    """True if no instruction of the module is an OpFunction."""
    words = memoryview(spirv).cast("I")
    position, function = 5, 54
    while position < len(words):
        length, opcode = words[position] >> 16, words[position] & 0xFFFF
        if opcode == function:
            return False
        if not length:
            return False  # malformed: the reader says so
        position += length
    return True


# What is tried next where clang's own optimiser makes integers that SPIR-V does not have: sums of 64-bit
# loops become products of 65 bits, on which its back end gives up; `(i * n) & 7`, where a counter begins with
# it that is widened, becomes a counter of 3 bits.
PLAINER = (("-mllvm", "-replexitval=never", "-mllvm", "-indvars-widen-indvars=false"), ("-O0",))


def _has_odd_integers(spirv: bytes) -> bool:
    """True if a module declares that it has integers of other sizes than 8, 16, 32 and 64 bits."""
    words = memoryview(spirv).cast("I")
    position, capability, odd_integers = 5, 2 << 16 | 17, 5844
    while words[position] == capability:
        if words[position + 1] == odd_integers:
            return True
        position += 2
    return False


def _misses_functions(errors: str) -> bool:
    if "'intel_" not in errors and "named_barrier" not in errors:
        return False
    from . import intel_functions

    return intel_functions.are_missed(errors)


# What clang calls with the address of a block's kernel; with a name in its place __cld comes before it.
_TAKE_ADDRESSES = (b"__enqueue_kernel_", b"__get_kernel_")

# How a clang ends that crashes, or its driver where that is not the same process.
_CRASHES = ("PLEASE submit a bug report", "error in backend", "clang frontend command failed")


def _has_crashed(done: Run) -> bool:
    return done.status is not None and (done.status < 0 or any(words in done.errors for words in _CRASHES))


def _may_lack_names(done: Run) -> bool:
    """Whether clang may have failed of addresses of blocks' kernels, or has made something of them."""
    if done.status == 0:
        return any(done.output.count(part) > done.output.count(b"__cld" + part) for part in _TAKE_ADDRESSES)
    return _has_crashed(done)


def compile(
    source: bytes,
    options: BuildOptions,
    headers: dict[str, bytes] | None = None,
    language: Language | None = None,
    folder: str | None = None,
    clang: str = "",
    time_limit: float | None = None,
    source_copy: str = "",
    is_whole: bool | None = False,
    as_before: dict[str, bytes] | None = None,
) -> FrontendResult:
    """OpenCL C to SPIR-V. What is wrong with the program, or with clang, is in the log; nothing is raised.

    headers: of clCompileProgram, by their names in #include. language: what the device offers, by default
    this machine's. folder: where relative include folders start. clang: setting CL_DRIVER_CLANG.
    time_limit: CPU seconds; None for effort.limit(). source_copy: what debug information calls the source, ""
    for SOURCE_NAME. is_whole: nothing will be linked with it; None: perhaps nothing will (clang.run()).
    as_before: of files that have changed, what is to be read.
    """
    given = (
        options,
        headers or {},
        language or device_language(),
        folder,
        clang,
        source_copy,
        is_whole,
        as_before,
    )
    while True:
        try:
            found = find_clang.find(clang)
        except find_clang.ClangError as why:
            return FrontendResult(None, f"error: {why}\n")
        allowance = effort.Allowance(time_limit, find_clang.patience(found))
        result, doubt = _compile_by(found, source, *given, allowance)
        if not doubt:
            if result.spirv is not None:
                find_clang.has_worked(found)
            return result
        refusal = find_clang.reject(found, doubt)
        if refusal and clang:
            more = f"error: {found.path}, which CL_DRIVER_CLANG names, is {refusal}\n"
            return result._replace(log=result.log + more)
        if not refusal and allowance.stalled >= effort.STALLED:
            return result


def _compile_by(
    found: Clang,
    source: bytes,
    options: BuildOptions,
    headers: dict[str, bytes],
    language: Language,
    folder: str | None,
    clang: str,
    source_copy: str,
    is_whole: bool | None,
    as_before: dict[str, bytes] | None,
    allowance: effort.Allowance,
) -> tuple[FrontendResult, str]:
    """See compile(); and what it did that a clang does not, "" if it did not."""
    arguments = [
        *base_arguments(found),
        *device_arguments(language, options),
        *options.clang_arguments(language.fma),
    ]
    parts = [corrections.Part.ALWAYS]
    if options.standard >= (2, 0):
        parts.append(corrections.Part.ATOMICS)
    if _ASYNCHRONOUS in source:  # most that have it call it: they are spared a second run
        parts.append(corrections.Part.SELDOM)

    def run_clang(arguments: list[str], text: bytes, is_whole: bool | None = False) -> Run:
        files = (headers, as_before) if is_program(arguments) else ({}, None)
        return run(found, arguments, text, files[0], folder, allowance, is_whole, files[1])

    again = [*base_arguments(found, "ir"), options.optimisation, *options.inlining]

    def run_with(
        more: tuple[str, ...], text: bytes, library: list[str], before: list[str] = arguments
    ) -> Run:
        if options.debug:
            from . import debug

            files = {SOURCE_NAME: source_copy} if source_copy else {}
            done = debug.compile(run_clang, [*before, *more], text, again, files, library)
            if done is not None:
                return done
        return run_clang([*before, *more, *library, "-c", "-o", "-", "-"], text, is_whole)

    def run_named(more: tuple[str, ...], text: bytes, library: list[str]) -> Run | None:
        """The same where clang's back end has to see no blocks; None for a program without any."""
        plain = "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", *["-g"] * options.debug
        first = run_clang([*arguments, *more, *library, *plain, "-o", "-", "-"], text)
        if first.status != 0 or b"_block_invoke" not in first.output:
            return None
        from . import name_blocks

        module = name_blocks.named(first.output.decode("utf-8", "surrogateescape"))
        if module is None:
            return None
        done = run_with(more, module.encode("utf-8", "surrogateescape"), [], again)
        return done._replace(errors=first.errors + done.errors, files=first.files, kernels=first.kernels)

    ways = [(), WITHOUT_MEMSET, *PLAINER]  # those that failed are not tried again

    def run_once(text: bytes, *more_parts: corrections.Part) -> Run:
        library = link_arguments(found, (*parts, *more_parts))
        for more in list(ways):
            done = run_with(more, text, library)
            if options.standard >= (2, 0) and _may_lack_names(done):
                done = run_named(more, text, library) or done
            if done.status == 0 and not find_clang.is_module(done.output):
                return done._replace(status=1, errors=f"{done.errors}clang made no SPIR-V\n")
            if done.status == 0 and (
                _has_odd_integers(done.output)
                or (more != WITHOUT_MEMSET and long_composites.are_cut(done.output))
            ):
                ways[:] = ways[1:] or ways
                continue
            if not _has_crashed(done):
                break
            ways[:] = ways[1:] or ways
        if done.status != 0:
            return done
        # Before anybody walks through its instructions.
        return done._replace(output=bool_selects.mended(long_composites.mended(done.output)))

    text = marked_source(source, options, language)
    try:
        done = run_once(text)
        has_functions, has_intel = True, False
        for _ in range(2):  # a program may both have names of its own and miss functions
            if not done.status:
                break
            in_the_way = has_functions and prelude.is_in_the_way(done.errors)
            missed = not has_intel and _misses_functions(done.errors)
            if not in_the_way and not missed:
                break
            has_functions = has_functions and not in_the_way
            has_intel = has_intel or missed
            text = marked_source(source, options, language, has_functions, has_intel)
            done = run_once(text)
        has_all = corrections.Part.SELDOM in parts
        if done.status == 0 and not has_all and corrections.asks_for_seldom(done.output):
            done = run_once(text, corrections.Part.SELDOM)
    except corrections.CorrectionsError as why:
        return FrontendResult(None, f"error: {why}\n"), f"made no corrections: {why}"
    except ValueError as why:
        return FrontendResult(None, f"error: {why}\n"), ""
    except OSError as why:
        return FrontendResult(None, f"error: clang could not be run: {why}\n"), f"could not be run: {why}"
    if done.status is None:
        return FrontendResult(None, f"error: {done.errors}\n", done.files), done.errors
    log = ""
    if done.errors:
        from .log import clean_log, with_version

        log = with_version(clean_log(done.errors), options.standard)
    if done.status:
        if _has_crashed(done):
            from .log import crash_log

            log = crash_log(done.errors, done.status)
        elif "unknown target triple" in done.errors or "No available targets" in done.errors:
            log = (
                f"error: {found.path} has no SPIR-V back end; set CL_DRIVER_CLANG to a clang that has\n{log}"
            )
        elif not options.standard_given and find_clang.has_diagnostic(done.errors):
            later = options.replace(standard=_NEWEST, standard_given=True)
            again = [*base_arguments(found), *device_arguments(language, later)]
            again += [*later.clang_arguments(language.fma), resident.CHECK_ONLY, "-"]
            if run_clang(again, marked_source(source, later, language)).status == 0:
                log += _IS_LATER
        log = log or f"error: clang ended with status {done.status}\n"
        doubt = "" if find_clang.has_diagnostic(done.errors) else f"ended with status {done.status}"
        return FrontendResult(None, log, done.files), doubt
    spirv = done.output
    if _has_no_function(spirv) and not source.endswith(KEEPER):
        # clang 22 leaves the variables out of a module without functions.
        more = (options, headers, language, folder, clang, source_copy, is_whole, as_before, allowance)
        return _compile_by(found, source + KEEPER, *more)
    if options.kernel_arg_info or has_vector_hint(spirv):
        from . import arguments as information

        known = None if done.kernels is None else information.of_fields(done.kernels)
        if known is None:
            known = information.ask(source, options, headers, language, folder, clang, allowance)
        spirv = information.embed(spirv, known, options.kernel_arg_info)
    return FrontendResult(spirv, log, done.files), ""
