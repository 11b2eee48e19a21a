"""Vectors of 64-bit integers: upper halves of products, mad_sat, division by constants."""

import random
import re

import numpy as np
import pytest

from cl_driver.codegen.expand.mul64 import signed_factor, unsigned_factor
from tests.runtime.kernel_harness import Program, compile_c
from tests.runtime.spirv_kernels import same

BITS = 64
EDGES = [0, 1, 2, 3, 5, 6, 7, 100, 1 << 31, 1 << 32, 1 << 33, 1 << 62, 1 << 63, 1 << 64]
DIVISORS = {
    "ulong": [1, 2, 3, 5, 6, 7, 10, 14, 28, 100, 641, 1000, 6700417, (1 << 32) - 1, (1 << 32) + 1, 10**10],
    "long": [1, -1, 2, -2, 3, -3, 5, 7, -7, 10, 12, -100, 125, 1000, -6700417, -(1 << 32) - 1, 10**10],
}
DIVISORS["ulong"] += [3 << 40, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 1]
DIVISORS["long"] += [3 << 40, (1 << 63) - 1, -(1 << 63) + 1, -(1 << 63)]
DTYPES = {"ulong": np.uint64, "long": np.int64}


def values(type_: str) -> list[int]:
    info = np.iinfo(DTYPES[type_])
    rng = random.Random(3)
    near = [s * (e + k) for e in EDGES for k in (-2, -1, 0, 1, 2) for s in (1, -1)]
    near += [q * abs(d) + k for d in DIVISORS[type_] for q in (1, info.max // abs(d)) for k in (-1, 0, 1)]
    near += [-v for v in near]
    found = {int(v) for v in near if info.min <= v <= info.max}
    found |= {rng.randint(info.min, info.max) >> rng.randrange(62) for _ in range(150)}
    return sorted(found)


def wrapped(value: int, type_: str) -> int:
    value &= (1 << BITS) - 1
    return value - (1 << BITS) if type_ == "long" and value >> BITS - 1 else value


def run(program: Program, kernel: str, type_: str, *inputs: list[int]) -> list[int]:
    """kernel: for single numbers; the same with _v: for vectors of four."""
    arrays = [np.array(x + x[:1] * (-len(x) % 8), DTYPES[type_]) for x in inputs]
    outs = []
    for name, count in (("k_" + kernel, len(arrays[0])), (f"k_{kernel}_v", len(arrays[0]) // 4)):
        out = np.zeros_like(arrays[0])
        program.run(name, count, 4 if count % 4 == 0 else 2, out, *arrays)
        outs.append(out.tolist())
    assert outs[0] == outs[1]
    return outs[0][: len(inputs[0])]


def kernels(name: str, type_: str, call: str, parameters: str) -> str:
    """NAME and NAME_v, of call with a letter for each operand."""
    found = ""
    for suffix, form, store in (
        ("", "{0}[i]", "out[i] = {0}"),
        ("_v", "vload4(i, {0})", "vstore4({0}, i, out)"),
    ):
        arguments = "".join(f", global {type_} *{p}" for p in parameters)
        result = re.sub(r"\b[abc]\b", lambda m, form=form: form.format(m[0]), call)
        found += f"kernel void k_{name}{suffix}(global {type_} *out{arguments})"
        found += f" {{ size_t i = get_global_id(0); {store.format(result)}; }}\n"
    return found


@pytest.mark.parametrize("width", [1, 4, 16])
@pytest.mark.parametrize("type_", DTYPES)
def test_products(type_, width):
    text = kernels("mul_hi", type_, "mul_hi(a, b)", "abc")
    text += "".join(kernels(name, type_, f"{name}(a, b, c)", "abc") for name in ("mad_hi", "mad_sat"))
    program = Program(compile_c(text), width=width)
    info = np.iinfo(DTYPES[type_])
    some = values(type_)
    rng = random.Random(5)
    pairs = [(x, y) for x in some[:: len(some) // 40] for y in some[:: len(some) // 40]]
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    c = [rng.choice(some) for _ in pairs]
    high = [x * y >> BITS for x, y in pairs]
    assert run(program, "mul_hi", type_, a, b, c) == high
    assert run(program, "mad_hi", type_, a, b, c) == [
        wrapped(h + z, type_) for h, z in zip(high, c, strict=True)
    ]
    sums = [x * y + z for (x, y), z in zip(pairs, c, strict=True)]
    limited = [min(max(s, int(info.min)), int(info.max)) for s in sums]
    assert run(program, "mad_sat", type_, a, b, c) == limited
    assert len({s == z for s, z in zip(sums, limited, strict=True)}) == 2


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.long
@pytest.mark.parametrize("width", [1, 4, 16])
@pytest.mark.parametrize("type_", DTYPES)
def test_constant_divisors(type_, width):
    text = ""
    for k, d in enumerate(DIVISORS[type_]):
        literal = f"(({type_}){d & (1 << BITS) - 1:#x}UL)"
        text += kernels(f"div{k}", type_, f"a / {literal}", "a") + kernels(
            f"rem{k}", type_, f"a % {literal}", "a"
        )
    program = Program(compile_c(text), width=width)
    a = values(type_)
    for k, d in enumerate(DIVISORS[type_]):
        held = [x for x in a if not (d == -1 and x == -(1 << BITS - 1))]
        quotients = [quotient(x, d) for x in held]
        assert run(program, f"div{k}", type_, held) == quotients, d
        assert run(program, f"rem{k}", type_, held) == [
            x - q * d for x, q in zip(held, quotients, strict=True)
        ], d


def test_components_divide_by_their_own():
    text = (
        "kernel void k(global ulong4 *out, global ulong4 *a) { size_t i = get_global_id(0);"
        " out[i] = a[i] / (ulong4)(3, 7, 10, 1UL << 63) + a[i] % (ulong4)(1, 641, 0xffffffffffffffff, 12); }"
    )
    some = values("ulong")
    memory = np.zeros(4 * (len(some) // 4) + 4, np.uint64)
    start = -memory.ctypes.data % 32 // 8
    a = memory[start : start + len(some) // 4 * 4]
    a[:] = some[: len(a)]
    first, second = [3, 7, 10, 1 << 63], [1, 641, (1 << 64) - 1, 12]
    want = [int(x) // first[k % 4] + int(x) % second[k % 4] & (1 << 64) - 1 for k, x in enumerate(a)]
    held = np.zeros(len(a) + 4, np.uint64)
    start = -held.ctypes.data % 32 // 8
    out = held[start : start + len(a)]
    for width in (1, 4, 16):
        out[:] = 0
        Program(compile_c(text), width=width).run("k", len(a) // 4, 1, out, a)
        assert out.tolist() == want


@pytest.mark.parametrize("divisor", [3, 7, -7, 1000])
def test_modulo_has_the_sign_of_the_divisor(divisor):
    x = np.array([s * (k * 2**57 // 3 + k) for k in range(13) for s in (1, -1)])
    body = "%r = OpSMod %i64 %x %d"
    constant = f"%d = OpConstant %i64 {divisor}"
    same(body, [int(v) % divisor for v in x], ("i64", "i64"), x=x, y=x, dtype=np.int64, types=constant)


@pytest.mark.parametrize(
    "expression", ["mul_hi(a[i], a[i + 1])", "a[i] / 7", "a[i] % 1000", "mad_sat(a[i], 3, a[i])"]
)
@pytest.mark.parametrize("type_", DTYPES)
def test_no_lane_by_lane_products(type_, expression):
    """No product wider than 64 bits and no division is left for LLVM to take apart."""
    call = expression.replace("3", f"({type_})3") if "mad_sat" in expression else expression
    text = (
        f"kernel void k(global {type_} *a, global {type_} *b)"
        f" {{ size_t i = get_global_id(0); b[i] = {call}; }}"
    )
    found = Program(compile_c(text), width=16).code("k").text
    assert re.search(r"mul <16 x i64>", found) and not re.search(r"i128|[us](div|rem) <", found)


@pytest.mark.parametrize("seed", range(4))
def test_factors(seed):
    """n / d of any d is the product shifted, at the ends of the range and around multiples of d."""
    rng = random.Random(seed)
    top = 1 << BITS
    for _ in range(3000):
        d = rng.choice(
            [rng.randrange(3, 2000), rng.getrandbits(rng.randrange(2, 65)), (1 << rng.randrange(2, 64)) + 1]
        )
        if d & d - 1 == 0:
            continue
        multiplier, shift, before = unsigned_factor(d)
        assert multiplier < 2 * top and not (multiplier >= top and (before or not shift))
        last = top // d * d
        for n in (0, 1, d - 1, d, d + 1, last - 1, min(last, top - 1), top - 1, rng.getrandbits(64)):
            if n < top:
                assert (n >> before) * multiplier >> BITS + shift == n // d
        if d <= top // 2:
            multiplier, shift, before = signed_factor(d)
            assert multiplier < top and not before
            last = top // 2 // d * d
            for n in (
                0,
                1,
                d - 1,
                d,
                last - 1,
                -1,
                -d,
                1 - d,
                -d - 1,
                -last,
                1 - last,
                top // 2 - 1,
                -top // 2,
            ):
                if -top // 2 <= n < top // 2:
                    assert (n * multiplier >> BITS + shift) + (n < 0) == quotient(n, d)
