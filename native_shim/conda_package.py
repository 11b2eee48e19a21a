"""Makes conda packages out of a wheel (make dist), for each Python; conda/recipe.yaml says what they have.

    python native_shim/conda_package.py WHEEL OUT [VERSION...]

rattler-build (PyPI: py-rattler-build) does it, without a channel: nothing but the wheel is needed for it.
Times are SOURCE_DATE_EPOCH, if it is set: then the same wheel and tools make the same bytes.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import conda_file

RECIPE = Path(__file__).resolve().parent / "conda" / "recipe.yaml"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}

_COMMAND = "import sys\n\nfrom cl_driver.cli import main\n\nsys.exit(main())\n"


def can_be_made() -> bool:
    """Whether rattler-build is here, and what packs its packages again."""
    try:
        importlib.import_module("rattler_build")
        importlib.import_module("zstandard")
    except ImportError:
        return False
    return True


def _unpack(wheel: Path, folder: Path) -> None:
    """With permissions, which zipfile leaves out."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = Path(archive.extract(member, folder))
            if path.is_file():
                path.chmod(0o755 if member.external_attr >> 16 & 0o100 else 0o644)
    (folder / "command.py").write_text(_COMMAND)


def make(wheel: Path, out: Path, epoch: int, versions: tuple[str, ...] = VERSIONS) -> list[Path]:
    """The packages, in folders of `out` as those of a channel. epoch: their time, in seconds since 1970."""
    from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

    _, version, _, _, platform = wheel.stem.split("-")
    subdir = next(name for machine, name in SUBDIRS.items() if platform.endswith(machine))
    os.environ["CL_DRIVER_VERSION"] = version
    made = []
    with tempfile.TemporaryDirectory(prefix="cl_driver-conda-") as work:
        _unpack(wheel, Path(work) / "wheel")
        shutil.copyfile(RECIPE, Path(work) / "recipe.yaml")
        recipe = Stage0Recipe.from_file(Path(work) / "recipe.yaml")
        variants = VariantConfig({"python_minor": list(versions)})
        for one in recipe.render(variants, RenderConfig(platform=PlatformConfig(target_platform=subdir))):
            result = one.run_build(
                output_dir=Path(work) / "out",
                channels=[],
                package_format="tar.bz2:1",  # it is unpacked at once
                no_include_recipe=True,
            )
            (out / subdir).mkdir(parents=True, exist_ok=True)
            made += [conda_file.rewrite(Path(package), out / subdir, epoch) for package in result.packages]
    return made


if __name__ == "__main__":
    arguments = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    print(*make(*arguments, epoch, tuple(sys.argv[3:]) or VERSIONS), sep="\n")
