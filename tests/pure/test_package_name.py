"""The package may be imported under any name: a host's Python may have another `cl_driver`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PACKAGE = ROOT / "cl_driver"


def absolute_imports(file: Path) -> list[str]:
    """Lines that import the package by its name."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        if any(name.split(".")[0] == "cl_driver" for name in names):
            found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    return found


def test_the_package_does_not_import_itself_by_name():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 100
    assert [line for file in files for line in absolute_imports(file)] == []


def test_every_module_can_be_imported_under_another_name():
    """Not the commands and what only they use: those run in Pythons of their own."""
    code = f"""
import importlib, pkgutil, sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("other", {str(PACKAGE / "__init__.py")!r})
sys.modules["other"] = package = module_from_spec(spec)
spec.loader.exec_module(package)
for module in pkgutil.walk_packages(package.__path__, "other."):
    if not module.name.startswith(("other.cli", "other.accuracy")):
        importlib.import_module(module.name)
from other.api import entrypoint
for operation in entrypoint.CHAPTERS:
    importlib.import_module(f"other.api.{{operation}}")
print(*[name for name in sys.modules if name.split(".")[0] == "cl_driver"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
