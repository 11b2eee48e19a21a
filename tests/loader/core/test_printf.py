"""printf of compiled kernels, as it arrives at the host's stdout (OpenCL C 6.15.14)."""

import numpy as np
import pytest

from .session import Local

# (format and arguments as OpenCL C, what is printed)
LINES = [
    ('"%d|%5d|%-5d|%05d|%+d|% d", 42, 42, 42, 42, 42, 42', "42|   42|42   |00042|+42| 42"),
    ('"%i %u %o %x %X %#x %#o", -7, 4000000000u, 64, 48879, 48879, 255, 8',
     "-7 4000000000 100 beef BEEF 0xff 010"),
    ('"%hhd %hd %ld %lu", (char)-5, (short)-300, -5000000000L, 18446744073709551615UL',
     "-5 -300 -5000000000 18446744073709551615"),
    ('"%zu|%zd|%-12zx|%#zo|%ti|%+td|%tX", (size_t)-1, (size_t)-5, (size_t)1 << 40, (size_t)8,'
     ' (ptrdiff_t)-5000000000, (ptrdiff_t)7, (ptrdiff_t)-1',
     "18446744073709551615|-5|10000000000 |010|-5000000000|+7|FFFFFFFFFFFFFFFF"),
    ('"%.3f|%10.2f|%-10.1f|%e|%g|%g", 3.14159f, 2.5f, 2.5f, 12345.678f, 1e-7f, 100000.0f',
     "3.142|      2.50|2.5       |1.234568e+04|1e-07|100000"),
    ('"%f %F %f %a", INFINITY, -INFINITY, NAN, 1.0f', "inf -INF nan 0x1p+0"),
    ('"%c%c%c|%s|%10s|%-6s|%.2s|%%", 79, 75, 33, "text", "right", "left", "cut"',
     "OK!|text|     right|left  |cu|%"),
    ('"%v4d|%v2hlf|%v3hhu", (int4)(1, -2, 3, -4), (float2)(1.5f, -0.25f), (uchar3)(1, 200, 255)',
     "1,-2,3,-4|1.500000,-0.250000|1,200,255"),
    ('"%v4hlx|%#v2lx|%8.2v2hlf|", (uint4)(10, 11, 12, 255), (ulong2)(16, 1UL << 40), (float2)(1, 2)',
     "a,b,c,ff|0x10,0x10000000000|    1.00,    2.00|"),
    ('"%v8hd %v16hhx", (short8)(-1), (char16)(0x7f)', ",".join(["-1"] * 8) + " " + ",".join(["7f"] * 16)),
    ('"%d %s %d", 1, "nested \\"quotes\\" and \\ttabs\\\\", 2', '1 nested "quotes" and \ttabs\\ 2'),
    ('"%lf %.2lf", 1.0 / 3, -2.0 / 3', "0.333333 -0.67"),
    ('"no arguments"', "no arguments"),
]  # fmt: skip


@pytest.mark.parametrize("call, expected", LINES, ids=range(len(LINES)))
def test_conversions(session, capfd, call, expected):
    session.launch(session.kernel(f'kernel void k(void) {{ printf({call}); printf("\\n"); }}'), 1)
    session.finish()
    assert capfd.readouterr().out == expected + "\n"


def test_pointers(session, capfd):
    source = 'kernel void k(global int *p, local int *l) { int a; printf("%p|%p|%d", p, l, &a != (int *)0); }'
    session.launch(session.kernel(source), 1, session.buffer(64), Local(16))
    session.finish()
    pointers = capfd.readouterr().out.split("|")
    assert int(pointers[0], 16) % 64 == 0 and int(pointers[1], 16) > 0 and pointers[2] == "1"


def test_the_result(session):
    """0 where it was printed."""
    assert session.compute('kernel void k(global int *out) { *out = printf(""); }', 1, np.int32, 1) == [0]


def test_null_pointers(session, capfd):
    """Of a string it is told; with a format nothing is printed, and the result of each lane says so."""
    source = """kernel void k(global int *out, constant char *none) {
        int i = get_global_id(0); out[i] = printf(i % 3 ? "<%s>" : none, none); }"""
    results = session.compute(source, 30, np.int32, 30, np.uint64(0))
    session.finish()
    assert list(results) == [0 if i % 3 else -1 for i in range(30)]
    assert capfd.readouterr().out == "<(null)>" * 20


def test_lines_of_work_items_are_whole(session, capfd):
    """Every work-item's call is printed once, and in one piece, in any order."""
    source = """kernel void k(void) {
        int i = get_global_id(0); if (i % 3) printf("<%d:%s:%d>\\n", i, i % 2 ? "odd" : "even", -i); }"""
    session.launch(session.kernel(source), 1000, local=8)
    session.finish()
    expected = {f"<{i}:{'odd' if i % 2 else 'even'}:{-i}>" for i in range(1000) if i % 3}
    lines = capfd.readouterr().out.splitlines()
    assert set(lines) == expected and len(lines) == len(expected)


def test_everything_is_there_when_the_command_is_complete(session, capfd):
    """ "When the event that is associated with a particular kernel invocation is completed, the output of all
    printf() calls [...] is flushed", in the order of the kernels."""
    kernel = session.kernel('kernel void k(int n) { printf("%d\\n", n); }')
    for number in range(5):
        session.launch(kernel, 1, np.int32(number))
    session.finish()
    assert capfd.readouterr().out == "0\n1\n2\n3\n4\n"
