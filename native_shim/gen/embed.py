"""Writes the C text of the embedded Python's bindings with cffi, and records which Python they belong to."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import sysconfig
from pathlib import Path

LIBRARY = "_cl_driver_embed.so"
ROOT = Path(__file__).resolve().parents[2]

# The door's way into Python, and what Python may call of C (python/embed_bindings.h).
_CDEF = """
extern "Python+C" int cld_embed_call(const uint8_t *request, size_t size, void *reply);
int cld_embed_answer(void *reply, const void *bytes, size_t size);
int cld_embed_spawn(char **argv, char **envp, int socket_type);
int cld_embed_has_own_descriptors(void);
int cld_embed_may_change_root(void);
"""


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


def possible() -> bool:
    """Whether an embedding can be built: where not, there is the runtime process."""
    return (Path(include()) / "Python.h").exists()


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

    In an installed package cl_driver and cffi are found relative to the library, so that it may move.
    """
    stdlib = [sysconfig.get_path("stdlib", vars=_base()), sysconfig.get_config_var("DESTSHARED")]
    if folder.parent.name == "cl_driver" and folder.name == "_native":
        paths = [os.path.join("..", "..")]
    else:
        import cffi

        paths = [str(ROOT), str(Path(cffi.__file__).resolve().parents[1])]
    lines = [
        f"version={sys.version_info[0]}.{sys.version_info[1]}",
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
