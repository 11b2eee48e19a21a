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
def dist_tools(made_once) -> Path:
    """The virtual environment that make dist makes for itself."""

    def fetch_tools(folder: Path) -> None:
        clone(folder / "tree")
        if make(folder / "tree", "build/dist-venv/.made"):
            pytest.skip("what wheels are made with cannot be had here (pyproject.toml, dependency-groups)")

    return made_once("dist-tools", fetch_tools) / "tree" / "build" / "dist-venv"


@pytest.fixture(scope="session")
def make_dist(dist_tools) -> Callable[..., list[Path]]:
    """make_dist(tree, arguments): what make dist makes in a fresh clone. All of them have the same tools."""

    def get(tree: Path, arguments: str = "") -> list[Path]:
        clone(tree)
        (tree / "build").mkdir()
        (tree / "build" / "dist-venv").symlink_to(dist_tools)
        (dist_tools / ".made").touch()  # it is newer than this clone's pyproject.toml, and of the same text
        assert make(tree, "dist", f"DIST_ARGS={arguments}") == 0
        return sorted(path for path in (tree / "build" / "dist").iterdir() if path.is_file())

    return get


@pytest.fixture(scope="session")
def dist_for(made_once, make_dist) -> Callable[..., dict[str, Path]]:
    """dist_for(machine): what is made for an architecture by its name, by "deb" and by "sdist", without the
    conda packages (test_conda.py makes one); the tree is gone."""

    def get(machine: str) -> dict[str, Path]:
        def make_one(folder: Path) -> None:
            for path in make_dist(folder / "tree", f"--targets {machine} --without-conda"):
                shutil.move(path, folder)
            shutil.rmtree(folder / "tree")

        folder = made_once(f"dist-{machine}", make_one)
        (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob(f"*manylinux_2_28_{machine}.whl")
        return {machine: wheel, "sdist": sdist} | {path.suffix[1:]: path for path in folder.glob("*.deb")}

    return get


@pytest.fixture(scope="session")
def dist(dist_for) -> dict[str, Path]:
    """What is made for x86-64."""
    return dist_for("x86_64")
