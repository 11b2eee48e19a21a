"""SPV_INTEL_masked_gather_scatter: vectors of pointers, and accesses by them, at every width."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from cl_driver.spirv.writer import write
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, buffer, module

CAPABILITY = 'OpCapability MaskedGatherScatterINTEL\nOpExtension "SPV_INTEL_masked_gather_scatter"'
RNG = np.random.default_rng(9)
COUNTS = (2, 3, 4, 8, 16)


def types_of(n: int) -> str:
    return f"""
%v = OpTypeVector %i32 {n}
%l = OpTypeVector %i64 {n}
%vb = OpTypeVector %bool {n}
%pi = OpTypePointer CrossWorkgroup %i32
%pv = OpTypeVector %pi {n}
%pg = OpTypePointer Generic %i32
%gv = OpTypeVector %pg {n}
%four = OpConstant %i64 4
%zero = OpConstant %i32 0
%one = OpConstant %i32 1
%seven = OpConstant %i32 7
%null = OpConstantNull %pv
%nothing = OpConstantNull %v
%fours = OpConstantComposite %l {" ".join(["%four"] * n)}
%sevens = OpConstantComposite %v {" ".join(["%seven"] * n)}
%ones = OpConstantComposite %v {" ".join(["%one"] * n)}
%ppv = OpTypePointer Function %pv
%st = OpTypeStruct %i32 %pv
%pst = OpTypePointer Function %st
%apv = OpTypeArray %pv %four
%papv = OpTypePointer Function %apv
%fpv = OpTypeFunction %pv %pv %pi
%pf = OpTypePointer Function %i32
%pfv = OpTypeVector %pf {n}
"""


# Element i of each lane's gather is b[a[id][i] & 31], where that is not 7 more than a multiple of 8.
ADDRESSES = """
%mask31 = OpBitwiseAnd %v %x %thirtyone
%wide = OpUConvert %l %mask31
%bytes = OpIMul %l %wide %fours
%pi0 = OpBitcast %pi %b
%base = OpConvertPtrToU %i64 %pi0
%bases = OpCompositeConstruct %l {bases}
%at = OpIAdd %l %bases %bytes
%p = OpConvertUToPtr %pv %at
%low = OpBitwiseAnd %v %mask31 %sevens
%mask = OpINotEqual %vb %low %sevens
"""


def source(n: int, body: str, types: str = "", **parts) -> bytes:
    more = f"%c31 = OpConstant %i32 31\n%thirtyone = OpConstantComposite %v {' '.join(['%c31'] * n)}\n"
    text = ADDRESSES.format(bases=" ".join(["%base"] * n)) + body
    capabilities = "OpCapability GenericPointer\n" + parts.pop("capabilities", CAPABILITY)
    return module(text, "v", "v", capabilities, types=types_of(n) + more + types, **parts)


def numbers(n: int) -> np.ndarray:
    made = buffer((ITEMS, 4 if n == 3 else n), np.int32)
    made[:] = RNG.integers(-(2**31), 2**31, made.shape)
    return made


def run(n: int, spirv: bytes, want, x: np.ndarray, y: np.ndarray) -> None:
    validate.validate(reader.read(spirv))
    for width in WIDTHS:
        for data in (spirv, write(reader.read(spirv))):
            out, table = buffer(x.shape, np.int32), buffer(y.shape, np.int32)
            table[:] = y
            Program(data, width=width).run("main", ITEMS, GROUP, x, table, out)
            np.testing.assert_array_equal(out[:, :n], want, f"width {width}")


def gathered(n: int, x: np.ndarray, y: np.ndarray, fill) -> np.ndarray:
    index = x[:, :n] & 31
    return np.where(index & 7 != 7, y.ravel()[index], fill)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("fill", ["%x", "%seven"])
def test_gather(n, fill):
    """What is filled with is a vector, as compilers write it, or a component."""
    x, y = numbers(n), numbers(n)
    body = f"%r = OpMaskedGatherINTEL %v %p 4 %mask {fill}"
    run(n, source(n, body), gathered(n, x, y, x[:, :n] if fill == "%x" else 7), x, y)


@pytest.mark.parametrize("n", COUNTS)
def test_what_is_masked_is_not_touched(n):
    """Null where the mask is false."""
    x, y = numbers(n), numbers(n)
    body = """
