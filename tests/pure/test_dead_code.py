"""What the package defines, something in it uses: functions, classes, constants, attributes.

By name only: what has the name of something that is used counts as used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from tests.conftest import ROOT

GENERATED = ("api/generated/enums.py", "spirv/enums.py", "spirv/grammar.py")

# What nothing in the package uses, and who does.
USED_ELSEWHERE = {
    "run_plan": "tests: the interpreter runs plans of the passes",
    "all_library_names": "tests: the library has each of these functions",
    "sweep": "tests: a cache above its bound, without the writes that bring it there",
    "SEND": "the numbers of messages: native_shim/src/cluster/messages.h has the same",
    "LOST": "likewise",
    "FILL": "likewise",
    "LAUNCH_SIZE": "tests, which lay the structure out by hand",
    "THREAD_SIZE": "likewise",
    # What other libraries read.
    "restype": "ctypes",
    "prec": "mpmath",
    "data_layout": "llvmlite",
    "loop_interleaving": "llvmlite",
    "loop_vectorization": "llvmlite",
    "slp_vectorization": "llvmlite",
    "loop_unrolling": "llvmlite",
    "_callback": "ctypes: it must be there as long as C may call it",
    "create_module": "importlib",
    "atexit": "weakref.finalize",
    "deserialize": "distributed",
    # Of messages that C makes or reads; Python's list of their numbers is whole.
    **dict.fromkeys(
        ("FORGET_PROGRAM", "FORGET_IMAGE", "LAUNCH", "DONE", "BUILT", "PRINTED", "MOST_INLINE_BYTES"),
        "native_shim/src/cluster",
    ),
}


def defined(source: str) -> Iterator[tuple[int, str]]:
    """(line, name) of what a module defines; without what a decorator has taken up (lowerings, rules, entry
    points) and special methods."""
    for node in ast.walk(tree := ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if all(_keeps_name(decorator) for decorator in node.decorator_list):
                yield node.lineno, node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute) or (isinstance(target, ast.Name) and node in tree.body):
                    yield node.lineno, target.attr if isinstance(target, ast.Attribute) else target.id


def _keeps_name(decorator: ast.expr) -> bool:
    words = re.findall(r"\w+", ast.unparse(decorator))
    return not {
        "property",
        "cached_property",
        "cache",
        "staticmethod",
        "classmethod",
        "dataclass",
    }.isdisjoint(words)


def used(sources: Iterable[str]) -> set[str]:
    """Names that sources read, also as texts: of fields, and of functions that C calls."""
    found = set()
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if re.fullmatch(r"\w+([.: ]\w+)*", node.value):
                    found.update(re.findall(r"\w+", node.value))
    return found


def unused(sources: dict[str, str], elsewhere: Iterable[str] = ()) -> dict[str, list[str]]:
    """{name: places} of what sources define and neither they nor `elsewhere` use."""
    names = used(sources.values()).union(elsewhere)
    found: dict[str, list[str]] = {}
    for path, source in sources.items():
        for line, name in defined(source):
            if name not in names and not name.startswith("__"):
                found.setdefault(name, []).append(f"{path}:{line}")
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    package = ROOT / "cl_driver"
    paths = {file.relative_to(package).as_posix(): file for file in sorted(package.rglob("*.py"))}
    sources = {path: file.read_text() for path, file in paths.items() if path not in GENERATED}
    assert len(sources) > 200
    generated = used((package / path).read_text() for path in GENERATED)
    native = [*(ROOT / "native_shim").rglob("*.[ch]"), *(ROOT / "native_shim").rglob("*.py")]
    words = {word for file in native for word in re.findall(r"\w+", file.read_text())}
    words.update(re.findall(r"\w+", (ROOT / "pyproject.toml").read_text()))
    return unused(sources, generated | words)


def test_what_is_defined_is_used(found):
    assert {name: places for name, places in found.items() if name not in USED_ELSEWHERE} == {}


def test_the_list_of_other_users_is_no_longer_than_it_must_be(found):
    assert sorted(USED_ELSEWHERE.keys() - found.keys()) == []


def test_what_nothing_uses_is_found():
    source = "N = 1\nclass C:\n    def m(self): self.x = N\n    def __len__(self): return 0\n"
    source += "@lowers(1)\ndef f(): pass\n"
    assert unused({"a.py": source}) == {"C": ["a.py:2"], "m": ["a.py:3"], "x": ["a.py:3"]}
    assert unused({"a.py": source, "b.py": "C().m().x"}) == {}
