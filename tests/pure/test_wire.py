"""Values as bytes: round trips, and an error of one kind for all else."""

import contextlib
import random

import pytest

from cl_driver import wire

VALUES = [
    *(None, True, False, 0, -1, 1 << 62, -(1 << 63), (1 << 64) - 1, 1 << 200, -(1 << 90), 1.5),
    *("", "text ü", b"", bytes(range(256)), [], [1, [2, [None, "x"]], b"y"], {}),
    *({"a": 1, 2: [b"c"], b"k": {"n": None}}, "\udcff"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_round_trip(value):
    assert wire.decode(wire.encode(value)) == value
    assert type(wire.decode(wire.encode(value))) is type(value)


def test_tuples_become_lists():
    assert wire.decode(wire.encode((1, (2,)))) == [1, [2]]


def test_what_has_no_encoding():
    with pytest.raises(TypeError):
        wire.encode(object())


def test_every_prefix_is_an_error():
    data = wire.encode(VALUES)
    for size in range(len(data)):
        with pytest.raises(wire.WireError):
            wire.decode(data[:size])
    with pytest.raises(wire.WireError):
        wire.decode(data + b"n")


def test_damaged_bytes_give_a_value_or_an_error():
    generate, data = random.Random(5), wire.encode(VALUES)
    for _ in range(20_000):
        damaged = bytearray(data)
        for _ in range(generate.randint(1, 4)):
            damaged[generate.randrange(len(damaged))] = generate.randrange(256)
        with contextlib.suppress(wire.WireError):
            wire.decode(bytes(damaged))


def test_deep_nesting_is_an_error_and_no_recursion():
    with pytest.raises(wire.WireError):
        wire.decode(b"l\1\0\0\0" * 100_000 + b"n")


def test_a_list_longer_than_its_bytes():
    with pytest.raises(wire.WireError):
        wire.decode(b"l\xff\xff\xff\xff")
