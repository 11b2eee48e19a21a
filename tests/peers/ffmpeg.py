"""Debian's ffmpeg: its OpenCL filters on a generated clip, beside the CPU filters of the same names.

python tests/peers/ffmpeg.py: prints for each filter and format how far it is off, and exits with 1 if that is
more than one level anywhere but at the edges, where the two have rules of their own, or if a filter did
nothing. unsharp is held to numpy: ffmpeg's two have different weights, the OpenCL one those of a normal
distribution with a variance of the square of its size by 32 (which its answer to an impulse shows).
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
from peers import environment, need

WIDTH, HEIGHT = 640, 360
CLIP = f"testsrc2=size={WIDTH}x{HEIGHT}:rate=5:duration=1"
BADGE = "testsrc2=size=192x128:rate=5:duration=1,format=rgba,colorchannelmixer=aa=0.6"
MATRIX = "'1 2 1 2 4 2 1 2 1" + ":1 2 1 2 4 2 1 2 1" * 3 + ":1/16" * 4 + "'"
UNSHARP = 5  # pixels, square
LEVELS = 1


@dataclass(frozen=True)
class Filter:
    """name=options of the OpenCL filter; edge: pixels at the edges where it need not be like the CPU's."""

    name: str
    options: str = ""
    formats: tuple[str, ...] = ("yuv420p",)
    edge: int = 0
    overlaid: str = ""  # the format of a second picture


FILTERS = [
    Filter("avgblur", "sizeX=3", ("yuv420p", "nv12", "rgba"), edge=3),
    Filter("boxblur", "luma_radius=3:luma_power=1", ("yuv420p", "rgba"), edge=3),
    Filter("convolution", MATRIX, ("yuv420p", "nv12", "rgba"), edge=1),
    Filter("sobel", "", ("yuv420p", "nv12", "rgba"), edge=1),
    Filter("prewitt", "", ("yuv420p", "nv12", "rgba"), edge=1),
    Filter("roberts", "", ("yuv420p", "nv12", "rgba"), edge=1),
    Filter("erosion"),
    Filter("dilation"),
    Filter("transpose", "dir=clock", ("yuv420p", "nv12", "rgba")),
    # Where chroma is of fewer pixels, some rows are another each time, on every driver.
    Filter("overlay", "x=33:y=17", ("yuv444p",), overlaid="yuva444p"),
    Filter("unsharp", f"lx={UNSHARP}:ly={UNSHARP}:la=1.5:cx={UNSHARP}:cy={UNSHARP}:ca=1.5", ("yuv420p",)),
]


def run(f: Filter, form: str, name: str) -> np.ndarray:
    """All frames that come out of the filter, as bytes. name: the filter's, "_opencl" at its end or not; or
    "null" for what goes in."""
    is_opencl = name.endswith("_opencl")
    options = f"={f.options}" if f.options and name != "null" else ""
    upload, download = (",hwupload", ",hwdownload") if is_opencl else ("", "")
    graph, inputs = f"[0]format={form}{upload}", ["-f", "lavfi", "-i", CLIP]
    if f.overlaid and name != "null":
        inputs += ["-f", "lavfi", "-i", BADGE]
        depth = "" if is_opencl else ":format=yuv444"
        graph += f"[a];[1]format={f.overlaid}{upload}[b];[a][b]{name}{options}{depth}{download},format={form}"
    else:
        graph += f",{name}{options}{download},format={form}"
    device = ["-init_hw_device", "opencl=ocl:0.0", "-filter_hw_device", "ocl"] if is_opencl else []
    command = ["ffmpeg", "-hide_banner", "-loglevel", "error", "-nostdin", *device, *inputs]
    command += ["-filter_complex", graph, "-f", "rawvideo", "-pix_fmt", form, "-"]
    done = subprocess.run(command, env=environment(), capture_output=True, timeout=300, check=False)
    if done.returncode or not done.stdout:
        sys.exit(f"{name} {form}: {done.stderr.decode().strip() or done.returncode}")
    return np.frombuffer(done.stdout, np.uint8)


def planes(data: np.ndarray, form: str, width: int, height: int) -> list[np.ndarray]:
    """int[frames, height, width, channels] of each plane."""
    if form == "rgba":
        shapes = [(height, width, 4)]
    elif form == "nv12":
        shapes = [(height, width, 1), (height // 2, width // 2, 2)]
    elif form == "yuv444p":
        shapes = [(height, width, 1)] * 3
    else:
        shapes = [(height, width, 1)] + [(height // 2, width // 2, 1)] * 2
    sizes = [int(np.prod(shape)) for shape in shapes]
    frames = data.reshape(-1, sum(sizes)).astype(int)
    parts = np.split(frames, np.cumsum(sizes)[:-1], axis=1)
    return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]


def sharpened(pixels: np.ndarray, size: int, amount: float) -> np.ndarray:
    """unsharp_opencl of frames[n, height, width, channels], coordinates clamped to the edge."""
    offsets = np.arange(size) - size // 2
    weights = np.exp(-(offsets**2) / (2 * size**2 / 32))
    weights /= weights.sum()
    blurred = pixels.astype(float)
    for axis in (1, 2):
        length = pixels.shape[axis]
        places = np.arange(length)
        blurred = sum(
            w * blurred.take(np.clip(places + k, 0, length - 1), axis)
            for k, w in zip(offsets, weights, strict=True)
        )
    return np.clip(np.rint(pixels + amount * (pixels - blurred)), 0, 255)


def inner(pixels: np.ndarray, edge: int) -> np.ndarray:
    return pixels[:, edge : pixels.shape[1] - edge, edge : pixels.shape[2] - edge]


def compare(f: Filter, form: str) -> bool:
    shape = (HEIGHT, WIDTH) if f.name == "transpose" else (WIDTH, HEIGHT)
    source = planes(run(f, form, "null"), form, WIDTH, HEIGHT)
    got = planes(run(f, form, f"{f.name}_opencl"), form, *shape)
    if f.name == "unsharp":
        want = [sharpened(plane, UNSHARP, 1.5) for plane in source]
    else:
        want = planes(run(f, form, f.name), form, *shape)
    off = max(np.abs(inner(g, f.edge) - inner(w, f.edge)).max() for g, w in zip(got, want, strict=True))
    differs = any(g.shape != s.shape or (g != s).mean() > 0.01 for g, s in zip(got, source, strict=True))
    verdict = "FAILED" if off > LEVELS else "ok" if differs else "FAILED: it did nothing"
    print(f"{f.name:12}{form:9}{off:4.0f} levels off  {verdict}")
    return verdict == "ok"


def main() -> int:
    need("ffmpeg")
    results = [compare(f, form) for f in FILTERS for form in f.formats]
    print(f"{sum(results)} of {len(results)} as on the CPU")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
