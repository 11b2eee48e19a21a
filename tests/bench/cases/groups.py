"""What groups do together: reductions, scans, sorts, histograms, transforms."""

from __future__ import annotations

import numpy as np

from tests.bench.model import Case, Launch, Local, benchmark

f4, u4 = np.float32, np.uint32


@benchmark("reduction", hand=0.68, n=1 << 12)
def reduce_tree(rng, n=1 << 24, group=256):
    """16M floats, a tree in local memory per 256"""
    values = rng.random(n, f4)
    return Case(
        {"sums": np.zeros(n // group, f4), "values": values},
        [Launch(["sums", "values", Local(4 * group)], (n,), (group,))],
        lambda: {"sums": values.reshape(-1, group).sum(1, np.float64)},
        bytes=4 * n,
        flops=n,
        rtol=1e-5,
    )


@benchmark("reduction", n=1 << 14, groups=8)
def reduce_stride(rng, n=1 << 24, groups=64, group=256):
    """16M floats, 64 groups of 256 stride over them"""
    values = rng.random(n, f4)
    return Case(
        {"sums": np.zeros(groups, f4), "values": values},
        [Launch(["sums", "values", np.int32(n), Local(4 * group)], (groups * group,), (group,))],
        lambda: {"sums": values.reshape(-1, groups, group).sum((0, 2), np.float64)},
        bytes=4 * n,
        flops=n,
        rtol=3e-5,
    )


@benchmark("reduction", rows=16)
def softmax(rng, rows=4096, columns=512, group=128):
    """4,096 rows of 512, a group of 128 per row"""
    source = rng.uniform(-4, 4, (rows, columns)).astype(f4)

    def expected():
        e = np.exp(source.astype(np.float64))
        return {"to": e / e.sum(1, keepdims=True)}

    return Case(
        {"to": np.zeros((rows, columns), f4), "from": source},
        [Launch(["to", "from", np.int32(columns), Local(4 * group)], (rows * group,), (group,))],
        expected,
        bytes=8 * rows * columns,
        flops=4 * rows * columns,
        rtol=1e-5,
    )


@benchmark("scan", n=1 << 12)
def scan_hillis(rng, n=1 << 22, group=256):
    """4M floats, inclusive within groups of 256"""
    source = rng.random(n, f4)
    return Case(
        {"to": np.zeros(n, f4), "from": source},
        [Launch(["to", "from", Local(8 * group)], (n,), (group,))],
        lambda: {"to": source.reshape(-1, group).cumsum(1, np.float64).reshape(-1)},
        bytes=8 * n,
        flops=8 * n,
        rtol=1e-5,
    )


@benchmark("scan", n=1 << 12)
def scan_blelloch(rng, n=1 << 22, group=128):
    """4M uints, exclusive within groups of 128, two each"""
    source = rng.integers(0, 1 << 20, n, u4)

    def expected():
        blocks = source.reshape(-1, 2 * group)
        return {"to": (blocks.cumsum(1, u4) - blocks).reshape(-1)}

    return Case(
        {"to": np.zeros(n, u4), "from": source},
        [Launch(["to", "from", Local(8 * group)], (n // 2,), (group,))],
        expected,
        bytes=8 * n,
        flops=2 * n,
    )


@benchmark("sort", n=1 << 12)
def bitonic_local(rng, n=1 << 20, group=256):
    """1M uints in blocks of 512 in local memory"""
    data = rng.integers(0, 1 << 32, n, u4)
    return Case(
        {"data": data},
        [Launch(["data", Local(8 * group)], (n // 2,), (group,))],
        lambda: {"data": np.sort(data.reshape(-1, 2 * group), axis=1).reshape(-1)},
        bytes=8 * n,
    )


@benchmark("sort", n=1 << 12)
def bitonic_merge(rng, n=1 << 20):
    """1M uints, the last 20 steps of a global sort"""
    data = np.sort(rng.integers(0, 1 << 32, n, u4).reshape(2, -1), axis=1)
    data = np.concatenate([data[0], data[1, ::-1]])
    distances = [1 << k for k in reversed(range(n.bit_length() - 1))]
    return Case(
        {"data": data},
        [Launch(["data", u4(distance), u4(n)], (n,), (256,)) for distance in distances],
        lambda: {"data": np.sort(data)},
        bytes=8 * n * len(distances),
    )


@benchmark("histogram", n=1 << 14, groups=4)
def histogram_local(rng, n=1 << 23, groups=128, group=256):
    """8M bytes, 256 bins by local atomics"""
    data = rng.normal(128, 40, n).clip(0, 255).astype(np.uint8)
    return Case(
        {"bins": np.zeros(256, u4), "data": data},
        [Launch(["bins", "data", np.int32(n)], (groups * group,), (group,))],
        lambda: {"bins": np.bincount(data, minlength=256).astype(u4)},
        bytes=n,
    )


@benchmark("histogram", n=1 << 12)
def histogram_global(rng, n=1 << 21, bins=4096):
    """2M uints, 4,096 bins by global atomics"""
    data = rng.integers(0, 1 << 32, n, u4)
    return Case(
        {"bins": np.zeros(bins, u4), "data": data},
        [Launch(["bins", "data", u4(bins - 1)], (n,), (256,))],
        lambda: {"bins": np.bincount(data & (bins - 1), minlength=bins).astype(u4)},
        bytes=4 * n,
    )


@benchmark("histogram", n=1 << 12)
def atomic_count(rng, n=1 << 22):
    """4M floats, a tenth of them counted at one address"""
    data = rng.random(n, f4)
    return Case(
        {"counter": np.zeros(1, u4), "data": data},
        [Launch(["counter", "data", f4(0.9)], (n,), (128,))],
        lambda: {"counter": np.array([np.count_nonzero(data > f4(0.9))], u4)},
        bytes=4 * n,
    )


def _points(rng, shape) -> np.ndarray:
    return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(np.complex64)


@benchmark("fft", n=1 << 12)
def fft_pass(rng, n=1 << 20):
    """1M complex points, ten radix-4 passes, sincos"""
    points = _points(rng, n)
    passes = (n.bit_length() - 1) // 2
    names = ["one", "two"]
    launches = [
        Launch([names[(p + 1) % 2], names[p % 2], np.int32(4**p)], (n // 4,), (64,)) for p in range(passes)
    ]
    # An even number of passes ends where it began, and another run would transform the result.
    launches[0] = Launch(["two", "from", np.int32(1)], (n // 4,), (64,))
    return Case(
        {"one": np.zeros((n, 2), f4), "two": np.zeros((n, 2), f4), "from": points.view(f4).reshape(n, 2)},
        launches,
        lambda: {names[passes % 2]: np.fft.fft(points.astype(np.complex128)).view(np.float64).reshape(n, 2)},
        bytes=16 * n * passes,
        flops=34 * n // 4 * passes,
        rtol=1e-5,
        atol=5e-6 * np.sqrt(n),
    )


@benchmark("fft", batch=16)
def fft_local(rng, batch=4096):
    """4,096 transforms of 256 points in local memory"""
    points = _points(rng, (batch, 256))
    n = points.size
    return Case(
        {"to": np.zeros((n, 2), f4), "from": points.view(f4).reshape(n, 2)},
        [Launch(["to", "from"], (n // 4,), (64,))],
        lambda: {"to": np.fft.fft(points.astype(np.complex128)).reshape(-1).view(np.float64).reshape(n, 2)},
        bytes=16 * n,
        flops=34 * n,
        atol=3e-5,
    )
