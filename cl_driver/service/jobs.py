"""What compiler processes do, by name: wire values in, wire values out. service/worker.py calls it in a
process of its own, service/client.py in its own process when CL_DRIVER_COMPILE=inprocess.

`job` in the arguments is what all operations need: {"target": Target values, "options": the build options as
the application gave them, "settings": {name: text} of those that concern the compiler, "cwd": folder to which
relative include folders refer, "source_copy": file with the source for debuggers, or ""}.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from .. import settings
from ..compiler import source as frontend
from ..device.target import Target
from ..jit import wire
from ..jit.cache import digest
from ..jit.errors import CompileError
from .background import Background

_PATIENT = 5  # added to the nice value of a thread whose work can wait

# The last program whose kernels were asked for: the service asks for them one by one.
_prepared: dict = {}


def _pipeline():
    """The stages after the front end. One thread at a time imports: two can see half of a module."""
    from ..compiler import pipeline
    from ..jit import emit

    emit.warm_up()
    pipeline.library()
    return pipeline


def warm_up() -> None:
    """Loads what jobs need."""
    with suppress(CompileError):  # the job that needs what is missing will say it, in its log
        _pipeline()


def _context(job: dict) -> frontend.Context:
    target = Target.from_values(job["target"])
    return frontend.Context(target, job["options"], job["settings"], job["cwd"], job["source_copy"])


def _prepare(job: dict, il: bytes):
    key = digest(wire.encode(job), il)
    if key not in _prepared:
        _prepared.clear()
        _prepared[key] = _pipeline().prepare(il, _context(job))
    return _prepared[key]


def compile_source(job: dict, source: bytes, headers: dict) -> list:
    """[SPIR-V or None, log, files]; files: those of frontend/includes.Files."""
    result = frontend.compile_source(source, headers, _context(job))
    return [
        result.spirv,
        result.log,
        [list(result.files.read), list(result.files.absent), result.files.is_timeless],
    ]


def link(job: dict, il: bytes) -> str:
    """Checks that the modules of a library fit together. The log."""
    return _pipeline().check_library(il, _context(job))


def prepare(job: dict, il: bytes, finish: int) -> dict:
    """Reads, links and checks a program. {"kernels": [[name, weight]...], "program": values of an Executable
    without kernels and objects, "log"}; and "executable", all of it as bytes, if the kernels' weights are no
    more than `finish` in all."""
    program = _prepare(job, il)
    kernels = [[name, program.weight(name)] for name in program.names]
    answer = {"kernels": kernels, "log": program.log}
    if len(kernels) <= 1 or sum(weight for _, weight in kernels) <= finish:
        executable = program.executable([_pipeline().kernel(program, name) for name in program.names])
        answer["executable"] = executable.to_bytes()
    else:
        answer["program"] = program.executable([]).to_values()
    return answer


def build_source(job: dict, source: bytes, headers: dict, finish: int) -> dict:
    """compile_source() and prepare() in one go: what prepare() answers, and "files"; {"log", "files"}
    alone where the source does not compile."""
    compiling = Background(compile_source, job, source, headers)
    try:
        warm_up()  # while clang runs
    finally:
        spirv, log, files = compiling.result()
    answer = {"log": "", "files": files}
    if spirv is not None:
        try:
            answer |= prepare(job, spirv, finish)
        except CompileError as error:
            raise CompileError(f"{log}{error}") from error
    answer["log"] = log + answer["log"]
    return answer


def kernel(job: dict, il: bytes, name: str) -> list:
    """[KernelInfo values, objects] of one kernel of a program. The program is read but once."""
    info, objects = _pipeline().kernel(_prepare(job, il), name)
    return [info.to_values(), objects]


def kernel_variant(job: dict, il: bytes, name: str, kind: int, size: list, values: list) -> list:
    """What the client's function of that name answers. Unless a setting says so, nobody waits for code for
    values, but for that of images which is there soon: what runs meanwhile is as good as it gets without."""
    _pipeline()
    from ..compiler import variants

    is_patient = values and variants.VARIANTS[kind] != variants.SOON
    is_patient = is_patient and settings.text("CL_DRIVER_VALUE_CODE") != "now"

    def make() -> list:
        if is_patient:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _PATIENT)
        return variants.kernel_variant(_prepare(job, il), name, kind, size, values)

    return Background(make).result() if is_patient else make()


def explain(job: dict, folder: str, program: bytes, headers: dict | None) -> str:
    """Leaves a report on a program in a folder; headers: those of a program in OpenCL C, None for SPIR-V.
    The name of the files without its ending, "" if they could not be written."""
    _pipeline()
    from ..explain import program as explained

    context = _context(job)
    if headers is None:
        report = explained.explain_il(program, context)
    else:
        report = explained.explain_source(program, headers, context)
    return explained.write(report, folder, digest(wire.encode(job), program))


OPERATIONS = {
    f.__name__: f for f in (compile_source, link, prepare, build_source, kernel, kernel_variant, explain)
}


def run(operation: str, *arguments):
    """One operation. CompileError, with the log, for everything that is the program's fault or ours."""
    try:
        return OPERATIONS[operation](*arguments)
    except CompileError:
        raise
    except RecursionError as error:
        raise CompileError("the program is nested too deeply for this compiler") from error
    except MemoryError as error:
        raise CompileError("the compiler needs more memory than CL_DRIVER_COMPILE_MEMORY allows") from error
