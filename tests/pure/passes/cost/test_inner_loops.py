"""Kernels of which each work-item goes through memory of its own get no lanes: their loops become vectors."""

import pytest

from cl_driver.device.target import Target
from cl_driver.passes.analysis.sums import Sums
from cl_driver.passes.cost.one_item import prefers_one
from cl_driver.passes.cost.work import PlanCosts
from cl_driver.spirv.enums import Op

from ..support import compile_cl, make_plan

HEAD = (
    "kernel void k(global float *a, global float *b, global float *c, global int *at, int n, local float *l) "
    "{ int i = get_global_id(0); "
)


def prefers(source, width=8, **options):
    plan = make_plan(compile_cl(source), "k", width=width, **options)
    return prefers_one(PlanCosts(plan, Target("x86_64-unknown-linux-gnu", (), 256)))


def of(body, **options):
    return prefers(f"{HEAD} {body} }}", **options)


def row(statement, start="0", step="j++"):
    return f"for (int j = {start}; j < n; {step}) {statement}"


ROW = row("b[i * n + j] = a[i * n + j] * 2;")


@pytest.mark.parametrize(
    "body",
    [
        ROW,
        f"if (i < n) {ROW}",
        row("b[i * n + j] = a[i * n + j] * 2;", start="i"),  # lanes begin at places of their own
        row("b[i * n + n - j] = fma(a[i * n + n - j], c[i * n + n - j], 1.0f);"),
        row("a[i * n + j] += c[j] * b[i * n + j];"),
        row("a[i * n + j] = a[i * n + j + 1] + b[i * n];"),  # reads what later iterations write
        "for (int j = 0; j < 1000; j++) b[i * 1000 + j] = a[i * 1000 + j] / 3;",
        f"for (int r = 0; r < 100; r++) {row('b[i * n + j] = a[i * n + j] * r;')}",
        "int k = i * n; " + row("{ b[k] = a[k] * c[j]; k++; }"),  # two counters
        "int s = 0; " + row("s += at[i * n + j] * at[j];") + " at[i] = s;",  # integers, added up in any order
        "int s = 0, t = -1; " + row("{ s += at[i * n + j]; t &= at[i * n + j + 1]; }") + " at[i] = s ^ t;",
    ],
)
def test_rows_of_work_items(body):
    assert of(body)
    assert not of(body, width=1)


@pytest.mark.parametrize(
    "body, why",
    [
        (row("b[j * n + i] = a[j * n + i];"), "neighbours' elements follow one another"),
        (row("b[i * n + j] = a[j * n + i] + c[j * n + i];"), "columns are read"),
        (row("b[i * n + j + 1] = b[i * n + j] * 2;"), "reads what the iteration before wrote"),
        (row("b[(n - i) * n - j] = b[(n - i) * n - j + 2];"), "the same, downwards"),
        (row("{ a[i * n + j] = j; a[i * n + j + 1] = 0; }"), "iterations write the same place"),
        ("float s = 0;" + row("{ s += a[i * n + j]; b[i * n + j] = s; }"), "a sum is carried along"),
        ("float s = 0;" + row("s += a[i * n + j];") + "b[i] = s;", "nothing is written in it"),
        ("int s = 0;" + row("s = s * 3 + at[i * n + j];") + "at[i] = s;", "an order"),
        ("int s = 0;" + row("{ s += at[i * n + j]; at[i * n + j] = s; }"), "each sum is needed"),
        ("int s = 0, t = 0;" + row("{ s += at[i * n + j]; t += s; }") + "at[i] = t;", "a sum of sums"),
        ("int s = 0;" + row("s += at[j * n + i];") + "at[i] = s;", "columns are added up"),
        (row("b[i * n + j] = a[at[j]];"), "anything is read"),
        ("int k = i * n; " + row("{ b[k] = a[k] * c[j]; k += 3; }"), "a counter takes longer steps"),
        (row("b[i * n + j] = a[i * n + j];", step="j += 2"), "not each element"),
        (row("at[i * n + j] = at[i * n + j] / (j + 1);"), "division of integers"),
        (row("b[i * n] = a[i * n + j];"), "always the same place"),
        (row("((volatile global float *)b)[i * n + j] = 1;"), "volatile"),
        (row("atomic_inc(at + i * n + j);"), "atomics"),
        (row("if (a[i * n + j] > 1) b[i * n + j] = 1;"), "some elements"),
        (row("b[i * n + j] = j;") + "l[i] = 0; barrier(1); b[i] = l[n - i];", "a barrier"),
        ("b[i] = a[i];", "no loop"),
        (f"float s = 0; for (int r = 0; r < n; r++) s = sin(s) * exp(s + r); {ROW} c[i] = s;", "other work"),
    ],
)  # fmt: skip
def test_lanes_stay(body, why):
    assert not of(body), why


def test_more_arrays_than_are_compared():
    """LLVM does not look for overlaps of any number of arrays."""
    arrays = ", ".join(f"global float *a{n}" for n in range(12))
    for count, expected in ((2, True), (12, False)):
        total = " + ".join(f"a{n}[i * n + j]" for n in range(1, count))
        source = (
            f"kernel void k({arrays}, int n) {{ int i = get_global_id(0);"
            f" for (int j = 0; j < n; j++) a0[i * n + j] = {total}; }}"
        )
        assert prefers(source) is expected


def test_it_says_why():
    from cl_driver.passes.ir.remarks import Remarks

    remarks = Remarks()
    assert of(ROW, remarks=remarks)
    assert "goes through memory of its own" in remarks.choices["width"]


@pytest.mark.parametrize(
    "index, factors, constant",
    [
        ("i * 3 + n - 7", [1, 4, 12], -28),
        ("(i << 2) - 2 * n", [-8, 1, 16], 0),
        ("i - i + 5", [1], 20),
        ("i * n", [1, 4], 0),  # a product is one value
    ],
)
def test_sums(index, factors, constant):
    body = f"global float *p = a + ({index}); *p = 1;"
    (region,) = make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=8).regions
    (store,) = (i for b in region.function.blocks for i in b.instructions if i.op is Op.Store)
    found = Sums().of(store.operands[0])
    assert sorted(found.factors.values()) == factors
    assert found.constant == constant
