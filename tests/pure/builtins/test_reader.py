"""The builtin library's own reader finds in its module what the reader of all modules finds."""

from __future__ import annotations

import marshal

import pytest

from cl_driver import native
from cl_driver.builtins import build, load_places, reader
from cl_driver.spirv.module import Constant, Undef, Variable
from cl_driver.spirv.reading import reader as of_all_modules


@pytest.fixture(scope="module", params=("found", "written down"))
def modules(request):
    """All of it by one, with places that it finds or that are written down, and by the other."""
    data = build.update(native.directory() / "builtins.spv").read_bytes()
    places = b"" if request.param == "found" else load_places()
    ours = reader.LibraryReader(data, places)
    assert ours.recalls == bool(places)
    return ours, of_all_modules.read(data)


def described(value):
    """A constant or undefined value, or what such a value is made of, as something that can be compared."""
    if isinstance(value, tuple):
        return [described(part) for part in value]
    return (
        (repr(value.type), described(getattr(value, "value", "undefined")))
        if hasattr(value, "type")
        else value
    )


def test_types(modules):
    ours, others = modules
    assert list(map(repr, ours.table._types.values())) == list(map(repr, others.types._types.values()))


def operand(value, numbers: dict):
    """An operand as something that can be compared: what the body defines by its number."""
    if value in numbers:
        return numbers[value]
    if isinstance(value, (Constant, Undef)):
        return described(value)
    return value if isinstance(value, (int, str)) else getattr(value, "name", type(value))


def body(function) -> list:
    values = [*function.arguments, *(i for block in function.blocks for i in block.instructions)]
    numbers = {value: number for number, value in enumerate(values)}
    return [
        (i.op, repr(i.type), i.decorations, [operand(o, numbers) for o in i.operands])
        for block in function.blocks
        for i in block.instructions
    ]


def test_functions(modules):
    ours, others = modules
    named = {f.name: f for f in others.functions if f.linkage}
    assert len(named) > 400 and set(named) == {name for name in named if ours.has(name)}
    for name, other in named.items():
        function = ours.function_named(name)
        assert (function.name, function.linkage, function.control) == (name, other.linkage, other.control)
        assert repr(function.type) == repr(other.type)
        assert body(function) == body(other), name
    assert ours.function_named(name) is function
    assert not ours.has("no_such_function") and ours.function_named("no_such_function") is None


def test_only_what_is_asked_for_is_made(modules):
    data = build.update(native.directory() / "builtins.spv").read_bytes()
    ours, (_, others) = reader.LibraryReader(data), modules
    assert not ours.module.functions and not ours.module.variables
    assert len(ours.values) < 50 < len(others.readers[0].values)
    asked = next(f for f in others.functions if f.linkage)
    ours.function_named(asked.name)
    assert [f.name for f in ours.module.functions] == [asked.name]


def test_what_constants_and_variables_are(modules):
    ours, others = modules
    for id_, value in others.readers[0].values.items():
        mine = ours.values[id_]
        if isinstance(value, (Constant, Undef)):
            assert described(mine) == described(value)
        elif isinstance(value, Variable):
            assert repr(mine.type) == repr(value.type) and described(mine.initializer) == described(
                value.initializer
            )
        else:
            assert mine.name == value.name or not value.linkage


def test_places_in_another_module_are_not_believed():
    data = build.update(native.directory() / "builtins.spv").read_bytes()
    places = reader.LibraryReader(data).written_down()
    assert places == load_places()
    other = data[:8] + b"\1" + data[9:]  # another generator
    assert reader.LibraryReader(data, places).recalls and not reader.LibraryReader(other, places).recalls
    for wrong in (b"", places[:100], b"x", marshal.dumps(1), marshal.dumps((1, 2, 3, 4, 5))):
        assert not reader.LibraryReader(data, wrong).recalls
        assert reader.LibraryReader(data, wrong).written_down() == places
