"""What README.md tells a new user to type, typed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
RESULT = ["1", "4", "9", "16"]


def blocks(language: str) -> list[str]:
    """The README's fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def without_comments(lines: list[str]) -> list[str]:
    return [re.sub(r"\s+#.*", "", line) for line in lines]


def commands() -> list[str]:
    """The lines of its shell blocks, and what is indented as a command."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return without_comments(lines + re.findall(r"^    (?=make |python )(.*)$", README, re.MULTILINE))


def test_every_target_of_make_exists():
    targets = {shlex.split(line)[1] for line in commands() if line.startswith("make ")}
    assert targets >= {"run", "dist", "test", "setup"}
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


def test_every_module_and_subcommand_has_help():
    modules = {line.split()[2] for line in commands() if line.startswith("python -m ")}
    assert modules >= {"tests.bench.throughput"}
    named = set(re.findall(r"cl-driver ([a-z][\w-]*)", README))
    assert named >= {"install", "status", "doctor", "uninstall", "explain"}
    for words in [[module] for module in modules] + [["cl_driver.cli", name] for name in named]:
        command = [sys.executable, "-m", *words, "--help"]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True, timeout=60)


def test_c_program(variables, tmp_path):
    (source,) = blocks("c")
    (tmp_path / "square.c").write_text(source)
    command = [os.environ.get("CC", "cc"), "-Wall", "-Werror", "square.c", "-o", "square", "-lOpenCL"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "square"], env=variables, text=True, stdout=-1, check=True, timeout=60)
    assert done.stdout.split() == RESULT


@pytest.mark.network
@pytest.mark.long
@pytest.mark.skipif("CL_DRIVER_RUNTIME" in os.environ, reason="once is enough")
class TestFreshMachine:
    """From a clone, and from the wheel that make dist has made of one."""

    @pytest.mark.parametrize("is_fresh", [False, pytest.param(True, marks=pytest.mark.release)])
    def test_first_commands(self, tmp_path, is_fresh):
        """make run, then the loader with the variable that it says. CI's own tree was fresh when it began."""
        first, second = blocks("sh")[:2]
        tree = tmp_path / "clone" if is_fresh else ROOT
        command = ["git", "clone", "--quiet", ROOT, tree]
        if is_fresh and subprocess.run(command, check=False).returncode:
            pytest.skip("this tree is no git repository")
        hidden = ("CC", "CFLAGS", "MAKEFLAGS", "MAKELEVEL", "OCL_ICD_VENDORS", "PYTHONPATH")
        env = {name: value for name, value in os.environ.items() if name not in hidden}
        command = ["sh", "-ec", first + second]
        done = subprocess.run(command, cwd=tree, env=env, text=True, stdout=-1, check=False)
        assert done.returncode == 0, done.stdout
        assert done.stdout.count("cl_driver") >= 2

    def test_installing(self, dist, variables, tmp_path):
        (block,) = [block for block in blocks("sh") if "make dist" in block]
        first, *lines = without_comments(block.splitlines())
        assert first == "make dist" and lines[0].startswith("pip install ")  # the fixture has done the first
        (tmp_path / "build").mkdir()
        (tmp_path / "build" / "dist").symlink_to(Path(dist["x86_64"]).parent)
        subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
        hidden = ("PYTHONPATH", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES")
        env = {name: value for name, value in variables.items() if name not in hidden}
        env |= {"PATH": f"{tmp_path}/venv/bin:{env['PATH']}", "VIRTUAL_ENV": f"{tmp_path}/venv"}
        told = {}
        for line in lines:
            done = subprocess.run(
                ["sh", "-c", line], cwd=tmp_path, env=env, text=True, stdout=-1, check=False
            )
            told[line] = done.stdout
            # Both fail where the system's loader does not see the driver, and say what would mend it.
            assert done.returncode == 0 or line.endswith((" status", " doctor")), f"{line}: {done.stdout}"
            if line.startswith("pip "):
                self.python_program(tmp_path, env)
        assert re.search(r"Platform #0: cl_driver", told["cl-driver run -- clinfo -l"])
        assert "cl_driver.icd" in told["cl-driver install"]
        assert "registered" in told["cl-driver status"]
        assert re.search(r"^clang: ", told["cl-driver doctor"], re.MULTILINE)
        assert not list((tmp_path / "venv").glob("etc/OpenCL/vendors/cl_driver.icd"))

    def python_program(self, folder: Path, env: dict[str, str]) -> None:
        (source,) = blocks("python")
        (install,) = re.findall(r"`(pip install pyopencl[^`]*)`", README)
        subprocess.run(["sh", "-c", f"{install} --quiet"], env=env, check=True, timeout=500)
        env = env | {"PYOPENCL_NO_CACHE": "1"}
        command = [folder / "venv" / "bin" / "python", "-c", source]
        done = subprocess.run(command, cwd=folder, env=env, text=True, stdout=-1, check=True, timeout=120)
        assert re.findall(r"[\d.]+", done.stdout) == [f"{value}." for value in RESULT]