%safe = OpSelect %pv %mask %p %null
%same = OpPtrEqual %vb %safe %p
%isnull = OpPtrNotEqual %vb %safe %null
%both = OpLogicalAnd %vb %same %isnull
%some = OpMaskedGatherINTEL %v %safe 0 %both %sevens
OpMaskedScatterINTEL %ones %null 0 %never
%r = OpIAdd %v %some %ones
"""
    types = f"%false = OpConstantFalse %bool\n%never = OpConstantComposite %vb {' '.join(['%false'] * n)}\n"
    run(n, source(n, body, types), gathered(n, x, y, 7) + 1, x, y)


@pytest.mark.parametrize("n", COUNTS)
def test_scatter(n):
    """Into variables of the work-item, which chains of vectors of addresses lead to; the last one wins."""
    x, y = numbers(n), numbers(n)
    indices = " ".join(["%zero64"] * n)
    body = f"""
OpStore %cells %clear
%first = OpBitcast %pf %cells
%firsts = OpCompositeConstruct %pfv {" ".join(["%first"] * n)}
%eight = OpBitwiseAnd %v %x %sevens
%far = OpSConvert %l %eight
%chained = OpInBoundsPtrAccessChain %pfv %firsts %far
%generic = OpPtrCastToGeneric %gv %chained
%back = OpGenericCastToPtr %pfv %generic
OpMaskedScatterINTEL %mask31 %back 4 %mask
%all = OpConvertPtrToU %l %back
%again = OpConvertUToPtr %pfv %all
%r = OpMaskedGatherINTEL %v %again 4 %always %nothing
"""
    types = f"""
%true = OpConstantTrue %bool
%zero64 = OpConstant %i64 0
%zeros = OpConstantComposite %l {indices}
%always = OpConstantComposite %vb {" ".join(["%true"] * n)}
%i64x = OpConstant %i64 8
%cell = OpTypeArray %i32 %i64x
%pcell = OpTypePointer Function %cell
%clear = OpConstantNull %cell
"""
    want = np.zeros((ITEMS, n), np.int32)
    for item in range(ITEMS):
        cells = [0] * 8
        for k in range(n):
            index = int(x[item, k]) & 31
            if index & 7 != 7:
                cells[index & 7] = index
        want[item] = [cells[int(x[item, k]) & 7] for k in range(n)]
    run(n, source(n, body, types, locals="%cells = OpVariable %pcell Function"), want, x, y)


@pytest.mark.parametrize("n", COUNTS)
def test_addresses_are_values_as_others(n):
    """In variables, structures, arrays, arguments, results, phis and shuffles; compared and subtracted."""
    x, y = numbers(n), numbers(n)
    order = " ".join(str((k + 1) % n) for k in range(n))
    body = f"""
OpStore %kept %p
%p1 = OpLoad %pv %kept
%whole = OpCompositeConstruct %st %one %p1
OpStore %inst %whole
%st2 = OpLoad %st %inst
%p2 = OpCompositeExtract %pv %st2 1
%slot = OpInBoundsAccessChain %ppv %list %one
OpStore %slot %p2
%array = OpLoad %apv %list
%p3 = OpCompositeExtract %pv %array 1
%p4 = OpFunctionCall %pv %replaced %p3 %pi0
%odd = OpBitwiseAnd %i64 %id %bit
%isodd = OpIEqual %bool %odd %bit
OpSelectionMerge %join None
OpBranchConditional %isodd %then %join
%then = OpLabel
%turned = OpVectorShuffle %pv %p4 %null {order}
OpBranch %join
%join = OpLabel
%p5 = OpPhi %pv %p4 %entry %turned %then
%i32id = OpUConvert %i32 %odd
%chosen = OpVectorExtractDynamic %pi %p5 %i32id
%p6 = OpVectorInsertDynamic %pv %p5 %chosen %zero
%far = OpPtrDiff %l %p6 %front
%narrow = OpUConvert %v %far
%r = OpCopyObject %v %narrow
"""
    types = "%bit = OpConstant %i64 1\n%frontc = OpUndef %pv\n"
    body = body.replace("%far =", f"%front = OpCompositeConstruct %pv {' '.join(['%pi0'] * n)}\n%far =")
    functions = """
