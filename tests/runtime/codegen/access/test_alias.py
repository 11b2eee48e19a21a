"""What is said of aliasing must reach LLVM, and no more than that.

Each kernel reads through one pointer, writes through another and reads again. Where LLVM was told that the
two do not meet, it takes the first value for the second; the tests pass one buffer as both, which a program
must not do, to see whether it did. clang leaves the kernels as they are (-cl-opt-disable).
"""

import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from cl_driver.spirv.enums import Decoration, FunctionParameterAttribute
from tests.runtime.kernel_harness import Program, compile_c
from tests.runtime.spirv_kernels import GROUP, ITEMS, buffer, module

ONE = {"parts": 1, "part_axis": 0}  # which reads LLVM leaves out depends on what is between
WIDTHS = (1, 8)
FEATURES = frozenset(host_target().features)
OPTIONS = "-cl-std=CL3.0 -cl-opt-disable"
ACCESSES = {
    "scalar": ("int x = b[i];", "a[i] = x + 1;", "int y = b[i];"),
    "strided": ("int x = b[3 * i];", "a[3 * i] = x + 1;", "int y = b[3 * i];"),
    "gather": ("int x = b[c * i];", "a[c * i] = x + 1;", "int y = b[c * i];"),
    "masked": ("int x, y; if (i % 3) { x = b[i];", "a[i] = x + 1;", "y = b[i]; } else { x = 0; y = 1; }"),
    "uniform": ("int x = b[get_group_id(0)];", "a[get_group_id(0)] = 7;",
                "int y = x - b[get_group_id(0)] == 0 ? x : x + 1;"),
    "vload": ("int x = vload4(i, b).y;", "vstore4((int4)(x + 1), i, a);", "int y = vload4(i, b).y;"),
    "half": ("int x = vload_half(i, (global half *)b);", "vstore_half(x + 1.f, i, (global half *)a);",
             "int y = vload_half(i, (global half *)b);"),
    "chosen": ("global int *p = c ? b + i : b + i; int x = *p;", "a[i] = x + 1;", "int y = *p;"),
}  # fmt: skip
REREAD = """
kernel void k(global int *{of_a} a, global {of_b} b, global int *out, int c) {{
  int i = get_global_id(0);
  {first} {write} {between} {second}
  out[i] = y - x;
}}
"""


def again(accesses: str, of_a: str, of_b: str, width: int, between: str = "") -> bool:
    """Whether all work-items' second reads are made, rather than none; a and b are one buffer."""
    first, write, second = ACCESSES[accesses]
    source = REREAD.format(of_a=of_a, of_b=of_b, first=first, write=write, second=second, between=between)
    options = CodegenOptions(features=FEATURES) if accesses in ("strided", "gather", "masked") else None
    program = Program(compile_c(source, OPTIONS), options, width, **ONE)
    both, out = buffer(4 * ITEMS, np.int32), buffer(ITEMS, np.int32)
    program.run("k", ITEMS, GROUP, both, both, out, np.int32(1))
    # LLVM does less about the masked accesses of what is left of a group behind its last full vector.
    full = GROUP // width * width
    made = [
        difference == 1
        for i, difference in enumerate(out.tolist())
        if i % GROUP < full and (accesses != "masked" or i % 3)
    ]
    if accesses == "uniform":  # those that come first change what others read
        return any(made)
    assert all(made) or not any(made), out
    return made[0]


