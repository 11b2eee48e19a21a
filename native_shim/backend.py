"""The PEP 517 build backend: setuptools, with the native shim built into the package first."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path

from setuptools import build_meta
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.egg_info import manifest_maker

SHIM = Path(__file__).resolve().parent
ROOT = SHIM.parent

get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_wheel = build_meta.get_requires_for_build_wheel
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def build_sdist(sdist_directory, config_settings=None):
    """All that a wheel is built from; sdist.in says what that is."""
    manifest_maker.template = "native_shim/sdist.in"
    return build_meta.build_sdist(sdist_directory, config_settings)


def _build(folder: Path, work: Path) -> None:
    """The shim. What is wrong is what pip shows, and nothing else."""
    sys.path.insert(0, str(SHIM))
    try:
        import build

        build.build(folder, build=work)
    except ImportError as error:
        sys.exit(f"needs {error.name}: pip install {error.name}")
    except build.BuildError as error:
        sys.exit(str(error))


@contextmanager
def _native(folder: Path):
    """The shim in `folder` meanwhile: a working tree that had none has none afterwards."""
    had = folder.exists()
    try:
        _build(folder, ROOT / "build" / "pip")
        yield folder
    finally:
        if not had:
            shutil.rmtree(folder, ignore_errors=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel for this platform and every Python: what of the machine code belongs to one is there for each
    that its headers were there for (gen/embed.py), and others do without."""
    platform = os.environ.get("CL_DRIVER_WHEEL_PLATFORM") or sysconfig.get_platform()
    tag = "py3", "none", platform.replace("-", "_").replace(".", "_")
    bdist_wheel.get_tag = lambda self: tag
    with _native(ROOT / "cl_driver" / "_native") as native:
        import beside

        beside.put_into_wheels(beside.make(native, ROOT / "build" / "pip"))
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays in the working tree, and so does its shim: build/lib, as make setup makes it."""
    _build(ROOT / "build" / "lib", ROOT / "build")
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
