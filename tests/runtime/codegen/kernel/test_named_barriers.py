"""Named barriers, before the passes, after them, and as machine code. A wrong one does not end, or ends too
early: sub-groups tell one another by plain local memory."""

import copy
import faulthandler
import functools

import numpy as np
import pytest

from cl_driver.device.limits import MAX_NAMED_BARRIERS
from cl_driver.interp.memory import InterpreterError
from cl_driver.interp.run import run as interpret
from cl_driver.interp.run import run_plan
from cl_driver.passes.ir.plan import PlanError, PlanOptions
from cl_driver.passes.pipeline import plan
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.link import link
from cl_driver.spirv.reading.reader import read
from cl_driver.spirv.validation.validate import validate
from tests.conftest import PATIENCE
from tests.pure.spirv.assembler import assemble
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Program, builtin_library, compile_c

WIDTHS = (1, 4, 8, 16)

HEAD = """
OpCapability Addresses
OpCapability Kernel
OpCapability Linkage
OpCapability Int64
OpCapability SubgroupDispatch
OpCapability NamedBarrier
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k" %index %sub_group %sub_groups %most %gid %size
OpDecorate %index BuiltIn LocalInvocationIndex
OpDecorate %sub_group BuiltIn SubgroupId
OpDecorate %sub_groups BuiltIn NumSubgroups
OpDecorate %most BuiltIn SubgroupMaxSize
OpDecorate %gid BuiltIn GlobalInvocationId
OpDecorate %size BuiltIn WorkgroupSize
%void = OpTypeVoid
%bool = OpTypeBool
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%v3 = OpTypeVector %i64 3
%named = OpTypeNamedBarrier
%g = OpTypePointer CrossWorkgroup %i32
%w = OpTypePointer Workgroup %i32
%c64 = OpConstant %i64 64
%array = OpTypeArray %i32 %c64
%wa = OpTypePointer Workgroup %array
%in32 = OpTypePointer Input %i32
%in64 = OpTypePointer Input %i64
%inv3 = OpTypePointer Input %v3
%fn = OpTypeFunction %void %g
%fn_wait = OpTypeFunction %void %named
%zero = OpConstant %i32 0
%one = OpConstant %i32 1
%two = OpConstant %i32 2
%five = OpConstant %i32 5
%thousand = OpConstant %i32 1000
%order = OpConstant %i32 264
%one64 = OpConstant %i64 1
%zero64 = OpConstant %i64 0
%index = OpVariable %in64 Input
%sub_group = OpVariable %in32 Input
%sub_groups = OpVariable %in32 Input
%most = OpVariable %in32 Input
%gid = OpVariable %inv3 Input
%size = OpVariable %inv3 Input
%shared = OpVariable %wa Workgroup
%wait = OpFunction %void None %fn_wait
%given = OpFunctionParameter %named
%wait_entry = OpLabel
OpMemoryNamedBarrier %given %two %order
OpReturn
OpFunctionEnd
%k = OpFunction %void None %fn
%out = OpFunctionParameter %g
%entry = OpLabel
%l = OpLoad %i64 %index
%sg = OpLoad %i32 %sub_group
%n = OpLoad %i32 %sub_groups
%lanes = OpLoad %i32 %most
%ids = OpLoad %v3 %gid
%i = OpCompositeExtract %i64 %ids 0
%sizes = OpLoad %v3 %size
%items = OpCompositeExtract %i64 %sizes 0
%l32 = OpUConvert %i32 %l
%place = OpInBoundsAccessChain %w %shared %l
%last = OpISub %i64 %items %one64
%mirror = OpISub %i64 %last %l
%other = OpInBoundsAccessChain %w %shared %mirror
%to = OpInBoundsPtrAccessChain %g %out %i
"""

