"""The extensions of the Level Zero SPIR-V environment, for the types that each of them names."""

from __future__ import annotations

import functools
import operator
import struct

import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.programs.level_zero import (  # noqa: F401
    EXTENSIONS,
    FLOATS,
    INTS,
    ITEMS,
    OFFERED,
    SCALARS,
    VECTORS,
    Table,
    machine,
    module,
    seed,
)

GROUPS = ["Groups", "SubgroupDispatch"]
NON_UNIFORM = "GroupNonUniform"
INTEL = ["SPV_INTEL_subgroups"]


def vectors(scalars, counts=VECTORS) -> list[str]:
    return [f"v{count}{scalar}" for scalar in scalars for count in counts]


def place(j: int, members: list[int]) -> int:
    return members.index(j)


def at(members: list[int], position: int):
    """The value of the member at that position, if there is one."""
    return seed(members[position]) if 0 <= position < len(members) else None


def other(j, members, change):
    return at(members, change(place(j, members)))


def needs(*names):
    """Skips where the device does not offer a capability; test_what_is_absent_is_refused has those."""
    absent = [name for name in names if name not in OFFERED]
    return pytest.mark.skipif(bool(absent), reason=f"{', '.join(absent)}: absent")


OPTIONAL = {
    "AtomicFloat16AddEXT": "SPV_EXT_shader_atomic_float16_add",
    "AtomicFloat16MinMaxEXT": "SPV_EXT_shader_atomic_float_min_max",
    "SubgroupImageBlockIOINTEL": "SPV_INTEL_subgroups",
    "SubgroupShuffleINTEL": "SPV_INTEL_subgroups",
    "SubgroupBufferBlockIOINTEL": "SPV_INTEL_subgroups",
    "BFloat16ConversionINTEL": "SPV_INTEL_bfloat16_conversion",
    **dict.fromkeys(
        [NON_UNIFORM]
        + [
            NON_UNIFORM + name
            for name in ("Vote", "Ballot", "Arithmetic", "Shuffle", "ShuffleRelative", "Clustered")
        ],
        "",
    ),
}


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_is_absent_is_refused(machine, name):  # noqa: F811
    """Modules that declare a capability are taken exactly where the device reports it."""
    data = module("", [name], [OPTIONAL[name]] if OPTIONAL[name] else [])
    if name in OFFERED:
        assert not OPTIONAL[name] or OPTIONAL[name] in EXTENSIONS
        machine.accepts(data)
    else:
        log = machine.refuses(data)
        assert name in log or OPTIONAL[name] in log


# --- Intel Subgroups --------------------------------------------------------------------------------------


@needs("SubgroupShuffleINTEL")
@pytest.mark.parametrize("scalar", SCALARS)
def test_shuffles_of_intel(machine, scalar):  # noqa: F811
    table = Table()
    table.add("OpSubgroupShuffleDownINTEL {x} {x} %c1", scalar, lambda j, m: other(j, m, lambda p: p + 1))
    table.add("OpSubgroupShuffleUpINTEL {x} {x} %c1", scalar, lambda j, m: other(j, m, lambda p: p - 1))
    table.add("OpSubgroupShuffleXorINTEL {x} %c1", scalar, lambda j, m: other(j, m, lambda p: p ^ 1))
    counts = (2, 4, 8, 16) if scalar in ("f32", "i8", "i16", "i32") else ()
    for type_ in (scalar, *vectors([scalar], counts)):
        table.add("OpSubgroupShuffleINTEL {x} %c1", type_, lambda j, m: at(m, 1))
    for type_ in vectors([scalar], counts[:2]):
        table.add("OpSubgroupShuffleXorINTEL {x} %c1", type_, lambda j, m: other(j, m, lambda p: p ^ 1))
    table.check(machine, declare=[*GROUPS, "SubgroupShuffleINTEL"], extensions=INTEL)


