"""What `make dist` leaves out of a wheel's modules, and that the rest stays as it was."""

from __future__ import annotations

import ast
import sys
import zipfile

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "native_shim"))

import dist  # noqa: E402
import wheel_file  # noqa: E402

TEXT = b'''"""Of a module: \xc3\xbc."""

# A comment.
import sys  # why


class Empty(Exception):
    """All there
    is."""  # and a comment


class A:
    """Of a class.

    More of it."""

    text = "# no comment", 'x'  # one: \xc3\xbc
    kept = """
  # no comment \t
"""

    def only(self): """All there is."""

    def method(self, a):
        """Of a method."""
        # Alone.
        if a:  # "quotes"
            raise ValueError(
                a,  # of a part
            )
        return """A value."""


def one(): "Of a line."; return 1


def typed(
    a: dict[str, "int"], /, *rest: int, b: int = 2, c: Callable[
        [], None
    ] | None = None, **more: str
) -> tuple[int, int]:
    d: int = b
    return a["->"], d
'''


def test_lines_stay_what_they_are():
    shorter = wheel_file.without_comments(TEXT)
    assert shorter.count(b"\n") == TEXT.count(b"\n")
    for left_out in (
        b"Of a",
        b"comment.",
        b"why",
        b"All there",
        b"is.",
        b"More",
        b"Alone",
        b"quotes",
        b"part",
    ):
        assert left_out not in shorter
    assert shorter.splitlines()[3:9] == [
        b"import sys",
        b"",
        b"",
        b"class Empty(Exception):",
        b"    pass",
        b"",
    ]
    made: dict = {}
    exec(compile(shorter, "f.py", "exec"), made)
    a = made["A"]
    assert (a.text, a.kept) == (("# no comment", "x"), "\n  # no comment \t\n")
    assert (a.__doc__, a.only.__doc__, made["Empty"].__doc__, made.get("__doc__")) == (None,) * 4
    assert a().only() is None and a().method(0) == "A value." and made["one"]() == 1
    assert made["typed"]({"->": 1}) == (1, 2) and b"    a, /, *rest, b = 2, c: Call" in shorter
    assert list(made["typed"].__annotations__) == ["c"] and b"\n):\n    d: int = b\n" in shorter
    with pytest.raises(ValueError) as raised:
        a().method(1)
    assert raised.traceback[-1].lineno + 1 == TEXT[: TEXT.index(b"raise ValueError")].count(b"\n") + 1


def test_what_is_shown_stays():
    assert ast.get_docstring(ast.parse(wheel_file.without_comments(TEXT, True))) == "Of a module: ü."
    for path in sorted((ROOT / "cl_driver" / "cli").glob("*.py")):
        shorter = wheel_file.without_comments(path.read_bytes(), True)
        assert ast.get_docstring(ast.parse(shorter)) == ast.get_docstring(ast.parse(path.read_bytes()))


def test_nobody_reads_the_types_of_functions():
    files = [path for path in (ROOT / "cl_driver").rglob("*.py") if "__annotations__" in path.read_text()]
    of_classes = {"records.py", "fast_typing.py", "ops.py"}
    assert {path.name for path in files} == of_classes
    for word in ("get_type_hints", "inspect.", "singledispatch"):
        assert not [path for path in (ROOT / "cl_driver").rglob("*.py") if word in path.read_text()]


def test_nobody_else_reads_docstrings():
    files = [path for path in (ROOT / "cl_driver").rglob("*.py") if "__doc__" in path.read_text()]
    build = "cl_driver/builtins/build.py"  # of sources that are in no wheel
    assert {str(path.relative_to(ROOT)) for path in files} == {build, "cl_driver/cli/__init__.py"}


def test_a_wheel_written_again(tmp_path):
    pytest.importorskip("zopfli")
    path = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        program = zipfile.ZipInfo("a/_native/program", (2026, 11, 27, 22, 7, 42))
        program.external_attr = 0o100755 << 16
        wheel.writestr(program, b"\x7fELF" * 100)
        wheel.writestr("a/__init__.py", TEXT)
        wheel.writestr("a-1.dist-info/RECORD", "a/__init__.py,sha256=x,1\n")
    wheel_file.rewrite(path)
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        first, second, record = wheel.infolist()
        assert (first.date_time, first.external_attr) == ((2026, 11, 27, 22, 7, 42), 0o100755 << 16)
        assert wheel.read(first) == b"\x7fELF" * 100
        text = wheel.read(second)
        assert text == wheel_file.without_comments(TEXT)
        rows = wheel.read(record).decode().splitlines()
    assert rows[1:] == [f"a/__init__.py,{wheel_file._digest(text)},{len(text)}", "a-1.dist-info/RECORD,,"]


def test_headers_of_pythons_that_are_elsewhere(tmp_path):
    """What `--headers` names: of each version that the driver runs in the first folder that is complete."""
    for name in ("a/python3.14", "b/python3.14", "b/python3.9", "b/python3.15t", "b/include"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "Python.h").touch()
    (tmp_path / "b/python3.13").mkdir()
    (tmp_path / "debian/aarch64-linux-gnu/python3.12").mkdir(parents=True)
    (tmp_path / "debian/python3.12").mkdir()
    (tmp_path / "debian/python3.12/Python.h").touch()
    patterns = [f"{tmp_path}/{name}" for name in ("*/python3.*", "b/*", "debian/{}-linux-gnu/python3.12")]
    expected = {12: f"{tmp_path}/debian/python3.12", 14: f"{tmp_path}/a/python3.14"}
    assert dist.python_headers("aarch64", patterns) == expected
