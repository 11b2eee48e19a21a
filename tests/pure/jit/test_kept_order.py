"""Which blocks get labels that LLVM's scheduler moves nothing past, and where."""

import pytest

from cl_driver.device.target import make_target
from cl_driver.jit.printed_ir import kept_order
from tests.cpus import SKYLAKE

TARGET = make_target(SKYLAKE, "x86-64-v3")  # 16 registers
MASKS = make_target(SKYLAKE, "x86-64-v4")  # 32
V = "<8 x float>"


def module(lines, phis=()):
    """A loop of one block."""
    body = "\n".join(f"  {line}" for line in [*phis, *lines])
    return (
        f"define void @kernel(ptr %p, {V} %a, i1 %c) #0 {{\nentry:\n  br label %loop\n\nloop:\n{body}\n"
        "  br i1 %c, label %loop, label %end\n\nend:\n  ret void\n}\n"
    )


def one_by_one(count, steps):
    """So many vectors, each of which goes through all steps before the next one is begun."""
    phis = [f"%x{k}.0 = phi {V} [ %a, %entry ], [ %x{k}.{steps}, %loop ]" for k in range(count)]
    lines = []
    for k in range(count):
        lines += [f"%x{k}.{step + 1} = fadd {V} %x{k}.{step}, %a" for step in range(steps)]
    return phis, lines


def together(count, steps):
    """The same, and sums of so many products that live side by side."""
    phis, lines = one_by_one(40, steps)
    lines += [f"%y{k} = fmul {V} %x{k % 40}.1, %a" for k in range(count)]
    lines += [f"%z{k} = fadd {V} %y{k}, %a" for k in range(count)]
    return phis, lines


def labelled(phis, lines, target=TARGET):
    return kept_order.keep(module(lines, phis), target)


def places(made):
    """The lines of labels."""
    return [number for number, line in enumerate(made.split("\n")) if line == kept_order._LABEL]


def test_labels_are_apart_and_nothing_is_lost():
    phis, lines = one_by_one(40, 6)
    made = labelled(phis, lines)
    found = places(made)
    assert len(found) == 240 // kept_order.APART
    assert {b - a for a, b in zip(found, found[1:], strict=False)} == {kept_order.APART + 1}
    rest = "\n".join(line for line in made.split("\n") if line != kept_order._LABEL)
    assert rest == f"{module(lines, phis)}\n{kept_order._DECLARATION}\n"


def test_no_label_is_between_a_load_and_its_use():
    phis, lines = one_by_one(40, 6)
    cut = labelled(phis, lines).split("\n")
    at = places("\n".join(cut))[0] - 3 - len(phis) - 5
    load = [f"%l = load {V}, ptr %p, align 4", *(f"%i{k} = add i32 %i, {k}" for k in range(20)),
            f"%u = fadd {V} %l, %a"]  # fmt: skip
    made = labelled(phis, [*lines[:at], *load, *lines[at:]]).split("\n")
    first = places("\n".join(made))[0]
    assert made.index(f"  {load[-1]}") < first < made.index(f"  {load[-1]}") + kept_order.APART


def test_no_label_is_in_a_switch(monkeypatch):
    monkeypatch.setattr(kept_order, "APART", 0)
    cases = "\n".join(f"    i32 {k}, label %loop" for k in range(9))
    switch = f"  switch i32 %n, label %end [\n{cases}\n  ]\n"
    phis, lines = one_by_one(40, 6)
    text = module(lines, phis).replace("  br i1 %c, label %loop, label %end\n", switch)
    made = kept_order.keep(text, TARGET)
    assert switch in made and len(places(made)) == 241


@pytest.mark.parametrize(("count", "target", "helps"), [
    (20, TARGET, True), (15, TARGET, False), (20, MASKS, False), (40, MASKS, True),
])  # fmt: skip
def test_only_where_registers_run_out(count, target, helps):
    # What a block is given and what it leaves is two registers for each.
    assert (labelled(*one_by_one(count, 20), target) is not None) == helps


def test_only_where_the_order_is_good():
    assert labelled(*together(7, 6)) is not None
    assert labelled(*together(12, 6)) is None
    assert labelled(*together(12, 6), MASKS) is not None
    assert labelled(*together(20, 6), MASKS) is None


def test_only_where_there_are_several_steps():
    assert labelled(*one_by_one(80, 3)) is None
    assert labelled(*one_by_one(80, 5)) is not None


def test_short_blocks_stay():
    assert labelled(*one_by_one(30, 4)) is None


def test_loads_after_stores_keep_the_order_themselves():
    phis, lines = one_by_one(40, 6)
    store, load = f"store {V} %x0.1, ptr %p, align 4", f"%l = load {V}, ptr %p, align 4"
    assert labelled(phis, [*lines, load, store]) is not None
    assert labelled(phis, [*lines, store, load]) is None


@pytest.mark.parametrize(("mask", "is_splat"), [
    ("zeroinitializer", True), ("splat (i32 1)", True), ("<i32 2, i32 2, i32 2, i32 2>", True),
    ("<i32 0, i32 1, i32 2, i32 2>", False),
])  # fmt: skip
def test_what_loads_repeat_takes_no_register(mask, is_splat):
    phis, lines = one_by_one(40, 6)
    splats = ["%l = load <4 x float>, ptr %p, align 4"]
    splats += [
        f"%s{k} = shufflevector <4 x float> %l, <4 x float> poison, <8 x i32> {mask}" for k in range(40)
    ]
    splats += [f"%t{k} = fadd {V} %s{k}, %a" for k in range(40)]
    assert labelled(phis, [*lines, *splats]) is None, "no such operands"
    assert (labelled(phis, [*lines, *splats], MASKS) is not None) == is_splat


def test_shuffles_take_registers_for_where_lanes_come_from():
    phis, lines = one_by_one(40, 6)
    shuffle = "%s{0} = shufflevector {1} %a, {1} poison, <8 x i32> <i32 1, i32 0, i32 {0}, i32 0>"
    shuffles = [shuffle.format(k, V) for k in range(20)]
    assert labelled(phis, [*lines, *shuffles[:7]]) is not None
    assert labelled(phis, [*lines, *shuffles]) is None
    assert labelled(phis, [*lines, *shuffles[:1] * 20]) is not None, "one constant"
