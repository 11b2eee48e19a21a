"""What is in the zoo: sources, their programs, and which kernels are held back."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
KINDS = ("debian-source", "debian", "pypi", "pypi-source", "git", "folder")
HELD_BACK = 10  # one kernel of so many


class Group(NamedTuple):
    """Program files of a source that are built in one way. Paths are relative to the source's folder."""

    files: list[str]  # globs
    exclude: list[str]  # globs
    prefix: list[str]  # files whose text stands before each program's
    text: str  # text before that
    options: list[str]  # one program for each
    includes: list[str]
    local: list[list[int]]  # local sizes by number of dimensions, where the source has its own


class Source(NamedTuple):
    name: str
    kind: str
    where: str  # package, URL or folder
    version: str  # of a package; the commit of a repository
    groups: list[Group]


class Program(NamedTuple):
    """One text with one set of options."""

    source: str
    name: str  # path in the source's folder; "#1" and so on for further options
    text: str
    options: str
    local: dict[int, list[int]]

    @property
    def title(self) -> str:
        return f"{self.source}:{self.name}"


def read(path: Path) -> list[Source]:
    """The sources of a table; ValueError says what is wrong with it."""
    sources = []
    for entry in tomllib.loads(path.read_text()).get("source", []):
        name = entry.get("name", "")
        kinds = [kind for kind in KINDS if kind in entry]
        if not re.fullmatch(r"[\w.+-]+", name) or len(kinds) != 1:
            raise ValueError(f"{path}: source {name!r}: needs a name and one of {', '.join(KINDS)}")
        unknown = set(entry) - {"name", "version", "commit", "programs", *KINDS}
        if unknown:
            raise ValueError(f"{path}: source {name!r}: unknown {', '.join(sorted(unknown))}")
        kind = kinds[0]
        if kind == "git" and not re.fullmatch(r"[0-9a-f]{40}", entry.get("commit", "")):
            raise ValueError(f"{path}: source {name!r}: a repository needs a commit of 40 digits")
        groups = [_group(path, name, group) for group in entry.get("programs", [{}])]
        version = entry.get("commit" if kind == "git" else "version", "")
        sources.append(Source(name, kind, entry[kind], version, groups))
    names = [source.name for source in sources]
    if len(set(names)) != len(names):
        raise ValueError(f"{path}: a name stands twice")
    return sources


def _group(path: Path, name: str, entry: dict) -> Group:
    unknown = set(entry) - set(Group._fields)
    if unknown:
        raise ValueError(f"{path}: programs of {name!r}: unknown {', '.join(sorted(unknown))}")
    options = entry.get("options", "")
    return Group(
        files=entry.get("files", ["**/*.cl"]),
        exclude=entry.get("exclude", []),
        prefix=entry.get("prefix", []),
        text=entry.get("text", ""),
        options=[options] if isinstance(options, str) else options,
        includes=entry.get("includes", []),
        local=entry.get("local", []),
    )


def programs(source: Source, folder: Path) -> list[Program]:
    """All programs of a source, in the order of their names; those without a kernel are left out."""
    found = {}
    for group in source.groups:
        excluded = {path for glob in group.exclude for path in folder.glob(glob)}
        files = {path for glob in group.files for path in folder.glob(glob)} - excluded
        before = group.text + "".join(_text(folder / name) for name in group.prefix)
        for path in sorted(files):
            text = _text(path)
            if not path.is_file() or not re.search(r"\b(__)?kernel\b|\bKERNEL\b", text):
                continue
            includes = [path.parent, *(folder / include for include in group.includes)]
            local = {len(sizes): sizes for sizes in group.local}
            for number, options in enumerate(group.options):
                name = str(path.relative_to(folder)) + (f"#{number}" if number else "")
                words = " ".join([*options.split(), *(f"-I {include}" for include in includes)]).strip()
                found[name] = Program(source.name, name, before + text, words, local)
    return [found[name] for name in sorted(found)]


def _text(path: Path) -> str:
    """A file's text; what makes it a C++ literal where it is included by the host program is left out."""
    if not path.is_file():
        return ""
    text = path.read_text("utf-8", "replace").replace("\r\n", "\n")
    return re.sub(r'^(R"+\w*\(\)?|\)\w*"+;?|\)"")\s*$', "", text, flags=re.MULTILINE)


def held_back(program: str, kernel: str) -> bool:
    """Whether nobody looks at this kernel while tuning: only the mean of these is shown."""
    return hashed(f"{program}:{kernel}") % HELD_BACK == 0


def hashed(title: str) -> int:
    """A number that is the same in every run."""
    return int.from_bytes(hashlib.sha256(title.encode()).digest()[:4], "big")


def patterns(text: str) -> list[tuple[str, str]]:
    """[(regular expression, reason)] of lines "TITLE => reason", where * in a title stands for anything."""
    out = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, separator, reason = line.partition(" => ")
            if not separator:
                raise ValueError(f"no ' => ' in {line!r}")
            out.append((".*".join(re.escape(part) for part in pattern.split("*")), reason.strip()))
    return out


def matching(known: list[tuple[str, str]], title: str) -> str:
    """The first reason for a title, or ""."""
    return next((reason for pattern, reason in known if re.fullmatch(pattern, title)), "")
