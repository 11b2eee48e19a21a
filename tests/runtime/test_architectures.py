"""The C sources compile for another architecture, if its headers are here (libc6-dev-arm64-cross)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cl_driver.frontend import find_clang
from native_shim import build
from tests.conftest import ROOT

HEADERS = Path("/usr/aarch64-linux-gnu/include")


@pytest.mark.skipif(not HEADERS.exists(), reason=f"no {HEADERS}")
def test_c_files_compile_for_aarch64(tmp_path):
    """-std=c11 hides what POSIX has, and each architecture's headers let other names through."""
    (tmp_path / "CL").symlink_to("/usr/include/CL")  # what else is there is this machine's
    others = [path for name in ("arenas", "clang", "holder") for path in (build.SHIM / name).glob("*.c")]
    files = [*build.sources(), *sorted(others)]
    assert len(files) > 100
    includes = ["-nostdlibinc", f"-I{build.SHIM / 'src'}", f"-I{ROOT / 'build' / 'gen'}"]
    includes += [f"-isystem{path}" for path in (HEADERS, tmp_path)]
    command = [find_clang.find("").path, "--target=aarch64-linux-gnu", "-fsyntax-only", *build.COMPILE]
    done = subprocess.run(
        [*command, *build.WARNINGS, *includes, *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
