"""Random kernels on the device that is all workers, beside this machine's: python -m
tests.loader.cluster.random_cuts SEED COUNT [TIMES]. Ends with an exception where they come to different
results. TIMES: launches of each, 1 without it."""

from __future__ import annotations

import random
import struct
import sys

import numpy as np

from cl_driver.api.generated import enums as cl
from tests.loader.opencl import OpenCL

from .whole import Whole

WIDTH, HEIGHT = 37, 53  # of what two-dimensional kernels write
COUNT = WIDTH * HEIGHT
SIZE = 3 * COUNT  # ints of each buffer
COLUMNS = SIZE // HEIGHT  # of images that are made from buffers


class Kernels:
    """Text of kernels whose work-items write places of their own, and read where they like."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def number(self, depth: int = 0) -> str:
        """An int that work-items calculate."""
        pick, number = self.chance.choice, self.chance.randrange
        if depth > 3 or self.chance.random() < 0.25:
            return pick([
                "x", "y", "k", "w", "h", "(int)get_group_id(0)", "(int)get_local_id(0)", str(number(40)),
                "(int)(get_group_id(1) * get_local_size(1) + get_local_id(1))",
            ])  # fmt: skip
        a, b, c = self.number(depth + 1), self.number(depth + 1), number(1, 9)
        return pick([
            f"({a} + {b})", f"({a} - {b})", f"{a} * {c}", f"({a} - {c})", f"min({a}, {b})", f"max({a}, {c})",
            f"{a} / {c}", f"(int)((uint){a} % {c}u)", f"({a} >> {c % 5})", f"({a} << {c % 4})",
            f"({a} & {4 * c - 1})",
            f"clamp({a}, {c}, {b})", f"({a} < {b} ? {a} : {b} - {c})", f"(int)((uint){a} / {c}u)",
            f"({a} * w + {b})", f"(int)(uchar){a}", f"({a} | {c})", f"mad24({a}, {c}, {b})", f"(int)abs({a})",
            f"(int)((long){a} - {b})", f"({a} ^ {c})",
        ])  # fmt: skip

    def reads(self) -> str:
        """Statements that add to s what is read."""
        lines = []
        for _ in range(self.chance.randint(1, 3)):
            to, place = self.chance.choice("ab"), self.number()
            lines.append(f"{{ int j = {place}; if (j >= 0 && j < SIZE) s = 5 * s + {to}[j]; }}")
        text = "\n    ".join(lines)
        step = self.chance.choice(["k++", "k += 3", "k += w"])
        bounds = self.chance.choice(["k = 0; k < h", "k = x; k < x + 4", "k = 2; k <= 9", "k = 0; k < x % 5"])
        loop = f"for (int {bounds}; {step}) {{\n    {text}\n    }}"
        back = f"for (int k = {self.chance.randint(3, 9)}; k > 0; k--) {{\n    {text}\n    }}"
        return self.chance.choice([f"{{ int k = 7; {text} }}", loop, back])

    def write_pixel(self) -> str:
        """A statement that writes s to a place of the work-item's own in an image, or outside of it."""
        number = self.chance.randrange
        x = self.chance.choice(["x", "2 * x", "w - 1 - x", f"x + {number(90)}", f"x - {number(5)}"])
        y = self.chance.choice(["y", "h - 1 - y", f"y + {number(9)}", f"y - {number(60)}", "y + w - w / 2"])
        if self.chance.random() < 0.2:  # rows of the image are columns of work-items
            x, y = "y", "x"
        at = f"(int2)({x}, {y})"
        return self.chance.choice([
            f"write_imagei(image, {at}, (int4)s);",
            f"write_imagei(image, {at}, read_imagei(image, {at}) + (int4)s);",
        ])  # fmt: skip

    def kernel(self, name: str, has_image: bool) -> str:
        """One of them."""
        guard = self.chance.choice([
            "if (x < w && y < h)", "if (x >= w || y >= h) return;",
            "if (x > 0 && y > 0 && x < w - 1 && y < h - 1)", "if ((uint)(x - 1) < (uint)(w - 2) && y < h)",
        ])  # fmt: skip
        place = self.chance.choice([
            "y * w + x", "x * h + y", "(h - 1 - y) * w + x", "2 * (y * w + x) + 1", "mad24(y, w, x)",
            "y * w + x + 5", "(y * (w + 3)) + x",
        ])  # fmt: skip
        write = self.chance.choice(["out[{0}] = s;", "out[{0}] = s + 3 * out[{0}];", "out[{0}] += s;"])
        out = "global int *out"
        if has_image:
            write = self.write_pixel()
            out = "read_write image2d_t image" if "read" in write else "write_only image2d_t image"
        return f"""
kernel void {name}(global const int *a, global const int *b, {out}, int w, int h) {{
    int x = get_global_id(0), y = get_global_id(1), s = 1;
    {guard} {{
    {self.reads()}
    {write.format(place)}
    }}
}}"""


def main() -> None:
    seed, count, times = int(sys.argv[1]), int(sys.argv[2]), int((*sys.argv, "1")[3])
    kernels = Kernels(random.Random(seed))
    has_image = [kernels.chance.random() < 0.4 for _ in range(count)]
    texts = (kernels.kernel(f"k{i}", has_image[i]) for i in range(count))
    source = f"#define SIZE {SIZE}\n" + "\n".join(texts)
    whole = Whole(source)
    alone = OneDevice(whole, source)
    values = np.random.default_rng(seed)
    contents = [values.integers(-1000, 1000, SIZE, dtype=np.int32) for _ in range(3)]
    there, here = ([host.array(one) for one in contents] for host in (whole, alone))
    sizes = np.int32(WIDTH), np.int32(HEIGHT)
    for i in range(count):
        local = 16, kernels.chance.choice([4, 8])
        for host, buffers in ((whole, there), (alone, here)):
            for _ in range(times):
                out = image_of(host, buffers[2]) if has_image[i] else buffers[2]
                host.run(f"k{i}", (48, 56), *buffers[:2], out, *sizes, local=local)
                if times > 1:
                    host.finish()
        # What was written is read by the next one.
        for buffers in (there, here):
            buffers.append(buffers.pop(0))
        if not (whole.values(there[1], contents[0]) == alone.values(here[1], contents[0])).all():
            text = source[source.index(f"kernel void k{i}(") :]
            raise AssertionError(text[: text.index("\n}") + 2])


def image_of(host: Whole, buffer: int) -> int:
    """An image of one int for each pixel, which is all of a buffer."""
    image_format = np.array([cl.CL_R, cl.CL_SIGNED_INT32], np.uint32).tobytes()
    kind, pitch = cl.CL_MEM_OBJECT_IMAGE2D, 4 * COLUMNS
    desc = struct.pack("<I4x6Q2IQ", kind, COLUMNS, HEIGHT, 1, 1, pitch, 0, 0, 0, buffer)
    return host.cl.make("clCreateImage", host.context, 0, image_format, desc, None)


class OneDevice(Whole):
    """This machine's device alone."""

    def __init__(self, other: Whole, source: str) -> None:
        self.cl: OpenCL = other.cl
        self.launched = []
        self.context = self.cl.make("clCreateContext", None, 1, other.every[:1], None, None)
        self.queue = self.cl.make("clCreateCommandQueueWithProperties", self.context, other.every[0], [0])
        self.program = self.cl.program(self.context, source)
        self.cl.build(self.program, "-cl-std=CL3.0")


if __name__ == "__main__":
    main()
