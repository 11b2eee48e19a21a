"""Finds a clang that can write SPIR-V. What has its name need not be one: whatever fails without a word that
clang would say is asked for its version, and if it has none the next candidate is taken."""

from __future__ import annotations

import os
from collections import namedtuple

from .. import log, native
from ..jit import clang_paths
from ..jit.clang_paths import OLDEST
from ..late_patterns import pattern
from . import effort
from .clang_start import environment
from .options import NO_COMPILER

# Seconds without any CPU time: what only PATH leads to, and has not worked yet, is then asked what it is; and
# in which a clang says its version.
_STALLED_STRANGER = 10
_ANSWERS = 20

_SPIRV_MAGIC = (0x07230203).to_bytes(4, "little")
_SPIRV_HEADER = 20  # bytes
# How clang, its driver and LLVM say that something is wrong.
_DIAGNOSTIC = pattern(
    r"(?m)^(?:\S.*:\d+:\d+: |clang[-+\w.]*: )(?:fatal )?error: |^fatal error: error in backend: |"
    r"^LLVM ERROR: |^PLEASE submit a bug report",
)


class ClangError(Exception):
    """There is no usable clang; the message says what was looked for."""


class Clang(namedtuple("Clang", "path major identity")):
    """An executable and its major version; `identity` changes when it does and is part of the cache key."""

    __slots__ = ()

    path: str
    major: int
    identity: str


_found: dict[str, Clang] = {}  # by setting
_only: list[Clang] = []  # that of settle()
_known: set[str] = set()  # identities of those that have worked, or have told their version
_unusable: dict[str, str] = {}  # by identity: why


def forget() -> None:
    """Everything that this process knows of the clangs."""
    for each in (_found, _known, _unusable):
        each.clear()
    _only.clear()


def settle(clang: Clang) -> None:
    """This process can reach no other clang from now on."""
    _only[:] = [clang]
    _known.add(clang.identity)


def find(setting: str = "") -> Clang:
    """The clang to use: the one that the setting CL_DRIVER_CLANG names, else the best of PATH and the fixed
    folders but for those that were rejected.

    Costs no process for names that carry their version. Raises ClangError.
    """
    if _only:
        return _only[0]
    if setting not in _found:
        _found[setting] = _find(setting)
        if log.level >= 2:
            log.log(2, f"clang: {explain(_found[setting], setting)}")
    return _found[setting]


def _find(setting: str) -> Clang:
    tried = []
    for path in clang_paths.candidates(setting):
        clang = _look_at(path)
        if clang is None:
            continue  # it has gone
        if clang.major < OLDEST:
            tried.append(f"{path}: version {clang.major} of clang" if clang.major else f"{path}: not a clang")
        elif clang.identity in _unusable:
            tried.append(f"{path}: {_unusable[clang.identity]}")
        else:
            return clang
    if setting and not tried:
        tried.append(f"{setting}, which CL_DRIVER_CLANG names: not found")
    elif not tried:
        names, packages = ", ".join(clang_paths.NAMES), os.pathsep.join(native.packages())
        tried.append(f"none of {names} in {os.pathsep.join(clang_paths.folders())}")
        tried.append(f"no {clang_paths.PACKAGE} in {packages}")
    raise ClangError(
        f"{NO_COMPILER} {OLDEST} or newer to compile OpenCL C with (Debian: apt install "
        f"clang-22; without root: pip install {clang_paths.PACKAGE}). Looked at: {'; '.join(tried)}"
    )


def _look_at(path: str) -> Clang | None:
    real = os.path.realpath(path)
    try:
        status = os.stat(real)
    except OSError:
        return None
    major = clang_paths.version_in_name(path) or _ask_version(path)
    return Clang(path, major, f"{real} {status.st_size} {status.st_mtime_ns}")


def explain(clang: Clang, setting: str = "") -> str:
    """Which it is, and why it is in use."""
    if setting:
        why = "CL_DRIVER_CLANG names it"
    else:
        passed = [path for path in clang_paths.candidates() if path != clang.path]
        passed = [path for path in passed if (each := _look_at(path)) and each.identity in _unusable]
        names, fixed = (", ".join(each) for each in (clang_paths.NAMES, clang_paths.FIXED_FOLDERS))
        why = f"the first of {names} in PATH and {fixed}"
        if clang_paths.is_zig(clang.path):
            why = f"the one of PyPI's {clang_paths.PACKAGE}, since none of {names} in PATH and {fixed} serves"
        why += f" but for {', '.join(passed)}" * bool(passed)
    return f"{clang.path}, version {clang.major}: {why}"


def patience(clang: Clang) -> float:
    """Seconds without any CPU time after which a run of it is given up."""
    is_stranger = clang.identity not in _known and not clang_paths.is_fixed(clang.path)
    return min(effort.STALLED, _STALLED_STRANGER) if is_stranger else effort.STALLED


def has_worked(clang: Clang) -> None:
    """It is one: it will not be asked."""
    _known.add(clang.identity)


def is_module(output: bytes) -> bool:
    """Whether the output of a run that succeeded is what a clang makes."""
    return output.startswith(_SPIRV_MAGIC) and len(output) > _SPIRV_HEADER


def has_diagnostic(errors: str) -> bool:
    """Whether a run that failed says why as clang does."""
    return _DIAGNOSTIC.search(errors) is not None


def reject(clang: Clang, what: str) -> str:
    """Asks what has failed whether it is a clang. If it is none, this process never takes it again, and the
    answer says why; "" if it is one. what: it did."""
    if clang.identity in _known:
        return ""
    if _ask_version(clang.path):
        _known.add(clang.identity)
        return ""
    why = f"not a clang: it {what}, and --version is not that of one"
    _unusable[clang.identity] = why
    for setting in [each for each, found in _found.items() if found == clang]:
        del _found[setting]
    log.log(1, f"{clang.path} is {why}")
    return why


def _ask_version(path: str) -> int:
    """The major version, or 0 for anything but a clang."""
    import subprocess

    try:
        done = subprocess.run(
            [*clang_paths.command(path), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=min(effort.STALLED, _ANSWERS),
            stdin=subprocess.DEVNULL,
            env=environment(),
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    major = done.stdout.partition("clang version ")[2].partition(".")[0]
    return int(major) if major.isdecimal() else 0
