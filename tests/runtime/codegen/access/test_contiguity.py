"""Accesses of which only execution shows that they are contiguous: both ways of making them give what one
work-item at a time gives, and the question is asked where it pays."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.versioning import emit_versions
from tests.marks import few_rows
from tests.runtime.kernel_harness import Program, compile_c

KERNEL = """
typedef {of} T;
kernel void k(global T *a, global const T *b, int n, uint m) {{
  int i = get_global_id(0);
  uint u = i;
  {body}
}}
"""
ITEMS = 200
# Body: the index of each element that is read, and of each that is written, if it is.
BODIES = {
    "int": ("a[i + n * 0 + n] = b[i * 1 + n];", lambda i, n, m: (i + n, i + n, None)),
    "apart": ("a[2 * u + n] = b[3 * u - n + 48];", lambda i, n, m: (3 * i - n + 48, 2 * i + n, None)),
    "uint that wraps": ("if (u >= m) a[u - m] = b[u - m + n];", lambda i, n, m: (i - m + n, i - m, i >= m)),
    "bits": ("a[i & m] = b[i & m];", lambda i, n, m: (i & m, i & m, None)),
    "turned": ("a[i ^ m] = b[i ^ m];", lambda i, n, m: (i ^ m, i ^ m, None)),
    "remainder": ("a[u % m] = b[(u + n) % m];", lambda i, n, m: ((i + n) % m, i % m, None)),
    "masked": ("if ({first} > 3) a[i & m] = b[i | m];", lambda i, n, m: (i | m, i & m, "b")),
    "chosen": ("int j = n > 3 ? i ^ 1 : i; a[j] = b[j];", lambda i, n, m: (i ^ (n > 3), i ^ (n > 3), None)),
}
TYPES = {
    "float": (np.float32, 1),
    "float2": (np.float32, 2),
    "uchar": (np.uint8, 1),
    "double": (np.float64, 1),
}


@pytest.fixture(scope="module", params=TYPES)
def programs(request):
    of = request.param
    first = "b[i].x" if of == "float2" else "b[i]"
    bodies = {name: body.replace("{first}", first) for name, (body, _) in BODIES.items()}
    return of, {name: compile_c(KERNEL.format(of=of, body=body)) for name, body in bodies.items()}


@pytest.mark.parametrize("width, parts, axis", few_rows([(8, 1, 0), (16, 2, 1), (16, 2, 0)], 2))
@pytest.mark.parametrize("body", BODIES)
def test_both_ways(programs, body, width, parts, axis):
    of, compiled = programs
    element, count = TYPES[of]
    program = Program(compiled[body], width=width, parts=parts, part_axis=axis)
    b = np.random.default_rng(1).integers(0, 8, (4 * 256, count)).astype(element)
    for n, m in ((0, 1), (0, 5), (3, 7), (32, 8), (4, 16), (16, 15), (48, 64), (5, 255), (0, 240), (0, 256)):
        a = np.zeros((4 * 256, count), element)
        program.run("k", ITEMS, 40, a, b, np.int32(n), np.uint32(m))
        expected = np.zeros_like(a)
        for i in range(ITEMS):
            read, write, where = BODIES[body][1](i, n, m)
            if where is None or (b[i, 0] > 3 if where == "b" else where):
                expected[write] = b[read]
        if body in ("bits", "remainder", "masked"):  # several work-items may write one element
            written = {BODIES[body][1](i, n, m)[1] for i in range(ITEMS)}
            assert not a[[k for k in range(len(a)) if k not in written]].any()
            if (m & (m + 1)) == 0 and body == "bits":
                np.testing.assert_array_equal(a, expected)
            continue
        np.testing.assert_array_equal(a, expected, f"{n} {m}")


def test_the_question_is_asked(monkeypatch):
    """Once per access of the kernel, and not where a table or a product is the index."""
    asked = []

    def count(e, condition, *rest):
        asked.append(condition)
        return emit_versions(e, condition, *rest)

    for table in ("loads", "stores"):
        monkeypatch.setattr(f"cl_driver.codegen.access.{table}.emit_versions", count)
    for body, some in (
        ("a[i ^ m] = b[i & m];", True),
        ("a[i] = b[(int)b[i]];", False),
        ("a[i * n] = 3;", False),
    ):
        asked.clear()
        program = Program(compile_c(KERNEL.format(of="float", body=body)), width=8)
        program.run("k", 16, 16, np.zeros(64, "f4"), np.zeros(64, "f4"), np.int32(1), np.uint32(3))
        assert bool(asked) == some, body
