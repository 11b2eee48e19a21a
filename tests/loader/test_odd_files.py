"""Files that the driver writes to, for those who ask, and that are not what they should be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

# A program that knows its process's number before it begins.
PUT = 'file=/tmp/perf-$$.map; {put}; echo $file; exec "$@"'


@pytest.fixture
def run(client, environment, tmp_path):
    """run(shell text, **settings): a client that builds and launches; what it says."""

    def run(put: str, **settings) -> str:
        variables = environment | {f"CL_DRIVER_{name}": value for name, value in settings.items()}
        command = ["sh", "-c", PUT.format(put=put), "sh", client("debugger")]
        done = subprocess.run(
            list(map(str, command)), env=variables, cwd=tmp_path, timeout=60,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def perf_map(output: str) -> Path:
    return Path(output.splitlines()[0])


def test_a_perf_map_is_written(run):
    path = perf_map(run(":", JIT_DEBUG="perf"))
    assert "cld_kernel_k" in path.read_text()
    path.unlink()


def test_a_perf_map_of_another_compiler_in_the_process_is_lengthened(run):
    path = perf_map(run("echo theirs > $file", JIT_DEBUG="perf"))
    text = path.read_text()
    assert text.startswith("theirs\n") and "cld_kernel_k" in text
    path.unlink()


@pytest.mark.parametrize(
    "put",
    [
        "mkfifo $file",
        "mkfifo $file; cat $file > got & sleep 0.3",
        "ln $PWD/kept $file",
        "ln -s $PWD/kept $file",
    ],
)
def test_what_is_no_perf_map_is_left_alone(run, tmp_path, put):
    """A FIFO without a reader, or with one; another name of a file, or a link to it."""
    (tmp_path / "kept").write_text("kept")
    path = perf_map(run(put, JIT_DEBUG="perf"))
    assert (tmp_path / "kept").read_text() == "kept"
    assert not (tmp_path / "got").exists() or (tmp_path / "got").read_text() == ""
    path.unlink()


def test_a_log_that_is_a_fifo_which_nobody_reads(run, tmp_path):
    os.mkfifo(tmp_path / "log")
    run(":", LOG="calls", LOG_FILE=str(tmp_path / "log"))
