"""Every atomic instruction, in every storage class, at every width: as the plain interpreter does it.

Work-items are executed in the order of their ids by both, so that old values can be compared as well.
"""

import re

import numpy as np
import pytest

from cl_driver.interp.run import Local as InterpretedLocal
from cl_driver.interp.run import run as interpret
from tests.marks import halved
from tests.pure.spirv.assembler import CAPABILITIES, SCALARS
from tests.runtime.kernel_harness import Local, Program, assemble, compile_c

WIDTHS = (1, 4, 8, 16)
ITEMS, GROUP = 26, 13
CELLS = 3

TYPES = {
    "i32": (np.int32, "OpTypeInt 32 0"),
    "i64": (np.int64, "OpTypeInt 64 0"),
    "f16": (np.float16, "OpTypeFloat 16"),
    "f32": (np.float32, "OpTypeFloat 32"),
    "f64": (np.float64, "OpTypeFloat 64"),
}
FLOAT_CAPABILITIES = {
    "f16": "OpCapability Float16\nOpCapability AtomicFloat16AddEXT\nOpCapability AtomicFloat16MinMaxEXT\n"
    'OpExtension "SPV_EXT_shader_atomic_float16_add"\nOpExtension "SPV_EXT_shader_atomic_float_min_max"\n',
    "f32": "OpCapability AtomicFloat32AddEXT\nOpCapability AtomicFloat32MinMaxEXT\n"
    'OpExtension "SPV_EXT_shader_atomic_float_add"\nOpExtension "SPV_EXT_shader_atomic_float_min_max"\n',
    "f64": "OpCapability AtomicFloat64AddEXT\nOpCapability AtomicFloat64MinMaxEXT\n"
    'OpExtension "SPV_EXT_shader_atomic_float_add"\nOpExtension "SPV_EXT_shader_atomic_float_min_max"\n',
}
# The kernel: three cells for each instruction, of some storage class, start as the group's copy of `init`;
# each work-item (but for those that MASKED leaves out) executes all instructions once, on the first of their
# cells or on the one number gid % 3; then the cells are written to `final`.
KERNEL = f"""{CAPABILITIES}
OpCapability Int64Atomics
CAPABILITIES
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %main "main" %gid %lid %wid
OpDecorate %gid BuiltIn GlobalInvocationId
OpDecorate %lid BuiltIn LocalInvocationId
OpDecorate %wid BuiltIn WorkgroupId
{SCALARS}
%T = TYPE
%long3 = OpTypeVector %i64 3
%ptr_in = OpTypePointer Input %long3
%gp = OpTypePointer CrossWorkgroup %T
%lp = OpTypePointer Workgroup %T
%fp = OpTypePointer Function %T
%ap = OpTypePointer Generic %T
%fn = OpTypeFunction %void %gp %gp %gp %gp %lp
%l0 = OpConstant %i64 0
%l1 = OpConstant %i64 1
%l2 = OpConstant %i64 2
%l3 = OpConstant %i64 3
NUMBERS
%l5 = OpConstant %i64 5
%zero = OpConstantNull %T
%flag1 = OpConstant %i32 1
%flag0 = OpConstant %i32 0
%workgroup = OpConstant %i32 2
%scope = OpConstant %i32 SCOPE
%semantics = OpConstant %i32 SEMANTICS
%acquire = OpConstant %i32 0x202
%release = OpConstant %i32 0x204
%one = OpConstant %T 1
%unequal = OpConstant %i32 0
%fences = OpConstant %i32 0x310
%gid = OpVariable %ptr_in Input
%lid = OpVariable %ptr_in Input
%wid = OpVariable %ptr_in Input
%main = OpFunction %void None %fn
%init = OpFunctionParameter %gp
%in = OpFunctionParameter %gp
%out = OpFunctionParameter %gp
%final = OpFunctionParameter %gp
%local = OpFunctionParameter %lp
%entry = OpLabel
VARIABLE
%id3 = OpLoad %long3 %gid
%id = OpCompositeExtract %i64 %id3 0
%lid3 = OpLoad %long3 %lid
%lid0 = OpCompositeExtract %i64 %lid3 0
%wid3 = OpLoad %long3 %wid
%wid0 = OpCompositeExtract %i64 %wid3 0
%pin = OpInBoundsPtrAccessChain %gp %in %id
%v = OpLoad %T %pin
%base = OpIMul %i64 %wid0 %all
%theirs = OpInBoundsPtrAccessChain %gp %final %base
%first = OpIEqual %bool %lid0 %l0
OpSelectionMerge %ready None
OpBranchConditional %first %copy %ready
%copy = OpLabel
BEFORE
OpBranch %ready
%ready = OpLabel
OpControlBarrier %workgroup %workgroup %fences
%which = OpUMod %i64 %id MODULUS
%rest = OpUMod %i64 %id %l5
%on = OpINotEqual %bool %rest MASKED
OpSelectionMerge %joined None
OpBranchConditional %on %act %joined
%act = OpLabel
BODY
OpBranch %joined
%joined = OpLabel
OpControlBarrier %workgroup %workgroup %fences
OpSelectionMerge %end None
OpBranchConditional %first %back %end
%back = OpLabel
AFTER
OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
"""


