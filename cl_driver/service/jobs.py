"""What compiler processes do, by name: wire values in, wire values out. service/worker.py calls it in a
process of its own, service/client.py in its own process when CL_DRIVER_COMPILE=inprocess.

`job` in the arguments is what all operations need: protocol.Job.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from .. import module_archive, settings, wire
from ..compiler import source as frontend
from ..device.target import Target
from ..frontend import clang_start, effort
from ..jit.cache import digest
from ..jit.errors import CompileError
from . import background

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..compiler.pipeline import Prepared
    from .protocol import Answer, Files, Job

_PATIENT = 5  # added to the nice value of a thread whose work can wait

# The last programs whose kernels were asked for: the service asks for them one by one. That many bytes of
# SPIR-V in all, and the last one however large it is.
_prepared: dict[str, Prepared] = {}
_MOST_PREPARED = 2 << 20


def _load_stages() -> None:
    """Loads the stages after the front end. One thread at a time imports: two can see half of a module."""
    for group in (1, 2):
        module_archive.expect(group)
    from ..compiler import pipeline
    from ..jit import emit

    emit.warm_up()
    pipeline.library()


def warm_up() -> None:
    """Loads what jobs need."""
    module_archive.expect(1)
    from ..jit import emit

    loading = None if clang_start.has_fewest_descriptors() else emit.preload()
    with suppress(CompileError):  # the job that needs what is missing will say it, in its log
        _load_stages()
    if loading:
        loading.join()  # a fork of this process has no such thread


# Folders of the package that jobs are done in.
_ROOMS = ("builtins", "codegen", "compiler", "device", "explain", "frontend", "jit", "passes", "spirv")
# Modules that functions of these import, and what those import late.
_LATE = ("json", "pathlib", "random", "re", "shutil", "subprocess", "tempfile", "traceback")


def load_everything() -> None:
    """Loads what jobs may come to need: modules cannot be found later. CompileError if it is not there."""
    import importlib
    import pkgutil

    _load_stages()
    for name in _LATE:
        importlib.import_module(name)
    package = __name__.rpartition(".")[0].rpartition(".")[0]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for room in _ROOMS:
        for found in pkgutil.walk_packages([os.path.join(root, room)], f"{package}.{room}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)


def _context(job: Job) -> frontend.Context:
    target = Target.from_values(job["target"])
    return frontend.Context(target, job["options"], job["settings"], job["cwd"], job["source_copy"])


def _prepare(job: Job, il: bytes) -> Prepared:
    key = digest(wire.encode(job), il)
    program = _prepared.pop(key, None)
    if program is None:
        room = _MOST_PREPARED - len(il)
        for other, old in reversed(list(_prepared.items())):
            room -= len(old.il)
            if room < 0:
                del _prepared[other]
        _load_stages()
        from ..compiler import pipeline

        program = pipeline.prepare(il, _context(job))
    _prepared[key] = program  # as the newest
    return program


def compile_source(
    job: Job,
    source: bytes,
    headers: dict[str, bytes],
    is_whole: bool | None = False,
    as_before: dict[str, bytes] | None = None,
) -> tuple[bytes | None, str, Files]:
    """SPIR-V, None if the source does not compile; the log; what it depends on.

    headers: name in #include to text; is_whole: nothing will be linked with it; None: perhaps nothing will,
    and what it depends on says whether all of it is there; as_before: of files that have changed, what is to
    be read.
    """
    result = frontend.compile_source(source, headers, _context(job), is_whole, as_before)
    return result.spirv, result.log, tuple(result.files)  # a plain one: the wire knows no other


def link(job: Job, il: bytes) -> str:
    """Checks that the modules of a library fit together. The log; CompileError if they do not."""
    _load_stages()
    from ..compiler import pipeline

    return pipeline.check_library(il, _context(job))


def prepare(job: Job, il: bytes, finish: int) -> Answer:
    """Reads, links and checks a program; and compiles its kernels if their weights are no more than `finish`
    in all, or if there is but one, unless that is 0. CompileError for a program that is wrong."""
    from ..compiler import pipeline

    program = _prepare(job, il)
    kernels = [(name, program.weight(name)) for name in program.names]
    answer: Answer = {"kernels": kernels, "log": program.log}
    if (finish and len(kernels) <= 1) or sum(weight for _, weight in kernels) <= finish:
        executable = program.executable([pipeline.kernel(program, name) for name in program.names])
        answer["executable"] = executable.to_bytes()
    else:
        answer["program"] = program.executable([]).to_values()
    return answer


def _compile_whole(
    job: Job, source: bytes, headers: dict[str, bytes], ended: threading.Event
) -> tuple[bytes | None, str, Files]:
    try:
        return compile_source(job, source, headers, True)
    finally:
        ended.set()


def build_source(job: Job, source: bytes, headers: dict[str, bytes], finish: int) -> Answer:
    """compile_source() and prepare() in one go: what prepare() answers, and "files"; "log" and "files"
    alone where the source does not compile."""
    if clang_start.has_fewest_descriptors():
        warm_up()
        spirv, log, files = compile_source(job, source, headers, True)
    else:
        is_running = threading.Event()
        effort.when_running(is_running.set)
        compiled = background.start(_compile_whole, job, source, headers, is_running)
        # Python runs one thread at a time, so clang first gets its program.
        is_running.wait()
        try:
            warm_up()
        finally:
            spirv, log, files = compiled()
    if spirv is None:
        return {"log": log, "files": files}
    try:
        answer = prepare(job, spirv, finish)
    except CompileError as error:
        why = _with_lines(job, source, headers) if error.lacks_lines else ""
        raise CompileError(f"{log}{why or error}") from error
    return {**answer, "log": log + answer["log"], "files": files}


def _with_lines(job: Job, source: bytes, headers: dict[str, bytes]) -> str:
    """Why a program cannot be prepared, with the lines of its source that are to blame; "" if that cannot be
    told."""
    job = {**job, "options": f"{job['options']} -g"}
    spirv, _, _ = compile_source(job, source, headers)
    try:
        if spirv is not None:
            _prepare(job, spirv)
    except CompileError as error:
        return str(error)
    return ""


def kernels(job: Job, il: bytes, names: list[str]) -> list[tuple[list[Any], list[bytes]]]:
    """KernelInfo values and objects of each of these kernels of a program. The program is read but once.
    CompileError if one cannot be compiled."""
    _load_stages()
    from ..compiler import pipeline

    program = _prepare(job, il)
    made = [pipeline.kernel(program, name) for name in names]
    return [(info.to_values(), objects) for info, objects in made]


def kernel_variant(
    job: Job,
    il: bytes,
    name: str,
    key: list[int],
    size: list[int],
    values: list[tuple[int, bytes]],
    apart: list[int],
) -> list[Any]:
    """Values of jit/executable.VariantCode; see client.kernel_variant(). CompileError where there is none.

    Unless a setting says so, nobody waits for code for values: what runs meanwhile is as good as it gets
    without. But for that of images a launch waits, or goes over to it before it ends.
    """
    _load_stages()
    from ..compiler import pipeline, variants

    is_patient = bool(values) and variants.kind_of(key) not in (pipeline.SOON, variants.ANY)
    is_patient = is_patient and settings.text("CL_DRIVER_VALUE_CODE") != "now"

    def make() -> list[Any]:
        if is_patient:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _PATIENT)
        return variants.kernel_variant(_prepare(job, il), name, key, size, values, apart).to_values()

    return background.start(make)() if is_patient else make()


def explain(job: Job, folder: str, program: bytes, headers: dict[str, bytes] | None) -> str:
    """Leaves a report on a program in a folder; headers: those of a program in OpenCL C, None for SPIR-V.
    The name of the files without its ending, "" if they could not be written. CompileError for a program that
    is wrong."""
    _load_stages()
    from ..explain import program as explained

    context = _context(job)
    if headers is None:
        report = explained.explain_il(program, context)
    else:
        report = explained.explain_source(program, headers, context)
    return explained.write(report, folder, digest(wire.encode(job), program))


OPERATIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (compile_source, link, prepare, build_source, kernels, kernel_variant, explain)
}


def run(operation: str, *arguments: Any) -> Any:
    """One operation, by its name in OPERATIONS. CompileError, with the log, for everything that is the
    program's fault or ours."""
    try:
        return OPERATIONS[operation](*arguments)
    except CompileError:
        raise
    except RecursionError as error:
        raise CompileError("the program is nested too deeply for this compiler") from error
    except MemoryError as error:
        raise CompileError("the compiler needs more memory than CL_DRIVER_COMPILE_MEMORY allows") from error
