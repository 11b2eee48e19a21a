"""Messages of the door, in Python."""

import random

import pytest

from cl_driver.door.codec import decode, encode
from cl_driver.wire import WireError


def test_round_trip():
    values = [0, -1, 2**63 - 1, -(2**63), b"", b"\0\xff" * 100, None, [], [1, [b"x", None, [[]]]]]
    assert decode(encode(values)) == values


def test_what_becomes_something_else():
    assert decode(encode([True, 2**64 - 1, "\N{GREEK SMALL LETTER ALPHA}", (1,), bytearray(b"y")])) == [
        1,
        -1,  # unsigned values travel by their bits
        b"\xce\xb1",
        [1],
        b"y",
    ]
    assert decode(encode([memoryview(b"z"), "\udcff"])) == [b"z", b"\xff"]


def test_layout():
    """native_shim/src/base/codec.h"""
    assert encode([1]) == b"i\1\0\0\0\0\0\0\0"
    assert encode([b"ab"]) == b"b\2\0\0\0\0\0\0\0ab"
    assert encode([[None]]) == b"l\1\0\0\0n"


def test_what_cannot_pass():
    for value in (1.5, {}, {1}, object()):
        with pytest.raises(WireError):
            encode([value])


def test_malformed_messages_are_refused():
    message = encode([1, b"abc", [1, None, [b"x"]]])
    for size in range(len(message)):
        try:
            decode(message[:size])
        except WireError:
            continue
        assert size in (0, 9, 21)  # between values
    for text in (
        b"q",
        b"t",  # which wire.py has, and C has not
        b"i\0",
        b"b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"l\xff\xff\xff\xff",
        b"l\1\0\0\0" * 100000,
    ):
        with pytest.raises(WireError):
            decode(text)
    generator = random.Random(1)
    for _ in range(5000):
        damaged = bytearray(message)
        for _ in range(3):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        try:
            decode(bytes(damaged))
        except WireError:
            continue
