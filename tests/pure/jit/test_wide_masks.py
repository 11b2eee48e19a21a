"""Which masks are passed on as integers, and that all who use them know of it."""

import re

from cl_driver.device.target import Target
from cl_driver.jit.printed_ir import wide_masks

HEAD = "define void @kernel(ptr %p, <8 x float> %x, <8 x i1> %outer) #0 {\nentry:\n"
TAIL = "\nend:\n  ret void\n}\n"
LOOP = """  br label %loop

loop:{preds}
  %live = phi <8 x i1> [ {first}, %entry ], [ %more, %body ]
  %n = phi i32 [ 0, %entry ], [ %n1, %body ]
  %y = load <8 x {t}>, ptr %p, align 4
  br label %body

body:
  %c = {compare} <8 x {t}> %y, zeroinitializer
{operation}
  %n1 = add i32 %n, 1
  %bits = bitcast <8 x i1> %more to i8
  %any = icmp ne i8 %bits, 0
  br i1 %any, label %loop, label %end
"""


def loop(
    operation="  %more = and <8 x i1> %live, %c", first="splat (i1 true)", t="float", compare="fcmp olt",
    preds=" ; preds = %body, %entry",
):  # fmt: skip
    return HEAD + LOOP.format(operation=operation, first=first, t=t, compare=compare, preds=preds) + TAIL


def lines(text):
    """What is said of masks, without what is not."""
    made = wide_masks.widen(text, 256)
    assert made is not None
    return [line.strip() for line in made.split("\n") if "wide" in line]


def test_a_mask_of_a_loop():
    assert lines(loop()) == [
        "%wide.mask.live = phi <8 x i32> [ splat (i32 -1), %entry ], [ %wide.mask.more, %body ]",
        "%live = icmp slt <8 x i32> %wide.mask.live, zeroinitializer",
        "%wide.mask.c = sext <8 x i1> %c to <8 x i32>",
        "%wide.mask.more = and <8 x i32> %wide.mask.live, %wide.mask.c",
        "%more = icmp slt <8 x i32> %wide.mask.more, zeroinitializer",
    ]
    made = wide_masks.widen(loop(), 256)
    phis = re.search(r"loop:.*\n((?:  .*\n)*)", made)[1].split("\n")
    assert [" = phi " in line for line in phis] == [True, True, False, False, False, False], "they come first"


def test_arguments_and_constants():
    made = lines(loop(first="%outer"))
    assert made[0] == "%wide.mask.outer = sext <8 x i1> %outer to <8 x i32>"
    assert "[ %wide.mask.outer, %entry ]" in made[1]
    constant = "<i1 true, i1 false, i1 poison, i1 true, i1 true, i1 true, i1 true, i1 false>"
    assert "<i32 -1, i32 0, i32 poison, i32 -1," in lines(loop(first=constant))[0]
    assert "[ zeroinitializer, %entry ]" in lines(loop(first="zeroinitializer"))[0]
    assert "[ poison, %entry ]" in lines(loop(first="poison"))[0]


def test_operations():
    made = lines(loop("  %o = or disjoint <8 x i1> %c, %outer, !dbg !7\n  %f = freeze <8 x i1> %o\n"
                      "  %x1 = xor <8 x i1> %f, splat (i1 true)\n"
                      "  %more = and <8 x i1> %live, %x1"))  # fmt: skip
    assert "%wide.mask.o = or <8 x i32> %wide.mask.c, %wide.mask.outer, !dbg !7" in made
    assert "%wide.mask.f = freeze <8 x i32> %wide.mask.o" in made
    assert "%wide.mask.x1 = xor <8 x i32> %wide.mask.f, splat (i32 -1)" in made


def test_selects_do_not_spread_poison():
    made = lines(loop("  %more = select <8 x i1> %live, <8 x i1> %c, <8 x i1> zeroinitializer"))
    assert "%wide.frozen.more = freeze <8 x i32> %wide.mask.c" in made
    assert "%wide.mask.more = and <8 x i32> %wide.mask.live, %wide.frozen.more" in made
    made = lines(loop("  %more = select <8 x i1> %live, <8 x i1> splat (i1 true), <8 x i1> %c"))
    assert "%wide.mask.more = or <8 x i32> %wide.mask.live, %wide.frozen.more" in made
    made = lines(loop("  %more = select <8 x i1> %live, <8 x i1> %c, <8 x i1> %outer"))
    choice = "%wide.mask.more = select <8 x i1> %live, <8 x i32> %wide.mask.c, <8 x i32> %wide.mask.outer"
    assert choice in made


def test_what_else_makes_masks_is_extended():
    made = lines(loop("  %k = select i1 %any1, <8 x i1> %c, <8 x i1> %live\n  %d = xor <8 x i1> %c, %c\n"
                      "  %more = and <8 x i1> %k, %c"))  # fmt: skip
    assert "%wide.mask.k = sext <8 x i1> %k to <8 x i32>" in made
    assert not any(line.startswith(("%d =", "%wide.mask.d")) for line in made), "of one block"


def test_values_without_a_name_grow():
    text = loop().replace("%live", "%1").replace("%n ", "%2 ").replace("%n,", "%2,").replace("%y", "%3")
    made = wide_masks.widen(text, 256)
    numbers = [int(n) for n in re.findall(r"\n  %(\d+) = ", made)]
    assert numbers == [2, 3]
    assert "%wide.was.1 = icmp slt <8 x i32> %wide.mask.1" in made
    assert re.search(r"%1\b", made) is None


def test_names_that_are_there():
    assert "%wide_.mask.live" in wide_masks.widen(loop().replace("%n1", "%wide.n"), 256)
    quoted = wide_masks.widen(loop().replace("%live", '%"a b"'), 256)
    assert '%"wide.mask.a b" = phi' in quoted


