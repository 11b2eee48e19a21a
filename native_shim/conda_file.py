"""What becomes of rattler-build's package before it is given away: the same bytes, wherever it is made, and
when (make dist).

rattler-build writes the time and a folder of its own into a package. What stands here instead is a time that
is given and one prefix, which installers replace by that of the environment.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import time
import zipfile
from pathlib import Path

# As long as those of rattler-build.
PREFIX_LENGTH = 255  # bytes
PREFIX = ("/opt/" + "placehold_" * 26)[:PREFIX_LENGTH]

_LEVEL = 19  # of the compressor
_INDEX, _PATHS = "info/index.json", "info/paths.json"


def rewrite(package: Path, out: Path, epoch: int) -> Path:
    """Writes a .tar.bz2 of rattler-build into the folder as a .conda: a zip file with compressed archives of
    what is installed, and of what is known of it. epoch: its time, in seconds since 1970. Returns the new
    file. ValueError if a binary names the folder of its build."""
    import zstandard

    with tarfile.open(package) as archive:
        members = {member.name: member for member in archive if member.isfile()}
        files = {name: archive.extractfile(member).read() for name, member in members.items()}
    _with_prefix(files)
    index = json.loads(files[_INDEX])
    files[_INDEX] = _json(index | {"timestamp": epoch * 1000})
    stem = f"{index['name']}-{index['version']}-{index['build']}"
    path = out / f"{stem}.conda"
    with zipfile.ZipFile(path, "w") as conda:
        _add(conda, "metadata.json", json.dumps({"conda_pkg_format_version": 2}).encode(), epoch)
        for kind, is_info in (("pkg", False), ("info", True)):
            part = {name: data for name, data in files.items() if name.startswith("info/") == is_info}
            packed = zstandard.compress(_tar(part, members, epoch), _LEVEL)
            _add(conda, f"{kind}-{stem}.tar.zst", packed, epoch)
    return path


def _with_prefix(files: dict[str, bytes]) -> None:
    """Replaces the prefix in text files that have one, and what the list of paths says of them."""
    paths = json.loads(files[_PATHS])
    for entry in paths["paths"]:
        if "prefix_placeholder" not in entry:
            continue
        if entry["file_mode"] != "text":
            raise ValueError(f"{entry['_path']} is binary, and has the prefix of its build")
        data = files[entry["_path"]].replace(entry["prefix_placeholder"].encode(), PREFIX.encode())
        files[entry["_path"]] = data
        entry |= {
            "prefix_placeholder": PREFIX,
            "sha256": hashlib.sha256(data).hexdigest(),
            "size_in_bytes": len(data),
        }
    files[_PATHS] = _json(paths)


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True).encode()


def _tar(files: dict[str, bytes], members: dict[str, tarfile.TarInfo], epoch: int) -> bytes:
    """An archive of files with the permissions of its members' namesakes, in order of their names."""
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            fresh = tarfile.TarInfo(name)
            fresh.size, fresh.mtime = len(files[name]), epoch
            fresh.mode = 0o755 if members[name].mode & 0o100 else 0o644
            archive.addfile(fresh, io.BytesIO(files[name]))
    return text.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes, epoch: int) -> None:
    """Stored, not compressed, as installers want it."""
    member = zipfile.ZipInfo(name, time.gmtime(max(epoch, 315532800))[:6])  # 1980, where such times begin
    member.external_attr, member.create_system = 0o100644 << 16, 3
    archive.writestr(member, data)
