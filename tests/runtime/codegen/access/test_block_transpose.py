# ruff: noqa: E501  kernels as one line each
"""OpenCL vectors of 32-bit numbers on CPUs with AVX2 and no AVX-512: each component is where it belongs, by one
instruction for each shuffle."""

import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import make_target
from cl_driver.interp.run import run as interpret
from cl_driver.jit import emit
from tests.runtime.emulation import IS_ARM
from tests.runtime.kernel_harness import Program, compile_c

TARGET = make_target(host_cpu(), "x86-64-v3")
OPTIONS = CodegenOptions(features=frozenset(TARGET.features))

pytestmark = pytest.mark.skipif(
    IS_ARM or "avx2" not in TARGET.features or "avx512f" in TARGET.features, reason="about AVX2"
)

SOURCE = r"""
kernel void near4(global float4 *out, global const float4 *in) { size_t i = get_global_id(0); float4 v = in[i]; out[i] = (float4)(v.w - v.x, v.x * v.y, v.z + 1, v.y); }
kernel void near3(global float *out, global const float *in) { size_t i = get_global_id(0); float3 v = vload3(i, in); vstore3(v.zxy * v.yzx, i, out); }
kernel void wide3(global float3 *out, global const float3 *in) { size_t i = get_global_id(0); float3 v = in[i]; out[i] = v.zxy * v.yzx; }
kernel void near8(global int8 *out, global const int8 *in) { size_t i = get_global_id(0); int8 v = in[i]; out[i] = v.s76543210 + v.s02461357; }
kernel void near16(global uint16 *out, global const uint16 *in) { size_t i = get_global_id(0); uint16 v = in[i]; out[i] = v.sfedcba9876543210 ^ v.s048c159d26ae37bf; }
kernel void masked4(global float4 *out, global const float4 *in) { size_t i = get_global_id(0); if (in[i].x > 0) { float4 v = in[i]; out[i] = v.wzyx; } }
kernel void masked8(global int8 *out, global const int8 *in) { size_t i = get_global_id(0); if (i % 3) { int8 v = in[i]; out[i] = v.s75312064 * 2; } }
kernel void gathered4(global float4 *out, global const float4 *in) { size_t i = get_global_id(0); out[i] = in[i * 13 % 41].yzwx; }
kernel void gathered8(global int8 *out, global const int8 *in) { size_t i = get_global_id(0); if (i & 1) out[i] = in[i * 7 % 23].s45670123; }
kernel void scattered4(global float4 *out, global const float4 *in) { size_t i = get_global_id(0); out[i * 5 % 64] = in[i].wyzx; }
kernel void scattered8(global int8 *out, global const int8 *in) { size_t i = get_global_id(0); if (in[i].s0 & 1) out[i * 3 % 64] = in[i].s67452301; }
typedef struct { float a, b, c, d; } four;
kernel void fields(global four *out, global const four *in) { size_t i = get_global_id(0); four f = in[i]; f.a += f.d; f.c *= f.b; out[i] = f; }
kernel void some(global float *out, global const four *in) { size_t i = get_global_id(0); out[i] = in[i].c - in[i].a; }
kernel void row(global float4 *out, global const float4 *in) { size_t i = get_global_id(0); float4 s = 0; for (int k = 0; k < 4; k++) s += in[i * 4 % 16 + k].xxyy; out[i] = s; }
"""
NAMES = re.findall(r"kernel void (\w+)", SOURCE)
ITEMS = 57
FORMS = ((8, 1), (16, 1), (8, 2), (4, 1))


@pytest.fixture(scope="module")
def programs():
    data = compile_c(SOURCE)
    return {form: Program(data, OPTIONS, width=form[0], parts=form[1]) for form in FORMS}


@pytest.mark.parametrize("name", NAMES)
def test_components(programs, name):
    """Full vectors and what is left, against the interpreter."""
    rng = np.random.default_rng(4)
    is_int = "8" in name or "16" in name
    data = rng.integers(-99, 100, 64 * 16).astype(np.int32 if is_int else np.float32)
    want = np.zeros_like(data)
    interpret(programs[8, 1].module, name, [want, data.copy()], (ITEMS,), (19,))
    for form, program in programs.items():
        for local in (19, ITEMS):
            out = np.zeros_like(data)
            program.run(name, ITEMS, local, out, data.copy())
            assert np.array_equal(out, want), f"{name} at {form}, groups of {local}"


SHUFFLE = re.compile(
    r"^\s+v(perm\w+|unpck\w+|shuf\w+|blend\w+|insert\w+|extract\w+|broadcast\w+|mov[sl]?h?dup|movs[sd])\b",
    re.M,
)


@pytest.mark.parametrize(("name", "most"), [("near4", 24), ("wide3", 24), ("near8", 48), ("gathered4", 32)])
def test_each_shuffle_is_one_instruction(programs, name, most):
    """Of 8 lanes: four members are taken apart by 4 + 8, and put together by 8 + 4."""
    text = emit.assembly(programs[8, 1].code(name).text, TARGET, "short")
    blocks = [len(SHUFFLE.findall(block)) for block in re.split(r"^\.\w+:", text, flags=re.M)]
    assert 0 < max(blocks) <= most + 4, blocks  # a few splat what is uniform
