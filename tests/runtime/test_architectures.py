"""The C sources compile for another architecture, if its compiler is here (gcc-aarch64-linux-gnu)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from native_shim import build
from tests.conftest import ROOT

CROSS = "aarch64-linux-gnu-gcc"


@pytest.mark.skipif(not shutil.which(CROSS), reason=f"no {CROSS}")
@pytest.mark.parametrize("source", sorted(build.sources()), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_compiles_for_aarch64(source: Path, tmp_path):
    """-std=c11 hides what POSIX has, and each architecture's headers let other names through."""
    headers = tmp_path / "CL"  # those of the host's architecture are not the cross compiler's
    headers.symlink_to("/usr/include/CL")
    includes = [f"-I{ROOT}/native_shim/src", f"-I{ROOT}/build/gen", "-isystem", str(tmp_path)]
    command = [CROSS, *build.COMPILE, *build.WARNINGS, *includes, "-O2", "-c", str(source), "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
