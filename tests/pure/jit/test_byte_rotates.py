"""Which rotates get a fence."""

import re

from cl_driver.device.target import Target
from cl_driver.jit.printed_ir import byte_rotates

TAIL = "  store <8 x i32> %d2, ptr %p\n  ret void\n}\n"


def module(by=16, then=8, operation="xor", other_use=True, other="%e", t="i32", to="%d1"):
    """A rotate of an exclusive or with what was rotated, which is added to something, too."""

    def rotate(name, what, count):
        v = f"<8 x {t}>"
        return f"  {name} = tail call {v} @llvm.fshl.v8{t}({v} {what}, {v} {what}, {v} splat ({t} {count}))\n"

    use = f"  %c = add <8 x {t}> %d1, %b\n  call void @g(<8 x {t}> %c)\n" if other_use else ""
    return (
        f"define void @kernel(ptr %p, <8 x {t}> %a, <8 x {t}> %b, <8 x {t}> %e) {{\nentry:\n"
        + rotate("%d1", "%a", by)
        + use
        + f"  %x = {operation} <8 x {t}> {to}, {other}\n"
        + rotate("%d2", "%x", then)
        + TAIL
    )


def test_a_rotate_of_what_was_rotated():
    made = byte_rotates.fence(module())
    lines = [line.strip() for line in made.split("\n") if "fence" in line]
    assert lines == [
        "%fenced.a.d2 = bitcast <8 x i32> %x to <8 x float>",
        "%fenced.b.d2 = call <8 x float> @llvm.arithmetic.fence.v8f32(<8 x float> %fenced.a.d2)",
        "%fenced.c.d2 = bitcast <8 x float> %fenced.b.d2 to <8 x i32>",
        "%d2 = tail call <8 x i32> @llvm.fshl.v8i32(<8 x i32> %fenced.c.d2, <8 x i32> %fenced.c.d2, "
        "<8 x i32> splat (i32 8))",
        "declare <8 x float> @llvm.arithmetic.fence.v8f32(<8 x float>)",
    ]
    assert "fence.v8f64(<8 x double>" in byte_rotates.fence(module(t="i64", by=40))
    assert byte_rotates.fence(module(operation="or disjoint", to="%b", other="%d1")) is not None
    assert byte_rotates.fence(made) is None, "it has one"


def test_what_needs_none():
    assert byte_rotates.fence(module(other_use=False)) is None, "one of the shuffles goes away"
    assert byte_rotates.fence(module(by=12)) is None, "no shuffle"
    assert byte_rotates.fence(module(then=7)) is None
    assert byte_rotates.fence(module(operation="add")) is None
    assert byte_rotates.fence(module(to="%b")) is None
    assert byte_rotates.fence("declare void @f()\n") is None


def test_names_that_are_there():
    assert "%fenced_.a.d2" in byte_rotates.fence(module().replace("%c", "%fenced.c"))
    assert '%"fenced.a.d 2"' in byte_rotates.fence(module().replace("%d2", '%"d 2"'))


def test_where_it_may_help():
    x86 = "x86_64-unknown-linux-gnu"
    avx2 = Target(x86, ("avx2", "ssse3"), 256)
    assert byte_rotates.may_help(module(), avx2)
    assert byte_rotates.may_help(
        "call <2 x i64> @llvm.fshl.v2i64(%a, %a, <2 x i64> <i64 8, i64 8>)\n" * 2, avx2
    )
    shifts = "  %a = shl <8 x i32> %x, splat (i32 16)\n"
    assert byte_rotates.may_help(shifts * 2, avx2) and not byte_rotates.may_help(shifts, avx2)
    assert not byte_rotates.may_help(re.sub(r"i32 (8|16)\)", "i32 7)", module()), avx2)
    for target in (
        Target(x86, ("avx512f", "ssse3"), 512),
        Target(x86, (), 128),
        Target("aarch64-a-b", (), 128),
    ):
        assert not byte_rotates.may_help(module(), target)
