"""Streams, and dense and sparse linear algebra."""

from __future__ import annotations

import numpy as np

from tests.bench.model import Case, Launch, benchmark

f4 = np.float32


@benchmark("stream", n=1 << 12)
def copy(rng, n=1 << 23):
    """8M floats"""
    source = rng.random(n, f4) + f4(1)
    return Case(
        {"to": np.zeros(n, f4), "from": source},
        [Launch(["to", "from"], (n,))],
        lambda: {"to": source},
        bytes=8 * n,
        rtol=1e-7,
    )


@benchmark("stream", hand=0.83, n=1 << 12)
def triad(rng, n=1 << 23):
    """8M floats"""
    b, c = rng.random(n, f4), rng.random(n, f4)
    return Case(
        {"a": np.zeros(n, f4), "b": b, "c": c},
        [Launch(["a", "b", "c", f4(3)], (n,))],
        lambda: {"a": b + 3.0 * c.astype(np.float64)},
        bytes=12 * n,
        flops=2 * n,
        rtol=1e-6,
    )


@benchmark("stream", n=1 << 12)
def float4_axpy(rng, n=1 << 21):
    """2M float4"""
    x, z, a = rng.random((n, 4), f4), rng.random((n, 4), f4), np.array([1, 2, -3, 0.5], f4)
    return Case(
        {"y": np.zeros((n, 4), f4), "x": x, "z": z},
        [Launch(["y", "x", "z", a], (n,), (64,))],
        lambda: {"y": a.astype(np.float64) * x + z},
        bytes=48 * n,
        flops=8 * n,
        rtol=1e-6,
        atol=2e-7,
    )


@benchmark("stream", n=1 << 12)
def double_axpy(rng, n=1 << 22):
    """4M doubles with a square root and a quotient"""
    x = rng.random(n)
    return Case(
        {"y": np.zeros(n), "x": x},
        [Launch(["y", "x", np.float64(1.7), np.float64(0.3)], (n,))],
        lambda: {"y": np.sqrt(1.7 * x * x + 0.3) / (x + 2)},
        bytes=16 * n,
        flops=6 * n,
        rtol=1e-14,
    )


@benchmark("stream", n=1 << 12)
def half_storage(rng, n=1 << 23):
    """8M halves, vload_half and vstore_half"""
    source = rng.random(n, f4).astype(np.float16)
    return Case(
        {"to": np.zeros(n, np.float16), "from": source},
        [Launch(["to", "from", f4(2.5), f4(1)], (n,))],
        lambda: {"to": source * 2.5 + f4(1)},
        bytes=4 * n,
        flops=2 * n,
        rtol=1.01 * 2.0**-11,
    )


def _product(rng, n, local_size):
    a, b = rng.random((n, n), f4), rng.random((n, n), f4)
    return Case(
        {"c": np.zeros((n, n), f4), "a": a, "b": b},
        [Launch(["c", "a", "b", np.int32(n)], (n, n), local_size)],
        lambda: {"c": a.astype(np.float64) @ b},
        bytes=12 * n * n,
        flops=2 * n**3,
        rtol=1e-5,
    )


@benchmark("dense", n=64)
def matmul_naive(rng, n=512):
    """512 x 512, no local memory, local size NULL"""
    return _product(rng, n, None)


@benchmark("dense", hand=2.54, n=64)
def matmul_tiled(rng, n=768):
    """768 x 768, 16 x 16 local tiles"""
    return _product(rng, n, (16, 16))


@benchmark("dense", n=128)
def matvec(rng, n=2048):
    """2,048 x 2,048, a row per work-item"""
    a, x = rng.random((n, n), f4), rng.random(n, f4)
    return Case(
        {"y": np.zeros(n, f4), "a": a, "x": x},
        [Launch(["y", "a", "x", np.int32(n)], (n,), (64,))],
        lambda: {"y": a.astype(np.float64) @ x},
        bytes=4 * n * n,
        flops=2 * n * n,
        rtol=1e-5,
    )


@benchmark("sparse", rows=1 << 10)
def spmv_csr(rng, rows=1 << 17):
    """128k rows of 4 to 28 elements, a row per work-item"""
    lengths = rng.integers(4, 29, rows)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    count = int(start[-1])
    near = np.repeat(np.arange(rows), lengths) + rng.integers(-200, 201, count)
    column = np.where(rng.random(count) < 0.2, rng.integers(0, rows, count), near).clip(0, rows - 1)
    value, x = rng.random(count, f4), rng.random(rows, f4)
    return Case(
        {"y": np.zeros(rows, f4), "start": start, "column": column.astype(np.int32), "value": value, "x": x},
        [Launch(["y", "start", "column", "value", "x"], (rows,), (128,))],
        lambda: {"y": np.add.reduceat(value.astype(np.float64) * x[column], start[:-1])},
        bytes=8 * count + 12 * rows,
        flops=2 * count,
        rtol=1e-5,
    )


@benchmark("gather", n=1 << 12, table=1 << 10)
def gather_branchy(rng, n=1 << 22, table=1 << 18):
    """4M look-ups in 1 MB, three branches"""
    index, values = rng.integers(0, table, n, dtype=np.int32), rng.uniform(-2, 2, table).astype(f4)

    def expected():
        v = values[index].astype(np.float64)
        high = values[(index * 3 + 1) & (table - 1)] * 2.0 - v
        low = values[(index + np.arange(n)) & (table - 1)] - values[(index ^ 5) & (table - 1)].astype(
            np.float64
        )
        return {"to": np.where(v > 0.5, high, np.where(v > -0.5, v * v + 1, low))}

    return Case(
        {"to": np.zeros(n, f4), "index": index, "table": values},
        [Launch(["to", "index", "table", np.int32(table - 1)], (n,), (256,))],
        expected,
        bytes=16 * n,
        rtol=1e-6,
        atol=1e-6,
    )


PARTICLE = np.dtype([(name, f4) for name in ("x", "y", "z", "vx", "vy", "vz", "mass")] + [("kind", np.int32)])


@benchmark("struct", n=1 << 10)
def struct_array(rng, n=1 << 20):
    """1M structures of 32 bytes, three kinds"""
    p = np.zeros(n, PARTICLE)
    for name in PARTICLE.names[:6]:
        p[name] = rng.uniform(-1, 1, n)
    p["mass"], p["kind"] = rng.uniform(1, 2, n), rng.integers(0, 3, n)
    step, drag = f4(0.25), f4(0.5)

    def expected():
        v = np.stack([p["vx"], p["vy"], p["vz"]], 1).astype(np.float64)
        slow = 1 - np.float64(drag) * step / p["mass"]
        v = np.where((p["kind"] == 1)[:, None], v * slow[:, None], v)
        v[:, 1] -= (p["kind"] == 0) * np.float64(f4(9.81)) * step
        position = np.stack([p["x"], p["y"], p["z"]], 1) + v * step
        return {"to": np.concatenate([position, v, p["mass"][:, None], p["kind"][:, None].view(f4)], 1)}

    return Case(
        {"to": np.zeros((n, 8), f4), "from": p.view(f4).reshape(n, 8)},
        [Launch(["to", "from", step, drag], (n,), (64,))],
        expected,
        bytes=64 * n,
        rtol=1e-6,
        atol=1e-6,
    )


@benchmark("float4", n=1 << 10)
def float4_light(rng, n=1 << 20):
    """1M normals as float4, components mix"""
    normal = rng.uniform(-1, 1, (n, 4)).astype(f4)
    light, halfway = np.array([0.6, 0.7, 0.3, 0.1], f4), np.array([0.1, 0.8, 0.5, 0.2], f4)

    def expected():
        unit = normal / np.sqrt(np.sum(normal.astype(np.float64) ** 2, 1, keepdims=True))
        lambert = np.maximum(unit @ light, 0)[:, None]
        gloss = np.maximum(unit @ halfway, 0)[:, None] ** 4
        colour = np.array([0.8, 0.5, 0.3, 0], f4).astype(np.float64)
        return {"colour": np.float64(f4(0.1)) + lambert * colour + gloss * unit[:, ::-1]}

    return Case(
        {"colour": np.zeros((n, 4), f4), "normal": normal},
        [Launch(["colour", "normal", light, halfway], (n,), (64,))],
        expected,
        bytes=32 * n,
        flops=40 * n,
        rtol=1e-5,
        atol=2e-6,
    )
