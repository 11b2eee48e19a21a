"""Imports go downwards: a room imports rooms below it, none above. No folder is too full to look through."""

from __future__ import annotations

import ast
import collections
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "cl_driver"

# The rooms, the lowest first: each imports those before it. A module counts by its own name if that is here,
# else by its folder's.
ORDER = (
    "cl_driver",  # log, native, settings, spawn, version, wire: everybody's
    "device",
    "spirv",
    "spirv.reading",
    "spirv.validation",
    "passes.ir",
    "passes.numbers",
    "passes.program",
    "passes.analysis",
    "passes.scalar",
    "passes.loops",
    "passes.lower",
    "passes.groups",
    "passes.vectorize",
    "passes.cost",
    "passes.check",
    "passes.traffic",
    "passes.extents",
    "passes",  # pipeline
    "interp",
    "codegen.llvm",
    "codegen.layout",
    "codegen.expand",
    "codegen.library",
    "codegen.ops",
    "codegen.lockstep",
    "codegen.access",
    "codegen.atomic",
    "codegen.footprints",
    "codegen.simd",
    "codegen.kernel",
    "codegen",
    "jit.printed_ir",
    "jit",
    "builtins",
    "builtins.coefficients",
    "frontend",
    "compiler",
    "explain",
    "trace",
    "profile",
    "service",
    "api.generated",
    "door.answers",  # the form of what api answers
    "api",
    "door",
    "cluster",
    "runtime",  # the program of a process of its own
    "host_device",  # as a program has it
    "accuracy",
    "tune",
    "debugger",
    "cli",
)
LEVEL = {room: level for level, room in enumerate(ORDER)}

# Files of Python or C that a folder may hold.
MOST = 20


def module_of(file: Path) -> str:
    """A file's module, without the package's own name."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str | None:
    """The room that a module is in, or None if its folder is not in the order."""
    if module in LEVEL:
        return module
    is_folder = FILES[module].name == "__init__.py"
    folder = (module if is_folder else module.rpartition(".")[0]) or "cl_driver"
    return folder if folder in LEVEL else None


class _WithoutTypes(ast.NodeTransformer):
    """Takes out what `if TYPE_CHECKING:` guards."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


def imported(module: str, file: Path, everywhere: bool = True, types: bool = True) -> list[tuple[int, str]]:
    """(line, module of the package) of each import, also of those in functions if `everywhere`, and of those
    that only the type checker reads if `types`."""
    tree = ast.parse(file.read_text())
    if not types:
        tree = _WithoutTypes().visit(tree)
    here = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    here = [part for part in here if part]
    found = []
    for node in ast.walk(tree) if everywhere else tree.body:
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = [*here[: len(here) + 1 - node.level], *(node.module.split(".") if node.module else [])]
        for alias in node.names:
            one = ".".join([*base, alias.name])
            found.append((node.lineno, one if one in FILES else ".".join(base)))
    return found


def test_every_folder_is_in_the_order():
    assert len(FILES) > 200
    assert sorted({module for module in FILES if room_of(module) is None}) == []
    modules = {room_of(module) for module in FILES}
    assert [room for room in ORDER if room not in modules] == []


@pytest.mark.parametrize("room", ORDER)
def test_imports_go_down(room):
    upward = []
    for module, file in FILES.items():
        if room_of(module) != room:
            continue
        for line, other in imported(module, file):
            if LEVEL[room_of(other)] > LEVEL[room]:
                upward.append(f"{file.relative_to(ROOT)}:{line} imports {other or 'cl_driver'}")
    assert upward == []


def test_the_oracle_shares_no_pass_with_what_it_checks():
    """Of passes/ the interpreter reads what the IR is, nothing that changes or analyses it."""
    used = {other for m, file in FILES.items() if room_of(m) == "interp" for _, other in imported(m, file)}
    assert "passes.ir.plan" in used
    assert {room_of(module) for module in used} <= {"interp", "spirv", "passes.ir"}


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which imports, by whatever way, the others."""
    numbers: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node):
        numbers[node] = low[node] = len(numbers)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in numbers:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == numbers[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(edges):
        if node not in numbers:
            visit(node)
    return found


def test_cycles_are_found():
    assert cycles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}) == [["a", "b", "c"]]


def test_no_modules_import_one_another():
    """But that files of one room may name one another's classes in annotations."""
    edges = {m: {other for _, other in imported(m, file, types=False)} - {m} for m, file in FILES.items()}
    assert cycles(edges) == []


def folders() -> dict[str, int]:
    """How many files of Python or C each folder of the repository holds."""
    counts: collections.Counter = collections.Counter()
    for top in ("cl_driver", "native_shim", "tests", "conformance", "icd"):
        for file in (ROOT / top).rglob("*"):
            if file.suffix in (".py", ".c", ".h") and "_native" not in file.parts:
                counts[file.parent.relative_to(ROOT).as_posix()] += 1
    return counts


def test_folders_can_be_looked_through():
    counts = folders()
    assert "cl_driver/codegen/access" in counts
    assert {folder: count for folder, count in counts.items() if count > MOST} == {}


def test_rooms_say_what_they_are_for():
    """In one line, and import nothing that their modules would not: the host's process imports some."""
    for module, file in FILES.items():
        if file.name != "__init__.py" or module.count(".") != 1 or module == "api.generated":
            continue
        tree = ast.parse(file.read_text())
        doc = ast.get_docstring(tree)
        assert doc and "\n" not in doc and len(tree.body) == 1, module
