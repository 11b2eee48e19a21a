"""Floating-point work: bodies, rays, fractals, options, orbits."""

from __future__ import annotations

import numpy as np

from tests.bench.model import Case, Launch, benchmark

f4, f8, u4 = np.float32, np.float64, np.uint32


@benchmark("n-body", hand=4.20, n=256)
def nbody(rng, n=8192):
    """8,192 bodies as float4, all pairs"""
    body, softening = rng.uniform(0.1, 1, (n, 4)).astype(f4), f4(0.01)

    def expected():
        position, mass = body[:, :3].astype(f8), body[:, 3].astype(f8)
        result = np.zeros((n, 4))
        for start in range(0, n, 256):
            here = position[start : start + 256]
            r2 = np.full((len(here), n), f8(softening))
            for axis in range(3):
                r2 += (position[None, :, axis] - here[:, None, axis]) ** 2
            weight = mass / (r2 * np.sqrt(r2))
            result[start : start + 256, :3] = weight @ position - weight.sum(1, keepdims=True) * here
        return {"acceleration": result}

    return Case(
        {"acceleration": np.ones((n, 4), f4), "body": body},
        [Launch(["acceleration", "body", np.int32(n), softening], (n,), (128,))],
        expected,
        bytes=32 * n,
        flops=20 * n * n,
        rtol=1e-4,
        atol=2e-6 * n,
    )


@benchmark("fractal", hand=1.41, n=64)
def mandelbrot(rng, n=1024, limit=200):
    """1,024 x 1,024, at most 200 iterations"""
    left, top, step = f4(-2.2), f4(-1.5), f4(3.0 / n)

    def expected():
        cx = np.tile(left + np.arange(n, dtype=f4) * step, n)
        cy = np.repeat(top + np.arange(n, dtype=f4) * step, n)
        count = np.zeros(n * n, np.int32)
        alive, x, y = np.arange(n * n), np.zeros(n * n, f4), np.zeros(n * n, f4)
        for _ in range(limit):
            stay = x * x + y * y < 4
            alive, x, y, cx, cy = (v[stay] for v in (alive, x, y, cx, cy))
            count[alive] += 1
            x, y = x * x - y * y + cx, 2 * x * y + cy
        return {"to": count.reshape(n, n)}

    return Case(
        {"to": np.full((n, n), -1, np.int32)},
        [Launch(["to", np.int32(n), left, top, step, np.int32(limit)], (n, n))],
        expected,
        bytes=4 * n * n,
        outliers=0.02,  # contraction to fma moves the escape of pixels near the set
    )


SPHERES = np.array(
    [
        [0, 0, 0, 1],
        [1.6, -0.3, 0.5, 0.7],
        [-1.7, 0.1, 0.8, 0.8],
        [0.6, 1.2, -0.4, 0.4],
        [-0.8, -0.6, -1.2, 0.4],
    ],
    f4,
)


@benchmark("rays", width=64, height=48)
def raymarch(rng, width=640, height=480, steps=64):
    """640 x 480, five spheres and a floor, at most 64 steps"""
    spheres = SPHERES

    def field(p):
        d = p[:, 1] + f4(1)
        for s in spheres:
            d = np.minimum(d, np.sqrt(np.sum((p - s[:3]) ** 2, 1)) - s[3])
        return d

    def expected():
        px, py = np.meshgrid(np.arange(width, dtype=f4), np.arange(height, dtype=f4))
        x, y = (px + f4(0.5)) * 2 / width - 1, 1 - (py + f4(0.5)) * 2 / height
        ray = np.stack([x, y, np.full_like(x, 1.5)], -1).reshape(-1, 3)
        ray /= np.sqrt(np.sum(ray * ray, 1, keepdims=True))
        eye = np.array([0, 0.3, -4], f4)
        along, colour = np.zeros(len(ray), f4), np.zeros(len(ray), f4)
        alive = np.arange(len(ray))
        for _ in range(steps):
            p = eye + along[alive, None] * ray[alive]
            d = field(p)
            hit = d < f4(0.001)
            at, near = p[hit], d[hit]
            up, side = (
                np.maximum(field(at + np.array(o, f4)) - near, 0) for o in ([0, 0.01, 0], [0.01, 0, 0])
            )
            colour[alive[hit]] = f4(0.3) + 50 * up + 20 * side
            alive, d = alive[~hit], d[~hit]
            along[alive] += d
            alive = alive[along[alive] <= 20]
        return {"to": (colour + f4(0.01) * along).reshape(height, width)}

    scalars = [np.int32(v) for v in (len(spheres), width, height, steps)]
    return Case(
        {"to": np.full((height, width), -1, f4), "spheres": spheres},
        [Launch(["to", "spheres", *scalars], (width, height), (16, 8))],
        expected,
        bytes=4 * width * height,
        rtol=1e-4,
        atol=1e-4,
        outliers=0.02,  # grazing rays take a step more or less
    )


def _normal(d):
    k = 1 / (1 + 0.2316419 * np.abs(d))
    p = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.39894228 * np.exp(-0.5 * d * d) * p
    return np.where(d > 0, 1 - tail, tail)


