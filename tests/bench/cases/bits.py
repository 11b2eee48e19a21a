"""Integers, bytes and hashes."""

from __future__ import annotations

import base64 as encoding
import hashlib

import numpy as np

from tests.bench.model import Case, Launch, benchmark

u1, u4, u8 = np.uint8, np.uint32, np.uint64


def _digests(algorithm: str, order: str, messages: np.ndarray) -> np.ndarray:
    """The exclusive or of the words of the digest of each message (two words, in the hash's byte order)."""
    data = messages.astype(f"{order}u4").tobytes()
    new = getattr(hashlib, algorithm)
    digests = b"".join(new(data[i : i + 8]).digest() for i in range(0, len(data), 8))
    words = np.frombuffer(digests, f"{order}u4").reshape(len(messages), -1)
    return np.bitwise_xor.reduce(words, axis=1).astype(u4)


def _hash(rng, n, algorithm, order, operations):
    messages = rng.integers(0, 1 << 32, (n, 2), u4)
    return Case(
        {"to": np.zeros(n, u4), "message": messages},
        [Launch(["to", "message"], (n,), (64,))],
        lambda: {"to": _digests(algorithm, order, messages)},
        bytes=12 * n,
        flops=operations * n,
    )


@benchmark("hash", hand=1.74, n=1 << 10)
def sha256(rng, n=1 << 18):
    """262k blocks, rounds written out"""
    return _hash(rng, n, "sha256", ">", 64 * 35)


@benchmark("hash", n=1 << 10)
def md5(rng, n=1 << 19):
    """524k blocks, rounds as a loop over tables"""
    return _hash(rng, n, "md5", "<", 64 * 8)


