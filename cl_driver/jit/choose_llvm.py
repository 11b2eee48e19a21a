"""Which LLVM makes the code, and why: the library that clang is linked with, or llvmlite's. One of another
version than the tested one is taken if the self-test passes, and named if it does not."""

from __future__ import annotations

import os
from collections.abc import Callable

from .. import log
from ..fast_typing import NamedTuple
from . import llvm_paths
from .errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .llvm_library import Library
    from .llvm_lite import Lite


class Choice(NamedTuple):
    """llvm: has generate(); name: of the library, or llvmlite; why: it was taken, and others were not."""

    llvm: Library | Lite
    name: str
    version: tuple[int, ...]
    why: str

    def __str__(self) -> str:
        return f"{self.name}, version {'.'.join(map(str, self.version))}: {self.why}"


def choose(
    setting: str, options: tuple[str, ...], short_list: tuple[str, ...], lite: Callable[[], Lite]
) -> Choice:
    """setting: CL_DRIVER_LLVM; options, short_list: see emit.py; lite: makes llvmlite's. CompileError if
    there is none that serves, or the one that the setting names does not."""
    refused: list[str] = []
    for path in llvm_paths.candidates(setting):
        is_known = not setting and os.path.basename(path) == llvm_paths.LIBRARY
        version, wrong = ((llvm_paths.TESTED,), "") if is_known else _ask(path)
        if not wrong:
            from . import llvm_library

            try:
                version = llvm_library.version_of(path)
                library = llvm_library.Library(path, options, short_list)
            except (OSError, AttributeError) as why:
                wrong = str(why)
            else:
                why_it = "CL_DRIVER_LLVM names it" if setting else "it is what clang is linked with"
                return _chosen(Choice(library, path, version, why_it + _tested(version) + _but(refused)))
        refused.append(f"{path}{_of(version)}: {wrong}")
        log.log(1, f"LLVM: not used: {refused[-1]}")
        if setting:
            raise CompileError(f"CL_DRIVER_LLVM: {refused[-1]}\n")
    try:
        llvmlite = lite()
    except (ImportError, OSError) as why:
        refused.append(f"llvmlite: {why}")
        raise CompileError(f"there is no LLVM to make code with: {'; '.join(refused)}\n") from why
    version = llvmlite.version()
    if version[0] != llvm_paths.TESTED and (wrong := _ask("llvmlite")[1]):
        refused.append(f"llvmlite{_of(version)}: {wrong}")
        raise CompileError(f"there is no LLVM to make code with: {'; '.join(refused)}\n")
    why_it = "CL_DRIVER_LLVM names it" if setting else f"there is no {llvm_paths.LIBRARY}"
    return _chosen(Choice(llvmlite, "llvmlite", version, why_it + _tested(version) + _but(refused)))


def _ask(name: str) -> tuple[tuple[int, ...], str]:
    from . import self_test  # and what it imports: for the tested version nobody needs it

    return self_test.ask(name)


def _chosen(choice: Choice) -> Choice:
    log.log(2, f"LLVM: {choice}")
    return choice


def _of(version: tuple[int, ...]) -> str:
    return f" (version {'.'.join(map(str, version))})" if any(version) else ""


def _tested(version: tuple[int, ...]) -> str:
    if version[0] == llvm_paths.TESTED:
        return ""
    return f"; it is not version {llvm_paths.TESTED}, which is tested, but has passed the self-test"


def _but(refused: list[str]) -> str:
    return f"; not used: {'; '.join(refused)}" if refused else ""
