"""Programs of many functions, of which kernels reach few: the others are not optimised.

A function that is not static could be what a later link looks for, so clang optimises it and writes SPIR-V of
it, which is most of its time for a program with a large library in front of its kernels. For clBuildProgram,
after which nothing is linked, clang is asked for LLVM IR that it has not optimised; functions that no kernel
reaches are taken out; and clang makes SPIR-V of the rest, as it would have.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from .clang import Run

# Bytes of source from which on a program is worth two runs of clang.
_LARGE_SOURCE = 32_000

_NAME = re.compile(rb'@("[^"]*"|[-\w$.]+)')
_FUNCTION = re.compile(rb"^define (.*)\n(?:.*\n)*?}\n", re.MULTILINE)
_DECLARATION = re.compile(rb"^declare .*\n", re.MULTILINE)


def may_have_much(source: bytes) -> bool:
    """Whether a program may have so many functions that leaving some out is worth the time."""
    return len(source) > _LARGE_SOURCE or b"include" in source


def _first_name(line: bytes) -> bytes:
    """The name that a definition or declaration gives."""
    found = _NAME.search(line)
    return found[1] if found else b""


def drop_unreached(text: bytes) -> bytes:
    """LLVM IR without functions that neither kernels nor variables reach.

    A function that is not defined stays named, in the smallest function that names it: the link says that it
    is missing.
    """
    bodies: dict[bytes, bytes] = {}
    pending: deque[bytes] = deque()
    others, end = [], 0
    for found in _FUNCTION.finditer(text):
        name = _first_name(found[1])
        bodies[name] = found[0]
        others.append(text[end : found.start()])
        end = found.end()
        if b"spir_kernel" in found[1].partition(b"@")[0]:
            pending.append(name)
    if not pending:
        return text
    others.append(text[end:])
    rest = b"".join(others)
    declared = {_first_name(line) for line in _DECLARATION.findall(rest)}
    undefined = {name for name in declared if not name.startswith(b"llvm.")}
    pending += _NAME.findall(_DECLARATION.sub(b"", rest))
    kept: set[bytes] = set()
    _reach(pending, bodies, kept, undefined)
    for name in sorted(bodies.keys() - kept, key=lambda name: (len(bodies[name]), name)):
        if not undefined:
            break
        if name not in kept and not undefined.isdisjoint(_NAME.findall(bodies[name])):
            _reach(deque([name]), bodies, kept, undefined)
    parts = []
    for between, (name, body) in zip(others, bodies.items(), strict=False):
        parts += [between, body if name in kept else b""]
    return b"".join([*parts, others[-1]])


def _reach(
    pending: deque[bytes], bodies: dict[bytes, bytes], kept: set[bytes], undefined: set[bytes]
) -> None:
    """Adds to `kept` what `pending` leads to, and takes from `undefined` what is named on the way."""
    while pending:
        name = pending.popleft()
        if name in bodies and name not in kept:
            kept.add(name)
            names = set(_NAME.findall(bodies[name]))
            undefined -= names
            pending += names


def compile(
    clang: Callable[[list[str], bytes], Run],
    arguments: list[str],
    source: bytes,
    again: list[str],
    library: list[str],
) -> Run | None:
    """What clang gave for a program, without functions that no kernel reaches; None where that failed, and
    the program is to be compiled as it is.

    clang(arguments, text) runs it. arguments: for the program; again: for LLVM IR; library: for what is
    linked into the program.
    """
    plain = ["-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", "-o", "-", "-"]
    first = clang([*arguments, *plain], source)
    if first.status != 0:
        return first
    second = clang([*again, *library, "-c", "-o", "-", "-"], drop_unreached(first.output))
    if second.status != 0:
        return None
    return first._replace(output=second.output, errors=first.errors + second.errors)
