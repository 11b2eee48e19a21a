"""A process that tries an LLVM, and may end of it: self_test.ask() starts it, and apart.py."""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import sys

from .. import settings
from ..device.target import Target, target_of
from . import emit, llvm_library, self_test
from .errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .llvm_library import Library
    from .llvm_lite import Lite

# Assembly may ask for any number of instructions and bytes (.rept, .fill).
_LIMITS = {
    resource.RLIMIT_CPU: "CL_DRIVER_COMPILE_TIMEOUT",
    resource.RLIMIT_AS: "CL_DRIVER_COMPILE_MEMORY",
}
_PR_SET_PDEATHSIG, _KILL = 1, 9


def generate() -> None:
    """A job of apart.generate() from stdin; what was made to stdout, words to stderr."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _KILL)
    for kind, name in _LIMITS.items():
        most = settings.integer(name)
        _, hard = resource.getrlimit(kind)
        if most and (hard == resource.RLIM_INFINITY or most < hard):
            resource.setrlimit(kind, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    text, target, passes, level, form = marshal.load(sys.stdin.buffer)
    try:
        made = emit.llvm().generate(text, Target.from_values(target), passes, level, form)
    except CompileError as why:
        sys.stderr.write(str(why))
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.buffer.write(b"+" + marshal.dumps(made))
    sys.stdout.buffer.flush()
    os._exit(0)


def main(name: str, tested: str) -> None:
    """Writes two lines: the version, 0 if it is no LLVM, and what is wrong with it, nothing if nothing is.

    name: a library's, or llvmlite. tested: the version that needs no test.
    """
    version: tuple[int, ...] = (0,)
    try:
        llvm: Library | Lite
        if name == "llvmlite":
            llvm = emit.lite()
            version = llvm.version()
        else:
            version = llvm_library.version_of(name)
            llvm = llvm_library.Library(name, emit.OPTIONS, emit.SHORT_LIST)
        wrong = "" if version[0] == int(tested) else self_test.failure(llvm, target_of(settings))
    except (OSError, AttributeError, ImportError, CompileError) as why:
        wrong = str(why)
    print(".".join(map(str, version)), wrong.replace("\n", " "), sep="\n", flush=True)
