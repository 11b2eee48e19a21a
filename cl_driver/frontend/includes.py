"""Headers that a program brings along, and files that it looks for."""

from __future__ import annotations

import os
from collections import namedtuple

from ..jit import clang_paths
from ..late_patterns import pattern

# What asks for the time, as far as the text of a program can tell: see read().
_TIME = (b"__TIME__", b"__DATE__", b"__TIMESTAMP__")

_CLANGS_OWN = "/include/opencl-c"  # below a folder named by a version, in one of the name clang
_OF_RESIDENT = "/proc/self/fd/"
_WORD = pattern(r"(?:\\.|[^\s\\])+")
_ESCAPED = pattern(r"\\([ #])")


FIELD = "\x1f"  # ends a field of what is told of kernels


class Files(namedtuple("Files", "read absent is_timeless is_cut", defaults=((), (), True, False))):
    """What a program depends on besides its text and options, as absolute paths.

    read: files that it includes, or whose presence it tests; headers that it brings along and clang's own are
    left out. absent: what it looked for and did not find. is_timeless: the same again at another time.
    is_cut: what came of it is not all of it (resident.Done).
    """

    __slots__ = ()

    read: tuple[str, ...]
    absent: tuple[str, ...]
    is_timeless: bool
    is_cut: bool


def write_headers(where: str, headers: dict[str, bytes]) -> None:
    """Headers of clCompileProgram (5.8.7) under the names by which the source includes them; with folders.

    where: the folder to write to; headers: name to text. Raises ValueError for a name that leads out of it.
    """
    from pathlib import Path

    folder = Path(where)
    for name, text in headers.items():
        path = Path(os.path.normpath(folder / name.lstrip("/")))
        if folder not in path.parents:
            raise ValueError(f"header name {name!r} points outside of the program")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def _content(listing: int) -> bytes:
    os.lseek(listing, 0, os.SEEK_SET)
    text = b""
    while part := os.read(listing, 1 << 16):
        text += part
    return text


def of_kernels(listing: int) -> list[str] | None:
    """What the list of a run of clang tells of the program's kernels (native_shim/clang/kernels.c): fields;
    None where it tells nothing."""
    if listing >= 0:
        for record in _content(listing).split(b"\0")[:-1]:
            if record[:1] == b"K":
                return record[1:].decode("utf-8", "replace").split(FIELD)[:-1]
    return None


def _is_clangs_own(path: str) -> bool:
    for before in path.split(_CLANGS_OWN)[:-1]:
        folder, _, version = before.rpartition("/")
        if version and folder.endswith("/clang"):
            return True
    return path.startswith(clang_paths.RESOURCES + os.sep)


def read(listing: int, source: bytes, private: str, folder: str | None) -> Files:
    """The list of a run of clang: records of native_shim/clang/resident.c, then the make rule of clang's own.

    Without that library there are no records, and the source's text has to tell whether it asks for the time.
    private: the folder of the program's own headers, "" for none. folder: the working folder.
    """
    if listing < 0:
        return Files(is_timeless=False)
    *records, rule = _content(listing).split(b"\0")
    base = os.path.abspath(folder or ".")

    def absolute(path: str) -> str:
        return os.path.normpath(os.path.join(base, path))

    found: dict[str, None] = {}
    text = rule.decode("utf-8", "surrogateescape").replace("\\\n", " ")
    words = _WORD.findall(text) if "\\" in text else text.split()
    for word in words[1:]:
        path = absolute((_ESCAPED.sub(r"\1", word) if "\\" in word else word).replace("$$", "$"))
        if word == "-" or os.path.basename(path) == "<stdin>" or path.startswith(_OF_RESIDENT):
            continue
        if not ((private and path.startswith(private)) or _is_clangs_own(path)):
            found[path] = None
    looked_for = dict.fromkeys(absolute(os.fsdecode(record[1:])) for record in records if record[:1] == b"A")
    not_meant = (_OF_RESIDENT, private) if private else (_OF_RESIDENT,)
    absent = [path for path in looked_for if path not in found and not path.startswith(not_meant)]
    if b"L" in records:
        is_timeless = b"T" not in records
    else:
        is_timeless = not any(word in source for word in _TIME)
    return Files(tuple(found), tuple(absent), is_timeless)
