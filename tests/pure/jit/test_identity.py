"""Which compiler this is: whatever it is made of changes the key of the cache."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cl_driver import builtins, native
from cl_driver.jit import symbols

ROOT = Path(__file__).resolve().parents[3]
ENTRY = "cl_driver.service.fork_server"  # what compiler processes run
IDENTITY = "from cl_driver.jit import identity; print(identity.compiler())"
EACH = """
import os, sys
from cl_driver.jit import identity
whole = sys.argv[1] == "whole"
before = identity.compiler(whole)
for path in sys.stdin.read().split("\\0"):
    was = os.stat(path)
    with open(path, "ab") as file:
        file.write(b"\\n")
    identity._found.clear()
    if identity.compiler(whole) == before:
        print(path)
    os.truncate(path, was.st_size)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
identity._found.clear()
assert identity.compiler(whole) == before
"""


def file_of(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    return next((p for p in (path / "__init__.py", path.with_suffix(".py")) if p.is_file()), None)


def imports(module: str, file: Path):
    """Every name that a module may import, at whatever place of its text."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def closure(module: str) -> dict[str, Path]:
    """The modules of the package that importing one may import, with their files."""
    found: dict[str, Path] = {}
    pending = [module]
    while pending:
        name = pending.pop()
        file = file_of(name)
        if not name or name in found or file is None:
            continue
        found[name] = file
        pending += [name.rpartition(".")[0], *imports(name, file)]
    return found


def read_by_compilers() -> list[Path]:
    built = [Path(builtins.library_path()), native.directory() / "_cl_driver_clang.so"]
    [table] = [path for path in symbols._paths() if os.path.exists(path)]
    return [*closure(ENTRY).values(), *built, native.directory() / "cl_driver.conf", Path(table)]


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The package, and what its build left, somewhere else."""
    root = tmp_path_factory.mktemp("copy")
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("cl_driver", "build/lib", "native_shim/src/abi"):
        shutil.copytree(ROOT / name, root / name, ignore=ignore)
    return root


def run(script: str, root: Path, text: str = "", which: str = "", **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{script}", which],
        input=text, capture_output=True, text=True, timeout=100, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_closure_is_that_of_a_compiler():
    names = closure(ENTRY)
    for name in (
        "compiler.variants",
        "compiler.pipeline",
        "device.limits",
        "codegen.access.lut_permute",
        "spirv.tables",
        "jit.emit",
    ):
        assert f"cl_driver.{name}" in names
    assert "cl_driver.api.program" not in names and len(names) > 150


def test_an_edit_of_whatever_compilers_read_changes_the_key(copy):
    paths = [copy / path.relative_to(ROOT) for path in read_by_compilers()]
    assert run(EACH, copy, "\0".join(map(str, paths)), "whole") == ""


@pytest.mark.parametrize("setting, folders", [
    ("", set()), ("CL_DRIVER_CHECK", {"check"}), ("CL_DRIVER_PROFILE", {"traffic"}),
    ("CL_DRIVER_CLUSTER", {"traffic", "extents"}), ("CL_DRIVER_EXPLAIN", {"explain"}),
])  # fmt: skip
def test_files_for_a_setting_are_in_the_key_under_it(copy, setting, folders):
    names = {"check", "traffic", "extents", "explain", "cost"}
    paths = [copy / path.relative_to(ROOT) for path in read_by_compilers() if path.parent.name in names]
    unchanged = run(EACH, copy, "\0".join(map(str, paths)), **({setting: "1"} if setting else {}))
    assert {Path(path).parent.name for path in unchanged.split()} == names - {"cost"} - folders


def test_a_new_module_changes_the_key(copy):
    before = run(IDENTITY, copy)
    new = copy / "cl_driver" / "passes" / "brand_new.py"
    new.write_text("")
    assert run(IDENTITY, copy) != before
    new.unlink()
    assert run(IDENTITY, copy) == before


def test_what_compilers_do_not_read_leaves_the_key(copy):
    """A change of the control plane alone need not cost everybody their cache."""
    before = run(IDENTITY, copy)
    with open(copy / "cl_driver" / "api" / "program.py", "a") as file:
        file.write("\n")
    assert run(IDENTITY, copy) == before
