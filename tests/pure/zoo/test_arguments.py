"""Arguments for kernels of which only the signature is known."""

import numpy as np
import pytest

from tests.zoo import arguments


@pytest.mark.parametrize(
    "name, text, options, expected",
    [
        ("float*", "", "", ("float", 1)),
        ("const uchar4*", "", "", ("uchar", 4)),
        ("unsigned int", "", "", ("uint", 1)),
        ("unsigned", "", "", ("uint", 1)),
        ("real*", "typedef float real;", "", ("float", 1)),
        ("T", "", "-DT=double2 -D U=int", ("double", 2)),
        ("inner*", "typedef struct { int a; } inner;", "", ("", 1)),
        ("a", "typedef b a; typedef a b;", "", ("", 1)),
        ("size_t", "", "", ("size_t", 1)),
    ],
)
def test_a_type_is_found_through_its_names(name, text, options, expected):
    assert arguments.canonical(name, text, options) == expected


def test_contents_are_harmless_and_repeatable():
    floats = arguments.contents("float", "a", 1 << 20)
    assert floats.dtype == np.float32 and floats.nbytes == 1 << 20
    assert 0 < floats.min() and floats.max() < 1
    integers = arguments.contents("int", "a", 1 << 20)
    assert integers.min() == 0 and integers.max() == 31
    assert (arguments.contents("int", "a", 64) == integers[:16]).all()
    assert (arguments.contents("int", "b", 1 << 20) != integers).any()
    assert set(arguments.contents("bool", "a", 1 << 12)) == {0, 1}


def test_a_scalar_is_the_problem_size_as_far_as_it_goes():
    assert arguments.scalar_value("int", 1, 1024) == (1024).to_bytes(4, "little")
    assert arguments.scalar_value("char", 1, 1024) == b"\x7f"
    assert arguments.scalar_value("float", 3, 7) == np.full(4, 0.5, np.float32).tobytes()


TEXT = """
#define BLOCK_SIZE 32
kernel void one(global int *a) { a[get_global_id(0)] = 1; }
__kernel void two(global int *a) { for (;;) a[get_global_id(1)] = 1; }
"""


def test_the_dimensions_are_those_that_the_kernel_asks_for():
    assert arguments.dimensions(TEXT, "one") == 1
    assert arguments.dimensions(TEXT, "two") == 2
    assert arguments.dimensions("kernel void k() {}", "k") == 1


def test_the_local_size_is_required_given_or_named():
    assert arguments.local_size(TEXT, 1, {}, [8, 4, 1]) == [8, 4]
    assert arguments.local_size(TEXT, 1, {1: [128]}, [0, 0, 0]) == [128]
    assert arguments.local_size(TEXT, 2, {}, [0, 0, 0]) == [32, 32]
    assert arguments.local_size("", 2, {}, [0, 0, 0]) == [16, 16]
    assert arguments.local_size("", 1, {}, [0, 0, 0]) == [64]


def test_launches_are_multiples_of_the_local_size():
    for local in ([64], [48], [16, 16], [4, 4, 4]):
        for sizes in arguments.ladder(local, True):
            assert all(size % step == 0 for size, step in zip(sizes.global_size, local, strict=True))
    assert arguments.ladder([64], False)[0].number > arguments.ladder([64], True)[0].number


def test_conditions_decide_which_typedef_counts():
    text = "#if PRECISION == 16\ntypedef half real;\n#elif PRECISION == 32\ntypedef float real;\n#endif\n"
    assert arguments.canonical("real*", arguments.preprocessed(text, "-D PRECISION=32")) == ("float", 1)
    assert arguments.canonical("real*", arguments.preprocessed(text, "-DPRECISION=16")) == ("half", 1)
    assert arguments.preprocessed("#error no\n", "") == "#error no\n"
