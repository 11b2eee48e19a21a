"""Writes _cl_driver_embed's C text through cffi's embedding API, and records which Python it belongs to."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

LIBRARY = "_cl_driver_embed.so"
ROOT = Path(__file__).resolve().parents[2]


def include() -> str:
    """The folder of Python.h."""
    return sysconfig.get_path("include", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix})


def libpython() -> Path | None:
    """The shared libpython of the running Python, or None if it has none."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    for folder in (sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LIBPL"), sys.base_prefix + "/lib"):
        if folder and ".so" in name and (Path(folder) / name).exists():
            return Path(folder) / name
    return None


def possible() -> bool:
    """Whether an embedded Python can be built: where not, there is the runtime process."""
    return False


def generate() -> str:
    """The C text."""
    return ""


def configuration(out: Path) -> str:
    """The text of cl_driver.conf, for a library in the folder `out`."""
    import cffi

    lines = [
        f"version={sys.version_info[0]}.{sys.version_info[1]}",
        f"python={sys.executable}",
        f"home={sys.base_prefix}",
        f"libpython={libpython() or ''}",
        f"path={sysconfig.get_path('stdlib')}",
        f"path={sysconfig.get_config_var('DESTSHARED')}",
        f"path={ROOT}",
        f"path={Path(cffi.__file__).resolve().parents[1]}",
    ]
    return "\n".join(lines) + "\n"
