"""What tests of installation share: what `make dist` makes, once for all workers of a session, and
environments without a pip of their own."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> Callable[[str, Callable[[Path], None]], Path]:
    """made_once(name, make): a folder of this session, which make(folder) has filled in whichever worker came
    first. What it skipped or failed for holds for the others, too."""
    session = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        session = session.parent

    def get(name: str, make: Callable[[Path], None]) -> Path:
        folder, skipped, failed = (session / f"{name}{end}" for end in ("", ".skipped", ".failed"))
        with open(session / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder.exists() or skipped.exists() or failed.exists()):
                folder.mkdir()
                try:
                    make(folder)
                except pytest.skip.Exception as reason:
                    skipped.write_text(str(reason))
                except BaseException as reason:
                    failed.write_text(repr(reason))
                    raise
        if skipped.exists():
            pytest.skip(skipped.read_text())
        assert not failed.exists(), failed.read_text()
        return folder

    return get


def make_environment(python: str | Path, folder: Path) -> list[str]:
    """A virtual environment; the command of a pip for it, which is the Python's own: to unpack another pip
    takes longer than what is installed with it."""
    command = [str(python), "-m", "pip", "--version"]
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
        pytest.skip(f"{python} has no pip")  # Debian has it, and module venv, in packages of their own
    if subprocess.run([str(python), "-m", "venv", "--without-pip", str(folder)], check=False).returncode:
        pytest.skip(f"{python} has no module venv")
    return [str(python), "-m", "pip", "--quiet", "--python", str(folder / "bin" / "python")]


def clone(tree: Path) -> None:
    """What was committed of this tree."""
    if subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=False).returncode:
        pytest.skip("this tree is no git repository")


def make_sdist(tree: Path, folder: Path) -> Path:
    """The sdist of a working tree, as `make dist` has it."""
    code = "import backend, dist, pathlib, sys; folder = pathlib.Path(sys.argv[1]); "
    code += "dist.without_times(folder / backend.build_sdist(str(folder)), 1_700_000_000)"
    env = os.environ | {"PYTHONPATH": str(tree / "native_shim")}
    command = [sys.executable, "-c", code, str(folder)]
    subprocess.run(command, cwd=tree, env=env, capture_output=True, check=True)
    (sdist,) = folder.glob("cl_driver-*.tar.gz")
    return sdist


def make(tree: Path, *arguments: str) -> int:
    """make in a clone, as a user types it. Returns the exit status."""
    hidden = ("CC", "CFLAGS", "MAKEFLAGS", "MAKELEVEL")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(["make", *arguments], cwd=tree, env=env, check=False, timeout=1500).returncode


@pytest.fixture(scope="session")
def make_dist(made_once) -> Callable[..., list[Path]]:
    """make_dist(tree, arguments): what make dist makes in a fresh clone. All of them have the same tools."""

    def fetch_tools(folder: Path) -> None:
        clone(folder / "tree")
        if make(folder / "tree", "build/dist-venv/.made"):
            pytest.skip("what wheels are made with cannot be had here (pyproject.toml, dependency-groups)")

    def get(tree: Path, arguments: str = "") -> list[Path]:
        tools = made_once("dist-tools", fetch_tools) / "tree" / "build" / "dist-venv"
        clone(tree)
        (tree / "build").mkdir()
        (tree / "build" / "dist-venv").symlink_to(tools)
        (tools / ".made").touch()  # it is newer than this clone's pyproject.toml, and of the same text
        assert make(tree, "dist", f"DIST_ARGS={arguments}") == 0
        return sorted(path for path in (tree / "build" / "dist").iterdir() if path.is_file())

    return get


@pytest.fixture(scope="session")
def dist(made_once, make_dist) -> dict[str, Path]:
    """The files, by architecture; the tree is gone."""

    def make_all(folder: Path) -> None:
        for path in make_dist(folder / "tree"):
            shutil.move(path, folder)
        shutil.rmtree(folder / "tree")

    folder = made_once("dist", make_all)
    (sdist,) = folder.glob("*.tar.gz")
    wheels = {path.stem.partition("manylinux_2_28_")[2]: path for path in folder.glob("*.whl")}
    packages = {path.suffix[1:]: path for path in folder.glob("*_amd64.deb")}
    return wheels | packages | {"sdist": sdist}