@pytest.mark.parametrize("accesses", ACCESSES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_second_read_is_left_out(width, accesses):
    if width > 1 and accesses in ("strided", "gather") and "avx512f" not in FEATURES:
        pytest.skip("LLVM makes nothing of masked gathers that are loads of each lane")
    if width > 1 and accesses == "masked" and "avx" not in FEATURES:
        pytest.skip("nor of masked loads in versions")
    assert again(accesses, "", "int *", width)
    for qualifiers in (("restrict", "int *"), ("", "int *restrict"), ("restrict", "int *restrict")):
        assert not again(accesses, *qualifiers, width), qualifiers


@pytest.mark.parametrize("width", WIDTHS)
def test_constant_memory_is_read_once(width):
    for accesses in ("scalar", "vload"):  # LLVM makes nothing of it where gathers are concerned
        first, write, second = ACCESSES[accesses]
        assert again(accesses, "", "const int *", width)
        source = REREAD.replace("global {of_b}", "constant int *")
        source = source.format(of_a="", first=first, write=write, second=second, between="")
        program = Program(compile_c(source, OPTIONS), width=width, **ONE)
        both, out = buffer(4 * ITEMS, np.int32), buffer(ITEMS, np.int32)
        program.run("k", 24, 8, both, both, out, np.int32(1))  # masked reads are made
        assert out.tolist()[:24] == [0] * 24, accesses


def text(source: str, width: int = 1, options: str = OPTIONS) -> str:
    """The LLVM IR of kernel k."""
    return Program(compile_c(source, options), width=width).code("k").text


FENCES = {
    "fence": "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);",
    "atomic": "atomic_fetch_add_explicit((global atomic_int *)out, 0, memory_order_release);",
    "local atomic": "atomic_fetch_add_explicit(&flag, 0, memory_order_acquire, memory_scope_work_group);",
    "sub-group barrier": "sub_group_barrier(CLK_GLOBAL_MEM_FENCE);",
}


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("width", WIDTHS)
def test_what_orders_memory_ends_the_scopes(width, fence):
    """Another work-item's write through `a` may be seen through `b` after it."""
    flag = "local atomic_int flag; atomic_init(&flag, 0);" if "local" in fence else ""
    source = REREAD.replace("{{", "{{" + flag, 1)
    first, write, second = ACCESSES["scalar"]
    source = source.format(
        of_a="restrict", of_b="int *restrict", first=first, write=write, second=second, between=FENCES[fence]
    )
    assert "!alias.scope" not in text(source, width)
    relaxed = "atomic_fetch_add_explicit((global atomic_int *)out, 0, memory_order_relaxed);"
    assert "!alias.scope" in text(source.replace(FENCES[fence], relaxed), width)


BARRIERS = """
kernel void k(global int *restrict a, global int *restrict b, global int *out) {
  int i = get_global_id(0), l = get_local_id(0), n = get_local_size(0), next = i - l + (l + 1) % n;
  int sum = b[i] * (l > n);  // zero, whatever was read: in one region LLVM may exchange this and the write
  BEGIN
    a[i] += i + 1;
    barrier(CLK_GLOBAL_MEM_FENCE);
    sum += b[next];
    MORE
  END
  out[i] = sum;
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_barriers_end_the_scopes(width):
    """Regions that can come again have none, others their own: work-items hand over memory at a barrier."""
    once = BARRIERS.replace("BEGIN", "").replace("MORE", "").replace("END", "")
    repeated = BARRIERS.replace("BEGIN", "for (int r = 0; r < 4; r++) {").replace("END", "}")
    repeated = repeated.replace("MORE", "barrier(CLK_GLOBAL_MEM_FENCE);")
    i = np.arange(ITEMS)
    following = i - i % GROUP + (i % GROUP + 1) % GROUP
    for source, sums in ((once, 1), (repeated, 1 + 2 + 3 + 4)):
        both, out = buffer(ITEMS, np.int32), buffer(ITEMS, np.int32)
        Program(compile_c(source, OPTIONS), width=width).run("k", ITEMS, GROUP, both, both, out)
        assert out.tolist() == (sums * (following + 1)).tolist()
    lists = [set(re.findall(r"!alias.scope !{(.*?)}", part)) for part in text(once, width).split("\nr1:")]
    assert len(lists) == 2 and lists[0] and lists[1] and not lists[0] & lists[1]
    assert "b[next];\n    MORE" in BARRIERS and "!noalias" in text(repeated, width).split("\nr1:")[0]
    assert "!noalias" not in text(repeated, width).split("\nr1:")[1].split("ret void")[0].split("\nr3:")[0]


UNKNOWN = {
    "a pointer in memory": "*(global int *global *)pointers",
    "one of two": "(c ? a : b)",
    "an integer": "(global int *)(ulong)pointers[0]",
}


@pytest.mark.parametrize("pointer", UNKNOWN)
@pytest.mark.parametrize("width", WIDTHS)
def test_what_may_be_based_on_the_pointer(width, pointer):
    """A pointer that may come from a restrict one is read through again after a write through that one."""
    source = """
    kernel void k(global int *restrict a, global int *restrict b, global long *pointers, global int *out,
                  int c) {
      int i = get_global_id(0);
      global int *p = POINTER;
      int x = p[i]; a[i] = x + 1; int y = p[i];
      out[i] = y - x;
    }
    """.replace("POINTER", UNKNOWN[pointer])
    both, other, out = (buffer(ITEMS, np.int32) for _ in range(3))
    pointers = buffer(1, np.int64)
    pointers[0] = both.ctypes.data
    program = Program(compile_c(source, OPTIONS), width=width)
    program.run("k", ITEMS, GROUP, both, other, pointers, out, np.int32(1))
    assert out.tolist() == [1] * ITEMS


@pytest.mark.parametrize("width", WIDTHS)
def test_read_only_and_restrict(width):
    """Nothing is written there in any other way either: a pointer of unknown origin cannot change it."""
    source = """
    kernel void k(global const int *QUALIFIER b, global long *pointers, global int *out) {
      int i = get_global_id(0);
      global int *p = *(global int *global *)pointers;
      int x = b[i]; p[i] = x + 1; int y = b[i];
      out[i] = y - x;
    }
    """
    for qualifier, expected in (("", 1), ("restrict", 0)):
        # NoWrite is what clang finds out when it optimises, and then it leaves out the read itself.
        spirv = compile_c(source.replace("QUALIFIER", qualifier), OPTIONS)
        both, out, pointers = buffer(ITEMS, np.int32), buffer(ITEMS, np.int32), buffer(1, np.int64)
        pointers[0] = both.ctypes.data
        program = Program(spirv, width=width, **ONE)
        argument = program.module.entry_points[0].function.arguments[0]
        attributes = argument.decorations.get(Decoration.FuncParamAttr, frozenset())
        argument.decorations = {
            **argument.decorations,
            Decoration.FuncParamAttr: attributes | {FunctionParameterAttribute.NoWrite},
        }
        program.run("k", 24, 8, both, pointers, out)  # masked reads are made
        assert out.tolist()[:24] == [expected] * 24, qualifier


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("decoration", ["", "Restrict", "Aliased", "FuncParamAttr NoAlias"])
def test_decorations(width, decoration):
    body = "%s = OpIAdd %i32 %x %x\nOpStore %ax %s\n%r = OpLoad %i32 %bx"
    decorations = f"OpDecorate %a {decoration}" if decoration else ""
    found = Program(module(body, "i32", "i32", decorations=decorations), width=width).code("main").text
    has = decoration in ("Restrict", "FuncParamAttr NoAlias")
    assert ("!alias.scope" in found) == has and ("!noalias" in found) == has


@pytest.mark.parametrize("width", WIDTHS)
def test_volatile_accesses_and_local_memory(width):
    source = """
    kernel void k(local int *restrict a, VOLATILE local int *b, global int *out) {
      int l = get_local_id(0);
      b[l] = 5; int x = b[l]; a[l] = x + 1; int y = b[l];
      out[get_global_id(0)] = y - x;
    }
    """
    for qualifier in ("", "volatile"):
        found = text(source.replace("VOLATILE", qualifier), width)
        assert "!alias.scope" in found
        assert not [line for line in found.splitlines() if "volatile" in line and "!noalias" in line]
