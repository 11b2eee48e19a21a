"""The Debian package: what is in it, and that the system's loader sees the driver once it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, compile_c
from tests.loader.installation.pseudo_wheel import pseudo_wheel

sys.path.insert(0, str(ROOT / "native_shim"))
import debian  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")

# Installs it in a copy of this system whose changes go with the mount namespace, and runs a script there.
ELSEWHERE = """
set -e
mount -t tmpfs none "$1"
cd "$1"
mkdir changes work root
mount -t overlay overlay -o lowerdir=/,upperdir=changes,workdir=work root
for folder in proc sys dev; do mount --rbind /$folder root/$folder; done
cp "$2" "$3" root/opt
[ "$4" ] || exit 0
exec chroot root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/opt CL_DRIVER_CACHE_SIZE=0 sh -ec "$4"
"""

USE = """
cd /
dpkg -i /opt/*.deb >/dev/null
clinfo -l
cl-driver run -- /opt/demo
cl-driver doctor
find / -xdev -path '*/cl_driver/*.pyc' | head -n 1
dpkg --purge cl-driver >/dev/null
echo left:
find /usr/lib/python3 /usr/bin /usr/share/doc /etc/OpenCL -name '*cl[-_]driver*'
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("debian")
    return debian.make(pseudo_wheel(folder), folder, ROOT, 1_700_000_000)


def told(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), text=True, capture_output=True, check=True).stdout


def test_what_is_in_it(package, tmp_path):
    assert package.name == "cl-driver_1.2.3-1_amd64.deb"
    fields = told("dpkg-deb", "--field", package)
    for line in ("Package: cl-driver", "Version: 1.2.3-1", "Architecture: amd64", "Provides: opencl-icd"):
        assert f"{line}\n" in fields
    assert told("dpkg-deb", "--info", package, "conffiles") == "/etc/OpenCL/vendors/cl_driver.icd\n"
    told("dpkg-deb", "--extract", package, tmp_path)
    icd = (tmp_path / "etc/OpenCL/vendors/cl_driver.icd").read_text()
    assert icd.endswith(".so\n") and (tmp_path / icd.strip().lstrip("/")).is_file()
    assert {path.name for path in (tmp_path / "usr/lib/python3/dist-packages").iterdir()} == {"cl_driver"}
    assert os.access(tmp_path / "usr/bin/cl-driver", os.X_OK)
    documents = {path.name for path in (tmp_path / "usr/share/doc/cl-driver").iterdir()}
    assert documents == {"copyright", "changelog.gz"}
    sums = told("dpkg-deb", "--info", package, "md5sums")
    subprocess.run(["md5sum", "--check", "--quiet"], input=sums, text=True, cwd=tmp_path, check=True)
    assert " root/root " in told("dpkg-deb", "--contents", package)


@pytest.mark.release
def test_the_same_wheel_makes_the_same_bytes(package, tmp_path):
    again = debian.make(pseudo_wheel(tmp_path), tmp_path, ROOT, 1_700_000_000)
    assert again.read_bytes() == package.read_bytes()


@pytest.mark.long
@pytest.mark.skipif("CL_DRIVER_RUNTIME" in os.environ, reason="once is enough")
def test_it_is_seen_once_it_is_installed(package, tmp_path):
    demo = compile_c(ROOT / "icd" / "demo.c", tmp_path / "demo", "-lOpenCL")
    (tmp_path / "mounted").mkdir()
    start = ["unshare", "--mount", "sh", "-c", ELSEWHERE, "sh"]
    start += map(str, (tmp_path / "mounted", package, demo))
    if os.geteuid() or subprocess.run([*start, ""], capture_output=True, check=False).returncode:
        pytest.skip("no overlays in mount namespaces for this user")
    query = ["dpkg-query", "-W", "clang-22", "python3-cffi-backend"]
    if subprocess.run(query, capture_output=True, check=False).returncode:
        pytest.skip("what it depends on is not installed")
    done = subprocess.run([*start, USE], text=True, capture_output=True, check=False, timeout=300)
    seen, _, left = done.stdout.partition("left:\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": cl_driver\n" in seen and "all right" in seen and "Nothing is wrong." in seen
    assert "__pycache__" in seen and left == ""