@benchmark("finance", hand=1.45, n=1 << 12)
def black_scholes(rng, n=1 << 21):
    """2M options"""
    price, strike = rng.uniform(5, 30, n).astype(f4), rng.uniform(5, 30, n).astype(f4)
    years, rate, volatility = rng.uniform(0.25, 5, n).astype(f4), f4(0.02), f4(0.3)

    def expected():
        s, x, t, r, v = (a.astype(f8) for a in (price, strike, years, rate, volatility))
        spread = v * np.sqrt(t)
        d1 = (np.log(s / x) + (r + 0.5 * v * v) * t) / spread
        n1, n2, discounted = _normal(d1), _normal(d1 - spread), x * np.exp(-r * t)
        return {"call": s * n1 - discounted * n2, "put": discounted * (1 - n2) - s * (1 - n1)}

    return Case(
        {"call": np.zeros(n, f4), "put": np.zeros(n, f4), "price": price, "strike": strike, "years": years},
        [Launch(["call", "put", "price", "strike", "years", rate, volatility], (n,))],
        expected,
        bytes=20 * n,
        flops=60 * n,
        rtol=2e-6,
        atol=2e-5,
    )


@benchmark("random", n=256, paths=8)
def monte_carlo(rng, n=1 << 16, paths=64):
    """64k work-items of 64 pairs of normals"""
    seed = rng.integers(1, 1 << 32, n, u4)
    drift, spread, strike = f4(0.01), f4(0.2), f4(1)

    def expected():
        x, total = seed.copy(), np.zeros(n)
        for _ in range(paths):
            uniforms = []
            for _ in range(2):
                x ^= x << u4(13)
                x ^= x >> u4(17)
                x ^= x << u4(5)
                uniforms.append((x >> u4(8)).astype(f8))
            u = (uniforms[0].astype(f4) + f4(0.5)).astype(f8) * 2.0**-24
            radius, angle = np.sqrt(-2 * np.log(u)), 2 * np.pi * uniforms[1] * 2.0**-24
            for turn in (np.cos, np.sin):
                total += np.maximum(np.exp(f8(drift) + f8(spread) * radius * turn(angle)) - strike, 0)
        return {"mean": total / (2 * paths)}

    return Case(
        {"mean": np.zeros(n, f4), "seed": seed},
        [Launch(["mean", "seed", np.int32(paths), drift, spread, strike], (n,), (64,))],
        expected,
        bytes=8 * n,
        flops=40 * n * paths,
        rtol=1e-5,
        atol=1e-6,
    )


@benchmark("random", n=1 << 10)
def philox(rng, n=1 << 20):
    """1M counters, four words each"""
    keys = (0x12345678, 0x9ABCDEF0)

    def expected():
        c = [np.arange(n, dtype=np.uint64)] + [np.zeros(n, np.uint64) for _ in range(3)]
        key0, key1 = keys
        low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
        for _ in range(10):
            p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
            c = [
                (p1 >> high) ^ c[1] ^ np.uint64(key0),
                p1 & low,
                (p0 >> high) ^ c[3] ^ np.uint64(key1),
                p0 & low,
            ]
            key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
        return {"to": np.stack(c, 1).astype(u4)}

    return Case(
        {"to": np.zeros((n, 4), u4)},
        [Launch(["to", u4(keys[0]), u4(keys[1])], (n,))],
        expected,
        bytes=16 * n,
        flops=100 * n,
    )


@benchmark("double", n=1 << 10)
def kepler_double(rng, n=1 << 18):
    """256k orbits, Newton until it stands still"""
    mean, eccentricity = rng.uniform(0, 2 * np.pi, n), rng.uniform(0.05, 0.8, n)

    def expected():
        x = mean + eccentricity * np.sin(mean)
        for _ in range(20):
            x = x - (x - eccentricity * np.sin(x) - mean) / (1 - eccentricity * np.cos(x))
        return {"eccentric": x}

    return Case(
        {"eccentric": np.zeros(n), "mean": mean, "eccentricity": eccentricity},
        [Launch(["eccentric", "mean", "eccentricity"], (n,), (64,))],
        expected,
        bytes=24 * n,
        rtol=1e-12,
        atol=1e-12,
    )


@benchmark("clusters", n=1 << 10)
def kmeans(rng, n=1 << 19, count=32):
    """512k points as float4, 32 centres"""
    points, centres = rng.random((n, 4), f4), rng.random((count, 4), f4)

    def expected():
        r = np.stack([np.sum((points - c) ** 2, 1, f8) for c in centres.astype(f8)], 1)
        return {"nearest": r.argmin(1).astype(np.int32), "distance2": r.min(1)}

    return Case(
        {
            "nearest": np.full(n, -1, np.int32),
            "distance2": np.zeros(n, f4),
            "points": points,
            "centres": centres,
        },
        [Launch(["nearest", "distance2", "points", "centres", np.int32(count)], (n,), (64,))],
        expected,
        bytes=24 * n,
        flops=11 * n * count,
        rtol=1e-5,
        outliers=1e-4,  # ties between centres
    )


@benchmark("hand-vectorised", n=1 << 9)
def poly_float8(rng, n=1 << 20):
    """1M float8, local size 1"""
    source = rng.uniform(-5, 5, (n, 8)).astype(f4)

    def expected():
        x = source.astype(f8).clip(-4, 4)
        s = x * x
        p = x * (135135 + s * (17325 + s * (378 + s)))
        return {"to": p / (135135 + s * (62370 + s * (3150 + s * 28)))}

    return Case(
        {"to": np.zeros((n, 8), f4), "from": source},
        [Launch(["to", "from"], (n,), (1,))],
        expected,
        bytes=64 * n,
        flops=8 * 17 * n,
        rtol=2e-6,
    )
