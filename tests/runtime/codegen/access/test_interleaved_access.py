# ruff: noqa: E501  kernels as one line each
"""Fields of structures, one structure per lane: loaded and stored together, none of them mixed up."""

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from tests.marks import split
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = r"""
typedef struct { int a, b, c; } three;
typedef struct { float x, y, z, vx, vy, vz, mass; int kind; } eight;
typedef struct { double d; float f; int i; } mixed;
typedef struct { long a, b; } longs;
kernel void copied(global three *out, global const three *in) { size_t i = get_global_id(0); three t = in[i]; int s = t.a; t.a = t.c * 2; t.c = s - t.b; out[i] = t; }
kernel void eights(global eight *out, global const eight *in) { size_t i = get_global_id(0); eight p = in[i]; if (p.kind & 1) p.x += p.vx; p.vy *= p.mass; out[i] = p; }
kernel void some(global eight *out, global const eight *in) { size_t i = get_global_id(0); out[i].vz = in[i + 1].y + in[i + 2].mass; out[i].kind = in[i].kind; }
kernel void written_between(global three *out, global three *in) { size_t i = get_global_id(0); int a = in[i].a; out[i].b = a; int b = in[i].b; out[i].a = b; out[i].c = in[i].c; in[i].a = out[i].b + 1; in[i].b = 5; in[i].c = out[i].a; }
kernel void twice(global three *out, global const three *in) { size_t i = get_global_id(0); out[i].a = 1; out[i].b = in[i].a; out[i].a = in[i].b; out[i].c = 7; }
kernel void mixes(global mixed *out, global const mixed *in) { size_t i = get_global_id(0); out[i].d = in[i].d + in[i].f; out[i].f = in[i].i; out[i].i = 3; }
kernel void wide(global longs *out, global const longs *in) { size_t i = get_global_id(0); longs l = in[i]; l.a ^= l.b; out[i] = l; }
kernel void masked(global three *out, global const three *in) { size_t i = get_global_id(0); if (in[i].b & 1) { three t = in[i]; t.a++; out[i] = t; } }
kernel void strided(global int *out, global const int *in) { size_t i = get_global_id(0); out[i] = in[3 * i] - in[3 * i + 2]; out[64 + 2 * i] = 4; out[64 + 2 * i + 1] = out[i]; }
kernel void beside(global int *out, global const int *in) { size_t i = get_global_id(0); out[i] = in[2 * i + 1] - in[2 * i] * 3 + in[2 * i + 2] * 5 - in[2 * i + 4] * 7; }
kernel void pixels(global uchar *out, global const uchar *in) { int i = 3 * (int)get_global_id(0); uchar r = in[i], g = in[i + 1], b = in[i + 2]; out[i] = b; out[i + 1] = r ^ 3; out[i + 2] = g + r; }
kernel void two_of_four(global uchar *out, global const uchar *in) { size_t i = get_global_id(0); out[i] = in[4 * i + 1] - in[4 * i + 3]; }
kernel void one_of_eight(global char *out, global const char *in) { size_t i = get_global_id(0); out[2 * i] = in[8 * i + 5]; out[2 * i + 1] = in[8 * i + 2]; }
kernel void shorts(global short *out, global const ushort *in) { size_t i = 3 * get_global_id(0), k = 2 * get_global_id(0); short a = in[i] + in[i + 1], b = in[2 * i + 5], c = in[k] - in[k + 1]; out[i + 1] = a; out[i] = b; out[i + 2] = c; }
kernel void halves(global half *out, global const half *in) { size_t i = get_global_id(0); half t = in[2 * i]; out[2 * i] = in[2 * i + 1]; out[2 * i + 1] = t; }
kernel void of_pixels(global float *out, global const uchar *in) { int i = get_global_id(0); out[i] = in[3 * i] * 0.25f + in[3 * i + 1] * 0.5f + in[3 * i + 2]; }
"""
FORMS = ((4, 1), (16, 1), (8, 3), (8, 1), (4, 2), (16, 2), (32, 1))
NAMES = (
    "copied",
    "eights",
    "some",
    "written_between",
    "twice",
    "mixes",
    "wide",
    "masked",
    "strided",
    "beside",
    "pixels",
    "two_of_four",
    "one_of_eight",
    "shorts",
    "halves",
    "of_pixels",
)
ITEMS = 57


@pytest.fixture(scope="module", params=["", " -cl-opt-disable"])
def programs(request):
    data = compile_c(SOURCE, "-cl-std=CL3.0" + request.param)
    return {form: Program(data, width=form[0], parts=form[1]) for form in FORMS}


@pytest.mark.parametrize("forms", split(FORMS, 3), ids=["some", "others"])
@pytest.mark.parametrize("name", NAMES)
def test_fields(programs, name, forms):
    """Full vectors and what is left, against the interpreter."""
    data = np.random.default_rng(2).integers(1, 200, 64 * 8).astype(np.int32)
    if name in ("eights", "some"):
        data.reshape(-1, 8)[:, :7] = data.reshape(-1, 8)[:, :7].astype(np.float32).view(np.int32)
    if name == "mixes":
        data.reshape(-1, 4)[:, :2] = (
            data.reshape(-1, 2, 2)[:, 0, :1].astype(np.float64).view(np.int32)[: len(data) // 4]
        )
        data.reshape(-1, 4)[:, 2] = 1
    want, source = np.zeros_like(data), data.copy()
    interpret(programs[4, 1].module, name, [want, source, *()], (ITEMS,), (19,))
    for program in map(programs.get, forms):
        for local in (19, ITEMS):
            out, inputs = np.zeros_like(data), data.copy()
            program.run(name, ITEMS, local, out, inputs)
            assert np.array_equal(out, want), f"{name} at width {program.width}, groups of {local}"
            assert np.array_equal(inputs, source)


@pytest.mark.parametrize(
    ("name", "gathers"),
    [
        ("copied", False),
        ("eights", False),
        ("wide", False),
        ("masked", True),
        ("beside", False),
        ("pixels", False),
        ("two_of_four", False),
        ("shorts", False),
    ],
)
def test_full_vectors_do_without_gathers(programs, name, gathers):
    """Every access of a full vector is of whole vectors; those of the last one may be gathers."""
    text = programs[16, 1].code(name).text
    full = text[: text.index(".rest:")]
    assert ("masked.gather" in full or "extractelement <16 x ptr>" in full) == gathers
