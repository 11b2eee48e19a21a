"""What another order of a long block keeps, and when there is none."""

import re

import pytest

from cl_driver.device.target import make_target
from cl_driver.jit.printed_ir import register_order
from tests.cpus import SKYLAKE

TARGET = make_target(SKYLAKE, "x86-64-v3")
V = "<8 x float>"
PURE = (
    f"declare {V} @llvm.fabs.v8f32({V}) #1\ndeclare void @f()\n"
    "attributes #1 = { nocallback nofree nosync nounwind willreturn memory(none) }\n"
)


def function(*lines, end="  ret void"):
    """A module of one block."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"define void @kernel(ptr %p, ptr %q, {V} %a, i32 %0) #0 {{\nentry:\n{body}\n{end}\n}}\n\n{PURE}"


def chains(count, steps, between=()):
    """So many vectors, each loaded, added to again and again, and stored; one step for all, then the next."""
    lines = []
    for k in range(count):
        lines.append(f"%p{k} = getelementptr i8, ptr %p, i64 {32 * k}")
        lines.append(f"%x{k}.0 = load {V}, ptr %p{k}, align 4")
    for step in range(steps):
        lines += [f"%x{k}.{step + 1} = fadd {V} %x{k}.{step}, %a" for k in range(count)]
    lines += between
    return lines + [f"store {V} %x{k}.{steps}, ptr %p{k}, align 4" for k in range(count)]


def instructions(text):
    return [line.strip() for line in text[: text.index("\n}")].split("\n")[2:]]


def in_order(text):
    """The instructions in the new order, of which nothing is lost, and none before its operands."""
    made = register_order.reorder(text, TARGET)
    assert made is not None
    before, after = instructions(text), instructions(made)
    assert sorted(before) == sorted(after)
    known = {"%p", "%q", "%a", "%0"}
    for line in after:
        result, _, rest = line.rpartition(" = ")
        assert known.issuperset(re.findall(r"%[\w.]+", rest)), line
        known.add(result)
    return after


def test_each_vector_goes_through_all_steps():
    after = in_order(function(*chains(40, 6)))
    places = [after.index(f"%x{k}.6 = fadd {V} %x{k}.5, %a") for k in range(40)]
    firsts = [after.index(f"%x{k}.1 = fadd {V} %x{k}.0, %a") for k in range(40)]
    assert all(place - first < 10 for first, place in zip(firsts, places, strict=True))


def test_what_fits_the_registers_or_is_short_stays():
    assert register_order.reorder(function(*chains(12, 20)), TARGET) is None
    assert register_order.reorder(function(*chains(20, 2)), TARGET) is None
    masks = make_target(SKYLAKE, "x86-64-v4")  # twice as many registers, of twice as many bits
    assert register_order.reorder(function(*chains(30, 8)), TARGET) is not None
    assert register_order.reorder(function(*chains(30, 8)), masks) is None


def test_a_long_chain_of_few_vectors_keeps_them_side_by_side():
    """One after the other each would wait for itself."""
    assert register_order.reorder(function(*chains(18, 300)), TARGET) is None


def test_accesses_stay_in_order_but_loads():
    lines = chains(40, 6, between=[f"store {V} %a, ptr %q, align 4", "call void @f()"])
    lines += ["%v = load volatile i32, ptr %q, align 4", "fence seq_cst"]
    after = in_order(function(*lines))
    accesses = [line for line in after if re.search(r"\b(load|store|call|fence)\b", line)]
    first_store = next(k for k, line in enumerate(accesses) if line.startswith("store"))
    assert first_store == 40 and accesses[40] == f"store {V} %a, ptr %q, align 4"
    assert accesses[41] == "call void @f()"
    assert accesses[42:82] == [f"store {V} %x{k}.6, ptr %p{k}, align 4" for k in range(40)]
    assert accesses[-2:] == ["%v = load volatile i32, ptr %q, align 4", "fence seq_cst"]


def test_loads_of_what_was_stored_stay_as_far_from_it():
    again = [f"%y = load {V}, ptr %p0, align 4", f"store {V} %y, ptr %q, align 4"]
    assert register_order.reorder(function(*chains(40, 6), *again), TARGET) is None


def test_calls_of_pure_functions_move():
    lines = chains(40, 6)
    lines = [
        re.sub(r"(%x\d+\.3) = fadd .* (%x\S+), %a", rf"\1 = tail call {V} @llvm.fabs.v8f32({V} \2)", line)
        for line in lines
    ]
    after = in_order(function(*lines))
    places = [k for k, line in enumerate(after) if "fabs" in line]
    assert len(places) == 40 and places[-1] - places[0] > 200


def test_names_that_llvm_numbers():
    lines = [re.sub(r"%x(\d+)\.(\d)\b", lambda m: f"%{1 + int(m[1]) + 40 * int(m[2])}", line)
             for line in chains(40, 6)]  # fmt: skip
    made = register_order.reorder(function(*lines), TARGET)
    assert made is not None and "i32 %n.0)" in made and not re.search(r"%\d", made)
    assert f"store {V} %n.241, ptr %p0, align 4" in made
    taken = register_order.reorder(function(*lines, "%n.5 = add i32 %0, 1"), TARGET)
    assert taken is not None and f"store {V} %n_.241, ptr %p0, align 4" in taken


def test_what_other_blocks_want_is_kept():
    """Of phis of the block itself, too."""
    lines = [f"%s{k} = phi {V} [ %a, %entry ], [ %x{k}.7, %loop ]" for k in range(30)]
    lines += [
        re.sub(r"^%x(\d+)\.7 = .*", rf"%x\1.7 = fadd {V} %s\1, %x\1.6", line) for line in chains(30, 12)
    ]
    body = "\n".join(f"  {line}" for line in lines)
    text = (
        f"define void @kernel(ptr %p, {V} %a, i1 %c) #0 {{\nentry:\n  br label %loop\n\nloop:\n{body}\n"
        "  br i1 %c, label %loop, label %end\n\n"
        f"end:\n  store {V} %x3.12, ptr %p, align 4\n  ret void\n}}\n\n{PURE}"
    )
    made = register_order.reorder(text, TARGET)
    assert made is not None
    lines = made.split("\n")
    loop = lines[lines.index("loop:") + 1 :]
    assert all(" = phi " in line for line in loop[:30]) and " = phi " not in loop[30]
    assert sorted(lines) == sorted(text.split("\n"))


@pytest.mark.parametrize("line, registers", [
    ("%x = fadd <8 x float> %a, %b", 1),
    ("%x = fmul fast <16 x float> %a, %b", 2),
    ("%x = load <4 x i64>, ptr %p, align 8", 1),
    ("%x = fptosi <8 x double> %a to <8 x i32>", 1),
    ("%x = zext <16 x i1> %m to <16 x i32>", 2),
    ("%x = shufflevector <8 x float> %a, <8 x float> %b, <16 x i32> <i32 0, i32 1>", 2),
    ("%x = extractelement <8 x float> %a, i64 0", 1),
    ("%x = extractelement <8 x i32> %a, i64 0", 0),
    ("%x = select <8 x i1> %m, <8 x double> %a, <8 x double> %b", 2),
    ("%x = icmp slt <8 x i64> %a, %b", 2),
    ("%x = bitcast <8 x i1> %m to i8", 0),
    ("%x = add i64 %a, 1", 0),
    ("%x = fadd float %a, %b", 1),
    ("%x = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %a, <8 x float> %b, <8 x float> %c)", 1),
    ("%x = call i32 asm \"\", \"=r\"()", 0),
    ("%x = getelementptr float, ptr %p, <4 x i64> %i", 1),
])  # fmt: skip
def test_registers_of_a_result(line, registers):
    opcode = re.match(r"%x = (?:tail )?(\w+)", line)[1]
    assert register_order.Registers(TARGET).of(opcode, "  " + line) == registers


def test_debug_information_keeps_its_places():
    text = function(*chains(40, 6)).replace("  ret void", "    #dbg_value(i32 0, !1, !2, !3)\n  ret void")
    assert register_order.reorder(text, TARGET) is None
