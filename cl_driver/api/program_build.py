"""Chapters 5.8.4 and 5.8.5: build, compile, link.

Each call comes in two parts. The first checks everything that the call itself must report, marks the builds
as in progress and leaves a job; "build_run" then does the job and blocks until it is done. The C side makes
the second call itself, or on a thread of its own that calls pfn_notify afterwards.
"""

from __future__ import annotations

from ..door import answers
from ..frontend import options as compiler_options
from ..log import log as report
from .context import Context
from .device import Device
from .entrypoint import Lock, adopt, entrypoint, peer
from .errors import CLError, require
from .generated import enums as cl
from .program import BINARY, IL, LINKED, SOURCE, DeviceBuild, Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..jit.executable import Executable
    from ..service.client import Cut

# Of changes of a build's status to "in progress": two threads may build one program.
_starting = Lock()

_FILES_ARE_GONE = """\
error: the driver's files cannot be read any more, so nothing can be compiled. If this process has changed its
root folder (chroot): it must be able to do so when it makes its context, or CL_DRIVER_RUNTIME=process be set.
"""

_OPTION_ERRORS = {
    compiler_options.BUILD: cl.CL_INVALID_BUILD_OPTIONS,
    compiler_options.COMPILE: cl.CL_INVALID_COMPILER_OPTIONS,
    compiler_options.LINK: cl.CL_INVALID_LINKER_OPTIONS,
}


def _options(text: bytes | None, stage: str) -> tuple[str, compiler_options.BuildOptions]:
    """The text and what it says; NULL "will have the same result as the empty string"."""
    decoded = (text or b"").decode("utf-8", "surrogateescape")
    try:
        return decoded, compiler_options.parse(decoded, stage)
    except compiler_options.OptionError as error:
        raise CLError(_OPTION_ERRORS[stage], str(error)) from error


def _groups(
    program: Program, devices: list[int], options: str, texts: Iterable[bytes]
) -> list[tuple[list[DeviceBuild], str]]:
    """The builds for devices, those together that are compiled at once, with their options.

    Workers of a cluster offer less than this machine, of which a source may make another program. texts: it
    and headers.
    """
    builds = {key: program.build_of(key) for key in devices}
    text = compiler_options.for_context(program.context.words, options)
    is_source = program.origin == SOURCE
    apart = [key for key in builds if is_source and peer(key, Device).is_remote]
    if apart:
        from ..device import remote

        if not remote.is_another_program([*texts, text.encode("utf-8", "surrogateescape")]):
            apart = []
    here = [build for key, build in builds.items() if key not in apart]
    there = [builds[key] for key in apart]
    groups = [(here, text), (there, compiler_options.for_context([compiler_options.REMOTE], text))]
    return [group for group in groups if group[0]]


def _first_failure(statuses: Iterable[int]) -> int:
    return next((status for status in statuses if status), cl.CL_SUCCESS)


def _start(
    program: Program,
    groups: list[tuple[list[DeviceBuild], str]],
    job: Callable[[], int],
    failure: int = cl.CL_BUILD_PROGRAM_FAILURE,
    arg_info: bool | None = None,
) -> None:
    """Marks the builds as in progress. What they had is gone: "whichever was performed last" counts.

    groups: builds with their options. failure: the status if there is nothing to do the job with. arg_info:
    DeviceBuild's; None leaves it as it is.
    """

    def do() -> int:
        try:
            return job()
        except ImportError as error:
            report(1, f"the driver's files are not there any more: {error}")
            for build, _ in builds:
                build.status, build.log = cl.CL_BUILD_ERROR, _FILES_ARE_GONE
            return failure

    builds = [(build, options) for group, options in groups for build in group]

    with _starting:
        # "CL_INVALID_OPERATION if the build of a program executable for any of the devices listed in
        # device_list by a previous call to clBuildProgram for program has not completed."
        busy = any(build.status == cl.CL_BUILD_IN_PROGRESS for build in program.builds.values())
        require(not busy, cl.CL_INVALID_OPERATION, "an earlier build has not completed")
        for build, options in builds:
            build.status = cl.CL_BUILD_IN_PROGRESS
            build.options = options
            build.log = ""
            if arg_info is not None:
                build.arg_info = arg_info
        program.job = do


