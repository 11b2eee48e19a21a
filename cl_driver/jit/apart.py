"""LLVM in a process that may end: text with the program's own inline assembly.

Of an instruction, a constraint or an operand that it does not like LLVM tells by ending the process, in words
or of a signal. What it made comes back as bytes; its words are for the build log.
"""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys

from .. import native, trust
from ..device.target import Target
from .errors import NOT_VALID, CompileError

_LONGEST = 4000  # characters of LLVM's words


def command(function: str, *arguments: str) -> list[str]:
    """What starts a Python that calls a function of try_llvm.py."""
    start = (
        f"import sys; sys.path[:] = {sys.path!r}; from cl_driver import trust; "
        f"trust.hand({trust.is_trusted()}); from cl_driver.jit import try_llvm; "
        f"try_llvm.{function}(*sys.argv[1:])"
    )
    return [native.python(), "-I", "-S", "-c", start, *arguments]


def generate(text: str, target: Target, passes: str, level: int, form: str) -> tuple[bytes, str]:
    """As Library.generate(). CompileError says what LLVM said."""
    try:
        # Not a pipe: writing into that of a process that has ended is a signal, by which hosts end.
        with open(os.memfd_create("job"), "w+b") as job:
            job.write(marshal.dumps((text, target.to_values(), passes, level, form)))
            job.seek(0)
            done = subprocess.run(
                command("generate"), stdin=job, capture_output=True, env=dict(trust.environment())
            )
    except (OSError, subprocess.SubprocessError) as why:
        raise CompileError(f"no process to compile inline assembly in: {why}") from why
    if done.returncode == 0 and done.stdout[:1] == b"+":
        made: tuple[bytes, str] = marshal.loads(done.stdout[1:])
        return made
    words = done.stderr.decode("utf-8", "replace").strip()[:_LONGEST].removeprefix(NOT_VALID)
    if done.returncode == -signal.SIGXCPU:
        words = "LLVM took too long (CL_DRIVER_COMPILE_TIMEOUT)"
    elif done.returncode < 0:
        words = f"LLVM ended of signal {-done.returncode}\n{words}".strip()
    raise CompileError(f"inline assembly: {words or 'LLVM does not say what is wrong'}")