@needs("SubgroupBufferBlockIOINTEL")
@pytest.mark.parametrize("type_", ["i32", "i16", *vectors(("i32", "i16"), (2, 4, 8))])
def test_block_reads_and_writes(machine, type_):  # noqa: F811
    """Component c of lane l is element c·size + l; each sub-group writes what it read elsewhere."""
    scalar = type_[-3:]
    count = int(type_[1:-3]) if type_.startswith("v") else 1
    size = int(scalar[1:]) // 8
    body = f"""
%lane = OpLoad %i32 %in_SubgroupLocalInvocationId
%first = OpISub %i32 %gid %lane
%first64 = OpUConvert %i64 %first
%element = OpIMul %i64 %first64 %l{count}
%from = OpInBoundsPtrAccessChain %g{scalar} %a0 %element
%block = OpSubgroupBlockReadINTEL %{type_} %from
%typed = OpBitcast %g{scalar} %out
%to = OpInBoundsPtrAccessChain %g{scalar} %typed %element
OpSubgroupBlockWriteINTEL %to %block
"""
    data = module(
        body,
        [*GROUPS, "SubgroupBufferBlockIOINTEL"],
        INTEL,
        arguments=[f"%g{scalar}"],
        builtins=("GlobalInvocationId", "SubgroupLocalInvocationId"),
    )
    numbers = struct.pack(f"<{ITEMS * count}{SCALARS[scalar]}", *range(ITEMS * count))
    buffer = machine.cl.make(
        "clCreateBuffer", machine.context, cl.CL_MEM_COPY_HOST_PTR, len(numbers), numbers
    )
    assert machine.run(data, ITEMS * count * size, [struct.pack("<Q", buffer)]) == numbers
    machine.cl.ok("clReleaseMemObject", buffer)


# --- Floating-Point Atomics -------------------------------------------------------------------------------

ATOMICS = {
    "OpAtomicFAddEXT": (16, 1.0, "Add"),
    "OpAtomicFMinEXT": (-15, None, "MinMax"),
    "OpAtomicFMaxEXT": (15, None, "MinMax"),
}


@pytest.mark.parametrize("name", ATOMICS)
@pytest.mark.parametrize("storage", ["CrossWorkgroup", "Workgroup"])
@pytest.mark.parametrize("type_", ["f16", "f32", "f64"])
def test_floating_point_atomics(machine, name, storage, type_):  # noqa: F811
    result, one, kind = ATOMICS[name]
    capability = f"AtomicFloat{type_[1:]}{kind}EXT"
    if capability not in OFFERED:
        pytest.skip(f"{capability}: absent; test_what_is_absent_is_refused")
    extension = (
        "SPV_EXT_shader_atomic_float_min_max" if kind == "MinMax" else "SPV_EXT_shader_atomic_float_add"
    )
    extensions = [
        extension,
        *(["SPV_EXT_shader_atomic_float16_add"] if capability == "AtomicFloat16AddEXT" else []),
    ]
    letter = "g" if storage == "CrossWorkgroup" else "l"
    value = "%one" if one else "%id" if result > 0 else "%minus"
    body = f"""
%typed = OpBitcast %g{type_} %out
%place = OpCopyObject %{letter}{type_} {"%typed" if letter == "g" else "%shared"}
{"" if letter == "g" else "OpStore %place %nothing"}
OpControlBarrier %c2 %c2 %c272
%id = OpConvertUToF %{type_} %gid
%minus = OpFNegate %{type_} %id
%old = {name} %{type_} %place %c1 %c0 {value}
OpControlBarrier %c2 %c2 %c272
%new = OpLoad %{type_} %place
OpStore %typed %new
"""
    declarations = f"%one = OpConstant %{type_} 1.0\n%nothing = OpConstantNull %{type_}\n"
    if letter == "l":
        declarations += f"%shared = OpVariable %l{type_} Workgroup\n"
    code = FLOATS[type_]
    data = machine.run(module(body, [capability], extensions, declarations), struct.calcsize(code))
    assert struct.unpack(f"<{code}", data) == (result,)


