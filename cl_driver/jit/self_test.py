"""Whether an LLVM of another version than the tested one makes right code of what the code generator writes:
a function of such text is compiled with each list of passes, runs, and must have the right result. It runs in
a process of its own, since an LLVM may end that on what it does not know."""

from __future__ import annotations

import ctypes
import subprocess

from .. import trust
from ..device.target import Target
from . import apart, llvm_paths
from .errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .llvm_library import Library
    from .llvm_lite import Lite

PASSES = ("O0", "O1", "O2", "scalar", "short", "ordered")
LANES = 16
_TIME_LIMIT = 120  # seconds

# As codegen/ writes kernels of 16 lanes: masks, gathers, masked stores, a loop with a phi of vectors, funnel
# shifts, reductions, atomics, fused products, and a function that is to be inlined.
TEXT = """
define internal <16 x i32> @mixed(<16 x i32> %a, <16 x i32> %b) #1 {
  %r = call <16 x i32> @llvm.fshl.v16i32(<16 x i32> %a, <16 x i32> %a, <16 x i32> splat (i32 7))
  %c = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %b)
  %s = add <16 x i32> %r, %c
  ret <16 x i32> %s
}
define void @self_test(ptr noalias %numbers, ptr noalias %floats, ptr %sum, i32 %n) #0 {
entry:
  %a = load <16 x i32>, ptr %numbers, align 4
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x = phi <16 x i32> [ %a, %entry ], [ %y, %loop ]
  %one = insertelement <16 x i32> poison, i32 %i, i32 0
  %all = shufflevector <16 x i32> %one, <16 x i32> poison, <16 x i32> zeroinitializer
  %y = call <16 x i32> @mixed(<16 x i32> %x, <16 x i32> %all)
  %next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %index = and <16 x i32> %y, splat (i32 15)
  %mask = icmp ugt <16 x i32> %index, splat (i32 3)
  %wide = zext nneg <16 x i32> %index to <16 x i64>
  %at = getelementptr inbounds float, ptr %floats, <16 x i64> %wide
  %g = call <16 x float> @llvm.masked.gather.v16f32.v16p0(
      <16 x ptr> align 4 %at, <16 x i1> %mask, <16 x float> zeroinitializer)
  %f = call <16 x float> @llvm.fma.v16f32(
      <16 x float> %g, <16 x float> splat (float 2.0), <16 x float> splat (float 0.5))
  %to = getelementptr inbounds i8, ptr %floats, i64 64
  call void @llvm.masked.store.v16f32.p0(<16 x float> %f, ptr align 4 %to, <16 x i1> %mask)
  %total = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %y)
  %old = atomicrmw add ptr %sum, i32 %total monotonic
  store <16 x i32> %y, ptr %numbers, align 4
  ret void
}
attributes #0 = { nounwind "prefer-vector-width"="512" "no-builtin-strlen" "no-builtin-wcslen" }
attributes #1 = { nounwind alwaysinline "prefer-vector-width"="512" }
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
"""
NAME = "self_test"
_NUMBERS = [(n * 0x9E3779B1 + 17) & 0xFFFFFFFF for n in range(LANES)]
_FLOATS = [n * 0.25 for n in range(LANES)]
_ROUNDS = 5


def expected() -> tuple[list[int], list[float], int]:
    """What the function leaves, as Python has it."""
    numbers = list(_NUMBERS)
    for i in range(_ROUNDS):
        numbers = [((x << 7 | x >> 25) + i.bit_count()) & 0xFFFFFFFF for x in numbers]
    stored = [-1.0] * LANES
    for lane, x in enumerate(numbers):
        if x & 15 > 3:
            stored[lane] = _FLOATS[x & 15] * 2.0 + 0.5
    return numbers, _FLOATS + stored, (100 + sum(numbers)) & 0xFFFFFFFF


def failure(llvm: Library | Lite, target: Target) -> str:
    """What is wrong with the code of an LLVM for that target, which is this machine's; "" if nothing is."""
    for passes in PASSES:
        try:
            data, _ = llvm.generate(TEXT, target, passes, 2)
            address = llvm.run_here(data, NAME)
        except (CompileError, RuntimeError, AttributeError) as why:
            return f"{passes}: {why}"
        numbers = (ctypes.c_uint32 * LANES)(*_NUMBERS)
        floats = (ctypes.c_float * (2 * LANES))(*_FLOATS, *[-1.0] * LANES)
        total = ctypes.c_uint32(100)
        ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int)(address)(
            ctypes.addressof(numbers), ctypes.addressof(floats), ctypes.addressof(total), _ROUNDS
        )
        if (list(numbers), list(floats), total.value) != expected():
            return f"{passes}: wrong results"
    return ""


def ask(name: str) -> tuple[tuple[int, ...], str]:
    """The version of an LLVM, (0,) if it is none, and what is wrong with it, "" if nothing is: both found out
    by another process. name: a library's, or llvmlite."""
    command = apart.command("main", name, str(llvm_paths.TESTED))
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIME_LIMIT,
            stdin=subprocess.DEVNULL,
            env=dict(trust.environment()),
        )
    except (OSError, subprocess.SubprocessError) as why:
        return (0,), str(why)
    version, _, rest = done.stdout.partition("\n")
    if done.returncode == 0 and rest.endswith("\n"):
        return tuple(map(int, version.split("."))), rest.strip()
    words = (done.stderr.strip().splitlines() or [""])[-1]
    return (0,), f"the process that tried it ended with status {done.returncode}: {words}".removesuffix(": ")
