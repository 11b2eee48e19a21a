"""A wrong handle gets the error code that the specification names, never a crash."""

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def test_every_function_refuses_what_is_no_handle(environment):
    script = Path(__file__).parents[1] / "py" / "wrong_handles.py"
    done = subprocess.run(
        [sys.executable, str(script), str(ROOT / "build" / "lib" / "libcl_driver.so")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
