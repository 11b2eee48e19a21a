"""Whole vectors under a mask: lanes outside of it touch no memory, whatever instructions the CPU has."""

import ctypes
import mmap
import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from tests.marks import halved, split
from tests.runtime.emulation import IS_ARM
from tests.runtime.kernel_harness import Program, compile_c

TYPES = {"char": "i1", "ushort": "u2", "int": "i4", "float": "f4", "double": "f8", "long": "i8",
         "uchar2": "u1", "char3": "i1", "uchar4": "u1", "short8": "i2", "int2": "i4", "float4": "f4",
         "double2": "f8", "float3": "f4"}  # fmt: skip
KERNELS = """
kernel void at_the_end_{type}(global {scalar} *to, global {scalar} *from, global const int *mask, int n) {{
  int i = get_global_id(0);
  if (i < n && mask[i]) STORE(LOAD(i, from) + ({type})3, i, to); }}
kernel void at_the_start_{type}(global {scalar} *to, global {scalar} *from, global const int *mask, int n) {{
  int i = get_global_id(0);
  if (i >= n && mask[i]) STORE(LOAD(i - n, from) + ({type})3, i - n, to); }}
"""
ORDER = """
// Stores that wait for one another stay in order, and before whatever may see them. zero: so that no compiler
// knows which places are one.
kernel void order(global int *a, global const int *mask, global int *out, int zero) {
  int i = get_global_id(0), m = mask[i];
  if (m & 1) { a[i] = 1; a[i + 64] = 2; a[i + zero] = 3; }
  out[i] = a[i + zero];
  if (m & 2) { a[i + 64 + zero] = 4; }
  if (m & 4) { a[i + 64] = 5; a[i + 64 + zero] = i; out[i + 64] = a[i + 64]; }
  a[i + 40 * 4] = m;
  if (m & 1) { a[i + 40 * 4 + zero] = 7; a[(i * 5 & 31) + 256] = 9; a[(i * 5 & 31) + 256 + zero] = 10; }
  if (m & 1) { a[i + zero] = 6; a[300] = 11; a[i] += 12; }
  a[i + 320] = 1;
  if (m & 2) { a[i + 320 + zero] = 2; }
  a[i + 320] += 5;
}
"""
PRIVATE = """
// An index that is only one in lanes of the mask.
kernel void private_array(global int *out, global const int *mask, int n, int far) {
  int i = get_global_id(0); int a[16]; short b[8];
  for (int k = 0; k < 16; k++) a[k] = i + k;
  for (int k = 0; k < 8; k++) b[k] = i - k;
  int m = mask[i];
  for (int k = 0; k < n; k++) {
    if (mask[i + k] & 1) a[k] = m;
    if (mask[i + k] & 8) { a[far + k] = 5; b[far] = 3; }
    if (m & 2) b[k & 7] = k;
  }
  if (m & 4) { a[3] = 9; b[2] = 1; }
  int sum = 0;
  for (int k = 0; k < n; k++) sum = sum * 3 + a[k] + b[k & 7];
  out[i] = sum;
}
"""
X86 = {"sse": "sse4.1 ssse3", "avx2": "fma f16c sse4.1 avx avx2"}
X86["avx512"] = X86["avx2"] + " avx512f avx512bw avx512dq avx512vl"
X86["slow"] = X86["avx2"]  # masked stores
CPUS = {"neon": None} if IS_ARM else X86
FORMS = [(4, 1), (8, 2), (16, 1), (8, 1)]
ITEMS = 48


def options(cpu: str) -> CodegenOptions:
    if cpu == "neon":
        return CodegenOptions()
    features = frozenset(X86[cpu].split())
    if not features <= set(host_cpu().features):
        pytest.skip(f"this CPU has no {cpu}")
    bits = {"sse": 128, "avx512": 512}.get(cpu, 256)
    return CodegenOptions(features, bits, slow_masked_stores=cpu == "slow")


def scalar_of(name: str) -> tuple[str, int]:
    scalar = re.sub(r"\d+$", "", name)
    return scalar, int(name[len(scalar) :] or 1)


@pytest.fixture(scope="module")
def compiled():
    source = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    for name in TYPES:
        scalar, count = scalar_of(name)
        load, store = ("LOAD(i, p) (p)[i]", "STORE(v, i, p) (p)[i] = (v)")
        if count > 1:
            load, store = f"LOAD(i, p) vload{count}(i, p)", f"STORE(v, i, p) vstore{count}(v, i, p)"
        source += f"#undef LOAD\n#undef STORE\n#define {load}\n#define {store}\n"
        source += KERNELS.format(type=name, scalar=scalar)
    return compile_c(source + ORDER + PRIVATE)


