"""Mutated OpenCL C through clBuildProgram of the driver of this tree, and what builds through a launch.

    python -m tests.loader.fuzz.sources --count 20000 [--seed 0] [--jobs 16]

A defect is the end of the host's process, a hang, an internal error or the death of a compiler, an error that
no specification names, or a refusal without a log. Each is printed with its seed: `--count 1 --seed SEED`
repeats it, `--show SEED` prints the program. A program is launched, for a few work-items, where nothing in it
can leave its arguments' memory: it has no index, pointer or loop besides those of the text that was mutated.
"""

from __future__ import annotations

import ctypes
import random
import re
import sys
import time
from functools import cache

from cl_driver.api.generated import enums as cl
from tests.conftest import ROOT

from . import children

SECONDS = 30  # that a build may take, of an idle machine
TOKEN = re.compile(rb"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]|\s+")
STRANGE = re.compile(
    r"internal error of the compiler|ended unexpectedly|Traceback|clang crashed|does not start|SPIR-V word",
    re.IGNORECASE,
)
OPTIONS = ("", "", "-cl-std=CL3.0", "-cl-std=CL2.0", "-cl-std=CL1.1", "-cl-opt-disable",
           "-cl-fast-relaxed-math",
           "-g", "-cl-kernel-arg-info -w")  # fmt: skip
WORDS = [
    text.encode()
    for text in "0 -1 0x7fffffff 1e300 ( ) { } ; , * & -> [1<<20] double16 half uchar16 long8 ulong3 bool "
    "size_t local global constant private generic volatile image2d_t sampler_t "
    "event_t pipe_int queue_t union goto "
    "return switch(i) while(1) barrier(1); as_int4 vload_half16 get_global_id(5) sub_group_shuffle \0 ??= "
    'convert_uchar16_sat_rte work_group_scan_inclusive_add atomic_fetch_add printf("%v4d",x) '
    "struct{int~a[99];} "
    '__attribute__((reqd_work_group_size(64,1,1))) async_work_group_copy asm("nop") #pragma~unroll'.split()
]
NUMBERS = (b"0", b"-1", b"1", b"64", b"65536", b"2147483648", b"0xffffffffffffffff", b"1.0e-45f", b"3")
# Programs whose launch cannot leave their arguments, whatever literal or operator changes in BODY.
SAFE = b"""kernel void k(global int *o, int a, int b, float x, float y) {
    int i = get_global_id(0) & 63; uint u = a * 3u;
    float4 v = (float4)(x, y, x * y, 2.0f); int2 w = (int2)(a, b);
    BODY
    o[i & 63] = a + b + (int)u + w.x - w.y; o[64 + (i & 63)] = as_int(x + y * v.x + v.z);
}"""
STATEMENTS = (
    b"a = a * 5 + b % 7;",
    b"b = a / (b | 1) - i;",
    b"if (a > b) { a ^= b; } else { b -= 3; }",
    b"u = u >> 3 | u << 29;",
    b"x = sin(x) * y + 1.5f;",
    b"v = v * v.wzyx + y;",
    b"w = w.yx * 3 - w;",
    b"y = fma(x, y, v.w);",
    b"a = clz(b) + i;",
    b"for (int j = 0; j < 9; j++) { a += j * b; x = x * 0.5f + j; }",
    b"a = select(a, b, i > 5);",
    b"u ^= as_uint(x);",
    b"switch (i & 3) { case 0: a++; break; case 1: b = 7; default: u += 2u; }",
    b"v = convert_float4(as_int4(v) & 255);",
    b"barrier(CLK_LOCAL_MEM_FENCE);",
    b"x = (float)(a - b) / 3.0f;",
    b"a = mul_hi(a, b) + popcount(u);",
)
OPERATORS = (b"+", b"-", b"*", b"/", b"%", b"&", b"|", b"^", b"<<", b">>", b"<", b">", b"==", b"&&", b"||")


@cache
def corpus() -> list[list[bytes]]:
    files = sorted([*(ROOT / "tests").rglob("*.cl"), *(ROOT / "cl_driver").rglob("*.cl")])
    return [TOKEN.findall(path.read_bytes()) for path in files if path.stat().st_size < 30_000]


def mutate(rng: random.Random) -> bytes:
    """A program of the corpus with some tokens deleted, repeated, exchanged or taken from another."""
    tokens = list(rng.choice(corpus()))
    for _ in range(rng.choice((1, 1, 2, 3, 6, 15))):
        if not tokens:
            break
        kind, i, j = rng.randrange(9), rng.randrange(len(tokens)), rng.randrange(len(tokens))
        if kind == 0:
            del tokens[i : i + rng.randrange(1, 4)]
        elif kind == 1:
            tokens.insert(i, rng.choice(WORDS).replace(b"~", b" "))
        elif kind == 2:
            tokens[i] = rng.choice(WORDS).replace(b"~", b" ")
        elif kind == 3:
            other = rng.choice(corpus())
            start = rng.randrange(len(other))
            tokens[i:i] = other[start : start + rng.randrange(1, 60)]
        elif kind == 4:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif kind == 5:
            tokens[i:i] = tokens[j : j + rng.randrange(1, 80)]
        elif kind in (6, 7):
            alike = [
                k
                for k, token in enumerate(tokens)
                if (token[:1].isalpha() if kind == 6 else token[:1].isdigit())
            ]
            if alike:
                new = tokens[rng.choice(alike)] if kind == 6 else rng.choice(NUMBERS)
                tokens[rng.choice(alike)] = new
        else:
            text = bytearray(b"".join(tokens))
            for _ in range(rng.randrange(1, 4)):
                text[rng.randrange(len(text))] = rng.randrange(1, 256)
            tokens = TOKEN.findall(bytes(text))
    return b"".join(tokens)