@entrypoint("clBuildProgram", Program)
def build_program(program: Program, devices: list[int] | None, options: bytes | None) -> None:
    """Leaves the job to build a program for devices, None for all of its own (5.8.4). Raises CLError with the
    call's error codes."""
    text, parsed = _options(options, compiler_options.BUILD)
    devices = list(program.builds) if devices is None else devices
    builds = [program.build_of(key) for key in devices]
    if program.origin == BINARY:
        # "If program is created with clCreateProgramWithBinary, then the program binary must be an executable
        # binary (not a compiled binary or library)." "CL_INVALID_BINARY if program is created with
        # clCreateProgramWithBinary and devices listed in device_list do not have a valid program binary
        # loaded."
        for build in builds:
            require(build.executable, cl.CL_INVALID_BINARY, "the program's binary is not an executable")
        # "If the program was created using clCreateProgramWithBinary and options is a NULL pointer, the
        # program will be built as if options were the same as when the program binary was originally built."
        if options is None:
            text = builds[0].options
        _start(program, [(builds, text)], lambda: _finish_binaries(builds))
        return
    # "CL_INVALID_OPERATION if program was not created with clCreateProgramWithSource, clCreateProgramWithIL
    # or clCreateProgramWithBinary."
    require(program.origin in (SOURCE, IL), cl.CL_INVALID_OPERATION, "the program has neither source nor IL")
    source, il, specialisation = program.source, program.il, dict(program.specialisation)
    groups = _groups(program, devices, text, [source])

    def job() -> int:
        return _first_failure([build_for(*group) for group in groups])

    def build_for(builds: list[DeviceBuild], options: str) -> int:
        from ..service import client

        if il is None:
            executable, log = client.build_source(source, options)
        else:
            executable, log = client.build([il], options, specialisation)
        return _finish_executable(builds, executable, log, _failure(log, cl.CL_BUILD_PROGRAM_FAILURE))

    _start(program, groups, job, arg_info=parsed.kernel_arg_info)


def _failure(log: str, usual: int) -> int:
    """What a build has failed with: "CL_COMPILER_NOT_AVAILABLE if program is created with
    clCreateProgramWithSource and a compiler is not available"."""
    return cl.CL_COMPILER_NOT_AVAILABLE if compiler_options.lacks_compiler(log) else usual


def _finish_binaries(builds: list[DeviceBuild]) -> int:
    """Executable binaries are as they were built: those for other CPUs were refused when they were loaded."""
    for build in builds:
        _finish_executable([build], build.executable, "", cl.CL_BUILD_PROGRAM_FAILURE)
    return cl.CL_SUCCESS


@entrypoint("clCompileProgram", Program)
def compile_program(
    program: Program, devices: list[int] | None, options: bytes | None, headers: list[tuple[bytes, int]]
) -> None:
    """Leaves the job to compile a program for devices, None for all of it (5.8.5). headers: include names and
    keys of programs. Raises CLError with the call's error codes."""
    text, parsed = _options(options, compiler_options.COMPILE)
    devices = list(program.builds) if devices is None else devices
    for key in devices:
        program.build_of(key)
    # "CL_INVALID_OPERATION if program has no source or IL available".
    require(program.origin in (SOURCE, IL), cl.CL_INVALID_OPERATION, "the program has neither source nor IL")
    sources: dict[str, bytes] = {}
    if program.origin == SOURCE:
        for include_name, key in headers:
            # "If multiple entries in header_include_names refer to the same header name, the first one
            # encountered will be used."
            sources.setdefault(include_name.decode("utf-8", "surrogateescape"), peer(key, Program).source)
    source, il = program.source, program.il
    groups = _groups(program, devices, text, [source, *sources.values()])

    def job() -> int:
        return _first_failure([compile_for(*group) for group in groups])

    def compile_for(builds: list[DeviceBuild], options: str) -> int:
        from ..service import client

        spirv: bytes | None
        cut = None
        if il is None:
            result = client.compile_source(source, options, sources)
            spirv, log, cut = result.il, result.log, result.cut
        else:
            # A link of one module: it reads and checks it. Specialization constants keep their defaults:
            # "The values are used by a subsequent clBuildProgram call".
            spirv, log = client.link([il], options)
        return _finish_object(
            builds,
            cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT,
            spirv,
            log,
            _failure(log, cl.CL_COMPILE_PROGRAM_FAILURE),
            parsed.code_options(),
            cut,
        )

    _start(program, groups, job, cl.CL_COMPILE_PROGRAM_FAILURE, parsed.kernel_arg_info)