def copies(source: str, target: str, s: str, t: str) -> str:
    """Copies all cells, in a loop."""
    before = "%copy" if source == "init" else "%back"
    return (
        f"OpBranch %{s}loop\n%{s}loop = OpLabel\n%{s}k = OpPhi %i64 %l0 {before} %{s}n %{s}loop\n"
        f"%{s}s = OpInBoundsPtrAccessChain %{s} %{source} %{s}k\n"
        f"%{s}t = OpInBoundsPtrAccessChain %{t} %{target} %{s}k\n"
        f"%{s}v = OpLoad %T %{s}s\nOpStore %{s}t %{s}v\n"
        f"%{s}n = OpIAdd %i64 %{s}k %l1\n%{s}m = OpULessThan %bool %{s}n %all\n"
        f"OpLoopMerge %{s}e %{s}loop None\nOpBranchConditional %{s}m %{s}loop %{s}e\n%{s}e = OpLabel"
    )


# Storage class: VARIABLE, BEFORE, how %cell of number %index is got, AFTER.
GLOBAL = ("", copies("init", "theirs", "gp", "gp"), "%cell = OpInBoundsPtrAccessChain %gp %theirs %index", "")
WORKGROUP = (
    "",
    copies("init", "local", "gp", "lp"),
    "%cell = OpInBoundsPtrAccessChain %lp %local %index",
    copies("local", "theirs", "lp", "gp"),
)
OWN = (
    "%own = OpVariable %fp Function",
    "",
    "%pinit = OpInBoundsPtrAccessChain %gp %init %index\n%start = OpLoad %T %pinit\nOpStore %own %start\n"
    "%cell = OpCopyObject %fp %own",
    "",
)


def generic(storage):
    variable, before, cell, after = storage
    return (
        variable,
        before,
        cell.replace("%cell", "%plain") + "\n%cell = OpPtrCastToGeneric %ap %plain",
        after,
    )


STORAGE = {
    "CrossWorkgroup": GLOBAL,
    "Workgroup": WORKGROUP,
    "Function": OWN,
    "Generic global": generic(GLOBAL),
    "Generic local": generic(WORKGROUP),
    "Generic private": generic(OWN),
}
INTEGERS, FLOATS = ("i32", "i64"), ("f16", "f32", "f64")
VALUE = "%r = Op{} %T %cell %scope SEMANTICS %v"
EXCHANGE = "%new = OpIAdd %T %v %one\n%r = Op{} %T %cell %scope SEMANTICS %unequal %new %v"
# Instruction: types, and text that defines %r.
INSTRUCTIONS = {
    **{
        name: (INTEGERS, VALUE.format(name))
        for name in (
            f"Atomic{n}" for n in ("IAdd", "ISub", "SMin", "UMin", "SMax", "UMax", "And", "Or", "Xor")
        )
    },
    "AtomicIIncrement": (INTEGERS, "%r = OpAtomicIIncrement %T %cell %scope SEMANTICS"),
    "AtomicIDecrement": (INTEGERS, "%r = OpAtomicIDecrement %T %cell %scope SEMANTICS"),
    **{name: (FLOATS, VALUE.format(name)) for name in ("AtomicFAddEXT", "AtomicFMinEXT", "AtomicFMaxEXT")},
    "AtomicExchange": (tuple(TYPES), VALUE.format("AtomicExchange")),
    "AtomicLoad": (tuple(TYPES), "%r = OpAtomicLoad %T %cell %scope SEMANTICS"),
    "AtomicStore": (tuple(TYPES), "OpAtomicStore %cell %scope SEMANTICS %v\n%r = OpCopyObject %T %v"),
    "AtomicCompareExchange": (INTEGERS, EXCHANGE.format("AtomicCompareExchange")),
    "AtomicCompareExchangeWeak": (INTEGERS, EXCHANGE.format("AtomicCompareExchangeWeak")),
    "AtomicFlagTestAndSet": (
        ("i32",),
        "%was = OpAtomicFlagTestAndSet %bool %cell %scope SEMANTICS\n%r = OpSelect %T %was %flag1 %flag0",
    ),
    "AtomicFlagClear": (("i32",), "OpAtomicFlagClear %cell %scope SEMANTICS\n%r = OpCopyObject %T %v"),
}
# What each instruction may not order: a load releases nothing, a store and a clear acquire nothing.
ORDERS = {"AtomicLoad": "%acquire", "AtomicStore": "%release", "AtomicFlagClear": "%release"}


