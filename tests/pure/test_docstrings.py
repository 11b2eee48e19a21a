"""Docstrings say what a caller must know: the errors, and where the specification has what a function does.

That there are docstrings is for `make lint` (ruff's D1).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "cl_driver"
SOURCES = {
    file.relative_to(PACKAGE).as_posix(): file.read_text()
    for file in sorted(PACKAGE.rglob("*.py"))
    if "generated" not in file.parts
}
# Raised for mistakes of the driver's own, which nobody handles.
BUGS = frozenset(("AssertionError", "NotImplementedError", "SystemExit"))
# By which OpenCL's error codes travel; the docstring has the code.
CODES = {"CLError": "CL_"}
SECTION = re.compile(r"\b\d+\.\d+|SPV_\w+|cl_khr_\w+|OpenCL\.std")


def public_functions(source: str) -> Iterator[ast.FunctionDef]:
    """Those of a module, and the methods of its public classes."""
    for node in ast.parse(source).body:
        members = node.body if isinstance(node, ast.ClassDef) and node.name[0] != "_" else [node]
        for member in members:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                yield member


def raised(function: ast.FunctionDef) -> set[str]:
    """Classes of the errors that a function itself raises, and does not handle."""
    caught = {
        name
        for node in ast.walk(function)
        if isinstance(node, ast.Try)
        for handler in node.handlers
        if handler.type is not None
        for name in re.findall(r"\w+", ast.unparse(handler.type))
    }
    found = {
        ast.unparse(node.exc).partition("(")[0].rpartition(".")[2]
        for node in ast.walk(function)
        if isinstance(node, ast.Raise) and node.exc is not None
    }
    return {name for name in found if name[0].isupper()} - BUGS - caught


def unsaid(source: str) -> list[str]:
    """Of a module: errors that docstrings do not have."""
    found = []
    for function in public_functions(source):
        text = ast.get_docstring(function) or ""
        found += [
            f"{function.lineno}: {function.name} raises {error}"
            for error in sorted(raised(function))
            if CODES.get(error, error) not in text
        ]
    return found


def test_errors_are_named():
    assert {path: found for path, source in SOURCES.items() if (found := unsaid(source))} == {}


def test_an_error_that_is_not_named_is_found():
    source = 'def f():\n    """Nothing."""\n    raise ValueError("x")\n'
    assert unsaid(source) == ["1: f raises ValueError"]
    assert unsaid(source.replace("Nothing", "ValueError if it is none")) == []


def entry_points() -> Iterator[tuple[ast.FunctionDef, str]]:
    """(function, name of the request) of what the data plane asks the control plane for."""
    for path, source in SOURCES.items():
        for function in public_functions(source) if path.startswith("api/") else ():
            for decorator in function.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "entrypoint":
                    yield function, ast.literal_eval(decorator.args[0])


def test_entry_points_name_their_section():
    found = list(entry_points())
    assert len(found) > 20
    of_calls = [(name, function) for function, name in found if name.startswith("cl")]
    assert [name for name, f in of_calls if not SECTION.search(ast.get_docstring(f) or "")] == []


@pytest.mark.parametrize("path", sorted(p for p in SOURCES if p.startswith("codegen/ops/")))
def test_lowerings_name_their_section(path):
    if "@lowers" in SOURCES[path] or "@componentwise" in SOURCES[path]:
        doc = ast.get_docstring(ast.parse(SOURCES[path]))
        assert SECTION.search(doc), doc
