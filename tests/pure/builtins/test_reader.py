"""The builtin library's own reader finds in its module what the reader of all modules finds."""

from __future__ import annotations

import pytest

from cl_driver import native
from cl_driver.builtins import build, reader
from cl_driver.spirv.module import Constant, Undef
from cl_driver.spirv.reading import reader as of_all_modules


@pytest.fixture(scope="module")
def modules():
    data = build.update(native.directory() / "builtins.spv").read_bytes()
    return reader.read(data), of_all_modules.read(data)


def described(value):
    """A constant or undefined value, or what such a value is made of, as something that can be compared."""
    if isinstance(value, tuple):
        return [described(part) for part in value]
    return (
        (repr(value.type), described(getattr(value, "value", "undefined")))
        if hasattr(value, "type")
        else value
    )


def constants(module) -> list:
    return [described(value) for value in module.types._constants.values()]


def test_types_and_constants(modules):
    ours, others = modules
    assert list(map(repr, ours.types._types.values())) == list(map(repr, others.types._types.values()))
    assert constants(ours) == constants(others)


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
    ours, others = ({f.name: f for f in module.functions} for module in modules)
    assert list(ours) == list(others) and len(ours) == len(modules[0].functions) > 400
    for name, function in ours.items():
        other = others[name]
        assert (function.linkage, function.control) == (other.linkage, other.control)
        assert repr(function.type) == repr(other.type)
        assert body(function) == body(other), name
