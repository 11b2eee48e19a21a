"""What a host imports late is kept for it, and what is kept can be imported."""

import subprocess
import sys

from cl_driver import late_modules
from tests.conftest import ROOT
from tests.pure.test_imports import FILES, imported

# In these a host's process does jobs only where it is told to be the compiler (CL_DRIVER_COMPILE).
_COMPILERS = ("service.jobs", "explain", "spirv", "passes", "codegen", "compiler")


# What a host has imported when it has made a context.
PREPARED = "import sys, cl_driver.door.embedded, cl_driver.api.context, cl_driver.service.process\n"


def closure(roots) -> set[str]:
    """What modules import, in functions too."""
    found: set[str] = set()
    pending = list(roots)
    while pending:
        module = pending.pop()
        if module in found or module not in FILES or module.startswith(_COMPILERS):
            continue
        found.add(module)
        pending += (name for _, name in imported(module, FILES[module], types=False))
    return found


def loaded_with_a_context() -> set[str]:
    text = (
        PREPARED + "print(*(name.partition('.')[2] for name in sys.modules if name.startswith('cl_driver')))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_everything_is_kept_that_a_host_may_import():
    hosts = closure(["door.embedded", *(m for m in FILES if m.startswith("api.") and "make_" not in m)])
    hosts |= {name.rpartition(".")[0] for name in hosts if "." in name}
    assert sorted(hosts - loaded_with_a_context() - set(late_modules.NAMES)) == []
    assert sorted(set(late_modules.NAMES) - hosts) == []


def test_they_are_imported_where_no_file_is_found():
    text = """
import os, sys
from cl_driver import late_modules
before = set(sys.modules)
late_modules.keep()
late_modules.keep()
assert sys.meta_path.count(late_modules._kept) == 1
for name in [name for name in sys.modules if name.startswith("cl_driver.")]:
    if hasattr(sys.modules[name], "__path__"):
        sys.modules[name].__path__ = ["/nonexistent"]
sys.path[:] = ["/nonexistent"]
for name in late_modules.NAMES:
    __import__("cl_driver." + name)
    file = sys.modules["cl_driver." + name].__file__.removesuffix("/__init__.py").removesuffix(".py")
    assert file.endswith("cl_driver/" + name.replace(".", "/")), file
print(len(late_modules.NAMES))
"""
    done = subprocess.run(
        [sys.executable, "-c", PREPARED + text], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.stdout.strip() == str(len(late_modules.NAMES)), done.stderr
