"""Vectors that a block takes one after the other are loaded and stored once each, not at each step."""

import re

from cl_driver.device.target import make_target
from cl_driver.jit import emit
from tests.cpus import SKYLAKE

V = "<16 x float>"
COUNT, STEPS = 100, 5
FIRST = ", ".join(["i32 0"] * 16)


def sums() -> str:
    """A loop that adds to each of many vectors so many products with numbers in memory."""
    phis = [f"%x{k}.0 = phi {V} [ zeroinitializer, %entry ], [ %x{k}.{STEPS}, %loop ]" for k in range(COUNT)]
    lines = ["%n = phi i64 [ 0, %entry ], [ %next, %loop ]", *phis]
    for s in range(STEPS):  # factors that the first step of each vector has to wait for
        lines += [
            f"%q{s} = getelementptr {V}, ptr %factors, i64 {s}",
            f"%f{s}.0 = load {V}, ptr %q{s}, align 4",
        ]
        lines += [f"%f{s}.{k + 1} = fmul {V} %f{s}.{k}, %f{s}.{k}" for k in range(8)]
        lines += [f"%f{s} = fadd {V} %f{s}.8, %f{max(0, s - 1)}.0"]
    for k in range(COUNT):
        for s in range(STEPS):
            name, place = f"{k}.{s}", 4 * (k + COUNT * s)
            lines += [
                f"%p{name} = getelementptr i8, ptr %in, i64 {place}",
                f"%l{name} = load <1 x float>, ptr %p{name}, align 4",
                f"%s{name} = shufflevector <1 x float> %l{name}, <1 x float> poison, <16 x i32> <{FIRST}>",
                f"%x{k}.{s + 1} = call {V} @llvm.fma.v16f32({V} %f{s}, {V} %s{name}, {V} %x{name})",
            ]
    stores = [f"store {V} %x{k}.{STEPS}, ptr %o{k}, align 4" for k in range(COUNT)]
    places = [f"%o{k} = getelementptr i8, ptr %out, i64 {64 * k}" for k in range(COUNT)]
    body = "\n  ".join([*lines, "%next = add i64 %n, 1", "%more = icmp ult i64 %next, %count"])
    end = "\n  ".join([*places, *stores, "ret void"])
    return (
        f"declare {V} @llvm.fma.v16f32({V}, {V}, {V})\n"
        "define void @kernel(ptr %in, ptr %factors, ptr %out, i64 %count) #0 {\nentry:\n  br label %loop\n"
        f"loop:\n  {body}\n  br i1 %more, label %loop, label %end\nend:\n  {end}\n}}\n"
        'attributes #0 = { nounwind "prefer-vector-width"="512" }\n'
    )


def test_each_vector_is_stored_once():
    assembly = emit.assembly(sums(), make_target(SKYLAKE), "short")
    stores = re.findall(r"vmov\w+\s+%zmm\d+, -?\d*\(%rsp\)", assembly)
    assert COUNT - 32 <= len(stores) < 2 * COUNT
    assert ".Lannotation" in assembly
