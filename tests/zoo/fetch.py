"""Brings the sources of the zoo into a folder: packages by their clients, repositories by git.

Each comes to FOLDER/NAME; one that is there already, however it came there, is taken as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from tests.zoo.table import Source

_SIMPLE = "application/vnd.pypi.simple.v1+json"


class Missing(Exception):
    """A source that could not be had; says why."""


def fetch(source: Source, folder: Path) -> Path:
    """The folder of the source."""
    if source.kind == "folder":
        place = Path(source.where).expanduser()
        if not place.is_dir():
            raise Missing(f"{place} is not there")
        return place
    place = folder / source.name
    if place.is_dir():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        work = Path(name)
        out = work / "out"
        out.mkdir()
        _HOW[source.kind](source, work, out)
        out.rename(place)
    return place


def _run(command: list, cwd: Path) -> str:
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(str(error)) from error
    if done.returncode:
        raise Missing(f"{command[0]}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def _debian_source(source: Source, work: Path, out: Path) -> None:
    """The original archives of a source package; what Debian changed concerns its packaging."""
    lists = work / "lists"
    (lists / "partial").mkdir(parents=True)
    parts = work / "sources"
    parts.mkdir()
    for path in Path("/etc/apt/sources.list.d").glob("*.sources"):
        text = re.sub(r"^Types:.*$", "Types: deb-src", path.read_text(), flags=re.MULTILINE)
        (parts / path.name).write_text(text)
    for path in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*.list")]:
        if path.is_file():
            (parts / path.name).with_suffix(".list").write_text(
                re.sub(r"^deb\s", "deb-src ", path.read_text(), flags=re.MULTILINE)
            )
    options = ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={parts}"]
    options += ["-o", f"Dir::State::lists={lists}", "-o", "APT::Sandbox::User=root"]
    _run(["apt-get", "-qq", *options, "update"], work)
    package = f"{source.where}={source.version}" if source.version else source.where
    why = ""
    try:
        _run(["apt-get", "-qq", *options, "source", "--download-only", package], work)
    except Missing as missing:  # the archive may be there where another file of the package is not
        why = str(missing)
    archives = sorted(work.glob("*.orig*.tar.*"))
    archives = [path for path in archives if path.suffix != ".asc"]
    if not archives:
        raise Missing(why or f"no archive of {source.where}")
    for path in archives:
        _unpack(path, out)


def _debian(source: Source, work: Path, out: Path) -> None:
    package = f"{source.where}={source.version}" if source.version else source.where
    _run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package], work)
    for path in work.glob("*.deb"):
        _run(["dpkg-deb", "-x", path, out], work)


def _pypi(source: Source, work: Path, out: Path) -> None:
    package = f"{source.where}=={source.version}" if source.version else source.where
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*command, "--dest", work / "files", package], work)
    for path in (work / "files").iterdir():
        _unpack(path, out)


def _pypi_source(source: Source, work: Path, out: Path) -> None:
    """The source archive of a release, as it is: pip would build what its metadata needs, CMake say."""
    listed = json.loads(_read(f"https://pypi.org/simple/{source.where}/", accept=_SIMPLE))
    name = re.compile(rf"{re.sub('[-_.]+', '[-_.]+', source.where)}-{re.escape(source.version)}\.(tar\.|zip)")
    found = next((file for file in listed["files"] if name.match(file["filename"].lower())), None)
    if found is None:
        raise Missing(f"no source archive of {source.where} {source.version}")
    archive = work / found["filename"]
    archive.write_bytes(_read(found["url"]))
    if hashlib.sha256(archive.read_bytes()).hexdigest() != found["hashes"]["sha256"]:
        raise Missing(f"{found['url']} is not what the index says")
    _unpack(archive, out)


def _read(url: str, accept: str = "*/*") -> bytes:
    try:
        request = urllib.request.Request(url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())
    except OSError as error:
        raise Missing(f"{url}: {error}") from error


def _git(source: Source, work: Path, out: Path) -> None:
    _run(["git", "init", "--quiet"], out)
    try:
        _run(["git", "fetch", "--quiet", "--depth=1", source.where, source.version], out)
    except Missing:  # not every server gives a commit that no branch names
        _run(["git", "fetch", "--quiet", source.where, "+refs/*:refs/fetched/*"], out)
    _run(["git", "checkout", "--quiet", source.version], out)


_HOW = {
    "debian-source": _debian_source,
    "debian": _debian,
    "pypi": _pypi,
    "pypi-source": _pypi_source,
    "git": _git,
}


def _unpack(path: Path, out: Path) -> None:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(out)
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            _extract_texts(archive, out.resolve())
    else:
        shutil.copy(path, out)


def _extract_texts(archive: tarfile.TarFile, out: Path) -> None:
    """Regular files that stay in the folder. Links between folders and odd modes are no loss; Debian 12's
    Python has no filters for extractall()."""
    for member in archive:
        target = (out / member.name).resolve()
        if not member.isfile() or not target.is_relative_to(out):
            continue
        content = archive.extractfile(member)
        assert content is not None  # of a regular file
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, open(target, "wb") as copy:
            shutil.copyfileobj(content, copy)
