"""More modules: groups, control flow, constants, annotations, and what SPIR-V 1.1 to 1.6 added."""

from __future__ import annotations

from collections.abc import Iterator

from . import streams
from .module import Kernel, vector
from .special import kernel, operand, place

LOCAL = 37
WORKGROUP, REDUCE, INCLUSIVE, EXCLUSIVE = 2, 0, 1, 2
COLLECTIVES = {"i": ("IAdd", "UMin", "SMin", "UMax", "SMax"), "f": ("FAdd", "FMin", "FMax")}


def grouped(name: str, version=(1, 0), groups: int = 3) -> Kernel:
    """A kernel of several work-groups."""
    k = kernel(name, version, LOCAL * groups)
    k.local = LOCAL
    k.capabilities.add("Groups")
    return k


def collectives() -> Iterator[Kernel]:
    """Work-group collectives on every type."""
    for scalar in ("i32", "i64", "f32", "f64"):
        k = grouped(f"collectives {scalar}")
        scope = k.constant("i32", WORKGROUP)
        # Sums of small whole numbers do not depend on the order.
        value = operand(k, scalar, "z" if scalar[0] == "f" else "a")
        for name in COLLECTIVES[scalar[0]]:
            for operation in ("Reduce", "InclusiveScan", "ExclusiveScan"):
                result = k.emit(f"Group{name}", scalar, scope, operation, value)
                k.store(f"Group{name} {operation}", scalar, result)
        index = k.constant("i64", 5)
        k.store("GroupBroadcast", scalar, k.emit("GroupBroadcast", scalar, scope, value, index))
        yield k
    k = grouped("collectives bool")
    scope = k.constant("i32", WORKGROUP)
    for label, limit in (("none", 100), ("some", 30), ("all", 0)):
        truth = k.emit("UGreaterThanEqual", "bool", operand(k, "i64", "0..99"), k.constant("i64", limit))
        for name in ("GroupAll", "GroupAny"):
            k.store(f"{name} {label}", "bool", k.emit(name, "bool", scope, truth))
    yield k


