"""Pipes: what work-items write others read, whatever the width; reservations, and what refuses them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from cl_driver.interp.run import run_plan
from cl_driver.passes.ir.plan import PlanOptions
from cl_driver.passes.pipeline import plan
from cl_driver.passes.program.pipe_storage import DATA, data_offset
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.link import link
from cl_driver.spirv.reading.reader import read
from cl_driver.spirv.types import TypeTable
from cl_driver.spirv.validation.validate import validate
from tests.pure.spirv.assembler import assemble
from tests.runtime.kernel_harness import Program, aligned, builtin_library, compile_c

WIDTHS = (1, 4, 8, 16)
OPTIONS = "-cl-std=CL3.0"


class Pipe:
    """A pipe's memory, as clCreatePipe makes it."""

    def __init__(self, packet_size: int, max_packets: int):
        begin = data_offset(max_packets)
        self.memory = aligned(begin + packet_size * max_packets + 64)
        self.memory[:16] = np.frombuffer(struct.pack("<IIQ", packet_size, max_packets, begin), np.uint8)
        self.memory[-64:] = 0xC7
        assert DATA == 8

    def check(self) -> None:
        """Nothing was written behind it."""
        assert (self.memory[-64:] == 0xC7).all()


def program(source: str, width: int, **options) -> Program:
    return Program(compile_c(source, OPTIONS), width=width, **options)


def array(data, dtype=np.int32) -> np.ndarray:
    made = aligned(np.dtype(dtype).itemsize * len(data)).view(dtype)
    made[:] = data
    return made


def zeros(count: int, dtype=np.int32) -> np.ndarray:
    return array(np.zeros(count, dtype), dtype)


PLAIN = """
kernel void put(write_only pipe T p, global const T *in, global int *status) {
    size_t i = get_global_id(0);
    status[i] = write_pipe(p, in + i);
}
kernel void get(read_only pipe T p, global T *out, global int *status) {
    size_t i = get_global_id(0);
    T value;
    status[i] = read_pipe(p, &value);
    if (!status[i])
        out[i] = value;
}
"""
TYPES = {
    "char": 1, "short": 2, "int": 4, "float": 4, "long": 8, "int2": 8, "short8": 16, "int4": 16, "float8": 32,
    "int16": 64, "long16": 128, "int3": 16,
    "struct { char a; int b; }": 8, "struct { int a[3]; }": 12, "struct { char a[7]; }": 7,
    "struct { long a; char b; }": 16, "struct { char a[300]; }": 300,
}  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("type_", TYPES)
def test_what_is_written_is_read(type_, width):
    """Each packet once, whole, of any type; more than fit are refused, and so is more than there are."""
    size, items, room = TYPES[type_], 45, 40
    run = program(f"typedef {type_} T; {PLAIN}", width)
    pipe = Pipe(size, room)
    rng = np.random.default_rng(width)
    for _ in range(3):  # around the ring
        given = array(rng.integers(0, 256, items * size), np.uint8)
        got, status = zeros(items * size, np.uint8), zeros(items)
        run.run("put", items, 9, pipe.memory, given, status)
        assert sorted(set(status.tolist())) == [-1, 0] and (status == 0).sum() == room
        written = given.reshape(items, size)[status == 0]
        run.run("get", items, 9, pipe.memory, got, status)
        assert (status == 0).sum() == room and set(status.tolist()) == {-1, 0}
        read = got.reshape(items, size)[status == 0]
        # In structures with gaps, and in vectors of three, some bytes need not be copied.
        keep = _bytes_of(type_, size)
        assert _rows(read[:, keep]) == _rows(written[:, keep])
        pipe.check()


def _bytes_of(type_: str, size: int) -> list[int]:
    gaps = {
        "struct { char a; int b; }": range(1, 4),
        "int3": range(12, 16),
        "struct { long a; char b; }": range(9, 16),
    }
    return [k for k in range(size) if k not in gaps.get(type_, ())]


def _rows(data: np.ndarray) -> list[bytes]:
    return sorted(row.tobytes() for row in data)


