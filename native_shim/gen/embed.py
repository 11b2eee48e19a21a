"""Writes the C text of the embedded Python's bindings with cffi, and records which Python they belong to."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import sysconfig
from pathlib import Path

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
ROOT = Path(__file__).resolve().parents[2]

# The door's way into Python, and what Python may call of C (python/embed_bindings.h).
_CDEF = """
extern "Python+C" int cld_embed_call(const uint8_t *request, size_t size, void *reply);
int cld_embed_answer(void *reply, const void *bytes, size_t size);
int cld_embed_spawn(char **argv, char **envp, int socket_type);
int cld_embed_has_own_descriptors(void);
int cld_embed_may_change_root(void);
"""


def library(version: str = VERSION) -> str:
    """The file of the embedding of Pythons of that version."""
    return f"_cl_driver_embed-{version}.so"


def include() -> str:
    """The folder of Python.h."""
    return sysconfig.get_path("include", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix})


def libpython() -> Path | None:
    """The shared libpython of the running Python, or None if it has none."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    folders = (
        sysconfig.get_config_var("LIBDIR"),
        sysconfig.get_config_var("LIBPL"),
        f"{sys.base_prefix}/lib",
    )
    for folder in folders:
        if folder and ".so" in name and (Path(folder) / name).exists():
            return Path(folder) / name
    return None


def is_package(folder: Path) -> bool:
    """Whether the folder is that of a package that is to be installed, wherever that may be."""
    return folder.parent.name == "cl_driver" and folder.name == "_native"


def includes() -> dict[str, str]:
    """Versions of Python that an embedding can be built for, and where their Python.h is: those that
    CL_DRIVER_PYTHON_HEADERS names (FOLDER:FOLDER), else that of the running Python. Others have the runtime
    process."""
    named = os.environ.get("CL_DRIVER_PYTHON_HEADERS")
    if named is None:
        return {VERSION: include()} if (Path(include()) / "Python.h").exists() else {}
    return {_version_of(Path(folder)): folder for folder in named.split(":") if folder}


def _version_of(headers: Path) -> str:
    text = (headers / "patchlevel.h").read_text()
    return ".".join(
        re.search(rf"(?m)^#define PY_{part}_VERSION\s+(\d+)", text)[1] for part in ("MAJOR", "MINOR")
    )


def generate() -> str:
    """The C text of the bindings."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(_CDEF)
    ffi.set_source("_cl_driver_embed", '#include "python/embed_bindings.h"')
    text = io.StringIO()
    with contextlib.redirect_stdout(None):  # it says what it does
        ffi.emit_c_code(text)
    return text.getvalue()


def start_text(file: Path) -> str:
    """embed/start.py as a C string."""
    lines = file.read_text().splitlines()
    quoted = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return "static const char start_text[] =" + "".join(f'\n    "{line}\\n"' for line in quoted) + ";\n"


def configuration(folder: Path, executable: str = sys.executable) -> str:
    """The text of cl_driver.conf beside a library in `folder`, for the running Python.

    That of a package names nothing of this machine: cl_driver and cffi are found relative to the library, and
    Python by where the package is (src/python/installation.c).
    """
    if is_package(folder):
        return f"path={os.path.join('..', '..')}\n"
    import cffi

    stdlib = [sysconfig.get_path("stdlib", vars=_base()), sysconfig.get_config_var("DESTSHARED")]
    paths = [str(ROOT), str(Path(cffi.__file__).resolve().parents[1])]
    lines = [
        f"version={VERSION}",
        f"python={executable}",
        f"home={sys.base_prefix}",
        f"libpython={libpython() or ''}",
        *(f"library_path={path}" for path in (os.environ.get("LD_LIBRARY_PATH"),) if path),
        *(f"stdlib={path}" for path in stdlib if path),
        *(f"path={path}" for path in paths),
    ]
    return "\n".join(lines) + "\n"


def _base() -> dict[str, str]:
    return {"installed_base": sys.base_prefix, "base": sys.base_prefix}
