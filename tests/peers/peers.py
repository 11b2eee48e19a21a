"""What the runners of this folder share: the driver's environment, tools, a scratch folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = ROOT / "build" / "peers"


def environment() -> dict:
    """The process environment with this working tree's driver, unless OCL_ICD_VENDORS names another."""
    return {"OCL_ICD_VENDORS": f"{ROOT / 'build' / 'vendors'}/", **os.environ}


def need(*packages: str) -> None:
    """Installs Debian packages that are missing, with apt-get as root or through sudo."""
    query = ["dpkg-query", "-W", "-f", "${Status}"]
    missing = [
        package
        for package in packages
        if b"install ok" not in subprocess.run([*query, package], capture_output=True, check=False).stdout
    ]
    if not missing:
        return
    sudo = [] if os.geteuid() == 0 else [shutil.which("sudo")]
    if sudo == [None]:
        sys.exit(f"install {' '.join(missing)} first")
    subprocess.run([*sudo, "apt-get", "update", "-qq"], check=True)
    subprocess.run(
        [*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing],
        check=True,
        stdout=subprocess.DEVNULL,
    )