def async_copies() -> Iterator[Kernel]:
    """OpGroupAsyncCopy in both directions, with and without a stride, chained events, OpGroupWaitEvents."""
    for scalar, count in (("i8", 1), ("i32", 1), ("f32", 4), ("i64", 2), ("i16", 3)):
        type_ = vector(scalar, count)
        k = grouped(f"async copy {type_}")
        scope, event = k.constant("i32", WORKGROUP), k.declare("%event", "OpTypeEvent")
        null, elements = k.declare("%noevent", "OpConstantNull %event"), k.constant("i64", LOCAL // 2)
        memory = k.declare("%local", f"OpVariable {k.type(f'Workgroup*{type_}[{LOCAL}]')} Workgroup")
        begin = k.emit("InBoundsAccessChain", f"Workgroup*{type_}", memory, k.constant("i32", 0))
        mine = k.emit("UMod", "i64", "%id", k.constant("i64", LOCAL))
        first = k.emit("ISub", "i64", "%id", mine)
        own = k.emit("InBoundsAccessChain", f"Workgroup*{type_}", memory, mine)
        k.emit("Store", None, own, operand(k, type_, "b"))
        barrier = ["ControlBarrier", None, scope, scope, k.constant("i32", 0x100 | 0x10)]
        k.emit(*barrier)
        offset = k.add_input(scalar, count, streams.values("a", scalar, count, k.items, 3))
        source = k.index("%in", "CrossWorkgroup*i8", k.constant("i64", offset))
        source = k.emit("Bitcast", f"CrossWorkgroup*{type_}", source)
        source = k.index(source, f"CrossWorkgroup*{type_}", first)
        result = k.add_output(f"GroupAsyncCopy {type_}", type_, "exact")
        target = k.index("%out", "CrossWorkgroup*i8", k.constant("i64", result.offset))
        target = k.emit("Bitcast", f"CrossWorkgroup*{type_}", target)
        target = k.index(target, f"CrossWorkgroup*{type_}", first)
        holder = k.declare("%pevent", f"OpTypePointer Function {event}")
        k.variables.append(f"%events = OpVariable {holder} Function")
        one, two = k.constant("i64", 1), k.constant("i64", 2)
        for destination, origin, stride in ((begin, source, two), (target, begin, one), (target, begin, two)):
            done = k.emit("GroupAsyncCopy", event, scope, destination, origin, elements, stride, null)
            k.emit("Store", None, "%events", done)
            k.emit("GroupWaitEvents", None, scope, k.constant("i32", 1), "%events")
            k.emit(*barrier)
        k.store("local memory", type_, k.emit("Load", type_, own))
        k.emit("MemoryBarrier", None, k.constant("i32", 1), k.constant("i32", 0x200 | 0x8))
        yield k


def control_flow() -> Iterator[Kernel]:
    """Every terminator and merge instruction, and calls."""
    k = kernel("control flow")
    for scalar in ("i8", "i16", "i32", "i64"):
        a = operand(k, scalar)
        literals = [0, 1, (1 << int(scalar[1:])) - 1, 1 << int(scalar[1:]) - 1]
        labels = [k.fresh("case") for _ in literals]
        other, merge = k.fresh("default"), k.fresh("merge")
        k.emit("SelectionMerge", None, merge, "DontFlatten")
        k.emit("Switch", None, a, other, *(f"{n} {label}" for n, label in zip(literals, labels, strict=True)))
        values = []
        for number, label in enumerate([other, *labels]):
            k.label(label)
            values.append(f"{k.constant('i32', 10 + number)} {label}")
            k.emit("Branch", None, merge)
        k.label(merge)
        k.store(f"Switch {scalar}", "i32", k.emit("Phi", "i32", *values))
    # A loop whose trip count varies, left in the middle, with every loop control.
    for control in ("None", "Unroll", "DontUnroll"):
        n = operand(k, "i32", "0..9")
        before, header, body, following, merge = (k.fresh("block") for _ in range(5))
        k.emit("Branch", None, before)
        k.label(before)
        k.emit("Branch", None, header)
        k.label(header)
        step, total = k.fresh(), k.fresh()
        i32 = k.type("i32")
        counter = k.emit("Phi", "i32", k.constant("i32", 0), before, step, following)
        running = k.emit("Phi", "i32", k.constant("i32", 7), before, total, following)
        go = k.emit("ULessThan", "bool", counter, n)
        k.emit("LoopMerge", None, merge, following, control)
        k.emit("BranchConditional", None, go, body, merge, 3, 1)
        k.label(body)
        big = k.emit("UGreaterThan", "bool", running, k.constant("i32", 60))
        k.emit("BranchConditional", None, big, merge, following)
        k.label(following)
        k.body.append(f"{total} = OpIAdd {i32} {running} {k.emit('IMul', 'i32', counter, counter)}")
        k.body.append(f"{step} = OpIAdd {i32} {counter} {k.constant('i32', 1)}")
        k.emit("Branch", None, header)
        k.label(merge)
        k.store(f"LoopMerge {control}", "i32", k.emit("Phi", "i32", running, header, running, body))
    # Functions: recursion-free calls with composites, several returns, OpUnreachable behind a switch.
    pair = k.struct("i32", "f32x4")
    type_ = k.declare("%helper_type", f"OpTypeFunction {pair} {pair} {k.type('i32')}")
    bool_, zero, one = k.type("bool"), k.constant("i32", 0), k.constant("i32", 1)
    k.functions += [
        f"%helper = OpFunction {pair} Inline|Pure {type_}", f"%hp = OpFunctionParameter {pair}",
        f"%hn = OpFunctionParameter {k.type('i32')}", "%hentry = OpLabel",
        f"%hnegative = OpSLessThan {bool_} %hn {zero}", "OpSelectionMerge %hend None",
        "OpBranchConditional %hnegative %hreturn %hend", "%hreturn = OpLabel", "OpReturnValue %hp",
        "%hend = OpLabel", f"%hold = OpCompositeExtract {k.type('i32')} %hp 0",
        f"%hnew = OpIAdd {k.type('i32')} %hold {one}", f"%hresult = OpCompositeInsert {pair} %hnew %hp 0",
        f"%hodd = OpBitwiseAnd {k.type('i32')} %hn {one}", "OpSelectionMerge %hnever None",
        "OpSwitch %hodd %hnever 0 %heven 1 %hother", "%heven = OpLabel", "OpReturnValue %hresult",
        "%hother = OpLabel", "OpReturnValue %hp", "%hnever = OpLabel", "OpUnreachable", "OpFunctionEnd",
    ]  # fmt: skip
    given = k.emit("CompositeConstruct", pair, operand(k, "i32"), operand(k, "f32x4"))
    once = k.emit("FunctionCall", pair, "%helper", given, operand(k, "i32", "b"))
    twice = k.emit("FunctionCall", pair, "%helper", once, operand(k, "i32"))
    k.store("FunctionCall member 0", "i32", k.emit("CompositeExtract", "i32", twice, 0))
    k.store("FunctionCall member 1", "f32x4", k.emit("CompositeExtract", "f32x4", twice, 1))
    yield k


def constants() -> Iterator[Kernel]:
    """Constants, null and undefined values of every kind of type, OpCopyObject of composites, program-scope
    variables with initialisers."""
    k = kernel("constants")
    inner = k.struct("i8", "i64", "f32x3")
    outer = k.struct(inner, "i16[3]")
    members = [("i8", 7), ("i64", 1 << 40), ("f32x3", [1.5, -0.0, 2.25])]
    value = k.declare("%cinner", f"OpConstantComposite {inner} " + " ".join(k.constant(*m) for m in members))
    small = [k.constant("i16", n) for n in (1, 2, 65535)]
    array = k.declare("%carray", f"OpConstantComposite {k.type('i16[3]')} {' '.join(small)}")
    whole = k.declare("%couter", f"OpConstantComposite {outer} {value} {array}")
    null = k.declare("%nouter", f"OpConstantNull {outer}")
    undef = k.declare("%uouter", f"OpUndef {outer}")
    copies = [k.emit("CopyObject", outer, v) for v in (whole, null)]
    mixed = k.emit("CompositeInsert", outer, operand(k, "i64"), copies[0], 0, 1)
    mixed = k.emit("CompositeInsert", outer, operand(k, "i16"), mixed, 1, 2)
    local = k.emit("Undef", outer)
    defined = k.emit("CompositeInsert", outer, operand(k, "i16"), local, 1, 0)
    for label, composite in (("constant", copies[0]), ("null", copies[1]), ("mixed", mixed)):
        for type_, path in (
            ("i8", "0 0"),
            ("i64", "0 1"),
            ("f32x3", "0 2"),
            ("f32", "0 2 2"),
            ("i16", "1 2"),
        ):
            k.store(f"{label} {path}", type_, k.emit("CompositeExtract", type_, composite, path))
    k.store("undefined but for a part", "i16", k.emit("CompositeExtract", "i16", defined, 1, 0))
    k.emit("CompositeExtract", "i16", undef, 1, 0)
    for storage in ("UniformConstant", "CrossWorkgroup"):
        pointer = k._once((storage, outer), f"OpTypePointer {storage} {outer}")
        variable = k.declare(k.fresh("global"), f"OpVariable {pointer} {storage} {whole}")
        member = k.emit(
            "InBoundsAccessChain", f"{storage}*i64", variable, *(k.constant("i32", n) for n in (0, 1))
        )
        k.store(f"initialiser {storage}", "i64", k.emit("Load", "i64", member))
    pointer = k._once(("Function", outer), f"OpTypePointer Function {outer}")
    k.variables.append(f"%initialised = OpVariable {pointer} Function {whole}")
    everything = k.emit("Load", outer, "%initialised")
    k.store("initialiser Function", "f32x3", k.emit("CompositeExtract", "f32x3", everything, "0 2"))
    for count in (1, 3, 16):
        type_ = vector("bool", count)
        for value in (True, False):
            k.store(f"Constant{value} {count}", type_, k.emit("CopyObject", type_, k.constant(type_, value)))
        k.store(f"null bool {count}", type_, k.emit("CopyObject", type_, k.constant(type_, None)))
    for type_ in ("i8", "i16x2", "i32x3", "i64x4", "f32x8", "f64x16"):
        k.store(f"null {type_}", type_, k.emit("CopyObject", type_, k.constant(type_, None)))
    yield k


def newer() -> Iterator[Kernel]:
    """What SPIR-V 1.1 to 1.6 added, and declarations that say nothing about values."""
    k = kernel("1.6", (1, 6))
    k.extensions |= {"SPV_KHR_expect_assume"}
    k.capabilities |= {"ExpectAssumeKHR", "UniformDecoration"}
    k.modes += [
        'OpExecutionMode %k ContractionOff', f"OpExecutionModeId %k LocalSizeHintId {k.constant('i32', 37)} "
        f"{k.constant('i32', 1)} {k.constant('i32', 1)}",
        '%file = OpString "a file"', 'OpSourceExtension "an extension"',
        'OpSource OpenCL_C 300000 %file "kernel"', 'OpSourceContinued " void"',
        'OpName %k "the kernel"', 'OpModuleProcessed "by a test"',
    ]  # fmt: skip
    a, b = operand(k, "i32"), operand(k, "i32", "b")
    k.emit("Line", None, "%file", 3, 4)
    k.emit("Nop", None)
    pair, other = k.struct("i32", "i64"), k.declare("%twin", f"OpTypeStruct {k.type('i32')} {k.type('i64')}")
    k.modes.insert(-1, f'OpMemberName {pair} 0 "first"')
    k.decorations += [
        "%decorations = OpDecorationGroup", f"OpGroupDecorate %decorations {pair}",
        f"OpGroupMemberDecorate %decorations {pair} 0", f"OpMemberDecorate {pair} 0 Constant",
        f'OpDecorateString {pair} UserSemantic "text"',
        f'OpMemberDecorateString {pair} 1 UserSemantic "text"',
    ]  # fmt: skip
    made = k.emit("CompositeConstruct", pair, a, k.emit("SConvert", "i64", b))
    uniform = k.emit("CopyObject", "i32", k.constant("i32", 5))
    k.decorations.append(f"OpDecorateId {uniform} UniformId {k.constant('i32', 2)}")
    k.decorations.append(f"OpDecorate {uniform} Uniform")
    k.store("UniformId", "i32", uniform)
    same = k.emit("CopyLogical", other, made)
    k.store("CopyLogical", "i64", k.emit("CompositeExtract", "i64", same, 1))
    truth = k.emit("SLessThan", "bool", a, b)
    chosen = k.emit("Select", pair, truth, made, k.declare("%nopair", f"OpConstantNull {pair}"))
    k.store("Select structure", "i64", k.emit("CompositeExtract", "i64", chosen, 1))
    array = k.emit("CompositeConstruct", "i32[2]", a, b)
    reverse = k.emit("CompositeConstruct", "i32[2]", b, a)
    chosen = k.emit("Select", "i32[2]", truth, array, reverse)
    k.store("Select array", "i32", k.emit("CompositeExtract", "i32", chosen, 0))
    vectors = [k.emit("CompositeConstruct", "i32x2", *parts) for parts in ((a, b), (b, a))]
    k.store("Select vectors by a scalar", "i32x2", k.emit("Select", "i32x2", truth, *vectors))
    for op in ("IAdd", "ISub", "IMul", "ShiftLeftLogical"):
        amount = operand(k, "i32", "0..7")
        value = k.emit(op, "i32", amount, amount)
        k.decorations += [f"OpDecorate {value} NoSignedWrap", f"OpDecorate {value} NoUnsignedWrap"]
        k.store(f"{op} NoSignedWrap", "i32", value)
    k.store("ExpectKHR", "i32", k.emit("ExpectKHR", "i32", a, k.constant("i32", 0)))
    k.emit("AssumeTrueKHR", None, k.emit("ULessThan", "bool", "%id", k.constant("i64", 1 << 30)))
    k.store("SizeOf", "i32", k.emit("SizeOf", "i32", place(k, "Function", "f32x3", "")))
    k.emit("NoLine", None)
    yield k

    # Structures that point to themselves, opaque types, the lifetime of variables.
    k = kernel("lists", (1, 1))
    k.declarations.append("OpTypeForwardPointer %pnode CrossWorkgroup")
    k.declare("%node", f"OpTypeStruct {k.type('i32')} %pnode")
    k.declare("%pnode", "OpTypePointer CrossWorkgroup %node")
    k.declare("%opaque", 'OpTypeOpaque "something"')
    k.declare("%popaque", "OpTypePointer CrossWorkgroup %opaque")
    k.declare("%pchar", f"OpTypePointer Function {k.type('i8')}")
    a = operand(k, "i32")
    result = k.add_output("node", "i64x4", None)
    node = k.emit("Bitcast", "%pnode", k.region("%out", result.offset, "i64x4"))
    for index, type_, value in ((0, "i32", a), (1, "%pnode", node)):
        pointer = k.declare(k.fresh("pp"), f"OpTypePointer CrossWorkgroup {k.type(type_)}")
        k.emit("Store", None, k.emit("AccessChain", pointer, node, k.constant("i32", index)), value)
    following = node
    pointer = k.declare("%ppnode", "OpTypePointer CrossWorkgroup %pnode")
    for _ in range(3):
        following = k.emit("Load", "%pnode", k.emit("AccessChain", pointer, following, k.constant("i32", 1)))
    first = k.emit("AccessChain", "CrossWorkgroup*i32", following, k.constant("i32", 0))
    k.store("list", "i32", k.emit("Load", "i32", first))
    opaque = k.emit("Bitcast", "%popaque", node)
    again = k.emit("Bitcast", "CrossWorkgroup*i32", opaque)
    k.store("through an opaque pointer", "i32", k.emit("Load", "i32", again))
    variable = k.variable("i32")
    bytes_ = k.emit("Bitcast", "%pchar", variable)
    for _ in range(2):
        k.emit("LifetimeStart", None, bytes_, 4)
        k.emit("Store", None, variable, a)
        k.store(f"LifetimeStart {_}", "i32", k.emit("Load", "i32", variable))
        k.emit("LifetimeStop", None, bytes_, 4)
    yield k


def kernels() -> list[Kernel]:
    """All modules of special.py and special_more.py."""
    from . import spec_constants, special

    makers = [
        special.loads_and_stores, special.pointers, special.vector_memory, special.atomics, collectives,
        async_copies, control_flow, constants, newer, spec_constants.kernels,
    ]  # fmt: skip
    return [made for maker in makers for made in maker()]