def safe(rng: random.Random) -> bytes:
    """A program that may be launched: random statements, with other literals and operators."""
    body = []
    for statement in rng.choices(STATEMENTS, k=rng.randrange(2, 12)):
        tokens = TOKEN.findall(statement)
        loop = statement.startswith(b"for")  # stays as long as it is
        for k, token in enumerate(tokens):
            if not loop and rng.random() < 0.1 and token.isdigit() and tokens[k - 1] != b".":
                tokens[k] = rng.choice((b"0", b"1", b"3", b"31", b"64", b"65536", b"2147483647"))
            elif not loop and rng.random() < 0.1 and token in OPERATORS and tokens[k + 1 : k + 2] == [b" "]:
                tokens[k] = rng.choice(OPERATORS)
        body.append(b"".join(tokens))
    return SAFE.replace(b"BODY", b"\n    ".join(body))


def case(seed: int) -> tuple[bytes, str, bool]:
    """(program, options, whether it is one that may be launched)."""
    rng = random.Random(seed)
    may_run = rng.random() < 0.3
    return (safe(rng) if may_run else mutate(rng)), rng.choice(OPTIONS), may_run


def try_one(opencl, context: int, queue: int, seed: int) -> tuple[str, str]:
    """(outcome, what is wrong about it or "")."""
    source, options, may_run = case(seed)
    pointer, size = (ctypes.c_char_p * 1)(source), (ctypes.c_size_t * 1)(len(source))
    program = opencl.make("clCreateProgramWithSource", context, 1, pointer, size)
    start = time.process_time(), time.monotonic()
    status = opencl.call("clBuildProgram", program, 0, None, options, None, None)
    seconds, log = time.monotonic() - start[1], opencl.build_log(program)
    outcome, wrong = ("built" if status == cl.CL_SUCCESS else "refused"), ""
    if status not in (cl.CL_SUCCESS, cl.CL_BUILD_PROGRAM_FAILURE):
        wrong = f"clBuildProgram: {status}"
    elif status != cl.CL_SUCCESS and not log.strip():
        wrong = "a refusal without a log"
    elif STRANGE.search(log):
        wrong = log.strip()[-300:]
    elif seconds > SECONDS:
        wrong = f"{seconds:.0f} s"
    elif status == cl.CL_SUCCESS:
        names = opencl.text("clGetProgramInfo", program, cl.CL_PROGRAM_KERNEL_NAMES).split(";")
        for name in filter(None, names):
            kernel = opencl.make("clCreateKernel", program, name.encode())
            if may_run:
                wrong, outcome = launch(opencl, context, queue, kernel), "launched"
            opencl.ok("clReleaseKernel", kernel)
    opencl.ok("clReleaseProgram", program)
    return outcome, wrong


def launch(opencl, context: int, queue: int, kernel: int) -> str:
    """Runs a safe program; what is wrong about it or ""."""
    array = (ctypes.c_int32 * 256)(*[-7] * 256)
    buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, 1024, array)
    opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
    for number, value in enumerate((5, 9)):
        opencl.ok("clSetKernelArg", kernel, 1 + number, 4, ctypes.c_int32(value))
        opencl.ok("clSetKernelArg", kernel, 3 + number, 4, ctypes.c_float(value))
    status = opencl.call("clEnqueueNDRangeKernel", queue, kernel, 1, None, [64], None, 0, None, None)
    status = status or opencl.call("clEnqueueReadBuffer", queue, buffer, 1, 0, 1024, array, 0, None, None)
    opencl.ok("clReleaseMemObject", buffer)
    if status:
        return f"the launch: {status}"
    return "" if list(array)[128:] == [-7] * 128 else "it wrote where it should not"


def child(first: int, last: int, args) -> None:
    from tests.loader.opencl import OpenCL

    opencl = OpenCL("libOpenCL.so.1")
    context = opencl.context()
    queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    for seed in range(first, last):
        children.begin(seed)
        outcome, wrong = try_one(opencl, context, queue, seed)
        if wrong:
            children.defect(wrong)
        children.end(outcome)


def main() -> int:
    if "--show" in sys.argv:
        source, options, _ = case(int(sys.argv[sys.argv.index("--show") + 1]))
        sys.stdout.buffer.write(f"// {options}\n".encode() + source)
        return 0
    return children.main("tests.loader.fuzz.sources", __doc__, child)


if __name__ == "__main__":
    sys.exit(main())
