"""Classes of named fields behave as dataclasses do, which they are instead of; stand-ins for what typing has
as that does; and processes that compile need none of these, nor re."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import typing

import pytest

from cl_driver import fast_typing, records
from cl_driver.late_patterns import pattern
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


# What a compiler process has imported before it has a program.
LOADED = """
import sys
from cl_driver.service import forks, worker
from cl_driver.compiler import pipeline
from cl_driver.jit import emit
pipeline.library()
print(*sys.modules)
"""


class Place(fast_typing.NamedTuple):
    file: str
    line: int = 1
    column: int = 0

    @property
    def shown(self) -> str:
        return f"{self.file}:{self.line}"

    def below(self) -> "Place":
        return self._replace(line=self.line + 1)


class Same(typing.NamedTuple):
    file: str
    line: int = 1
    column: int = 0


class Side(fast_typing.Enum):
    LEFT = ""
    RIGHT = "-r"


class Alone(fast_typing.NamedTuple):
    only: int


def test_tuples_are_made_as_those_of_typing():
    for make in (Place, Same):
        assert make("a") == ("a", 1, 0) == make(file="a") and make("a", 2, 3) == make("a", column=3, line=2)
        for wrong in (lambda make=make: make(), lambda make=make: make("a", 1, 2, 3)):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(TypeError):
            make("a", row=1)
        assert make._fields == ("file", "line", "column") == make.__match_args__
    assert repr(Place("a")) == repr(Same("a")).replace("Same", "Place")
    assert Alone(4) == (4,) and Alone(only=4).only == 4


def test_tuples_have_their_methods():
    place = Place("a", 2)
    assert isinstance(place, Place) and isinstance(place, tuple) and hash(place) == hash(("a", 2, 0))
    assert (place.shown, place.below(), type(place.below())) == ("a:2", ("a", 3, 0), Place)
    file, line, _ = place
    assert (file, line, place[1]) == ("a", 2, 2)
    with pytest.raises(AttributeError):
        place.line = 3
    with pytest.raises(AttributeError):
        place.row = 3
    with pytest.raises(ValueError):
        place._replace(row=3)
    match place:
        case Place("a", line):
            assert line == 2


def test_tuples_are_copied():
    place = Place("a", 2)
    for made in (copy.copy(place), copy.deepcopy(place), pickle.loads(pickle.dumps(place))):
        assert made == place and type(made) is Place


def test_enumerations():
    assert list(Side) == [Side.LEFT, Side.RIGHT] == list(reversed(list(reversed(Side))))
    assert (Side.RIGHT.name, Side.RIGHT.value, repr(Side.RIGHT)) == ("RIGHT", "-r", "Side.RIGHT")
    assert Side.LEFT is Side.LEFT and Side.LEFT != Side.RIGHT and isinstance(Side.LEFT, Side)
    assert {Side.LEFT: 1, Side.RIGHT: 2}[Side.RIGHT] == 2


def test_late_patterns_are_as_those_of_re():
    late = pattern(r"(?m)^a(\d+)$")
    assert late.search("b\na12\n")[1] == "12" and late.search("a") is None
    assert late.sub(r"\1", "a1\na2") == "1\n2" and late.findall("a1\na2") == ["1", "2"]
    with pytest.raises(AttributeError):
        late.no_such_method  # noqa: B018


def test_compiler_processes_need_neither_typing_nor_re():
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{LOADED}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.split()
    assert "cl_driver.late_patterns" in loaded
    assert not {"typing", "re", "enum", "dataclasses", "signal"}.intersection(loaded)