def test_elements_are_those_of_most_comparisons():
    assert "<8 x i64>" in lines(loop(t="double"))[0], "two registers, in a short function"
    assert wide_masks.widen(loop(t="i16", compare="icmp slt"), 256) is None, "what LLVM does"
    other = "  %e = icmp slt <8 x i64> %w, zeroinitializer\n  %f = and <8 x i1> %e, %c\n"
    assert "<8 x i32>" in lines(loop(f"{other}  %more = and <8 x i1> %live, %f"))[0]


def test_loops_of_long_functions_have_no_registers_for_two():
    many = "".join(f"  %z{i} = add i32 %n, {i}\n" for i in range(600))
    assert wide_masks.widen(loop(f"{many}  %more = and <8 x i1> %live, %c", t="double"), 256) is None
    assert "<8 x i32>" in lines(loop(f"{many}  %more = and <8 x i1> %live, %c"))[0]
    passed_on = "  %m = and <8 x i1> %outer, %outer\n  br label %next\n\nnext:\n"
    use = "  %z = select <8 x i1> %m, <8 x double> %d, <8 x double> zeroinitializer\n  br label %end\n"
    n = "  %n = load i32, ptr %p, align 4\n  %d = load <8 x double>, ptr %p, align 64\n"
    made = lines(HEAD + n + many + passed_on + use + TAIL)
    assert "%wide.mask.m = and <8 x i64>" in "\n".join(made), "no loop carries it"


def test_masks_that_other_blocks_use():
    body = "  %m = and <8 x i1> %outer, %outer\n  br label %next\n\nnext:\n"
    use = "  %z = select <8 x i1> %m, <8 x float> %x, <8 x float> zeroinitializer\n  br label %end\n"
    assert "%wide.mask.m = and <8 x i32>" in "\n".join(lines(HEAD + body + use + TAIL))
    alone = HEAD + body.replace("next:\n", use) + "next:\n  br label %end" + TAIL
    assert wide_masks.widen(alone, 256) is None


def test_conditions_of_all_lanes():
    splat = "  %one = insertelement <8 x i1> poison, i1 %q, i32 0\n"
    splat += "  %all = shufflevector <8 x i1> %one, <8 x i1> poison, <8 x i32> zeroinitializer\n"
    made = lines(loop(f"{splat}  %f = and <8 x i1> %all, %c\n  %more = and <8 x i1> %live, %f"))
    assert made[2:6] == [
        "%wide.mask.c = sext <8 x i1> %c to <8 x i32>",
        "%wide.one.all = sext i1 %q to i32",
        "%wide.first.all = insertelement <8 x i32> poison, i32 %wide.one.all, i32 0",
        "%wide.mask.all = shufflevector <8 x i32> %wide.first.all, <8 x i32> poison, "
        "<8 x i32> zeroinitializer",
    ]
    other = splat.replace("zeroinitializer", "<i32 0, i32 1, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>")
    made = lines(loop(f"{other}  %f = and <8 x i1> %all, %c\n  %more = and <8 x i1> %live, %f"))
    assert "%wide.mask.all = sext <8 x i1> %all to <8 x i32>" in made


def test_a_select_that_asks_for_a_bit():
    odd = "  %a = and <8 x {t}> %w, splat ({t} {bit})\n  %o = icmp {how} <8 x {t}> %a, zeroinitializer\n"
    use = "  %s = select <8 x i1> %o, <8 x {u}> %w1, <8 x {u}> %w2\n"
    more = "  %more = and <8 x i1> %live, %c"

    def made(t="i32", bit="1", how="ne", u="i32", other=""):
        return lines(loop(odd.format(t=t, bit=bit, how=how) + use.format(u=u) + other + more))

    assert "%wide.bit.o = shl <8 x i32> %w, splat (i32 31)" in made()
    assert "%o = icmp slt <8 x i32> %wide.bit.o, zeroinitializer" in made()
    assert "%o = icmp sgt <8 x i32> %wide.bit.o, splat (i32 -1)" in made(how="eq")
    assert "%wide.bit.o = shl <8 x i32> %w, splat (i32 11)" in made(bit="1048576", u="float")
    assert "%wide.bit.o = shl <8 x i32> %w, splat (i32 0)" in made(bit="-2147483648")
    assert "%wide.bit.o = shl <8 x i64> %w, splat (i64 63)" in made(t="i64", u="double")
    kept = [made(bit="3"), made(bit="0"), made(u="i64"), made(t="i64", u="i32"),
            made(other="  %e = bitcast <8 x i1> %o to i8\n")]  # fmt: skip
    assert not any("wide.bit" in line for text in kept for line in text)


def test_only_where_a_mask_takes_a_vector():
    for features, expected in ((("avx2",), True), (("avx2", "avx512f"), False)):
        target = Target("x86_64-unknown-linux-gnu", features, 256)
        assert wide_masks.may_help(loop(), target) == expected
    avx2 = Target("x86_64-unknown-linux-gnu", ("avx2",), 256)
    assert not wide_masks.may_help(HEAD + "  ret void\n}\n", avx2)
    use = "  %z = select <8 x i1> %m, <8 x float> %x, <8 x float> zeroinitializer\n"
    mask, jump = "  %m = and <8 x i1> %outer, %outer\n", "  br label %next\n\nnext:\n"
    assert wide_masks.may_help(HEAD + mask + jump + use + TAIL, avx2), "another block uses it"
    assert not wide_masks.may_help(HEAD + mask + use + jump + TAIL, avx2)
    assert not wide_masks.may_help(loop(), Target("aarch64-unknown-linux-gnu", (), 128))
    assert wide_masks.widen("declare void @f()\n", 256) is None