# All sub-groups, at a barrier in a loop, by way of a function: each reads what its mirror image wrote.
ALL = (
    HEAD
    + """
%all = OpNamedBarrierInitialize %named %n
OpBranch %loop
%loop = OpLabel
%round = OpPhi %i32 %zero %entry %next %loop
%sum = OpPhi %i32 %zero %entry %more %loop
%scaled = OpIMul %i32 %l32 %five
%value = OpIAdd %i32 %scaled %round
OpStore %place %value Aligned 4
%x1 = OpFunctionCall %void %wait %all
%read = OpLoad %i32 %other Aligned 4
%doubled = OpIMul %i32 %sum %two
%more = OpIAdd %i32 %doubled %read
OpMemoryNamedBarrier %all %two %order
%next = OpIAdd %i32 %round %one
%on = OpULessThan %bool %next %five
OpBranchConditional %on %loop %end
%end = OpLabel
OpStore %to %more Aligned 4
OpReturn
OpFunctionEnd
"""
)

# The first two sub-groups at one barrier, the others at another. The condition is one of sub-groups, or one
# of work-items that is the same for all of a sub-group.
SOME = (
    HEAD
    + """
%pair = OpNamedBarrierInitialize %named %two
%left = OpISub %i32 %n %two
%rest = OpNamedBarrierInitialize %named %left
%edge32 = OpIMul %i32 %lanes %two
%edge = OpUConvert %i64 %edge32
%value = OpIMul %i32 %l32 %five
OpStore %place %value Aligned 4
CONDITION
OpBranchConditional %is_first %first %second
%first = OpLabel
OpMemoryNamedBarrier %pair %two %order
%end1 = OpISub %i64 %edge %one64
%from1 = OpISub %i64 %end1 %l
%at1 = OpInBoundsAccessChain %w %shared %from1
%read1 = OpLoad %i32 %at1 Aligned 4
%done1 = OpIAdd %i32 %read1 %thousand
OpStore %to %done1 Aligned 4
OpMemoryNamedBarrier %pair %two %order
OpBranch %join
%second = OpLabel
OpMemoryNamedBarrier %rest %two %order
%ahead = OpISub %i64 %last %l
%from2 = OpIAdd %i64 %ahead %edge
%at2 = OpInBoundsAccessChain %w %shared %from2
%read2 = OpLoad %i32 %at2 Aligned 4
OpStore %to %read2 Aligned 4
OpBranch %join
%join = OpLabel
OpControlBarrier %two %two %order
OpReturn
OpFunctionEnd
"""
)
CONDITIONS = {
    "sub-groups": "%is_first = OpULessThan %bool %sg %two",
    "work-items": "%is_first = OpULessThan %bool %l %edge",
}

pytestmark = pytest.mark.skipif(IS_EMULATED, reason="stacks are the CPU's own")


@pytest.fixture(autouse=True)
def ends():
    """What hangs holds the interpreter, too: the process says where, and ends."""
    faulthandler.dump_traceback_later(300 * PATIENCE, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@functools.cache
def module(text: str) -> bytes:
    data = assemble(text, (1, 1))
    validate(read(data))
    return data


def check(text: str, width: int, items: int, expected: np.ndarray) -> None:
    compiled = Program(module(text), width=width, sub_groups=True)
    (entry,) = compiled.module.entry_points
    planned = plan(
        compiled.module, entry, PlanOptions(width=width, sub_groups=True, verify=True), builtin_library()
    )
    assert planned.takes_turns
    begin, sizes = [np.zeros(2 * items, np.int32)], ((2 * items,), (items,))
    before, between, got = (copy.deepcopy(begin) for _ in range(3))
    interpret(compiled.module, "k", before, *sizes, sub_group_size=width)
    run_plan(planned, between, *sizes, check_shapes=width > 1)
    compiled.run("k", 2 * items, items, *got)
    want = np.tile(expected, 2).tolist()
    assert [x[0].tolist() for x in (before, between, got)] == [want] * 3


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("items", [1, 16, 35, 64])
def test_all_sub_groups(width, items):
    mirrored = np.arange(items)[::-1] * 5
    expected = np.zeros(items, np.int64)
    for k in range(5):
        expected = 2 * expected + mirrored + k
    check(ALL, width, items, expected)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CONDITIONS)