@benchmark("hand-vectorised", n=16)
def chacha_uint16(rng, n=1 << 14):
    """16k times 16 ChaCha20 blocks in uint16, local size 1"""
    key = rng.integers(0, 1 << 32, 11, u4)

    def expected():
        counters = np.arange(16 * n, dtype=u4)
        words = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key[:8].tolist(), None, *key[8:].tolist()]
        start = [counters if w is None else np.full(16 * n, w, u4) for w in words]
        x = [w.copy() for w in start]

        def quarter(a, b, c, d):
            for to, by, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[to] += x[by]
                x[mixed] ^= x[to]
                x[mixed] = x[mixed] << u4(turn) | x[mixed] >> u4(32 - turn)

        for _ in range(10):
            for k in range(4):
                quarter(k, 4 + k, 8 + k, 12 + k)
            for k in range(4):
                quarter(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
        blocks = [(a + b).reshape(n, 16) for a, b in zip(x, start, strict=True)]
        return {"to": np.stack(blocks, 1)}

    return Case(
        {"to": np.zeros((n, 16, 16), u4), "key": key},
        [Launch(["to", "key"], (n,), (1,))],
        expected,
        bytes=1024 * n,
        flops=16 * (80 * 12 + 16) * n,
    )


@benchmark("division", width=60, height=50)
def remap_modulo(rng, width=2000, height=2000):
    """4M coordinates, divisors known at launch"""
    n, shift = width * height, 7
    source = rng.integers(0, 1 << 31, n, u4)

    def expected():
        y, x = np.divmod(np.arange(n), width)
        at = (y + shift) % height * width + (x + shift * y) % width
        return {"to": (source[at] + x // shift).astype(u4)}

    return Case(
        {"to": np.zeros(n, u4), "from": source},
        [Launch(["to", "from", u4(width), u4(height), u4(shift)], (n,))],
        expected,
        bytes=8 * n,
        flops=5 * n,
    )


@benchmark("division", n=1 << 10)
def gcd(rng, n=1 << 18):
    """256k pairs, Euclid's loop of remainders"""
    factor = rng.integers(1, 1 << 12, n, u4)
    left, right = (factor * rng.integers(1, 1 << 20, n, u4) for _ in range(2))
    return Case(
        {"to": np.zeros(n, u4), "left": left, "right": right},
        [Launch(["to", "left", "right"], (n,), (64,))],
        lambda: {"to": np.gcd(left, right)},
        bytes=12 * n,
    )


@benchmark("divergence", n=1 << 10)
def collatz(rng, n=1 << 19):
    """512k starts, up to some 450 steps"""

    def expected():
        values, steps = np.arange(1, n + 1, dtype=u8), np.zeros(n, u4)
        alive = np.arange(n)
        while True:
            going = values != 1
            alive, values = alive[going], values[going]
            if not len(alive):
                return {"steps": steps}
            steps[alive] += 1
            values = np.where(values & u8(1), u8(3) * values + u8(1), values >> u8(1))

    return Case(
        {"steps": np.full(n, 0xFFFF, u4)},
        [Launch(["steps", u4(1)], (n,))],
        expected,
        bytes=4 * n,
    )


def _machine_step(a, b, s):
    """One step of kernels/bits/switch_machine.cl for all work-items."""
    op = (a ^ u4(s)) & u4(7)
    odd = (b & u4(1)).astype(bool)
    wide = ((a.astype(u8) * b) >> u8(32)).astype(u4)
    multiplied = b * u4(5) + u4(1)
    new_a = [
        a + b, a, a << u4(5) | a >> u4(27), a - multiplied, a - b, a, np.where(odd, ~a, a), wide + u4(s),
    ]  # fmt: skip
    new_b = [
        b, b ^ a >> u4(3), b, multiplied, b, np.bitwise_count(a) + b, np.where(odd, b, np.maximum(a, b)), b,
    ]  # fmt: skip
    return np.choose(op, new_a) + u4(0x9E3779B9), np.choose(op, new_b)


@benchmark("divergence", n=1 << 10)
def switch_machine(rng, n=1 << 17, steps=64):
    """128k machines, 64 steps, the switch diverges"""
    source = rng.integers(0, 1 << 32, n, u4)

    def expected():
        a, b = source, source * u4(2654435761)
        for s in range(steps):
            a, b = _machine_step(a, b, s)
        return {"to": a ^ b}

    return Case(
        {"to": np.zeros(n, u4), "from": source},
        [Launch(["to", "from", np.int32(steps)], (n,), (64,))],
        expected,
        bytes=8 * n,
        flops=6 * n * steps,
    )


@benchmark("bytes", n=1 << 9)
def edit_distance(rng, n=1 << 16, length=24):
    """64k pairs of 24 letters, a private array each"""
    left, right = (rng.integers(97, 101, (n, length), u1) for _ in range(2))

    def expected():
        row = np.tile(np.arange(length + 1, dtype=np.int32), (n, 1))
        for y in range(length):
            corner = row[:, 0].copy()
            row[:, 0] = y + 1
            for x in range(length):
                kept = row[:, x + 1].copy()
                changed = corner + (left[:, y] != right[:, x])
                row[:, x + 1] = np.minimum(np.minimum(row[:, x], kept) + 1, changed)
                corner = kept
        return {"distance": row[:, length].copy()}

    return Case(
        {"distance": np.zeros(n, np.int32), "left": left, "right": right},
        [Launch(["distance", "left", "right"], (n,), (64,))],
        expected,
        bytes=52 * n,
        flops=6 * length * length * n,
    )


@benchmark("bytes", n=1 << 12)
def bytes_upper(rng, n=1 << 24):
    """16M bytes, one per work-item"""
    source = rng.integers(0, 128, n, u1)

    def expected():
        to = np.where((source >= 97) & (source <= 122), source - u1(32), source)
        return {"to": np.where(source < 32, u1(32), to)}

    return Case(
        {"to": np.zeros(n, u1), "from": source},
        [Launch(["to", "from"], (n,))],
        expected,
        bytes=2 * n,
    )


@benchmark("bytes", n=1 << 10)
def base64(rng, n=1 << 22):
    """4M triples of bytes through a table"""
    source = rng.integers(0, 256, 3 * n, u1)
    return Case(
        {"to": np.zeros(4 * n, u1), "from": source},
        [Launch(["to", "from"], (n,))],
        lambda: {"to": np.frombuffer(encoding.b64encode(source.tobytes()), u1)},
        bytes=7 * n,
    )
