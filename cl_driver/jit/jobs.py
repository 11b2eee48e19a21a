"""What compiler processes do, by name: wire values in, wire values out. jit/worker.py calls it in a process
of its own, jit/client.py in its own process when CL_DRIVER_COMPILE=inprocess.

`job` in the arguments is what all operations need: {"target": Target values, "options": the build options as
the application gave them, "settings": {name: text} of those that concern the compiler, "cwd": folder to which
relative include folders refer}.
"""

from __future__ import annotations

from cl_driver import pipeline
from cl_driver.jit import wire
from cl_driver.jit.cache import digest
from cl_driver.jit.errors import CompileError
from cl_driver.jit.target import Target

# The last program whose kernels were asked for: the service asks for them one by one.
_prepared: dict[str, pipeline.Prepared] = {}


def _context(job: dict) -> pipeline.Context:
    return pipeline.Context(Target.from_values(job["target"]), job["options"], job["settings"], job["cwd"])


def _prepare(job: dict, il: bytes) -> pipeline.Prepared:
    key = digest(wire.encode(job), il)
    if key not in _prepared:
        _prepared.clear()
        _prepared[key] = pipeline.prepare(il, _context(job))
    return _prepared[key]


def compile_source(job: dict, source: bytes, headers: dict) -> list:
    """[SPIR-V or None, log, dependencies]."""
    result = pipeline.compile_source(source, headers, _context(job))
    return [result.spirv, result.log, list(result.dependencies)]


def link(job: dict, il: bytes) -> str:
    """Checks that the modules of a library fit together. The log."""
    return pipeline.check_library(il, _context(job))


def prepare(job: dict, il: bytes, finish: int) -> dict:
    """Reads, links and checks a program. {"kernels": [[name, weight]...], "program": values of an Executable
    without kernels and objects, "log"}; and "executable", all of it as bytes, if the kernels' weights are no
    more than `finish` in all."""
    program = _prepare(job, il)
    kernels = [[name, program.weight(name)] for name in program.names]
    answer = {"kernels": kernels, "log": program.log}
    if len(kernels) <= 1 or sum(weight for _, weight in kernels) <= finish:
        executable = program.executable([pipeline.kernel(program, name) for name in program.names])
        answer["executable"] = executable.to_bytes()
    else:
        answer["program"] = program.executable([]).to_values()
    return answer


def build_source(job: dict, source: bytes, headers: dict, finish: int) -> dict:
    """compile_source() and prepare() in one go: what prepare() answers, and "dependencies"; {"log",
    "dependencies"} alone where the source does not compile."""
    spirv, log, dependencies = compile_source(job, source, headers)
    answer = {"log": "", "dependencies": dependencies}
    if spirv is not None:
        try:
            answer |= prepare(job, spirv, finish)
        except CompileError as error:
            raise CompileError(f"{log}{error}") from error
    answer["log"] = log + answer["log"]
    return answer


def kernel(job: dict, il: bytes, name: str) -> list:
    """[KernelInfo values, object] of one kernel of a program. The program is read but once."""
    info, data = pipeline.kernel(_prepare(job, il), name)
    return [info.to_values(), data]


OPERATIONS = {f.__name__: f for f in (compile_source, link, prepare, build_source, kernel)}


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