@pytest.fixture(scope="module")
def between_guards():
    """Makes copies of arrays behind or before which memory ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    page, kept = mmap.PAGESIZE, []

    def copy(array, at_end):
        pages = mmap.mmap(-1, 6 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        for guard in (0, 5):
            assert libc.mprotect(ctypes.c_void_p(start + guard * page), page, 0) == 0
        kept.append((pages, start))
        offset = 5 * page - array.nbytes if at_end else page
        view = np.frombuffer(pages, array.dtype, array.size, offset)
        view[:] = array
        return view

    yield copy
    for _, start in kept:
        libc.mprotect(ctypes.c_void_p(start), 6 * page, 3)


MASKS = {
    "full": np.ones(ITEMS, np.int32),
    "mixed": (np.arange(ITEMS) * 7 % 5 % 2).astype(np.int32),
    "some vectors": (np.arange(ITEMS) // 16 % 2).astype(np.int32),
    "first lanes": (np.arange(ITEMS) % 16 < 3).astype(np.int32),
}


@pytest.mark.parametrize("forms", split(FORMS, 2), ids=["some", "others"])
@pytest.mark.parametrize("name", halved(TYPES))
@pytest.mark.parametrize("cpu", list(CPUS))
def test_nothing_outside_of_the_mask(compiled, between_guards, cpu, name, forms):
    _, count = scalar_of(name)
    for form in forms:
        program = Program(compiled, options(cpu), form[0], parts=form[1])
        for n in (29, 8, 1):
            for at_end in (True, False):
                items = n if at_end else ITEMS - n
                data = np.arange(1, items * count + 1).astype(TYPES[name])
                for what, mask in MASKS.items():
                    chosen = mask[:n] if at_end else mask[n:]
                    want = np.where(np.repeat(chosen, count) != 0, data + 3, 7).astype(data.dtype)
                    to = between_guards(np.full(items * count, 7, data.dtype), at_end)
                    source = between_guards(data, at_end)
                    kernel = f"at_the_{'end' if at_end else 'start'}_{name}"
                    program.run(kernel, ITEMS, ITEMS, to, source, mask, np.int32(n))
                    assert np.array_equal(to, want), (form, n, what, at_end)


@pytest.mark.parametrize("width", [2, 32, 64])
@pytest.mark.parametrize("name", ["uchar4", "double2", "long", "ushort"])
def test_other_widths(compiled, between_guards, width, name):
    """Few lanes, and so many that their vectors do not fit into what a register of masks has."""
    _, count = scalar_of(name)
    data = np.arange(1, 29 * count + 1).astype(TYPES[name])
    for cpu in CPUS:
        program = Program(compiled, options(cpu), width)
        for mask in MASKS.values():
            want = np.where(np.repeat(mask[:29], count) != 0, data + 3, 7).astype(data.dtype)
            to = between_guards(np.full(29 * count, 7, data.dtype), True)
            source = between_guards(data, True)
            program.run(f"at_the_end_{name}", ITEMS, ITEMS, to, source, mask, np.int32(29))
            assert np.array_equal(to, want), cpu


def test_vectors_larger_than_a_page():
    """There is no page that all of them are in."""
    compiled = compile_c("kernel void wide(global ulong16 *to, global const ulong16 *from, int n) "
                         "{ int i = get_global_id(0); if (i < n) to[i] = from[i] + 1; }")  # fmt: skip
    data = np.arange(40 * 16, dtype=np.uint64)
    for width in (32, 64):
        to, program = np.zeros(40 * 16, np.uint64), Program(compiled, CodegenOptions(), width)
        program.run("wide", 40, 40, to, data, np.int32(33))
        assert np.array_equal(to[: 33 * 16], data[: 33 * 16] + 1) and not to[33 * 16 :].any()


@pytest.mark.parametrize("cpu", list(CPUS))
@pytest.mark.parametrize("kernel", ["order", "private_array"])
def test_the_same_results(compiled, cpu, kernel):
    """As at width 1, where each work-item runs by itself."""
    rng = np.random.default_rng(4)
    programs = {form: Program(compiled, options(cpu), form[0], parts=form[1]) for form in [(1, 1), *FORMS]}
    for bits in ([0, 7, 2, 4], range(8), [0, 0, 0, 3], [7], range(16)):
        mask = rng.choice(list(bits), 64).astype(np.int32)
        mask[:16] = bits[0]
        expected = None
        for form, program in programs.items():
            for local in (32, 19):
                a, out = np.zeros(512, np.int32), np.zeros(128, np.int32)
                arguments = (a, mask, out, np.int32(0))
                if kernel == "private_array":
                    arguments = (out, mask & 7, np.int32(13), np.int32(1 << 29))
                program.run(kernel, 32, local, *arguments)
                expected = (a, out) if expected is None else expected
                for n, array in enumerate((a, out)):
                    assert np.array_equal(array, expected[n]), (form, list(bits), local, n)


def asked(program, kernel):
    """Of the versions with all lanes: how many tests there are, and how many stores and masked ones."""
    text = program.code(kernel).text.split("\nr0.rest:")[0]
    return text.count("\nfull"), text.count("  store <8 x"), text.count("@llvm.masked.store")


@pytest.mark.skipif(IS_ARM, reason="about x86")
def test_stores_under_one_mask_ask_once():
    source = """
    kernel void together(global int *a, global int *b, global const int *mask, int n) {
      int i = get_global_id(0), m = mask[i]; if (m) { a[i] = 1; b[i] = m * 2 + n; a[i + 64] = 3; } }
    kernel void apart(global int *a, global int *b, global const int *mask, int n) {
      int i = get_global_id(0); if (mask[i]) { a[i] = 1; b[i] = a[i + n]; } }
    kernel void always(global int *a, global int *b, global const int *mask, int n) {
      int i = get_global_id(0); a[i] = mask[i]; }
    kernel void seen(global int *a, volatile global int *b, global const int *mask, int n) {
      int i = get_global_id(0); if (mask[i]) { b[i] = 1; b[i] = 2; } }
    kernel void bytes(global char *a, global char *b, global const int *mask, int n) {
      int i = get_global_id(0); if (mask[i]) { a[i] = b[i] + 1; a[i + 99] = 2; } }
    """
    compiled = compile_c(source)
    program = Program(compiled, options("slow"), 8)
    assert asked(program, "together") == (1, 3, 3)
    assert asked(program, "apart") == (2, 2, 2)
    assert asked(program, "always")[::2] == (0, 0)
    assert asked(program, "seen")[::2] == (0, 0)
    assert asked(program, "bytes")[::2] == (2, 0)  # one of them for the load
    assert "masked" not in re.sub(
        r"label %masked|\nmasked", "", program.code("bytes").text.split("r0.rest")[0]
    )
    program = Program(compiled, options("avx2"), 8)
    assert asked(program, "together") == (0, 0, 3), "they are fast"
    assert asked(program, "bytes")[::2] == (2, 0)
    program = Program(compiled, CodegenOptions(frozenset(X86["avx512"].split()), 512), 8)
    assert asked(program, "together") == (0, 0, 3)
    assert asked(program, "bytes") == (0, 0, 2)


def test_vectors_together_ask_once():
    """Of each part's masks whether all are full, before the masks are looked at one by one."""
    source = """
    kernel void alike(global int *a, global int *b, int n) {
      int i = get_global_id(0); if (i < n) { a[i] = i * 3; b[i] = i ^ 5; } }
    kernel void unlike(global int *a, global int *b, int n) {
      int i = get_global_id(0), m = b[i]; if (m & 1) a[i] = 1; if (m & 2) a[i + n] = 2; }
    kernel void many(global int *a, global int *b, int n) {
      int i = get_global_id(0), m = b[i];
      if (m) { a[i] = 1; a[i + 9] = m; a[i + 99] = 3; a[i + 999] = m + n; a[i + 9999] = 5; } }
    """
    compiled = compile_c(source)
    tests = {}
    for parts in (1, 2, 4):
        program = Program(compiled, options("slow"), 8, parts=parts)
        tests[parts] = [asked(program, kernel)[0] for kernel in ("alike", "unlike", "many")]
        if parts > 1:  # no store of one part is between the questions that those of others ask
            text = program.code("alike").text.split("\nr0.rest:")[0]
            first = text.split("\nfull")[1].split("\npartial")[0]
            assert first.count("  store <8 x i32>") == 2 * parts
    assert tests[1] == [1, 2, 1]
    assert tests[2] == [3, 4 + 2, 2 * 3], "a second question each time that there are too many to wait"
    assert tests[4] == [5, 8 + 2, 3 * 5]


