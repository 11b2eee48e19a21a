"""Headers that a program brings along, and files that it includes."""

from __future__ import annotations

import os
import re
from pathlib import Path


def write_headers(where: str, headers: dict[str, bytes]) -> None:
    """Headers under the names by which the source includes them; with folders, but none outside."""
    folder = Path(where)
    for name, text in headers.items():
        path = Path(os.path.normpath(folder / name.lstrip("/")))
        if folder not in path.parents:
            raise ValueError(f"header name {name!r} points outside of the program")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def read_dependencies(fd: int, private: str, folder: str | None) -> tuple[str, ...]:
    """The make rule that clang wrote, without the target, the source, clang's headers and private ones."""
    os.lseek(fd, 0, os.SEEK_SET)
    text = b""
    while part := os.read(fd, 1 << 16):
        text += part
    words = re.findall(r"(?:\\.|[^\s\\])+", text.decode("utf-8", "surrogateescape").replace("\\\n", " "))
    base = os.path.abspath(folder or ".")
    out = []
    for word in words[1:]:
        path = os.path.normpath(os.path.join(base, re.sub(r"\\([ #])", r"\1", word).replace("$$", "$")))
        if word == "-" or os.path.basename(path) == "<stdin>":
            continue
        if (private and path.startswith(private)) or re.search(r"/clang/[^/]+/include/opencl-c", path):
            continue
        out.append(path)
    return tuple(dict.fromkeys(out))
