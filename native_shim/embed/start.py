"""What _cl_driver_embed-VERSION.so runs first, as text that is compiled in, in the Python that it uses.

Nothing of the host's is taken for ours, and nothing of ours is found by the host: the control plane gets a
name that nobody has and is found by its folder, cffi's module by its file. sys.path stays as it is.
"""

import importlib
import os
import sys
from _frozen_importlib import ModuleSpec, module_from_spec
from _frozen_importlib_external import spec_from_file_location
from _imp import extension_suffixes

_BACKEND = "_cffi_backend"
trusted = False  # cld_is_trusted(), from embed.c
python = ""  # the program that cl_driver.conf records, or that installation.c found
quirk = ""  # cld_quirk(), likewise: lines of NAME=text


def hides_stdlib() -> str:
    """A file that the host's Python would import in place of a module of the standard library; "" if none."""
    stdlib = os.path.dirname(os.__file__)
    names = set(sys.stdlib_module_names).difference(sys.builtin_module_names, ("test",))
    suffixes = ("py", "pyc", *(suffix[1:] for suffix in extension_suffixes()))
    for folder in sys.path:
        if folder == stdlib:
            break
        try:
            entries = os.listdir(folder or ".")
        except (OSError, TypeError):
            continue
        for entry in entries:
            name, _, suffix = entry.partition(".")
            path = os.path.join(folder, entry)
            if name in names and (suffix in suffixes or os.path.exists(os.path.join(path, "__init__.py"))):
                return path
    return ""


def _same(one: str, other: object) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, TypeError):
        return False


def backend(folders: list[str]):
    """cffi's module, of those folders: the host's if it has the same, else what a new one is made of."""
    files = [os.path.join(f, _BACKEND + suffix) for f in folders for suffix in extension_suffixes()]
    file = next((file for file in files if os.path.isfile(file)), None)
    if file is None:
        raise ImportError(f"{_BACKEND} is not in {', '.join(folders)}")
    theirs = sys.modules.get(_BACKEND)
    if _same(file, getattr(theirs, "__file__", None)):
        return theirs
    # By the name that the host itself would use: its first function must not run twice in one process.
    for folder in sys.path:
        path = os.path.join(folder or os.getcwd(), os.path.basename(file)) if isinstance(folder, str) else ""
        if _same(file, path):
            file = path
            break
    return ModuleSpec(_BACKEND, None, origin=file)


def control_plane(folders: list[str]):
    """The module cl_driver.door.embedded of the first folder that has a cl_driver, in a package of our own.

    Another build of this driver may be in the process, so the first name may be taken.
    """
    packages = [os.path.join(folder, "cl_driver") for folder in folders]
    package = next((p for p in packages if os.path.isfile(os.path.join(p, "__init__.py"))), None)
    if package is None:
        raise ImportError(f"cl_driver is not in {', '.join(folders)}")
    name, number = "_cl_driver", 1
    while True:
        spec = spec_from_file_location(
            name, os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )
        module = module_from_spec(spec)
        if sys.modules.setdefault(name, module) is module:
            break
        number += 1
        name = f"_cl_driver_{number}"
    try:
        spec.loader.exec_module(module)
        importlib.import_module(f"{name}.trust").hand(trusted)  # before anything reads the environment
        importlib.import_module(f"{name}.native").use_python(python)
        importlib.import_module(f"{name}.settings").use_quirk(quirk)
        return importlib.import_module(f"{name}.door.embedded")
    except BaseException:
        for key in [key for key in list(sys.modules) if f"{key}.".startswith(f"{name}.")]:
            del sys.modules[key]
        raise