@pytest.mark.skipif(IS_ARM, reason="about x86")
def test_private_memory_needs_no_masks():
    source = """
    kernel void scratch(global int *out, global const int *in, int n) {
      int i = get_global_id(0), a[32];
      for (int k = 0; k < 32; k++) a[k] = in[k] + k;
      for (int k = 0; k < n; k++) { int m = in[i + k]; if (m > 3) a[k] = m; if (m > 5) a[7] = m; }
      out[i] = a[in[i] & 31] + a[n]; }
    """
    for cpu, count in (("avx2", 0), ("avx512", 1)):
        program = Program(compile_c(source), CodegenOptions(frozenset(X86[cpu].split()), 256), 8)
        text = program.code("scratch").text.split("\nr0.rest:")[0]
        assert (text.count("@llvm.masked.store") > 0) == count, cpu


@pytest.mark.skipif(IS_ARM, reason="about x86")
@pytest.mark.parametrize("cpu", ["avx2", "avx512"])
def test_an_empty_mask_stores_to_the_stack(cpu):
    """The CPU takes long to find that it need not fault where no page is: memory that nobody has written yet,
    or behind a buffer."""
    source = """
    kernel void in_global(global int *a, int n) { int i = get_global_id(0); if (i < n) a[i] = 1; }
    kernel void in_local(global int *a, local int *l, int n) {
      int i = get_local_id(0); l[i] = i; if (a[i] < n) l[i + 1] = 1; a[i] = l[n]; }
    kernel void asked_before(global int *a, int n) {
      int i = get_global_id(0); if (i < n) { int s = a[i];
      for (int k = 0; k < n; k++) s = s * a[k] + (s ^ k) * 3; a[i] = s; } }
    """
    program = Program(compile_c(source), CodegenOptions(frozenset(X86[cpu].split()), 256), 8)
    for name, is_safe in (("in_global", True), ("in_local", False), ("asked_before", True)):
        text = program.code(name).text.split("\nr0.rest:")[0]
        (address,) = re.findall(r"@llvm.masked.store.*, ptr align 4 (%\w+), <8 x i1>", text)
        assert (f"{address} = select i1 " in text) == is_safe, name


