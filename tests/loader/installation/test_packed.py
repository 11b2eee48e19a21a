"""Wheels whose modules of compiler processes are in one file (native_shim/wheel_file.py, jit/packed.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cl_driver import builtins
from tests.conftest import ROOT
from tests.loader.installation.pseudo_wheel import pseudo_wheel

sys.path.insert(0, str(ROOT / "native_shim"))

import wheel_file  # noqa: E402

# Imports what is packed, and prints: where a module came from, the files beside the modules, how many modules
# there are, and what tracebacks would show of one.
LOOK = """
import linecache, sys
sys.path.insert(0, sys.argv[1])
from cl_driver.passes.ir import plan
from cl_driver import builtins
from cl_driver.jit import packed
print(type(plan.__spec__.loader).__name__)
print(plan.__file__)
print(len(builtins.load()), len(builtins.load_places()))
print(len(dict(packed.modules())))
print(linecache.getlines(plan.__file__, vars(plan))[0])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A folder with the package as a wheel has it."""
    folder = tmp_path_factory.mktemp("packed")
    with zipfile.ZipFile(pseudo_wheel(folder)) as wheel, pytest.MonkeyPatch.context() as patch:
        patch.setitem(wheel_file._FILTER, "preset", 1)  # quickly
        members = wheel_file._pack([(info, wheel.read(info)) for info in wheel.infolist()])
    for info, data in members:
        path = folder / "site" / info.filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "site"


def look(package: Path, cache: Path, **more: str) -> list[str]:
    env = os.environ | {"CL_DRIVER_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": ""} | more
    command = [sys.executable, "-c", LOOK, str(package)]
    done = subprocess.run(command, text=True, capture_output=True, check=False, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def is_whole(output: list[str]) -> bool:
    """Whether the library, all modules and their texts were there."""
    sizes = f"{len(builtins.load())} {len(builtins.load_places())}"
    first = (ROOT / "cl_driver" / "passes" / "ir" / "plan.py").read_text().splitlines()[0]
    return output[2] == sizes and int(output[3]) > 300 and output[4] == first


def test_modules_are_unpacked_once(package, tmp_path):
    assert not (package / "cl_driver" / "passes" / "ir").exists()
    output = look(package, tmp_path)
    (folder,) = tmp_path.glob("modules-*")
    assert output[:2] == ["SourceFileLoader", f"{folder}/passes/ir/plan.py"] and is_whole(output)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.glob("passes/ir/__pycache__/plan.*.pyc"))
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    look(package, tmp_path)
    assert list(tmp_path.glob("modules-*")) == [folder]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == times


def test_without_a_folder_they_are_in_memory(package, tmp_path):
    output = look(package, tmp_path, CL_DRIVER_CACHE_SIZE="0")
    assert output[:2] == ["_Finder", f"{package}/cl_driver/modules.xz/passes/ir/plan.py"] and is_whole(output)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_others_is_not_believed(package, tmp_path):
    look(package, tmp_path)
    (folder,) = tmp_path.glob("modules-*")
    (folder / "passes" / "ir" / "plan.py").write_text("raise SystemExit(1)\n")
    folder.chmod(0o770)
    output = look(package, tmp_path)
    assert output[0] == "_Finder" and is_whole(output)


def test_unpacked_again_it_is_the_same(tmp_path):
    path = tmp_path / "a-1-py3-none-any.whl"
    texts = {
        "cl_driver/passes/__init__.py": b"",
        "cl_driver/passes/a.py": b"A = 1\n",
        "cl_driver/passes/b/__init__.py": b"",
        "cl_driver/_native/builtins.spv": bytes(range(256)),
        "cl_driver/log.py": b"B = 2\n",
    }
    members = wheel_file._pack([(zipfile.ZipInfo(name), data) for name, data in texts.items()])
    assert [info.filename for info, _ in members] == [
        "cl_driver/passes/__init__.py", "cl_driver/log.py", "cl_driver/modules.xz"
    ]  # fmt: skip
    with zipfile.ZipFile(path, "w") as wheel:
        for info, data in members:
            wheel.writestr(info, data)
    assert {info.filename: data for info, data in wheel_file.unpack(path)} == texts
    with pytest.raises(ValueError):
        wheel_file._pack([(zipfile.ZipInfo(name), b"x = 1\n") for name in texts])