@pytest.mark.parametrize("type_", FLOATS)
def test_atomic_load_store_and_exchange(machine, type_):  # noqa: F811
    body = f"""
%typed = OpBitcast %g{type_} %out
%x = OpAtomicLoad %{type_} %typed %c1 %c0
%more = OpFAdd %{type_} %x %one
OpAtomicStore %typed %c1 %c0 %more
%old = OpAtomicExchange %{type_} %typed %c1 %c0 %one
%sum = OpFAdd %{type_} %old %more
OpAtomicStore %typed %c1 %c0 %sum
"""
    code = FLOATS[type_]
    data = module(body, declarations=f"%one = OpConstant %{type_} 1.0\n")
    assert struct.unpack(f"<{code}", machine.run(data, struct.calcsize(code), (), 1)) == (2.0,)


# --- Extended Subgroups -----------------------------------------------------------------------------------


def takes(name: str, scalar: str) -> bool:
    """Whether an instruction with I, S, U or F before its name is for the type."""
    return scalar in (FLOATS if name[0] == "F" else INTS)


def upto(j, members, kind: str) -> list[int]:
    end = {"InclusiveScan": place(j, members) + 1, "ExclusiveScan": place(j, members)}.get(kind, len(members))
    return members[:end]


def folded(operation, j, members, kind):
    """A reduction or a scan; None for an exclusive scan's first value, which is the identity."""
    chosen = upto(j, members, kind)
    return functools.reduce(operation, map(seed, chosen)) if chosen else None


UNIFORM = {"IAdd": operator.add, "FAdd": operator.add, "SMin": min, "UMin": min, "FMin": min}
UNIFORM |= {"SMax": max, "UMax": max, "FMax": max}
SCANS = ("Reduce", "InclusiveScan", "ExclusiveScan")


@needs("Groups", "SubgroupDispatch")
@pytest.mark.parametrize("scalar", SCALARS)
def test_extended_types(machine, scalar):  # noqa: F811
    table = Table()
    for type_ in (scalar, *vectors([scalar])):
        table.add("OpGroupBroadcast %c3 {x} %c1", type_, lambda j, m: at(m, 1))
    for name, operation in UNIFORM.items():
        for kind in SCANS if takes(name, scalar) else ():
            table.add(
                f"OpGroup{name} %c3 {kind} {{x}}",
                scalar,
                lambda j, m, f=operation, k=kind: folded(f, j, m, k),
            )
    table.check(machine, declare=GROUPS)


@needs(NON_UNIFORM, NON_UNIFORM + "Vote")
def test_vote(machine):  # noqa: F811
    table = Table()
    odd = [bool(j & 1) for j in range(ITEMS)]
    table.add("OpGroupNonUniformElect %c3", "bool", lambda j, m: j == m[0])
    table.add("OpGroupNonUniformAll %c3 {x}", "bool", lambda j, m: all(odd[i] for i in m))
    table.add("OpGroupNonUniformAny %c3 {x}", "bool", lambda j, m: any(odd[i] for i in m))
    for type_ in SCALARS:
        table.add("OpGroupNonUniformAllEqual %c3 {x}", type_, lambda j, m: len(m) == 1, "bool")
    declare = [*GROUPS, NON_UNIFORM, NON_UNIFORM + "Vote"]
    table.check(machine, declare=declare)


def ballot(m) -> int:
    """Bits of the lanes whose work-item is odd."""
    return sum(1 << p for p, i in enumerate(m) if i & 1)


def words(mask: int) -> list[int]:
    return [mask >> 32 * k & 0xFFFFFFFF for k in range(4)]


@needs(NON_UNIFORM, NON_UNIFORM + "Ballot")
@pytest.mark.parametrize("scalar", SCALARS)
def test_broadcast(machine, scalar):  # noqa: F811
    table = Table()
    for type_ in (scalar, *vectors([scalar])):
        table.add("OpGroupNonUniformBroadcast %c3 {x} %c1", type_, lambda j, m: at(m, 1))
    table.add("OpGroupNonUniformBroadcastFirst %c3 {x}", scalar, lambda j, m: at(m, 0))
    table.check(machine, declare=[*GROUPS, NON_UNIFORM, NON_UNIFORM + "Ballot"])


