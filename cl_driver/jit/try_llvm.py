"""A process that tries an LLVM, and may end of it: self_test.ask() starts it."""

from __future__ import annotations

from .. import settings
from ..device.target import target_of
from . import emit, llvm_library, self_test
from .errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .llvm_library import Library
    from .llvm_lite import Lite


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
