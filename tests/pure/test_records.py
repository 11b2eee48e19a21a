"""Classes of named fields behave as dataclasses do, which they are instead of."""

import copy
import dataclasses
import pickle
import subprocess
import sys

import pytest

from cl_driver import records
from tests.conftest import ROOT


@records.record(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    note: str = records.field(default="", compare=False, repr=False)


@records.record(slots=True)
class Path:
    start: Point
    others: list[Point] = records.field(default_factory=list)


@records.record(slots=True)
class Named(Path):
    name: str = "n"


@records.record(eq=False)
class Node:
    value: int
    next: "Node | None" = None

    def double(self) -> int:
        return 2 * self.value


@records.record()
class Plain:
    a: int
    b: int = 1


def test_fields_have_defaults_and_order():
    assert (Point(1).x, Point(1).y, Point(1, 5).y, Point(y=3, x=1).y) == (1, 2, 5, 3)
    assert Path(Point(1)).others == [] and Path(Point(1)).others is not Path(Point(1)).others
    assert Path(Point(1), [Point(2)]).others == [Point(2)]
    assert Named(Point(1), [], "m").name == "m" and Named(Point(1)).name == "n"
    assert Node(2).double() == 4 and Node(1, Node(2)).next.value == 2
    for wrong in (lambda: Point(), lambda: Point(1, 2, "", 4), lambda: Point(1, z=1)):
        with pytest.raises(TypeError):
            wrong()


def test_equality_and_hashes():
    assert Point(1, note="a") == Point(1, note="b") and hash(Point(1, note="a")) == hash(Point(1))
    assert Point(1) != Point(2) and Point(1) != (1, 2)
    assert Plain(1) == Plain(1, 1) and Path(Point(1)) == Path(Point(1)) and Path(Point(1)) != Named(Point(1))
    assert Node(1) != Node(1) and len({Node(1), Node(1)}) == 2
    with pytest.raises(TypeError):
        hash(Plain(1))


def test_frozen_ones_and_slots():
    with pytest.raises(AttributeError):
        Point(1).x = 2
    with pytest.raises(AttributeError):
        Path(Point(1)).z = 2
    path = Path(Point(1))
    path.start = Point(3)
    assert path.start.x == 3 and not hasattr(path, "__dict__")


def test_replace_copy_and_show():
    assert records.replace(Point(1, note="a"), y=9).note == "a"
    assert copy.copy(Point(1, 5)) == Point(1, 5) == pickle.loads(pickle.dumps(Point(1, 5)))
    assert copy.deepcopy(Named(Point(1), [Point(2)])) == Named(Point(1), [Point(2)])
    assert repr(Point(1, note="a")) == repr(dataclasses.make_dataclass("Point", ["x", "y"])(1, 2))
    assert repr(Plain(1)) == "Plain(a=1, b=1)"


def test_compiler_processes_start_without_what_they_do_not_need():
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.path += {[path for path in sys.path if path]!r}
from cl_driver.service import fork_server, jobs
jobs.warm_up()
print(*[name for name in ("dataclasses", "inspect", "ast", "tokenize", "json", "tempfile", "urllib.parse")
        if name in sys.modules])
"""
    command = [sys.executable, "-I", "-S", "-c", script]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []
