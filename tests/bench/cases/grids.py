"""Stencils, convolutions, blurs and a transpose."""

from __future__ import annotations

import numpy as np

from tests.bench.model import Case, Launch, benchmark

f4 = np.float32


@benchmark("stencil", hand=0.30, n=64)
def stencil5(rng, n=2048):
    """2,048 x 2,048, edge copied"""
    source = rng.random((n, n), f4)

    def expected():
        s = source.astype(np.float64)
        to = s.copy()
        to[1:-1, 1:-1] = 0.5 * s[1:-1, 1:-1] + 0.125 * (
            s[1:-1, :-2] + s[1:-1, 2:] + s[:-2, 1:-1] + s[2:, 1:-1]
        )
        return {"to": to}

    return Case(
        {"to": np.zeros((n, n), f4), "from": source},
        [Launch(["to", "from", np.int32(n)], (n, n))],
        expected,
        bytes=8 * n * n,
        flops=6 * n * n,
        rtol=1e-6,
    )


@benchmark("stencil", n=16)
def stencil7(rng, n=160):
    """160 x 160 x 160, faces return early"""
    source, rate = rng.random((n, n, n), f4), f4(0.1)

    def expected():
        s = source.astype(np.float64)
        inner = s[1:-1, 1:-1, 1:-1]
        around = s[:-2, 1:-1, 1:-1] + s[2:, 1:-1, 1:-1] + s[1:-1, :-2, 1:-1] + s[1:-1, 2:, 1:-1]
        around += s[1:-1, 1:-1, :-2] + s[1:-1, 1:-1, 2:]
        to = np.zeros((n, n, n))
        to[1:-1, 1:-1, 1:-1] = inner + rate * (around - 6 * inner)
        return {"to": to}

    return Case(
        {"to": np.zeros((n, n, n), f4), "from": source},
        [Launch(["to", "from", np.int32(n), rate], (n, n, n), (16, 4, 1))],
        expected,
        bytes=8 * n**3,
        flops=9 * n**3,
        rtol=1e-6,
        atol=1e-6,
    )


@benchmark("stencil", n=32, steps=4)
def wave_steps(rng, n=384, steps=20):
    """384 x 384 twice, 20 steps of a wave: what the cores' caches hold"""
    first, second, rate = rng.random((n, n), f4), rng.random((n, n), f4), f4(0.2)

    def expected():
        before, now = first.astype(np.float64), second.astype(np.float64)
        for _ in range(steps):
            around = sum(np.roll(now, by, axis) for axis in (0, 1) for by in (1, -1))
            before, now = now, 2 * now - before + float(rate) * (around - 4 * now)
        return {"a": before, "b": now} if steps % 2 == 0 else {"a": now, "b": before}

    names = [("a", "b"), ("b", "a")]
    return Case(
        {"a": first, "b": second},
        [Launch([*names[step % 2], np.int32(n), rate], (n, n)) for step in range(steps)],
        expected,
        bytes=12 * n * n * steps,
        flops=8 * n * n * steps,
        rtol=1e-4,
        atol=1e-4,
    )


def sum_of_neighbours(source: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """5 x 5 weighted sums, coordinates clamped to the edge."""
    height, width = source.shape[:2]
    padded = np.pad(source, [(2, 2), (2, 2)] + [(0, 0)] * (source.ndim - 2), mode="edge")
    return sum(weights[y, x] * padded[y : y + height, x : x + width] for y in range(5) for x in range(5))


@benchmark("convolution", width=64, height=32)
def convolution(rng, width=1024, height=1024):
    """5 x 5 on 1,024 x 1,024 floats, edge clamped"""
    source, weights = rng.random((height, width), f4), rng.random((5, 5), f4)
    return Case(
        {"to": np.zeros((height, width), f4), "from": source, "weights": weights},
        [Launch(["to", "from", "weights", np.int32(width), np.int32(height)], (width, height), (16, 16))],
        lambda: {"to": sum_of_neighbours(source.astype(np.float64), weights)},
        bytes=8 * width * height,
        flops=50 * width * height,
        rtol=3e-6,
    )


@benchmark("convolution", width=64, height=32)
def blur_bytes(rng, width=1024, height=1024):
    """5 x 5 box on 1,024 x 1,024 uchar4 in a buffer"""
    source = rng.integers(0, 256, (height, width, 4), np.uint8)
    ones = np.ones((5, 5), np.uint32)
    return Case(
        {"to": np.zeros_like(source), "from": source},
        [Launch(["to", "from", np.int32(width), np.int32(height)], (width, height))],
        lambda: {"to": ((sum_of_neighbours(source.astype(np.uint32), ones) + 12) // 25).astype(np.uint8)},
        bytes=8 * width * height,
        flops=104 * width * height,
    )


@benchmark("transpose", n=64)
def transpose_local(rng, n=2048):
    """2,048 x 2,048 through 16 x 16 local tiles"""
    source = rng.random((n, n), f4)
    return Case(
        {"to": np.zeros((n, n), f4), "from": source},
        [Launch(["to", "from", np.int32(n)], (n, n), (16, 16))],
        lambda: {"to": source.T},
        bytes=8 * n * n,
        rtol=1e-7,
    )
