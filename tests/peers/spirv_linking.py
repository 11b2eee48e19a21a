"""Programs of two parts that different compilers made, linked: python tests/peers/spirv_linking.py

Each part is compiled from source by the driver, and to SPIR-V in the ways of spirv_ways.py; every pair of
ways is linked by clLinkProgram and run. Compilers differ in what pointers point to, how structures are passed
and padded, how kernels that kernels call are named, and in the version of SPIR-V.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import NamedTuple

import spirv_ways
from peers import ROOT, WORK, environment, need

sys.path.insert(0, str(ROOT))

COUNT = 16


class Case(NamedTuple):
    """Two sources; kernel k(global int *in, global int *out) of the second, and what it makes of each x."""

    name: str
    common: str
    definitions: str
    user: str
    expected: object
    standard: tuple = (1, 2)


def body(expression: str, before: str = "") -> str:
    return (
        "kernel void k(global int *in, global int *out) { int i = (int)get_global_id(0); int x = in[i];"
        f" {before} out[i] = {expression}; }}"
    )


# clang-22 leaves the variables out of a module without functions.
KEEPER = "void unused(void) {}"
PAIR = "typedef struct { uchar c; int i; } pair;"
LARGE = "typedef struct { int a[12]; float4 v; long l; } large;"
NODE = "typedef struct node { int value; global struct node *next; char pad[3]; } node;"
CASES = [
    Case("function", "int f(int x);", "int f(int x) { return 3 * x; }", body("f(x)"), lambda x: 3 * x),
    Case(
        "narrow values",
        "char f(char a, short b, uchar c, bool d);",
        "char f(char a, short b, uchar c, bool d) { return d ? a + b : c; }",
        body("f(-x, 1, 200, x & 1)"),
        lambda x: 1 - x if x & 1 else -56,
    ),
    Case(
        "vectors",
        "int3 f(int3 v, char4 c); float16 g(float16 v);",
        "int3 f(int3 v, char4 c) { return v.zyx + c.x; } float16 g(float16 v) { return v * 2; }",
        body("f((int3)(1, 2, x), (char4)(5)).x + (int)g((float16)(x)).sf"),
        lambda x: 3 * x + 5,
    ),
    Case(
        "structure by value",
        PAIR + "int f(pair p);",
        "int f(pair p) { p.i += p.c; return p.i; }",
        body("f(p) + p.i", "pair p = { 3, x };"),
        lambda x: 2 * x + 3,
    ),
    Case(
        "structure as result",
        PAIR + "pair f(int x);",
        "pair f(int x) { pair p; p.c = 7; p.i = x; return p; }",
        body("f(x).i * f(x).c"),
        lambda x: 7 * x,
    ),
    Case(
        "large structure",
        LARGE + "large f(large l, int x);",
        "large f(large l, int x) { l.a[x % 12] += l.l; l.v *= 2; return l; }",
        body("l.a[x % 12] + (int)l.v.w", "large l = {{0}, (float4)(1, 2, 3, 4), 9}; l = f(l, x);"),
        lambda x: 17,
    ),
    Case(
        "pointers",
        "void f(global int *p, local int *l, int *q, constant int *c, int i);",
        "void f(global int *p, local int *l, int *q, constant int *c, int i)"
        "{ l[0] = p[i]; *q = l[0] + c[1]; p[i]++; }",
        "constant int table[] = { 1, 20 };" + body("y", "local int l[1]; int y; f(in, l, &y, table, i);"),
        lambda x: x + 20,
    ),
    Case(
        "pointers as results",
        "global int *f(global int *p, int i);",
        "global int *f(global int *p, int i) { return p + i; }",
        body("*f(in, i) + 1"),
        lambda x: x + 1,
    ),
    Case(
        "pointers to structures that are not known",
        "struct hidden; int f(struct hidden *h); void set(struct hidden *h, int x);",
        "struct hidden { char c; long value; }; int f(struct hidden *h) { return (int)h->value + h->c; }"
        "void set(struct hidden *h, int x) { h->value = x; h->c = 1; }",
        body("f((struct hidden *)room)", "long room[4]; set((struct hidden *)room, x);"),
        lambda x: x + 1,
    ),
    Case(
        "lists",
        NODE + "int f(global node *n);",
        "int f(global node *n) { int sum = 0; for (; n; n = n->next) sum += n->value; return sum; }",
        "global node nodes[3];"
        + body(
            "f(nodes)",
            "nodes[0].value = 1; nodes[0].next = nodes + 2; nodes[2].value = 4; nodes[2].next = 0;",
        ),
        lambda x: 5,
        (3, 0),
    ),
    Case(
        "constants",
        "",
        "constant int table[4] = { 5, 6, 7, 8 }; constant float ratio = 0.5f;" + KEEPER,
        "extern constant int table[4]; extern constant float ratio;"
        + body("table[x & 3] + (int)(x * ratio)"),
        lambda x: 5 + (x & 3) + x // 2,
    ),
    Case(
        "program-scope variables",
        PAIR,
        "global int counter = 11; global pair v = { 7, 42 }; global int *global place = &counter;" + KEEPER,
        "extern global int counter; extern global pair v; extern global int *global place;"
        + body("counter + v.c * v.i + *place"),
        lambda x: 22 + 7 * 42,
        (3, 0),
    ),
    Case(
        "a kernel calls a kernel",
        "",
        "kernel void other(global int *in, global int *out, int add)"
        "{ int i = (int)get_global_id(0); out[i] = in[i] + add; }",
        "extern kernel void other(global int *in, global int *out, int add);"
        "kernel void k(global int *in, global int *out) { other(in, out, 4); }",
        lambda x: x + 4,
    ),
    Case(
        "a kernel with a local variable that a kernel calls",
        "",
        "kernel void other(global int *in, global int *out) { local int l[1]; int i = (int)get_global_id(0);"
        " if (get_local_id(0) == 0) l[0] = 9; barrier(CLK_LOCAL_MEM_FENCE); out[i] = in[i] + l[0]; }",
        "extern kernel void other(global int *in, global int *out);"
        "kernel void k(global int *in, global int *out) { other(in, out); }",
        lambda x: x + 9,
    ),
    Case(
        "inline functions in both",
        "static inline int twice(int x) { return 2 * x; }",
        "int f(int x) { return twice(x) + 1; }",
        "int f(int x);" + body("f(x) + twice(x)"),
        lambda x: 4 * x + 1,
    ),
    Case(
        "generic pointers",
        "int f(int *p, int n);",
        "int f(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }",
        body("f(in + i, 1) + f(own, 2)", "int own[2] = { 1, x };"),
        lambda x: 2 * x + 1,
        (3, 0),
    ),
    Case(
        "the library's functions in both",
        "float f(float x);",
        "float f(float x) { return sqrt(x) + fmin(x, 3.0f); }",
        body("(int)(f((float)(x * x)) * 4) + max(x, 2) * 0", "float s = sqrt((float)x);"),
        lambda x: 4 * x + 4 * min(x * x, 3),
    ),
    Case(
        "callbacks into the user",
        "int f(int x); int back(int x);",
        "int f(int x) { return back(x) * 2; }",
        "int back(int x) { return x + 5; }" + body("f(x)"),
        lambda x: 2 * x + 10,
    ),
]


class Linker:
    def __init__(self):
        from tests.loader.opencl import OpenCL

        os.environ.update(environment() | {"CL_DRIVER_CACHE_DIR": str(WORK / "cache")})
        self.cl = OpenCL("libOpenCL.so.1")
        self.context = self.cl.context()
        self.queue = self.cl.make("clCreateCommandQueue", self.context, self.cl.device(), 0)

    def part(self, source: str, standard: tuple, way: str) -> int:
        """A compiled program. Raises RuntimeError with the log."""
        options = f"-cl-std=CL{standard[0]}.{standard[1]}"
        if way == "source":
            program = self.cl.program(self.context, source)
        else:
            file = WORK / "spirv_linking.spv"
            spirv_ways.compile(source.encode(), "", standard, way, file)
            data, options = file.read_bytes(), ""
            program = self.cl.make("clCreateProgramWithIL", self.context, data, len(data))
        if self.cl.call("clCompileProgram", program, 0, None, options, 0, None, None, None, None):
            raise RuntimeError(f"{way}: {self.cl.build_log(program)}")
        return program

    def run(self, parts: list[int]) -> list[int]:
        program, status = self.cl.call("clLinkProgram", self.context, 0, None, None, 2, parts, None, None)
        if status:
            raise RuntimeError(self.cl.build_log(program) if program else f"clLinkProgram: {status}")
        kernel = self.cl.make("clCreateKernel", program, b"k")
        numbers = (ctypes.c_int32 * COUNT)(*range(COUNT))
        buffers = [self.cl.make("clCreateBuffer", self.context, 32, 4 * COUNT, numbers) for _ in range(2)]
        for index, buffer in enumerate(buffers):
            self.cl.ok("clSetKernelArg", kernel, index, 8, ctypes.c_uint64(buffer))
        launch = (self.queue, kernel, 1, None, [COUNT], None, 0, None, None)
        self.cl.ok("clEnqueueNDRangeKernel", *launch)
        self.cl.ok("clEnqueueReadBuffer", self.queue, buffers[1], 1, 0, 4 * COUNT, numbers, 0, None, None)
        for buffer in buffers:
            self.cl.ok("clReleaseMemObject", buffer)
        self.cl.ok("clReleaseKernel", kernel)
        self.cl.ok("clReleaseProgram", program)
        return list(numbers)


def main() -> int:
    need("clang-22", "clang-15", "llvm-spirv-15")
    Path(WORK).mkdir(parents=True, exist_ok=True)
    linker, ways, good, faults = Linker(), ["source", *spirv_ways.WAYS], 0, 0
    for case in CASES:
        sources = [case.common + case.definitions, case.common + case.user]
        parts: list[dict[str, int]] = [{}, {}]
        for made, source in zip(parts, sources, strict=True):
            for way in ways:
                try:
                    made[way] = linker.part(source, case.standard, way)
                except (RuntimeError, spirv_ways.WayError) as error:
                    faults += 1
                    print(f"{case.name}: {way}: {error}")
        for one, first in parts[0].items():
            for two, second in parts[1].items():
                try:
                    result = linker.run([first, second])
                    expected = [case.expected(x) for x in range(COUNT)]
                    if result == expected:
                        good += 1
                        continue
                    why = f"{result} instead of {expected}"
                except RuntimeError as error:
                    why = str(error).strip()
                faults += 1
                print(f"{case.name}: {one} with {two}: {why}")
    print(f"{good} links right, {faults} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