def test_some_sub_groups(name, width):
    items, edge = 51, 2 * width
    expected = np.concatenate([np.arange(edge)[::-1] * 5 + 1000, np.arange(edge, items)[::-1] * 5])
    check(SOME.replace("CONDITION", CONDITIONS[name]), width, items, expected)


FUNCTIONS = """
kernel void k(global int *out) {
    local int shared[64];
    local struct __namedBarrier *pair = named_barrier_init(2);
    local struct __namedBarrier *all = named_barrier_init(get_num_sub_groups());
    int l = get_local_id(0), n = get_local_size(0), edge = 2 * get_max_sub_group_size();
    shared[l] = l * 5;
    int first = get_sub_group_id() < 2;
    if (first) {
        work_group_named_barrier(pair, CLK_LOCAL_MEM_FENCE);
        out[get_global_id(0)] = shared[edge - 1 - l];
    }
    work_group_named_barrier(all, CLK_LOCAL_MEM_FENCE, memory_scope_work_group);
    if (!first) out[get_global_id(0)] = shared[n - 1 - l];
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_functions(width):
    items, edge = 48, 2 * width
    want = np.concatenate([np.arange(edge)[::-1] * 5, np.arange(items - edge)[::-1] * 5])
    compiled = Program(compile_c(FUNCTIONS), width=width, sub_groups=True)
    before, got = [np.zeros(items, np.int32)], [np.zeros(items, np.int32)]
    interpret(compiled.module, "k", before, (items,), (items,), sub_group_size=width)
    compiled.run("k", items, items, *got)
    assert before[0].tolist() == got[0].tolist() == want.tolist()


def test_too_few_sub_groups():
    """It is no reason to wait for ever."""
    text = ALL.replace("%named %n\n", "%named %thousand\n")
    compiled = Program(module(text), width=4, sub_groups=True)
    with pytest.raises(InterpreterError, match="too few"):
        interpret(compiled.module, "k", [np.zeros(16, np.int32)], (16,), (16,), sub_group_size=4)
    (entry,) = compiled.module.entry_points
    planned = plan(compiled.module, entry, PlanOptions(width=4, sub_groups=True), builtin_library())
    with pytest.raises(InterpreterError, match="too few"):
        run_plan(planned, [np.zeros(16, np.int32)], (16,), (16,))
    compiled.run("k", 16, 16, np.zeros(16, np.int32))


def test_too_many_barriers():
    lines = "".join(f"%b{k} = OpNamedBarrierInitialize %named %n\n" for k in range(MAX_NAMED_BARRIERS))
    for more, fails in (("", False), ("%b = OpNamedBarrierInitialize %named %n\n", True)):
        text = ALL.replace("%all =", f"{lines.replace('%b0 =', '%all =', 1)}{more}%unused =", 1)
        text = text.replace("%unused = OpNamedBarrierInitialize %named %n\n", "")
        linked = link([read(module(text))], lambda name: True)
        options = PlanOptions(width=8, sub_groups=True)
        if fails:
            with pytest.raises(PlanError, match=str(MAX_NAMED_BARRIERS)):
                plan(linked, linked.entry_points[0], options, builtin_library())
        else:
            plan(linked, linked.entry_points[0], options, builtin_library())


NEW = "%all = OpNamedBarrierInitialize"


@pytest.mark.parametrize(("old", "new", "message"), [
    (f"{NEW} %named %n", f"{NEW} %i32 %n", "the result has type int32"),
    (f"{NEW} %named %n", f"{NEW} %named %l", "a number of sub-groups of type int64"),
    ("OpMemoryNamedBarrier %all", "OpMemoryNamedBarrier %n", "a named barrier of type int32"),
    ("OpMemoryNamedBarrier %all %two", "OpMemoryNamedBarrier %all %five", "scope 5"),
    ("OpMemoryNamedBarrier %all %two %order", "OpMemoryNamedBarrier %all %two %l", "of type int64"),
    ("OpCapability NamedBarrier\n", "", "NamedBarrier"),
])  # fmt: skip
def test_rules(old, new, message):
    assert old in ALL
    with pytest.raises(SpirvError, match=message):
        validate(read(assemble(ALL.replace(old, new), (1, 1))))