def of_type(type_: str) -> list[str]:
    """The instructions for a type."""
    return [name for name, (types, _) in INSTRUCTIONS.items() if type_ in types]


def module(
    type_: str, storage: str, uniform=False, masked=False, scope=1, semantics=0x208, names=None
) -> bytes:
    """The kernel for all instructions of a type, or some of them."""
    names = names or of_type(type_)
    variable, before, cell, after = STORAGE[storage]
    body = []
    for k, name in enumerate(names):
        part = (
            f"%index = OpIAdd %i64 %which %n{k * CELLS}\n{cell}\n{INSTRUCTIONS[name][1]}\n"
            f"%at = OpIAdd %i64 %id %n{k * ITEMS}\n%pout = OpInBoundsPtrAccessChain %gp %out %at\n"
            "OpStore %pout %r\n"
        )
        part = part.replace("SEMANTICS", ORDERS.get(name, "%semantics"))
        # Names of this instruction's own.
        for result in re.findall(r"^(%\w+) =", part, re.M):
            part = re.sub(rf"{result}\b", f"{result}_{k}", part)
        body.append(part)
    numbers = {k * n for k in range(len(names)) for n in (CELLS, ITEMS)}
    text = KERNEL
    for word, value in {
        "CAPABILITIES": FLOAT_CAPABILITIES.get(type_, ""),
        "VARIABLE": variable,
        "BEFORE": before,
        "BODY": "".join(body),
        "AFTER": after,
        "NUMBERS": "".join(f"%n{k} = OpConstant %i64 {k}\n" for k in sorted(numbers))
        + f"%all = OpConstant %i64 {len(names) * CELLS}",
        "MODULUS": "%l1" if uniform else "%l3",
        "MASKED": "%l2" if masked else "%l5",
        "SCOPE": str(scope),
        "SEMANTICS": str(semantics),
    }.items():
        text = text.replace(word, value)
    if f"%{type_} =" in SCALARS:
        text = text.replace("%T = TYPE\n", "").replace("%T", f"%{type_}")
    return assemble(text.replace("TYPE", TYPES[type_][1]))


