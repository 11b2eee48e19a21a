"""What packages are made of where no wheel is: this working tree and its shim, laid out as in a wheel."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.conftest import ROOT


def pseudo_wheel(folder: Path) -> Path:
    """In a folder, of version 1.2.3, for x86-64."""
    path = folder / "cl_driver-1.2.3-py3-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file in sorted((ROOT / "cl_driver").rglob("*")):
            if file.is_file() and file.suffix in (".py", ".toml", ".json", ".inc", ".h", ".c", ".bc"):
                wheel.write(file, file.relative_to(ROOT))
        for file in sorted((ROOT / "build" / "lib").iterdir()):
            if file.suffix != ".conf" and file.name != "cl_driver.modules":
                wheel.write(file, f"cl_driver/_native/{file.name}")
        wheel.writestr("cl_driver/_native/cl_driver.conf", "path=../..\n")
        wheel.writestr("pyopencl/.libs/cl_driver.icd", "not for Debian")
        wheel.writestr("cl_driver-1.2.3.dist-info/RECORD", "")
    return path
