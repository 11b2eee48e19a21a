"""The mutations of a source, which tests they are tried with, and a run from end to end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cl_driver.spirv.types import TypeTable
from tests.conftest import ROOT
from tests.mutate import page
from tests.mutate.__main__ import find, sample
from tests.mutate.mutations import Mutation, mutated, mutations
from tests.mutate.pool import Result
from tests.mutate.reach import Calls, Reach


def changes(body: str) -> set[tuple[str, str]]:
    """(before, after) of the mutations of a function's body."""
    return {(m.before, m.after) for m in mutations("x.py", f"def f(a, b):\n    {body}\n")}


@pytest.mark.parametrize(
    "body, expected",
    [
        ("return a < b", {("a < b", "a <= b")}),
        ("return a is not None", {("a is not None", "a is None")}),
        ("return a and b", {("a and b", "a"), ("a and b", "b")}),
        ("return not a", {("not a", "a")}),
        ("return a + b", {("a + b", "a - b")}),
        ("return f'{a}' + b", set()),
        ("return a << 3", {("a << 3", "a >> 3"), ("3", "4")}),
        ("return True", {("True", "False")}),
        ("return max(a, b)", {("max(a, b)", "min(a, b)")}),
        ("if a == b: return a", {("a == b", "True"), ("a == b", "False")}),
        ("if a < b: return a", {("a < b", "True"), ("a < b", "False"), ("a < b", "a <= b")}),
        ("return a if b else None", {("b", "True"), ("b", "False")}),
        ("return [x for x in a if x]", {("x", "True")}),
        ("a.append(b)", {("a.append(b)", "pass")}),
        ("a.x = b", {("a.x = b", "pass")}),
        ("a += b", {("a += b", "pass")}),
        ("'text'", set()),
        ("raise ValueError(a + b)", set()),
        ("assert a < b", set()),
        ("a.remarks.choose('width', b + 1)", set()),
        ("c: list[1 + 2] = a", set()),
    ],
)
def test_mutations(body, expected):
    assert changes(body) == expected


def test_only_the_code_of_functions_is_changed():
    source = "N = 1 + 1\n@cache(2)\ndef f(a=3, *, b: 4 = 5) -> 6:\n    def g(): return 7\n    return g\n"
    source += "class C:\n    x = 8\n    def m(self): return 9\n"
    found = mutations("x.py", source)
    assert [(m.function, m.before) for m in found] == [("f", "7"), ("C.m", "9")]


def test_the_code_is_changed(tmp_path):
    file = tmp_path / "x.py"
    file.write_text(
        "def f(a):\n    return a + 1\n\n\ndef g(a):\n    return [x for x in (a, a - 1) if x > 0]\n"
    )
    for mutation in mutations("x.py", file.read_text()):
        scope: dict = {}
        exec(compile(file.read_text(), str(file), "exec"), scope)
        function = scope[mutation.function]
        before = function(1), function(3)
        function.__code__ = mutated(file, mutation)
        assert (function(1), function(3)) != before, mutation


def test_calls_are_noted():
    """Of the package's functions, anew for each test, and only while one runs."""
    calls = Calls()
    for _ in range(2):
        calls.begin()
        TypeTable().int(32)
        found = calls.end()
        assert {"cl_driver/spirv/types.py:TypeTable.int", "cl_driver/spirv/module.py:Type.__init__"} <= {
            *found
        }
        assert not any("TypeTable.vector" in name for name in found)
    TypeTable().vector(TypeTable().int(8), 2)
    calls.begin()
    assert calls.end() == []


def test_tests_are_chosen(tmp_path):
    """Those that reach the function: the quick ones and those of its file first, as long as there is time."""
    rows = [("a.py::t[1]", 1.0), ("a.py::t[2]", 1.5), ("a.py::slow", 30.0), ("test_x.py::u", 2.0)]
    notes = [json.dumps([name, seconds, ["cl_driver/x.py:f"]]) for name, seconds in rows]
    (tmp_path / "1.jsonl").write_text("\n".join([*notes, json.dumps(["b.py::t", 0.1, ["cl_driver/x.py:g"]])]))
    reach = Reach(tmp_path)
    assert reach.choose("cl_driver/x.py", "f", 5) == ["test_x.py::u", "a.py::t[1]", "a.py::t[2]"]
    assert reach.choose("cl_driver/x.py", "f", 1) == ["test_x.py::u"]
    assert reach.choose("cl_driver/x.py", "nothing", 5) == []


def test_a_sample_is_the_same_for_a_seed():
    found = find(["cl_driver/passes/ir"])
    assert sample(found, 20, 1) == sample(found, 30, 1)[:20] != sample(found, 20, 2)
    line = found[5].line
    assert {m.line for m in find([f"{found[5].path}:{line}"])} == {line}


def test_the_page(tmp_path):
    results = [
        Result(Mutation(f"cl_driver/{folder}/x.py", k, k, "f", "a", "b"), outcome)
        for k, (folder, outcome) in enumerate([("p", "killed"), ("p", "survived"), ("q", "unreached")])
    ]
    file = tmp_path / "page.md"
    file.write_text(f"Head\n{page.BEGIN}\nEARLIER\n{page.END}\nFoot\n")
    page.write(file, results, 9, 1, "COMMAND")
    text = file.read_text()
    assert text.startswith("Head\n") and text.endswith("Foot\n") and "EARLIER" not in text
    assert "| `cl_driver/p` | 2 | 1 | 1 | 0 | 50 % |" in text
    assert "| `all` | 3 | 1 | 1 | 1 | 33 % |" in text
    assert "| `cl_driver/p/x.py`: `f` | 1 |\n| `cl_driver/q/x.py`: `f` | 1 |\n" in text


def test_a_run():
    """A guard that a test has, and a change that nothing can notice."""
    path, guard = "cl_driver/passes/cost/one_item.py", "private > _MOST_PRIVATE"
    places = {mutation.line for mutation in find([path]) if mutation.before == guard}
    assert len(places) == 1
    what, tests = f"{path}:{places.pop()}", "tests/pure/passes/cost/test_one_item.py"
    command = [sys.executable, "-m", "tests.mutate", "--jobs", "1", what, "--tests", tests]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=500)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    lost = [line.partition(" _why: ")[2] for line in lines if line.startswith("survived: ")]
    assert lost == [f"{guard}  ►  private >= _MOST_PRIVATE"], done.stdout