@needs(NON_UNIFORM, NON_UNIFORM + "Ballot")
def test_ballot(machine):  # noqa: F811
    table = Table()
    table.add("OpGroupNonUniformBallot %c3 {x}", "bool", lambda j, m: words(ballot(m)), "v4i32")
    row = len(table.rows) - 1
    mask = f"%r{row}"
    table.add(f"OpGroupNonUniformInverseBallot %c3 {mask}", "bool", lambda j, m: j & 1)
    table.add(f"OpGroupNonUniformBallotBitExtract %c3 {mask} %c1", "bool", lambda j, m: ballot(m) >> 1 & 1)
    low = {"Reduce": lambda p: 128, "InclusiveScan": lambda p: p + 1, "ExclusiveScan": lambda p: p}
    for kind, bits in low.items():
        table.add(
            f"OpGroupNonUniformBallotBitCount %c3 {kind} {mask}",
            "i32",
            lambda j, m, bits=bits: (ballot(m) & (1 << bits(place(j, m))) - 1).bit_count(),
        )
    table.add(
        f"OpGroupNonUniformBallotFindLSB %c3 {mask}",
        "i32",
        lambda j, m: (ballot(m) & -ballot(m)).bit_length() - 1 if ballot(m) else None,
    )
    table.add(
        f"OpGroupNonUniformBallotFindMSB %c3 {mask}",
        "i32",
        lambda j, m: ballot(m).bit_length() - 1 if ballot(m) else None,
    )
    masks = {
        "SubgroupEqMask": lambda p, n: 1 << p,
        "SubgroupGeMask": lambda p, n: (1 << n) - (1 << p),
        "SubgroupGtMask": lambda p, n: (1 << n) - (2 << p),
        "SubgroupLeMask": lambda p, n: (2 << p) - 1,
        "SubgroupLtMask": lambda p, n: (1 << p) - 1,
    }
    for name, bits in masks.items():
        table.add(
            f"OpLoad %in_{name}",
            "i32",
            lambda j, m, bits=bits: words(bits(place(j, m), len(m))),
            "v4i32",
        )
    declare = [*GROUPS, NON_UNIFORM, NON_UNIFORM + "Ballot"]
    table.check(machine, declare=declare, builtins=tuple(masks))


TWOS = "".join(f"%two_{type_} = OpConstant %{type_} 2.0\n" for type_ in FLOATS)
LOGICAL = {"And": operator.and_, "Or": operator.or_, "Xor": operator.xor}
NON_UNIFORM_OPERATIONS = UNIFORM | {"IMul": operator.mul}


def arithmetic(table: Table, type_: str, kind: str, cluster: str = "", among=lambda j, m: m) -> None:
    """All instructions for a type; among: the members of the work-item's cluster."""
    if type_ == "bool":
        for name, operation in LOGICAL.items():

            def expected(j, m, f=operation):
                chosen = upto(j, among(j, m), kind)
                return functools.reduce(f, (i & 1 for i in chosen)) if chosen else None

            table.add(f"OpGroupNonUniformLogical{name} %c3 {kind} {{x}}{cluster}", type_, expected)
        return
    if type_ in FLOATS:  # powers of two are exact

        def power(j, m):
            count = len(upto(j, among(j, m), kind))
            return None if not count or type_ == "f16" and count > 15 else 2**count

        table.add(f"OpGroupNonUniformFMul %c3 {kind} %two_{type_}{cluster}", type_, power)
    operations = {name: f for name, f in NON_UNIFORM_OPERATIONS.items() if takes(name, type_)}
    if type_ in INTS:
        operations |= {f"Bitwise{name}": f for name, f in LOGICAL.items()}
    for name, operation in operations.items():
        table.add(
            f"OpGroupNonUniform{name} %c3 {kind} {{x}}{cluster}",
            type_,
            lambda j, m, f=operation: folded(f, j, among(j, m), kind),
        )