RESERVED = """
kernel void put(write_only pipe int p, global const int *counts, global int *status) {
    int i = get_global_id(0), n = counts[i];
    status[i] = -2;
    reserve_id_t r = reserve_write_pipe(p, n);
    if (is_valid_reserve_id(r)) {
        status[i] = 0;
        for (int k = n - 1; k >= 0; k--) {
            int value = i * 100 + k;
            status[i] |= write_pipe(p, r, k, &value);
        }
        int far = 7;
        status[i] |= write_pipe(p, r, n, &far) != -1;
        status[i] |= write_pipe(p, r, 0x80000000, &far) != -1;
        commit_write_pipe(p, r);
    }
}
kernel void get(read_only pipe int p, int n, global int *out, global int *valid) {
    int i = get_global_id(0);
    reserve_id_t r = reserve_read_pipe(p, n);
    valid[i] = is_valid_reserve_id(r);
    if (valid[i]) {
        for (int k = 0; k < n; k++)
            valid[i] += read_pipe(p, r, k, out + i * n + k) != 0;
        commit_read_pipe(p, r);
    }
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_reservations_of_several_packets(width):
    """The packets of a reservation follow one another; each lane asks for a number of its own, none for 0."""
    items, room = 52, 101
    run = program(RESERVED, width)
    pipe = Pipe(4, room)
    rng = np.random.default_rng(width)
    for _ in range(4):
        counts = array(rng.integers(0, 5, items))
        status = zeros(items)
        run.run("put", items, 13, pipe.memory, counts, status)
        assert set(status.tolist()) <= {0, -2} and (status[counts == 0] == -2).all()
        total = int(counts[status == 0].sum())
        refused = counts[(status == -2) & (counts > 0)]
        assert total <= room and (refused > room - total).all() if total > room - 4 else not len(refused)
        out, valid = zeros(room), zeros(room)
        run.run("get", total, total, pipe.memory, np.int32(1), out, valid)
        assert (valid[:total] == 1).all()
        found = out[:total].tolist()
        at = 0
        while at < total:
            item = found[at] // 100
            assert found[at : at + counts[item]] == [item * 100 + k for k in range(counts[item])]
            at += counts[item]
        pipe.check()


@pytest.mark.parametrize("width", WIDTHS)
def test_reads_of_several_packets(width):
    run = program(RESERVED, width)
    pipe = Pipe(4, 64)
    status = zeros(26)
    run.run("put", 26, 13, pipe.memory, array([2] * 26), status)
    out, valid = zeros(60), zeros(20)
    run.run("get", 20, 20, pipe.memory, np.int32(3), out, valid)  # 17 of them find three of 52
    assert sorted(valid.tolist()) == [0] * 3 + [1] * 17
    got = out.reshape(20, 3)[valid == 1].ravel()
    assert sorted(got.tolist())[:2] == [0, 1] and len(set(got.tolist())) == 51


LARGE_NUMBERS = """
kernel void k(write_only pipe int p, global int *out) {
    uint asked[] = {0, 5, 9, 0x7fffffff, 0x80000000, 0xffffffff, 8};
    int i = get_global_id(0);
    reserve_id_t r = reserve_write_pipe(p, asked[i % 7]);
    out[i] = is_valid_reserve_id(r);
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_of_packets_that_there_are_not(width):
    run, out = program(LARGE_NUMBERS, width), zeros(7)
    pipe = Pipe(4, 8)
    run.run("k", 7, 7, pipe.memory, out)
    assert out.tolist() in ([0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1])


@pytest.mark.parametrize("width", WIDTHS)
def test_packets_of_another_size_are_refused(width):
    """A kernel that takes a pipe for one of other packets touches no memory of it."""
    run = program(f"typedef int4 T; {PLAIN}", width)
    pipe, status = Pipe(4, 16), zeros(16)
    before = pipe.memory.copy()
    run.run("put", 16, 16, pipe.memory, zeros(64), status)
    assert (status == -1).all() and (pipe.memory == before).all()
    run.run("get", 16, 16, pipe.memory, zeros(64), status)
    assert (status == -1).all() and (pipe.memory == before).all()


GROUPS = """
kernel void put(write_only pipe int p, global const int *in, global int *valid) {
    local reserve_id_t shared;
    reserve_id_t r = work_group_reserve_write_pipe(p, get_local_size(0));
    shared = r;
    valid[get_global_id(0)] = is_valid_reserve_id(r);
    if (is_valid_reserve_id(shared)) {
        write_pipe(p, shared, get_local_size(0) - 1 - get_local_id(0), in + get_global_id(0));
        work_group_commit_write_pipe(p, shared);
    }
}
kernel void get(read_only pipe int p, global int *out, global int *valid) {
    reserve_id_t r = work_group_reserve_read_pipe(p, get_local_size(0));
    valid[get_global_id(0)] = is_valid_reserve_id(r);
    if (is_valid_reserve_id(r)) {
        read_pipe(p, r, get_local_id(0), out + get_global_id(0));
        work_group_commit_read_pipe(p, r);
    }
}
"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("group", [1, 5, 16, 24])
def test_work_groups(group, width):
    """One reservation for a group: its packets are together, and all of its work-items know it."""
    groups, room = 6, group * 5 + group // 2
    run, pipe = program(GROUPS, width), Pipe(4, room)
    for _ in range(3):
        given, valid = array(np.arange(groups * group)), zeros(groups * group)
        run.run("put", groups * group, group, pipe.memory, given, valid)
        of_groups = valid.reshape(groups, group)
        assert (of_groups == of_groups[:, :1]).all() and of_groups[:, 0].sum() == 5
        out = array(np.full(groups * group, -1))
        run.run("get", groups * group, group, pipe.memory, out, valid)
        rows = out.reshape(groups, group)[valid.reshape(groups, group)[:, 0] == 1]
        assert len(rows) == 5
        for row in rows.tolist():
            assert row == [row[-1] + group - 1 - k for k in range(group)] and row[-1] % group == 0
        pipe.check()


SUB_GROUPS = """
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
kernel void put(write_only pipe int p, global const int *in) {
    if (get_sub_group_id() % 2 == 0) {
        reserve_id_t r = sub_group_reserve_write_pipe(p, get_sub_group_size());
        if (is_valid_reserve_id(r)) {
            write_pipe(p, r, get_sub_group_local_id(), in + get_global_id(0));
            sub_group_commit_write_pipe(p, r);
        }
    }
}
kernel void get(read_only pipe int p, global int *out) {
    reserve_id_t r = sub_group_reserve_read_pipe(p, get_sub_group_size());
    if (is_valid_reserve_id(r)) {
        read_pipe(p, r, get_sub_group_local_id(), out + get_global_id(0));
        sub_group_commit_read_pipe(p, r);
    }
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_sub_groups(width):
    run, pipe = program(SUB_GROUPS, width, sub_groups=True), Pipe(4, 1000)
    items, group = 96, 48
    out = array(np.full(items, -1))
    run.run("put", items, group, pipe.memory, array(np.arange(items)))
    run.run("get", items, group, pipe.memory, out)
    subgroup = np.arange(items) % group // width
    want = np.arange(items)[subgroup % 2 == 0]
    assert sorted(out[out >= 0].tolist()) == want.tolist()


ORDER = """
kernel void k(write_only pipe int p, read_only pipe int q, global int *out) {
    int a = 1, b = 2;
    reserve_id_t first = reserve_write_pipe(p, 1), second = reserve_write_pipe(p, 2);
    out[0] = get_pipe_num_packets(p);
    out[1] = get_pipe_max_packets(p);
    write_pipe(p, second, 0, &b);
    b = 3;
    write_pipe(p, second, 1, &b);
    commit_write_pipe(p, second);
    out[2] = get_pipe_num_packets(p);
    out[3] = read_pipe(q, &b);
    write_pipe(p, first, 0, &a);
    commit_write_pipe(p, first);
    out[4] = get_pipe_num_packets(q);
    for (int k = 0; k < 3; k++) {
        out[5 + 2 * k] = read_pipe(q, out + 11 + k);
        out[6 + 2 * k] = get_pipe_num_packets(q);
    }
    out[14] = read_pipe(q, &b);
    out[15] = write_pipe(p, &a);
    reserve_id_t one = reserve_read_pipe(q, 1);
    out[16] = get_pipe_num_packets(q);
    out[17] = is_valid_reserve_id(reserve_read_pipe(q, 1));
    out[18] = is_valid_reserve_id(reserve_write_pipe(p, 3));
    commit_read_pipe(q, one);
    out[19] = is_valid_reserve_id(reserve_write_pipe(p, 3));
}
"""


@pytest.mark.parametrize("width", [1, 8])
def test_order(width):
    """Packets are read in the order of the reservations, not of the commits; those of a reservation that is
    not committed are not there. Entries that are being read are not free."""
    run, pipe, out = program(ORDER, width), Pipe(4, 3), zeros(20)
    run.run("k", 1, 1, pipe.memory, pipe.memory, out)
    assert out[:5].tolist() == [0, 3, 0, -1, 3]
    assert out[5:14].tolist() == [0, 2, 0, 1, 0, 0, 1, 2, 3]
    assert out[14:].tolist() == [-1, 0, 0, 0, 0, 1]


IDS = """
kernel void reserve(write_only pipe int p, global char *memory) {
    global reserve_id_t *ids = (global reserve_id_t *)memory;
    ids[get_global_id(0)] = reserve_write_pipe(p, 1);
}
kernel void put(write_only pipe int p, global char *memory) {
    global reserve_id_t *ids = (global reserve_id_t *)memory;
    int i = get_global_id(0);
    reserve_id_t r = ids[i];
    if (is_valid_reserve_id(r))
        write_pipe(p, r, 0, &i);
}
kernel void commit(write_only pipe int p, global char *memory, int flip) {
    commit_write_pipe(p, ((global reserve_id_t *)memory)[get_global_id(0) ^ flip]);
}
kernel void get(read_only pipe int p, global int *out, global int *status) {
    status[get_global_id(0)] = read_pipe(p, out + get_global_id(0));
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_reservations_live_in_memory(width):
    """From one launch to the next; null and all ones (CLK_NULL_RESERVE_ID) are none."""
    run, pipe, items = program(IDS, width), Pipe(4, 30), 32
    ids, out, status = zeros(items, np.uint64), zeros(items), zeros(items)
    run.run("reserve", items, 16, pipe.memory, ids)
    assert (ids == 0).sum() == 2 and len(set(ids.tolist())) == 31
    ids[ids == 0] = [0, 0xFFFFFFFFFFFFFFFF]
    run.run("put", items, 16, pipe.memory, ids)
    run.run("get", items, 16, pipe.memory, out, status)
    assert (status == -1).all()
    run.run("commit", items, 16, pipe.memory, ids, np.int32(1))
    run.run("get", items, 16, pipe.memory, out, status)
    valid = [i for i in range(items) if ids[i] not in (0, 0xFFFFFFFFFFFFFFFF)]
    assert out[status == 0].tolist() == valid


HELPERS = """
__attribute__((noinline)) void send(write_only pipe int p, reserve_id_t r, int k, int value) {
    write_pipe(p, r, k, &value);
}
__attribute__((noinline)) int take(read_only pipe int p) {
    int value = -5;
    read_pipe(p, &value);
    return value;
}
kernel void k(write_only pipe int even, write_only pipe int odd, read_only pipe int first,
              read_only pipe int second, global int *out) {
    int i = get_global_id(0);
    if (i & 1) {
        reserve_id_t r = reserve_write_pipe(odd, 2);
        for (int k = 0; k < 2; k++)
            send(odd, r, k, i * 2 + k);
        commit_write_pipe(odd, r);
    } else if (i % 6 != 4) {
        reserve_id_t r = reserve_write_pipe(even, 1);
        send(even, r, 0, i);
        commit_write_pipe(even, r);
    }
    out[i] = i < 8 ? take(first) : take(second);
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_functions_and_branches(width):
    """Pipes as arguments of functions, of which some lanes call one and some another."""
    run, even, odd, items = program(HELPERS, width), Pipe(4, 64), Pipe(4, 64), 32
    out = zeros(items)
    run.run("k", items, 16, even.memory, odd.memory, even.memory, odd.memory, out)
    got_even, got_odd = out[:8].tolist(), out[8:].tolist()
    assert set(got_even) <= {-5} | {i for i in range(0, items, 2) if i % 6 != 4}
    assert set(got_odd) <= {-5} | {i * 2 + k for i in range(1, items, 2) for k in range(2)}
    taken = [v for v in got_even if v >= 0]
    assert len(set(taken)) == len(taken)
    assert width < 8 or taken == [i for i in range(0, width, 2) if i % 6 != 4][:8]


@pytest.mark.parametrize("width", [1, 8])
def test_the_interpreter_agrees(width):
    """On the module, and on the plan, of which each value has the shape that the analysis says."""
    module = program(ORDER, 1).module
    want, out = zeros(20), zeros(20)
    made = Pipe(4, 3)
    program(ORDER, 1).run("k", 1, 1, made.memory, made.memory, want)
    fresh = Pipe(4, 3)
    interpret(module, "k", [fresh.memory, fresh.memory, out], (1,), (1,), library=builtin_library())
    assert out.tolist() == want.tolist() and (fresh.memory == made.memory).all()

    module = program(f"typedef int T; {PLAIN}", width).module
    items, made = 19, Pipe(4, 12)
    plans = {
        e.name: plan(module, e, PlanOptions(width=width, verify=True), builtin_library())
        for e in module.entry_points
    }
    status, got = zeros(items), zeros(items)
    where = {"global_size": (items,), "local_size": (items,), "library": builtin_library()}
    given = array(np.arange(items) + 100)
    run_plan(plans["put"], [made.memory, given, status], check_shapes=True, **where)
    written = given[status == 0].tolist()
    run_plan(plans["get"], [made.memory, got, status], check_shapes=True, **where)
    assert len(written) == 12 and sorted(got[status == 0].tolist()) == sorted(written)


WAITS = """
kernel void alone(write_only pipe int p, global const int *in) {
    reserve_id_t r;
    do
        r = reserve_write_pipe(p, 1);
    while (!is_valid_reserve_id(r));
    write_pipe(p, r, 0, in + get_global_id(0));
    commit_write_pipe(p, r);
}
kernel void group(write_only pipe int p, global const int *in) {
    reserve_id_t r;
    do
        r = work_group_reserve_write_pipe(p, get_local_size(0));
    while (!is_valid_reserve_id(r));
    write_pipe(p, r, get_local_id(0), in + get_global_id(0));
    work_group_commit_write_pipe(p, r);
}
kernel void each(write_only pipe int p, global const int *in) {
    while (write_pipe(p, in + get_global_id(0)))
        ;
}
"""


def test_lanes_do_not_wait_for_entries_that_others_of_a_vector_have():
    """What is reserved in a loop and committed behind it may be all that a pipe has."""
    run = program(WAITS, 8)
    assert {name: run.code(name).width for name in ("alone", "group", "each")} == {
        "alone": 1,
        "group": 8,
        "each": 8,
    }


STORAGE = """
OpCapability Addresses
OpCapability Kernel
OpCapability GenericPointer
OpCapability Int64
OpCapability Int8
OpCapability Linkage
OpCapability Pipes
OpCapability PipeStorage
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %put "put" %gid
OpEntryPoint Kernel %get "get" %gid
OpEntryPoint Kernel %both "both"
OpDecorate %gid BuiltIn GlobalInvocationId
%void = OpTypeVoid
%bool = OpTypeBool
%i8 = OpTypeInt 8 0
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%i64v3 = OpTypeVector %i64 3
%storage = OpTypePipeStorage
%holder = OpTypeStruct %storage %i32
%reads = OpTypePipe ReadOnly
%writes = OpTypePipe WriteOnly
%p_in = OpTypePointer Input %i64v3
%pi = OpTypePointer CrossWorkgroup %i32
%pg = OpTypePointer Generic %i32
%ps = OpTypePointer CrossWorkgroup %storage
%ph = OpTypePointer CrossWorkgroup %holder
%pc = OpTypePointer UniformConstant %storage
%four = OpConstant %i32 4
%zero = OpConstant %i32 0
%one = OpConstant %i32 1
%first = OpConstantPipeStorage %storage 4 4 20
%second = OpConstantPipeStorage %storage 4 4 20
%held = OpConstantComposite %holder %first %one
%variable = OpVariable %ph CrossWorkgroup %held
%constant = OpVariable %pc UniformConstant %second
%gid = OpVariable %p_in Input
%fn = OpTypeFunction %void %pi %pi
%fn1 = OpTypeFunction %void %pi
%put = OpFunction %void None %fn
%a = OpFunctionParameter %pi
%as = OpFunctionParameter %pi
%l1 = OpLabel
%id1 = OpLoad %i64v3 %gid
%x1 = OpCompositeExtract %i64 %id1 0
%from = OpInBoundsPtrAccessChain %pi %a %x1
%fromg = OpPtrCastToGeneric %pg %from
%at1 = OpInBoundsAccessChain %ps %variable %zero
%s1 = OpLoad %storage %at1
%w = OpCreatePipeFromPipeStorage %writes %s1
%r1 = OpWritePipe %i32 %w %fromg %four %four
%to1 = OpInBoundsPtrAccessChain %pi %as %x1
OpStore %to1 %r1
OpReturn
OpFunctionEnd
%get = OpFunction %void None %fn
%b = OpFunctionParameter %pi
%bs = OpFunctionParameter %pi
%l2 = OpLabel
%id2 = OpLoad %i64v3 %gid
%x2 = OpCompositeExtract %i64 %id2 0
%into = OpInBoundsPtrAccessChain %pi %b %x2
%intog = OpPtrCastToGeneric %pg %into
%r = OpCreatePipeFromPipeStorage %reads %first
%r2 = OpReadPipe %i32 %r %intog %four %four
%to2 = OpInBoundsPtrAccessChain %pi %bs %x2
OpStore %to2 %r2
OpReturn
OpFunctionEnd
%both = OpFunction %void None %fn1
%c = OpFunctionParameter %pi
%l3 = OpLabel
%n1 = OpCreatePipeFromPipeStorage %reads %first
%k1 = OpGetNumPipePackets %i32 %n1 %four %four
%s3 = OpLoad %storage %constant
%n2 = OpCreatePipeFromPipeStorage %reads %s3
%k2 = OpGetNumPipePackets %i32 %n2 %four %four
%k3 = OpGetMaxPipePackets %i32 %n2 %four %four
OpStore %c %k1
%c1 = OpInBoundsPtrAccessChain %pi %c %one
OpStore %c1 %k2
%two = OpIAdd %i32 %one %one
%c2 = OpInBoundsPtrAccessChain %pi %c %two
OpStore %c2 %k3
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_pipes_of_a_program(width):
    """Pipe storage outlives launches; two of the same sizes are two pipes, wherever they are named."""
    run, items = Program(assemble(STORAGE, (1, 1)), width=width), 25
    validate(link([read(assemble(STORAGE, (1, 1)), None, TypeTable())]))
    given, status, out = array(np.arange(items) + 7), zeros(items), zeros(items)
    counts = zeros(3)
    run.run("both", 1, 1, counts)
    assert counts.tolist() == [0, 0, 20]
    run.run("put", items, items, given, status)
    written = given[status == 0].tolist()
    assert len(written) == 20
    run.run("both", 1, 1, counts)
    assert counts.tolist() == [20, 0, 20]
    run.run("get", items, items, out, status)
    assert sorted(out[status == 0].tolist()) == written


def test_storage_that_is_too_large():
    text = STORAGE.replace(
        "%first = OpConstantPipeStorage %storage 4 4 20",
        "%first = OpConstantPipeStorage %storage 4 4 2000000000",
    )
    with pytest.raises(SpirvError, match="too large"):
        Program(assemble(text, (1, 1)))
