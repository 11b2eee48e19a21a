"""Kernels of one expression, out[i] = r(a[i], b[i]), in SPIR-V assembly, checked against the interpreter."""

from __future__ import annotations

import re

import numpy as np

from cl_driver.interp.run import run as interpret
from tests.pure.spirv.assembler import CAPABILITIES, SCALARS, assemble
from tests.runtime.kernel_harness import Program

WIDTHS = (1, 4, 8, 16)
ITEMS, GROUP = 26, 13
X = (np.arange(ITEMS) * 37 % 23 - 11).astype(np.int32)
Y = (np.arange(ITEMS) * 11 % 17 - 5).astype(np.int32)

HEAD = f"""{CAPABILITIES}
CAPABILITIES
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %main "main" %gid
MODES
OpDecorate %gid BuiltIn GlobalInvocationId
DECORATIONS
{SCALARS}
%i64v3 = OpTypeVector %i64 3
%ptr_in = OpTypePointer Input %i64v3
TYPES
%pa = OpTypePointer CrossWorkgroup %A
%pr = OpTypePointer CrossWorkgroup %R
%fn = OpTypeFunction %void %pa %pa %pr
%gid = OpVariable %ptr_in Input
%main = OpFunction %void CONTROL %fn
%a = OpFunctionParameter %pa
%b = OpFunctionParameter %pa
%out = OpFunctionParameter %pr
%entry = OpLabel
LOCALS
%id3 = OpLoad %i64v3 %gid
%id = OpCompositeExtract %i64 %id3 0
%ax = OpInBoundsPtrAccessChain %pa %a %id
%bx = OpInBoundsPtrAccessChain %pa %b %id
%rx = OpInBoundsPtrAccessChain %pr %out %id
%x = OpLoad %A %ax
%y = OpLoad %A %bx
BODY
OpStore %rx %r
OpReturn
OpFunctionEnd
FUNCTIONS
"""


def module(body, operand, result, capabilities="", control="None", version=(1, 6), **parts) -> bytes:
    """A kernel out[i] = r, of x = a[i] and y = b[i]; operand, result: names of types.

    parts: modes, decorations, types (with what else is at module scope), locals, functions.
    """
    text = HEAD.replace("CAPABILITIES", capabilities).replace("CONTROL", control).replace("BODY", body)
    for part in ("modes", "decorations", "types", "locals", "functions"):
        text = text.replace(part.upper(), parts.get(part, ""))
    return assemble(text.replace("%A", f"%{operand}").replace("%R", f"%{result}"), version)


def buffer(shape, dtype) -> np.ndarray:
    """Zeros at an address that suits every vector type."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 128
    return memory[start : start + size].view(dtype).reshape(shape)


def check(spirv, a, b, out, widths=WIDTHS):
    """The results of all widths are those of the interpreter, which are given back."""
    want = buffer(out.shape, out.dtype)
    interpret(Program(spirv).module, "main", [a, b, want], (ITEMS,), (GROUP,))
    for width in widths:
        out[:] = 0
        Program(spirv, width=width).run("main", ITEMS, GROUP, a, b, out)
        np.testing.assert_array_equal(out, want, f"width {width}")
    return want


def flags(spirv: bytes, instruction: str, options=None) -> list[str]:
    """The flags of the first such instruction of LLVM."""
    text = Program(spirv, options, width=1).code("main").text
    line = next(line for line in text.splitlines() if f" {instruction} " in line)
    return sorted(re.split(r"\b(?:float|double) ", line.split(f" {instruction} ")[1])[0].split())


def text(spirv: bytes, width: int = 1) -> str:
    """The LLVM IR."""
    return Program(spirv, width=width, parts=1, part_axis=0).code("main").text


def same(body: str, expected, of=("i32", "i32"), widths=WIDTHS, x=X, y=Y, dtype=np.int32, **parts):
    """Runs a kernel at all widths and in the interpreter."""
    got = check(module(body, *of, **parts), x, y, buffer(len(x), dtype), widths)
    assert got.tolist() == [int(e) for e in expected]
