"""LLVM IR text to a relocatable object. Runs in compiler processes only.

By the LLVM that choose_llvm.py chooses. Any ends the process on some
of what it dislikes, so the text is parsed and verified first, and the process is one whose end is a build
failure and nothing worse (service/client.py).
"""

from __future__ import annotations

import functools
import os

from .. import settings
from ..device.target import Target
from . import choose_llvm, llvm_paths
from .elf import undefined_symbols
from .errors import CompileError
from .symbols import loader_symbols

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Thread

    from .llvm_library import Library
    from .llvm_lite import Lite

# For text that is vector code already. Builtin functions arrive as internal ones; those marked alwaysinline
# are inlined, and what is then called by nobody is dropped. NewGVN may not end on expressions that early-cse
# would have folded, and has less to do after it.
SHORT_LIST = (
    "always-inline", "globaldce", "sroa", "simplifycfg", "early-cse", "newgvn", "instcombine", "simplifycfg",
)  # fmt: skip

# Addresses are written as x86 takes them; to look for better ones takes an eighth of LLVM's time. AArch64 has
# none of a base, a scaled index and an offset together: without induction variables of their own, accesses
# beside one another each compute theirs, and never become one of a pair.
OPTIONS: tuple[str, ...] = () if os.uname().machine == "aarch64" else ("-disable-lsr",)


@functools.cache
def choice() -> choose_llvm.Choice:
    """The LLVM in use, and why. CompileError if there is none."""
    return choose_llvm.choose(settings.text("CL_DRIVER_LLVM"), OPTIONS, SHORT_LIST, lite)


def llvm() -> Library | Lite:
    """The LLVM in use, which has generate()."""
    return choice().llvm


# Strings of LLVM's hold no quotes.
_ASSEMBLY = (' asm "', ' asm sideeffect "')


def has_assembly(text: str) -> bool:
    """Whether there is inline assembly in LLVM IR: only a program has it."""
    return any(mark in text for mark in _ASSEMBLY)


def _generate(text: str, target: Target, passes: str, level: int, form: str = "object") -> tuple[bytes, str]:
    if has_assembly(text):
        from . import apart  # what starts processes takes long to import

        return apart.generate(text, target, passes, level, form)
    return llvm().generate(text, target, passes, level, form)


@functools.cache
def lite() -> Lite:
    """llvmlite's LLVM."""
    from .llvm_lite import Lite

    return Lite(OPTIONS, SHORT_LIST)


def preload() -> Thread | None:
    """Has the system load LLVM's library on a thread: that takes as long as to import everything that writes
    LLVM IR, and a call by way of ctypes, unlike ctypes.CDLL(), lets other threads run meanwhile. None where
    it is not known which library it will be."""
    import ctypes
    import threading

    path = llvm_paths.certain(settings.text("CL_DRIVER_LLVM"))
    if not path:
        return None
    load = ctypes.CDLL(None).dlopen
    load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    thread = threading.Thread(target=load, args=(os.fsencode(path), os.RTLD_NOW), daemon=True)
    thread.start()
    return thread


def warm_up() -> None:
    """Loads what the first compilation would otherwise wait for."""
    llvm()


def compile_ir(text: str, target: Target, passes: str = "O2", level: int = 2) -> bytes:
    """The object code of one LLVM module.

    passes: "O0" to "O3", LLVM's own pipelines; "scalar", O2 without the vectorisers; "short", for text
    that is vector code already; or "ordered", the same, and long blocks in an order that suits the registers.
    level: of the code generator, 0 to 3. CompileError says what was wrong.
    """
    data, _ = _generate(text, target, passes, level)
    unknown = [name for name in undefined_symbols(data) if name not in loader_symbols()]
    if unknown:
        raise CompileError(f"the kernel needs functions that the driver does not have: {', '.join(unknown)}")
    return data


def assembly(text: str, target: Target, passes: str = "O2", level: int = 2) -> str:
    """The same as compile_ir() as assembly text, for those who want to read it."""
    return _generate(text, target, passes, level, "assembly")[0].decode()


def commented_assembly(text: str, target: Target, passes: str, level: int) -> tuple[str, str]:
    """Assembly with LLVM's comments on blocks, loops and spilled registers, and the IR it was made of."""
    data, module = _generate(text, target, passes, level, "comments")
    return data.decode(), module