@needs(NON_UNIFORM, NON_UNIFORM + "Arithmetic")
@pytest.mark.parametrize("kind", SCANS)
@pytest.mark.parametrize("type_", [*SCALARS, "bool"])
def test_non_uniform_arithmetic(machine, type_, kind):  # noqa: F811
    table = Table()
    arithmetic(table, type_, kind)
    declare = [*GROUPS, NON_UNIFORM, NON_UNIFORM + "Arithmetic"]
    table.check(machine, declare=declare, declarations=TWOS)


@needs(NON_UNIFORM, NON_UNIFORM + "Arithmetic", NON_UNIFORM + "Clustered")
@pytest.mark.parametrize("type_", [*SCALARS, "bool"])
def test_clustered_reductions(machine, type_):  # noqa: F811
    table = Table()
    arithmetic(table, type_, "ClusteredReduce", " %c2", lambda j, m: m[place(j, m) & ~1 :][:2])
    declare = [*GROUPS, NON_UNIFORM, NON_UNIFORM + "Arithmetic", NON_UNIFORM + "Clustered"]
    table.check(machine, declare=declare, declarations=TWOS)


@needs(NON_UNIFORM, NON_UNIFORM + "Shuffle", NON_UNIFORM + "ShuffleRelative")
def test_shuffles(machine):  # noqa: F811
    table = Table()
    for type_ in SCALARS:
        table.add("OpGroupNonUniformShuffle %c3 {x} %c1", type_, lambda j, m: at(m, 1))
        table.add("OpGroupNonUniformShuffleXor %c3 {x} %c1", type_, lambda j, m: other(j, m, lambda p: p ^ 1))
        table.add("OpGroupNonUniformShuffleUp %c3 {x} %c1", type_, lambda j, m: other(j, m, lambda p: p - 1))
        table.add(
            "OpGroupNonUniformShuffleDown %c3 {x} %c1", type_, lambda j, m: other(j, m, lambda p: p + 1)
        )
    declare = [*GROUPS, NON_UNIFORM, NON_UNIFORM + "Shuffle", NON_UNIFORM + "ShuffleRelative"]
    table.check(machine, declare=declare)


# --- Linkonce ODR, Bfloat16 Conversions -------------------------------------------------------------------


def test_link_once_odr(machine):  # noqa: F811
    function = "%f = OpFunction %i32 None %fn_f\n%fl = OpLabel\nOpReturnValue %c7\nOpFunctionEnd\n"
    body = "%got = OpFunctionCall %i32 %f\n%ints = OpBitcast %gi32 %out\nOpStore %ints %got"
    data = module(
        body,
        [],
        ["SPV_KHR_linkonce_odr"],
        "%fn_f = OpTypeFunction %i32\n",
        function,
        decorations='OpDecorate %f LinkageAttributes "f" LinkOnceODR',
    )
    assert machine.run(data, 4, (), 1) == struct.pack("<i", 7)


def bfloat16(number: float) -> int:
    return struct.unpack("<I", struct.pack("<f", number))[0] >> 16


@needs("BFloat16ConversionINTEL")
def test_bfloat16_conversions(machine):  # noqa: F811
    table = Table()
    for count in (1, *VECTORS):
        vector = f"v{count}" if count > 1 else ""
        table.add("OpConvertFToBF16INTEL {x}", vector + "f32", lambda j, m: bfloat16(seed(j)), vector + "i16")
        table.add(f"OpConvertBF16ToFINTEL %r{len(table.rows) - 1}", vector + "f32", lambda j, m: seed(j))
    declare = [*GROUPS, "BFloat16ConversionINTEL"]
    table.check(machine, declare=declare, extensions=["SPV_INTEL_bfloat16_conversion"])