def data(type_: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells at first, and one value for each work-item."""
    dtype = TYPES[type_][0]
    cells = np.array([2, 1, 5] * count, dtype)
    values = (np.arange(ITEMS) * 7 % 11 - 4).astype(dtype)
    if type_ in FLOATS:
        values = values / dtype(8)
        values[3:5] = np.nan, -0.0
    return cells, values


def results(run, type_: str, count: int):
    """What run(arguments) leaves: old values and cells, by instruction."""
    cells, values = data(type_, count)
    out, final = np.zeros((count, ITEMS), values.dtype), np.zeros((2, count, CELLS), values.dtype)
    run([cells, values, out, final])
    return out, final.swapaxes(0, 1)


def check(spirv: bytes, type_: str, widths=WIDTHS, names=None):
    """The results at all widths are those of the interpreter, which are given back."""
    names = names or of_type(type_)
    size = 8 * CELLS * len(names)

    def interpreted(arguments):
        interpret(Program(spirv).module, "main", [*arguments, InterpretedLocal(size)], (ITEMS,), (GROUP,))

    want = results(interpreted, type_, len(names))
    for width in widths:
        program = Program(spirv, width=width)
        got = results(lambda a, p=program: p.run("main", ITEMS, GROUP, *a, Local(size)), type_, len(names))
        for a, b, what in zip(got, want, ("old values", "cells"), strict=True):
            for name, x, y in zip(names, a, b, strict=True):
                np.testing.assert_array_equal(x, y, f"{name}: {what} at width {width}")
    return want


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("type_", halved(TYPES))
def test_instructions(type_, storage):
    """Cells chosen by the work-item, under a mask."""
    thorough = type_ in ("i32", "f32") and storage == "CrossWorkgroup"
    check(module(type_, storage, masked=True), type_, WIDTHS if thorough else (4,))


@pytest.mark.parametrize("storage", ["CrossWorkgroup", "Workgroup"])
@pytest.mark.parametrize("type_", TYPES)
def test_one_cell_for_all(type_, storage):
    """All work-items change one cell: at widths above 1 there may be one atomic for all lanes."""
    check(module(type_, storage, uniform=True), type_, (8,))
    check(module(type_, storage, uniform=True, masked=True), type_, (4,))


def test_expected_values():
    """The interpreter itself, on cases that can be worked out by hand."""
    names = ["AtomicIAdd"]
    out, final = check(module("i32", "CrossWorkgroup", True, names=names), "i32", (8,), names)
    _, values = data("i32", 1)
    for group in range(2):
        own = values[group * GROUP : (group + 1) * GROUP]
        assert out[0, group * GROUP :][:GROUP].tolist() == [2 + own[:k].sum() for k in range(GROUP)]
        assert final[0, group].tolist() == [2 + own.sum(), 1, 5]
    names = ["AtomicFMinEXT"]
    _, final = check(module("f32", "Workgroup", True, names=names), "f32", (8,), names)
    _, values = data("f32", 1)
    assert final[0, 0, 0] == np.nanmin(values[:GROUP]) and not np.isnan(final).any()


# LLVM's ordering of memory semantics.
LLVM_ORDERS = {0: "monotonic", 0x202: "acquire", 0x204: "release", 0x208: "acq_rel", 0x210: "seq_cst"}


@pytest.mark.parametrize("scope", range(5))
def test_semantics_and_scopes(scope):
    """Each order arrives at the CPU's instruction; every scope is at least as wide as it says."""
    for semantics, order in LLVM_ORDERS.items():
        spirv = module("i32", "CrossWorkgroup", scope=scope, semantics=semantics, names=["AtomicIAdd"])
        text = Program(spirv, width=1).code("main").text
        line = next(line for line in text.splitlines() if "atomicrmw" in line)
        assert line.endswith(order) and "syncscope" not in line


def test_local_memory_takes_no_lock():
    """A work-group runs on one thread."""
    text = Program(module("i32", "Workgroup"), width=1).code("main").text
    assert "atomicrmw" not in text and "cmpxchg" not in text


def test_one_atomic_for_all_lanes():
    """On one address the lanes are added up first, whether the old values are used or not."""
    source = """
    kernel void k(global int *counter, global int *out) {
      atomic_add(counter, (int)get_global_id(0));
      out[get_global_id(0)] = atomic_inc(counter + 1);
    }"""
    program = Program(compile_c(source), width=8, parts=1)
    lines = [line for line in program.code("k").text.splitlines() if "atomicrmw" in line]
    assert len(lines) == 4, lines  # two in full vectors, two in the rest
    counter, out = np.zeros(2, np.int32), np.zeros(ITEMS, np.int32)
    program.run("k", ITEMS, GROUP, counter, out)
    assert counter.tolist() == [sum(range(ITEMS)), ITEMS] and out.tolist() == list(range(ITEMS))


SHARED_CELLS = """
kernel void old_values(global uint *out, global uint *end, global const uint *in) {
  local uint cells[8]; size_t x = get_global_id(0), l = get_local_id(0);
  if (l < 8) cells[l] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (in[x] & 3) out[x] = atomic_add(&cells[in[x] >> 2 & 7], in[x] >> 8);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l < 8) end[get_group_id(0) * 8 + l] = cells[l]; }
kernel void strided(global uint *out, global uint *end, global const uint *in) {
  local uint cells[8]; size_t l = get_local_id(0);
  if (l < 8) cells[l] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < 200; i += get_global_size(0)) atomic_add(&cells[in[i] & 7], 1u);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l < 8) end[get_group_id(0) * 8 + l] = cells[l]; }
"""


@pytest.mark.parametrize("name", ["old_values", "strided"])
def test_lanes_that_share_local_cells(name):
    """Several lanes of a vector change one cell; lanes outside of the mask change none."""
    spirv, rng = compile_c(SHARED_CELLS), np.random.default_rng(7)
    inputs = rng.integers(0, 1 << 32, 200).astype(np.uint32)
    for group in (13, 32):
        items = 2 * group
        want = None
        for width in WIDTHS:
            program = Program(spirv, width=width)
            if want is None:
                want = np.zeros(items, np.uint32), np.zeros(16, np.uint32)
                interpret(program.module, name, [*want, inputs.copy()], (items,), (group,))
            out = np.zeros(items, np.uint32), np.zeros(16, np.uint32)
            program.run(name, items, group, *out, inputs)
            assert np.array_equal(out[1], want[1]), f"{name}, width {width}, groups of {group}"
            assert np.array_equal(out[0], want[0]), f"{name}, width {width}"


NUMBERED_CELLS = """
kernel void k(global uint *end, global uint *out, global const uint *in, global const char *signs,
              global const short *shorts, uint count) {
  local uint cells[2048]; size_t x = get_global_id(0), l = get_local_id(0);
  for (int i = l; i < 2048; i += get_local_size(0)) cells[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (x < count) {
    uint old = atomic_add(&cells[((global const uchar *)in)[x]], 1u);     // 8 bits
    atomic_add(&(cells + 384)[signs[x]], 3u);                              // and signed
    atomic_sub(&(cells + 1024)[shorts[x] % 400], count);                   // 32
    old += atomic_xor(&cells[1536 + (in[x] >> 23)], 5u);                   // 9, and another term
    atomic_and(&cells[512 + (in[x] & 63)], count);
    out[x] = old + atomic_add(&cells[576 + (ushort)(in[x] % 48)], in[x]);  // values of the lanes' own
    if (in[x] & 64) atomic_or(&cells[128 + 512 - (in[x] >> 4 & 7)], 9u);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = l; i < 2048; i += get_local_size(0)) end[get_group_id(0) * 2048 + i] = cells[i]; }
"""


def test_cells_by_small_numbers():
    """Lanes whose addresses are a base and an index of few bits, all lanes in the mask or some."""
    spirv, rng = compile_c(NUMBERED_CELLS), np.random.default_rng(8)
    inputs = [rng.integers(0, 1 << 32, 64, np.uint32), rng.integers(-128, 128, 64, np.int8)]
    inputs.append(rng.integers(-(1 << 15), 1 << 15, 64, np.int16))
    programs = {width: Program(spirv, width=width) for width in (1, 2, 4, 8, 16)}
    for group, count in ((13, 26), (32, 64), (32, 37)):
        want = np.zeros(4096, np.uint32), np.zeros(64, np.uint32)
        for width, program in programs.items():
            if width == 1:
                arguments = [*want, *(i.copy() for i in inputs), count]
                interpret(program.module, "k", arguments, (2 * group,), (group,))
            end = np.zeros(4096, np.uint32), np.zeros(64, np.uint32)
            program.run("k", 2 * group, group, *end, *inputs, np.uint32(count))
            for got, wanted in zip(end, want, strict=True):
                assert np.array_equal(got, wanted), f"width {width}, groups of {group}"


@pytest.mark.parametrize("width", (1, 4, 8, 16))
def test_small_indices_and_values_that_differ_by_steps(width):
    source = """kernel void k(global int *out) {
        local int a[4];
        int l = get_local_id(0);
        if (l < 4) a[l] = 1000;
        barrier(CLK_LOCAL_MEM_FENCE);
        atomic_min(&a[l & 3], 7 - l);
        barrier(CLK_LOCAL_MEM_FENCE);
        out[get_global_id(0)] = a[l & 3]; }"""
    out = np.zeros(32, np.int32)
    Program(compile_c(source), width=width).run("k", 32, 16, out)
    assert (out == 7 - (12 + np.arange(32) % 4)).all()


MOST = """
kernel void k(global int *most, global const int *in, global int *old) {
    int i = get_global_id(0);
    old[i] = OPERATION;
}"""


@pytest.mark.parametrize("width", (1, 8))
@pytest.mark.parametrize("place", ("most", "most + (in[i] & 1)"))
@pytest.mark.parametrize("operation", ("max", "min"))
def test_what_is_there_already_is_only_read(operation, place, width):
    """Nobody can tell, unless what is written releases what was done before."""
    relaxed = MOST.replace("OPERATION", f"atomic_{operation}({place}, in[i])")
    ordered = MOST.replace("OPERATION", f"atomic_fetch_{operation}((global atomic_int *)({place}), in[i])")
    rng = np.random.default_rng(3)
    given = rng.integers(-100, 100, 40).astype(np.int32)
    want, before = [0, 0], []
    for value in given.tolist():
        at = value & 1 if "&" in place else 0
        before.append(want[at])
        want[at] = (max if operation == "max" else min)(want[at], value)
    for source, is_asked in ((relaxed, True), (ordered, False)):
        program = Program(compile_c(source), width=width)
        most, old = np.zeros(2, np.int32), np.zeros(40, np.int32)
        program.run("k", 40, 8, most, given, old)
        assert (most.tolist(), old.tolist()) == (want, before)
        asks = r"load atomic i32, ptr \S+ monotonic.*\n.*icmp s[lg]t .*\n.*br .*\n.*\n.*atomicrmw"
        assert bool(re.search(asks, program.kernel("k")[0].text)) == is_asked
