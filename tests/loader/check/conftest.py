"""What tests of the check mode share."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT

ALLOCATION = re.compile(r"allocation \d+")


@pytest.fixture(scope="session")
def reports(variables, ocl_icd, tmp_path_factory):
    """reports([(name, source, ...)], program): what is told of each kernel (runner.py, pixels.py)."""

    def run(kernels: list[tuple], program: str = "runner") -> dict[str, str]:
        log = tmp_path_factory.mktemp("check") / "log"
        done = subprocess.run(
            [sys.executable, "-m", f"tests.loader.check.{program}", str(ocl_icd)],
            input=json.dumps(kernels),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            cwd=ROOT,
            env=variables
            | {"CL_DRIVER_CHECK": "1", "CL_DRIVER_LOG_FILE": str(log), "CL_DRIVER_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        return {name: ALLOCATION.sub("allocation #", text) for name, text in json.loads(done.stdout).items()}

    return run