@entrypoint("clLinkProgram", Context)
def link_program(
    context: Context, devices: list[int] | None, options: bytes | None, programs: list[int]
) -> tuple[int, list[int]]:
    """Leaves the job to link programs (5.8.5). The key of the new one, and those of its devices. Raises
    CLError with the call's error codes."""
    text, parsed = _options(options, compiler_options.LINK)
    # "This option must be specified with the create-library option."
    consistent = parsed.create_library or not parsed.enable_link_options
    require(consistent, cl.CL_INVALID_LINKER_OPTIONS, "-enable-link-options without -create-library")
    inputs = [peer(key, Program) for key in programs]
    for program in inputs:
        # "CL_INVALID_OPERATION if the compilation or build of a program executable for any of the devices
        # listed in device_list by a previous call to clCompileProgram or clBuildProgram for program has not
        # completed."
        busy = any(build.status == cl.CL_BUILD_IN_PROGRESS for build in program.builds.values())
        require(not busy, cl.CL_INVALID_OPERATION, "the compilation of an input has not completed")
    linked = [key for key in (devices or context.devices) if _to_link(inputs, key)]
    # "CL_INVALID_OPERATION if the rules for devices containing compiled binaries or libraries as described in
    # input_programs argument above are not followed": at least one device must have something to link.
    require(linked, cl.CL_INVALID_OPERATION, "no device has compiled binaries of the inputs")
    result = Program(context, LINKED, list(context.devices) if devices is None else devices)
    # All devices run the same code; they differ only where an input was compiled for them apart.
    groups: dict[tuple[int, ...], list[int]] = {}
    for key in linked:
        groups.setdefault(tuple(id(program.builds[key].spirv) for program in inputs), []).append(key)
    links = []
    for keys in groups.values():
        parts = [program.builds[keys[0]] for program in inputs]
        # All are: _to_link().
        modules = [(part.spirv, part.cut) for part in parts if part.spirv is not None]
        code_options = _common_code_options(parsed, parts)
        links.append(([result.builds[key] for key in keys], modules, code_options))

    arg_info = any(program.builds[key].arg_info for program in inputs for key in linked)
    words = context.words + ["-cl-kernel-arg-info"] * arg_info
    text = compiler_options.for_context(context.words, text)

    def job() -> int:
        return _first_failure([_link(*what, parsed.create_library, words) for what in links])

    builds = [result.builds[key] for key in linked]
    _start(result, [(builds, text)], job, cl.CL_LINK_PROGRAM_FAILURE, arg_info)
    return adopt(result), list(result.builds)


def _link(
    builds: list[DeviceBuild],
    parts: list[tuple[bytes, Cut | None]],
    code_options: frozenset[str],
    create_library: bool,
    words: list[str],
) -> int:
    """Links modules to a library or an executable for some devices. words: options for its code besides. The
    status."""
    from ..service import client

    modules, before = [], ""
    for module, cut in parts:
        whole: bytes | None = module
        if cut is not None and (create_library or len(parts) > 1):
            whole, log = client.complete(cut)
            before += log if whole is None else ""
        modules += [whole] if whole is not None else []
    if create_library:
        spirv, log = client.link(modules, "") if not before else (None, before)
        return _finish_object(
            builds,
            cl.CL_PROGRAM_BINARY_TYPE_LIBRARY,
            spirv,
            log,
            cl.CL_LINK_PROGRAM_FAILURE,
            code_options,
        )
    executable, log = (
        client.build(modules, " ".join([*words, *sorted(code_options)])) if not before else (None, before)
    )
    return _finish_executable(builds, executable, log, cl.CL_LINK_PROGRAM_FAILURE)