VOLATILE = """
struct pair { int a; short b; };
#define STORES(name, type, make) \\
kernel void name(volatile global type *out, global const int *mask, global const int *at) { \\
  int i = get_global_id(0); \\
  if (mask[i] & 1) out[i] = make(i); \\
  if (mask[i] & 2) out[at[i]] = make(-i); }
#define PAIR(x) (struct pair){x, 3 * x}
STORES(ints, int, (int)) STORES(bytes, char, (char)) STORES(vectors, float4, (float4))
STORES(pairs, struct pair, PAIR)
"""


@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("name, type_", [
    ("ints", "i4"), ("bytes", "i1"), ("vectors", "4f4"), ("pairs", [("a", "i4"), ("b", "i2")]),
])  # fmt: skip
def test_volatile_stores_under_masks(between_guards, name, type_, width):
    """Each lane's by itself, and lanes outside of the mask, some of whose places are nowhere, leave memory as
    it is, without a branch for each."""
    program = Program(compile_c(VOLATILE), width=width)
    text = program.code(name).text
    assert "volatile" in text
    assert name == "pairs" or not re.search(r"^lane\d+:$", text, re.MULTILINE)
    rng = np.random.default_rng(11)
    mask = rng.integers(0, 4, ITEMS).astype(np.int32)
    at = np.where(mask & 2, rng.permutation(ITEMS) + ITEMS, 1 << 30).astype(np.int32)
    dtype = np.dtype(type_, align=True)
    out = between_guards(np.zeros(2 * ITEMS * (dtype.itemsize // dtype.base.itemsize), dtype.base), True)
    want = out.copy()
    for i in range(ITEMS):
        for bit, where, number in ((1, i, i), (2, at[i], -i)):
            if mask[i] & bit:
                value = (number, 3 * number) if name == "pairs" else number
                want.reshape(2 * ITEMS, -1)[where] = value
    program.run(name, ITEMS, ITEMS, out, mask, at)
    assert np.array_equal(out, want)


POINTERS = """
kernel void k(global int *in, global int *global *to, global int *out) {
    int i = get_global_id(0);
    if (in[i] % 3) to[i] = in + i;
    barrier(CLK_GLOBAL_MEM_FENCE);
    out[i] = in[i] % 3 ? *to[i] : -1;
}
"""


@pytest.mark.parametrize("cpu", list(CPUS))
@pytest.mark.parametrize("width", [4, 8, 16])
def test_pointers(cpu, width):
    program = Program(compile_c(POINTERS), options(cpu), width=width)
    given = np.arange(ITEMS, dtype=np.int32)
    to, out = np.zeros(ITEMS, np.uint64), np.zeros(ITEMS, np.int32)
    program.run("k", ITEMS, 16, given, to, out)
    assert out.tolist() == [i if i % 3 else -1 for i in range(ITEMS)]
    assert [bool(pointer) for pointer in to] == [bool(i % 3) for i in range(ITEMS)]
