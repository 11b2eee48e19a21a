"""Several modules as one byte string."""

import pytest

from cl_driver.jit import bundle

A, B = b"\x03\x02\x23\x07 module a", b"\x03\x02\x23\x07 module b"


def test_one_module_stays_what_it_is():
    assert bundle.pack([(A, {})]) == A
    assert bundle.unpack(A) == [(A, {})]
    assert bundle.join([A]) == A


def test_several_modules():
    both = bundle.join([A, B])
    assert bundle.unpack(both) == [(A, {}), (B, {})]
    assert bundle.unpack(bundle.join([both, A])) == [(A, {}), (B, {}), (A, {})]


def test_specialisation_keeps_what_was_set_before_and_the_last_value_wins():
    once = bundle.specialise(A, {7: b"\1", 3: b"\2\0\0\0"})
    assert bundle.unpack(once) == [(A, {3: b"\2\0\0\0", 7: b"\1"})]
    assert bundle.unpack(bundle.specialise(once, {7: b"\0"})) == [(A, {3: b"\2\0\0\0", 7: b"\0"})]
    assert bundle.specialise(A, {}) == A
    assert bundle.specialise(A, {1: b"a", 2: b"b"}) == bundle.specialise(A, {2: b"b", 1: b"a"})


@pytest.mark.parametrize("rest", [b"", b"n", b"junk", b"l\1\0\0\0n", b"l\1\0\0\0l\1\0\0\0n",
                                  b"l\1\0\0\0l\2\0\0\0nn"])  # fmt: skip
def test_a_malformed_container(rest):
    with pytest.raises(bundle.BundleError):
        bundle.unpack(bundle.MAGIC + rest)