def _to_link(inputs: list[Program], device: int) -> bool:
    """True if all inputs have a compiled binary or library for the device, False if none has."""
    found = [device in program.builds and _is_object(program.builds[device]) for program in inputs]
    # "All other cases will return a CL_INVALID_OPERATION error."
    require(all(found) or not any(found), cl.CL_INVALID_OPERATION, "an input was not compiled for a device")
    return all(found)


def _is_object(build: DeviceBuild) -> bool:
    kinds = (cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT, cl.CL_PROGRAM_BINARY_TYPE_LIBRARY)
    return build.binary_type in kinds and build.spirv is not None


def _common_code_options(link: compiler_options.BuildOptions, parts: list[DeviceBuild]) -> frozenset[str]:
    """The options for the code of a link: link options, and what inputs were compiled with.

    All are permissions, and functions are inlined across inputs, so each must hold for every input.
    """
    return frozenset.intersection(
        *(part.code_options | (link.code_options() if _takes_link_options(part) else set()) for part in parts)
    )


def _takes_link_options(part: DeviceBuild) -> bool:
    """ "The linker may apply these options to all compiled program objects specified to clLinkProgram. The
    linker may apply these options only to libraries which were created with the option -enable-link-options."
    """
    if part.binary_type == cl.CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT:
        return True
    _, options = compiler_options.without_context(part.options)
    return compiler_options.parse(options, compiler_options.LINK).enable_link_options


def _finish_executable(
    builds: Iterable[DeviceBuild], executable: Executable | None, log: str, failure: int
) -> int:
    for build in builds:
        build.spirv = build.cut = None
        build.executable = executable
        build.binary_type = (
            cl.CL_PROGRAM_BINARY_TYPE_EXECUTABLE if executable else cl.CL_PROGRAM_BINARY_TYPE_NONE
        )
    return _finish(builds, executable is not None, log, failure)


def _finish_object(
    builds: Iterable[DeviceBuild],
    kind: int,
    spirv: bytes | None,
    log: str,
    failure: int,
    code_options: frozenset[str],
    cut: Cut | None = None,
) -> int:
    for build in builds:
        build.executable = None
        build.spirv, build.cut = spirv, cut
        build.code_options = code_options
        build.binary_type = cl.CL_PROGRAM_BINARY_TYPE_NONE if spirv is None else kind
        build.binary = b""
    return _finish(builds, spirv is not None, log, failure)


def _finish(builds: Iterable[DeviceBuild], success: bool, log: str, failure: int) -> int:
    if not success:
        report(1, f"the build log:\n{log}")
    for build in builds:
        build.log = log
        build.status = cl.CL_BUILD_SUCCESS if success else cl.CL_BUILD_ERROR
    return cl.CL_SUCCESS if success else failure


@entrypoint("build_run", Program)
def build_run(program: Program) -> list[Any]:
    """Does the job that clBuildProgram, clCompileProgram or clLinkProgram left (5.8.4, 5.8.5). Answers BUILD;
    CL_INVALID_OPERATION if none of them has."""
    job, program.job = program.job, None
    if job is None:
        raise CLError(cl.CL_INVALID_OPERATION, "no build was started")
    try:
        return answers.BUILD(status=job(), is_executable=int(program.built is not None))
    finally:
        # Whatever happened, nobody is left waiting for a build that no longer runs.
        for build in program.builds.values():
            if build.status == cl.CL_BUILD_IN_PROGRESS:
                build.status = cl.CL_BUILD_ERROR
                build.log = build.log or "The build ended by an error of the driver; see CL_DRIVER_LOG.\n"