%replaced = OpFunction %pv None %fpv
%old = OpFunctionParameter %pv
%by = OpFunctionParameter %pi
%begin = OpLabel
%new = OpCompositeInsert %pv %by %old 0
OpReturnValue %new
OpFunctionEnd
"""
    index = x[:, :n] & 31
    index[:, 0] = 0
    odd = np.arange(ITEMS) % 2 == 1
    index[odd] = np.roll(index[odd], -1, 1)
    index[odd, 0] = index[odd, 1]
    local = "%kept = OpVariable %ppv Function\n%inst = OpVariable %pst Function\n"
    local += "%list = OpVariable %papv Function"
    run(n, source(n, body, types, functions=functions, locals=local), index, x, y)


def test_a_vector_of_variables():
    """OpVariable: "a vector of objects in memory, resulting in [...] a vector of pointers"."""
    x, y = numbers(4), numbers(4)
    body = """
OpMaskedScatterINTEL %x %objects 4 %mask
%r = OpMaskedGatherINTEL %v %objects 4 %mask %sevens
"""
    want = np.where((x & 7) != 7, x, 7)
    run(4, source(4, body, locals="%objects = OpVariable %pfv Function"), want, x, y)


GATHER = "%r = OpMaskedGatherINTEL %v %p 4 %mask %x"
SCATTER = "OpMaskedScatterINTEL %x %p 4 %mask\n%r = OpCopyObject %v %x"


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (GATHER.replace("%p ", "%l0 "), "is no vector of pointers"),
        (GATHER.replace("%p ", "%pi0 "), "is no vector of pointers"),
        (GATHER.replace("4 %mask", "3 %mask"), "alignment 3 is not a power of two"),
        (GATHER.replace("%mask", "%x"), "a mask of type vector"),
        (GATHER.replace("%mask", "%boolean"), "a mask of type bool"),
        (GATHER.replace("%mask", "%few"), "4 components of data, 4 pointers, a mask of 2"),
        (GATHER.replace("%mask %x", "%mask %four"), "int64 to fill vector"),
        (GATHER.replace("%v %p", "%l %p"), "behind pointers to int32"),
        (GATHER.replace("%v %p", "%i32 %p"), "data of type int32"),
        (SCATTER.replace("%x %p", "%zero %p"), "data of type int32"),
        (SCATTER.replace("%x %p", "%mask %p"), "behind pointers to int32"),
        (SCATTER.replace("%p 4", "%x 4"), "is no vector of pointers"),
        (SCATTER.replace("%mask", "%p"), "a mask of type vector"),
        ("%n = OpIAdd %pv %p %p\n%r = OpCopyObject %v %x", "OpIAdd: "),
        ("%n = OpPtrEqual %bool %p %p\n%r = OpCopyObject %v %x", "OpPtrEqual: a result of type bool"),
        (
            "%n = OpPtrEqual %vb %p %pi0\n%r = OpCopyObject %v %x",
            "OpPtrEqual: a vector of pointers, and what is no",
        ),
        ("%n = OpConvertPtrToU %l2 %p\n%r = OpCopyObject %v %x", "vectors of different sizes"),
        ("%n = OpLoad %i32 %p\n%r = OpCopyObject %v %x", "OpLoad: "),
        ("OpStore %p %x\n%r = OpCopyObject %v %x", "OpStore: "),
        ("%n = OpInBoundsPtrAccessChain %pv %p %mask\n%r = OpCopyObject %v %x", "OpInBoundsPtrAccessChain: "),
        ("%n = OpSNegate %pv %p\n%r = OpCopyObject %v %x", "OpSNegate: "),
    ],
)
def test_modules_that_are_wrong(body, rule):
    types = """
%l0 = OpUndef %l
%boolean = OpUndef %bool
%vb2 = OpTypeVector %bool 2
%few = OpUndef %vb2
%l2 = OpTypeVector %i64 2
"""
    with pytest.raises(SpirvError, match=rule):
        validate.validate(reader.read(source(4, body, types)))


def test_the_capability_is_needed():
    with pytest.raises(SpirvError, match="OpTypeVector: components of type pointer"):
        validate.validate(reader.read(source(4, GATHER, capabilities="")))
