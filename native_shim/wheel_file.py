"""What becomes of a wheel before it is given away: the same modules in fewer bytes (make dist).

Modules are without comments and docstrings, a quarter of the bytes, and without the types of functions'
parameters and results, which nobody asks for at run time. What is left stays on its line, so that tracebacks
name the lines of the repository's files. The modules of the cl-driver command keep their own docstrings,
which its help shows.
"""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import io
import struct
import tokenize
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_SHOWN = "cl_driver/cli/"
_RECORD = ".dist-info/RECORD"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

# Of the compressor. More of them find next to nothing.
_TRIES = 5
_ZLIB_HEADER, _ZLIB_CHECK = 2, 4  # bytes

# Headers of zip files: of a member, the same in the directory, and the directory's end.
_MEMBER, _ENTRY, _END = "<4s5H3I2H", "<4s6H3I5H2I", "<4s4H2IH"
_VERSION, _UNIX, _DEFLATED = 20, 3 << 8, 8


def rewrite(path: Path) -> None:
    """Writes a wheel again."""
    with zipfile.ZipFile(path) as wheel:
        members = [(info, wheel.read(info)) for info in wheel.infolist()]
    (record,) = (info for info, _ in members if info.filename.endswith(_RECORD))
    members = [(info, _shorter(info.filename, data)) for info, data in members if info is not record]
    rows = [f"{info.filename},{_digest(data)},{len(data)}\n" for info, data in members]
    members.append((record, "".join([*rows, f"{record.filename},,\n"]).encode()))
    path.write_bytes(_zip(members))


def _shorter(name: str, data: bytes) -> bytes:
    return without_comments(data, name.startswith(_SHOWN)) if name.endswith(".py") else data


def _digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def _zip(members: list[tuple[zipfile.ZipInfo, bytes]]) -> bytes:
    """A zip file."""
    out, entries = bytearray(), bytearray()
    with ThreadPoolExecutor() as pool:  # the compressor lets other threads run
        all_packed = list(pool.map(_packed, [data for _, data in members]))
    for (info, data), packed in zip(members, all_packed, strict=True):
        name = info.filename.encode("ascii")
        year, month, day, hour, minute, second = info.date_time
        stamp = hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day
        common = (0, _DEFLATED, *stamp, zlib.crc32(data), len(packed), len(data), len(name), 0)
        entry = (_UNIX | _VERSION, _VERSION, *common, 0, 0, 0, info.external_attr, len(out))
        entries += struct.pack(_ENTRY, b"PK\1\2", *entry) + name
        out += struct.pack(_MEMBER, b"PK\3\4", _VERSION, *common) + name + packed
    count = len(members)
    return bytes(out + entries) + struct.pack(_END, b"PK\5\6", 0, 0, count, count, len(entries), len(out), 0)


@functools.cache
def _packed(data: bytes) -> bytes:
    """Compressed; most files of the wheels of two architectures are the same. zipfile has no compressor but
    zlib's, which leaves a twentieth."""
    import zopfli.zlib

    return zopfli.zlib.compress(data, numiterations=_TRIES)[_ZLIB_HEADER:-_ZLIB_CHECK]


@functools.cache
def without_comments(text: bytes, keeps_first: bool = False) -> bytes:
    """A module without comments, docstrings and functions' types. keeps_first: but with its own docstring.
    ValueError if that made another program of it."""
    lines = text.splitlines(keepends=True)
    cuts = []  # where each begins, as line and byte, where it ends, and what comes in its place
    for token in tokenize.tokenize(io.BytesIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, start = token.start[0], len(token.line[: token.start[1]].encode())
            cuts.append(((row, start), (row, start + len(token.string.encode())), b""))
    tree = ast.parse(text)
    cuts += [(start, end, b"") for start, end in _types(tree, lines)]
    for node, is_needed in _docstrings(tree, keeps_first):
        last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        is_needed |= lines[last - 1][end:].lstrip().startswith(b";")
        cuts.append(((node.lineno, node.col_offset), (last, end), b"pass" * is_needed))
    for (first, start), (last, end), instead in sorted(cuts, reverse=True):
        before, after = lines[first - 1][:start] + instead, lines[last - 1][end:]
        if first == last:
            lines[first - 1] = (before + after).rstrip() + b"\n"
        else:
            lines[first - 1 : last] = [before.rstrip() + b"\n", *[b"\n"] * (last - first - 1), after]
    shorter = b"".join(lines)
    if _program(text, keeps_first) != _program(shorter, keeps_first):
        raise ValueError("without comments it is another program")
    return shorter


def _docstrings(tree: ast.Module, keeps_first: bool) -> list[tuple[ast.Expr, bool]]:
    """The statements, and whether something has to be there."""
    return [
        (node.body[0], len(node.body) == 1 and node is not tree)
        for node in ast.walk(tree)
        if isinstance(node, _DOCUMENTED)
        and isinstance(node.body[0] if node.body else None, ast.Expr)
        and ast.get_docstring(node, clean=False) is not None
        and not (keeps_first and node is tree)
    ]


def _types(tree: ast.Module, lines: list[bytes]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the types of functions' parameters and results stand, with their signs; but for long ones."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and (kind := node.annotation):
            found.append(((node.lineno, node.col_offset + len(node.arg.encode())), _end(kind)))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (kind := node.returns):
            before = lines[kind.lineno - 1][: kind.col_offset].rpartition(b"->")[0].rstrip()
            found.append(((kind.lineno, len(before)), _end(kind)))
    return [(start, end) for start, end in found if start[0] == end[0] and start[1]]


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _program(text: bytes, keeps_first: bool) -> list[str]:
    """What Python makes of it, but for docstrings and functions' types, and the line of each part."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
    ignored = {id(part) for node, _ in _docstrings(tree, keeps_first) for part in ast.walk(node)}
    return [
        f"{getattr(node, 'lineno', 0)} {type(node).__name__} "
        + " ".join(f"{key}={value!r}" for key, value in ast.iter_fields(node) if _is_plain(value))
        for node in ast.walk(tree)
        if id(node) not in ignored and not isinstance(node, ast.Pass)
    ]


def _is_plain(value: object) -> bool:
    """Whether it is no part of the tree with a place of its own."""
    return not isinstance(value, (ast.AST, list))
