"""Makes what is given away: a wheel, a Debian package and conda packages for each architecture, and the sdist
(make dist).

    python native_shim/dist.py [--out DIR] [--targets x86_64 aarch64] [--headers FOLDER ...] [--without-conda]

Runs in an environment with the packages of pyproject.toml's group "dist". The C compiler is ziglang's: it
compiles for an older C library than that of this machine. Needs git, clang, binutils' nm and the OpenCL
headers, too. What git knows of the working tree is copied and built, so that nothing else gets in, and times
are those of the last commit: the same commit and tools make the same bytes.
"""

from __future__ import annotations

import argparse
import glob
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import conda_package
import debian
import wheel_file

SHIM = Path(__file__).resolve().parent
ROOT = SHIM.parent
GLIBC = "2.28"
TARGETS = ("x86_64", "aarch64")
# Where machines keep Pythons, by architecture. Any release of a version will do.
HEADERS = (
    "~/.pyenv/versions/*/include/python3.*",
    "/opt/python/*/include/python3.*",
    "/usr/local/include/python3.*",
    "/usr/include/{}-linux-gnu/python3.*",
)
OLDEST_MINOR = 11
NATIVE = "cl_driver/_native"
# What clang makes for the driver, in any wheel: it is for no architecture.
FOR_ALL = (".spv", ".places", ".bc")


def git(*arguments: str) -> str:
    """What git says of the working tree."""
    return subprocess.run(["git", *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True).stdout


def copy_tree(to: Path) -> None:
    """A copy of the files that git knows, with permissions that do not depend on who copies."""
    shutil.rmtree(to, ignore_errors=True)
    for name in git("ls-files", "-z").split("\0"):
        if not name or not (ROOT / name).exists():
            continue
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
        target.chmod(0o755 if os.access(ROOT / name, os.X_OK) else 0o644)


def python_headers(target: str, patterns: Sequence[str] = HEADERS) -> dict[int, str]:
    """Minor versions of Python that the driver runs in, and a folder with Python.h of each that is here."""
    found: dict[int, str] = {}
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.expanduser(pattern.format(target)))):
            minor = re.fullmatch(r"python3\.(\d+)", os.path.basename(path))
            folder = path.replace(f"/{target}-linux-gnu", "")  # Debian has only what differs there
            if minor and int(minor[1]) >= OLDEST_MINOR and os.path.exists(f"{folder}/Python.h"):
                found.setdefault(int(minor[1]), folder)
    return dict(sorted(found.items()))


def own_headers(folder: Path) -> Path:
    """A folder with the headers of OpenCL, and those that Debian's of Python include by the architecture's
    name: the rest of /usr/include belongs to this machine's C library."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("CL", *(f"{target}-linux-gnu" for target in TARGETS)):
        (folder / name).symlink_to(f"/usr/include/{name}")
    return folder


def backend(tree: Path, function: str, out: Path, environment: dict[str, str]) -> Path:
    """Calls a function of native_shim/backend.py in the tree. Returns the file that it made."""
    code = f"import backend, sys; backend.{function}(sys.argv[1])"
    before = set(out.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)],
        cwd=tree, text=True, capture_output=True, check=False,
        env=os.environ | {"PYTHONPATH": str(tree / "native_shim")} | environment,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}")
    (made,) = set(out.iterdir()) - before
    return made


def without_times(path: Path, epoch: int) -> None:
    """Writes an sdist again: in order, and with nothing of who packed it, or when."""
    with tarfile.open(path) as old:
        members = sorted(old.getmembers(), key=lambda member: member.name)
        files = {m.name: old.extractfile(m).read() for m in members if m.isfile()}
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in members:
            fresh = tarfile.TarInfo(member.name)
            fresh.type, fresh.mtime = member.type, epoch
            fresh.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            fresh.size = member.size if member.isfile() else 0
            new.addfile(fresh, io.BytesIO(files[member.name]) if member.isfile() else None)
    path.write_bytes(gzip.compress(text.getvalue(), 9, mtime=epoch))


def for_all(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel that wheels of other architectures have, too, and that take long to make."""
    with zipfile.ZipFile(wheel) as archive:
        names = (name for name in archive.namelist() if name.startswith(NATIVE) and name.endswith(FOR_ALL))
        return {name: archive.read(name) for name in names}


def main() -> int:
    """The command line. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Make the wheels and the sdist of cl_driver.")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "dist", help="where they go (build/dist)"
    )
    parser.add_argument("--targets", nargs="*", choices=TARGETS, default=TARGETS)
    parser.add_argument(
        "--headers", nargs="+", default=[], metavar="FOLDER",
        help="include folders named pythonX.Y, of Pythons that are elsewhere; {} stands for the architecture",
    )  # fmt: skip
    parser.add_argument("--without-conda", action="store_true", help="no conda packages")
    arguments = parser.parse_args()
    out, work = arguments.out.resolve(), ROOT / "build" / "dist-work"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    common = {
        "SOURCE_DATE_EPOCH": str(epoch),
        "PYTHONHASHSEED": "0",
        "CFLAGS": f"-isystem {own_headers(work / 'include')}",
        "ZIG_GLOBAL_CACHE_DIR": str(work / "zig"),
    }
    copy_tree(work / "tree")
    sdist = backend(work / "tree", "build_sdist", out, common)
    without_times(sdist, epoch)
    print(sdist)
    made_before: dict[str, bytes] = {}
    for target in arguments.targets:
        copy_tree(work / "tree")
        (work / "tree" / NATIVE).mkdir()
        for name, data in made_before.items():  # newer than its sources
            (work / "tree" / name).write_bytes(data)
        headers = python_headers(target, (*arguments.headers, *HEADERS))
        # Without its run-time library, all of which it would link, with a memcpy in place of the C library's.
        compiler = f"{sys.executable} -m ziglang cc -rtlib=none -target {target}-linux-gnu.{GLIBC}"
        platform = f"manylinux_{GLIBC.replace('.', '_')}_{target}"
        settings = {
            "CC": compiler,
            "CL_DRIVER_WHEEL_PLATFORM": platform,
            "CL_DRIVER_PYTHON_HEADERS": ":".join(headers.values()),
        }
        made = backend(work / "tree", "build_wheel", out, common | settings)
        made_before = for_all(made)
        wheel_file.rewrite(made)
        versions = " ".join(f"3.{minor}" for minor in headers)
        if shutil.which("dpkg-deb"):
            print(debian.make(made, out, work / "tree", epoch))
        if conda_package.can_be_made() and not arguments.without_conda:
            print(*conda_package.make(made, out / "conda", epoch), sep="\n")
        print(f"{made}\nembeddings for Python {versions}; other Pythons serve as a process")
    shutil.rmtree(work / "tree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
