"""The files that a program was made of: whether they are what they were. Imported by the host's process."""

from __future__ import annotations

import os
import stat

from .. import trust
from ..jit.cache import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PART = 1 << 20  # bytes read at a time
_MOST_KEPT = 16 << 20  # bytes of a program's files

# Seconds by which a file's time stamp may lag behind the clock.
_CLOCK_STEP = 0.02


def cwd() -> str:
    """The working folder; "/" where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _content(path: str) -> bytes | None:
    """A file; None if it cannot be read, or is none that clang reads for a program."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > trust.MOST_INCLUDED:
            return None
        data = []
        while part := os.read(descriptor, _PART):
            data.append(part)
            if len(data) * _PART > 2 * trust.MOST_INCLUDED:
                return None  # of those of /proc no size is known
        return b"".join(data)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def digest_of(path: str) -> str | None:
    """The digest of a file; None if it cannot be read, or is none that clang reads for a program."""
    content = _content(path)
    return None if content is None else digest(content)


def contents_of(paths: Iterable[str]) -> dict[str, bytes] | None:
    """Files by path; None where one is no file that clang reads for a program, or too large to be kept."""
    found: dict[str, bytes] = {}
    left = _MOST_KEPT
    for path in paths:
        content = _content(path)
        if content is None or len(content) > left:
            return None
        found[path] = content
        left -= len(content)
    return found


def changed_since(path: str, start: float) -> bool:
    """Whether a file was perhaps written after that time: clang may have seen another one."""
    try:
        return os.stat(path).st_mtime > start - _CLOCK_STEP
    except OSError:
        return True


def would_come_first(read: list[str], absent: list[str], options: str) -> list[str]:
    """Files that are not there, but which the program would find before those that it read, or in place of
    those that it did not find: those, and what it did not even look for in folders that are not there.

    The search goes through the folder of the including file, then the folders of -I in their order.
    """
    if not read and not absent:
        return []
    from ..frontend.options import parse

    here = cwd()
    folders = [
        os.path.normpath(os.path.join(here, folder))
        for folder in parse(options, has_context=True).include_folders
    ]
    including = list(dict.fromkeys([here, *map(os.path.dirname, read)]))
    missing = [folder for folder in folders if not os.path.isdir(folder)]
    found = dict.fromkeys(absent)
    for path in (*read, *absent):
        for folder in {*including, *folders}:
            name = path.removeprefix(folder.rstrip("/") + "/")
            if name == path:
                continue  # it was not looked for there
            before = folders[: folders.index(folder)] if folder in folders else []
            for other in missing if path in found else [*including, *before]:
                candidate = os.path.join(other, name)
                if not os.path.lexists(candidate):
                    found[candidate] = None
    return list(found)
