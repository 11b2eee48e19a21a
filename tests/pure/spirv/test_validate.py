"""The validator: each rule that later stages rely on has a module that breaks it."""

from __future__ import annotations

import pytest

from cl_driver.device import capabilities
from cl_driver.device.cpu import host_cpu
from cl_driver.spirv.enums import Capability, Op
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.tables import enumerant
from cl_driver.spirv.validation import validate

from .assembler import PREAMBLE, TYPES, assemble, kernel

MORE = """
%f1 = OpConstant %f32 1.0
%l3 = OpConstant %i64 3
%v1 = OpConstantComposite %v4i32 %c1 %c1 %c1 %c1
%s = OpTypeStruct %i32 %v4i32
%ps = OpTypePointer CrossWorkgroup %s
%gg = OpTypePointer Generic %i32
%nps = OpConstantNull %ps
%gv = OpTypePointer CrossWorkgroup %v4i32
%v4b = OpTypeVector %bool 4
%event = OpTypeEvent
"""


def check(body: str, more: str = MORE) -> None:
    validate.validate(reader.read(kernel(body, more)))


@pytest.mark.parametrize(
    "body",
    [
        "%x = OpIAdd %i32 %c1 %c2",
        "%x = OpUConvert %i32 %c1",  # clang makes such copies
        "%x = OpAny %bool %v1",  # and such tests of integers
        "%x = OpAll %bool %c1",
        "%x = OpExtInst %f32 %std ldexp %f1 %c1",
        "%x = OpInBoundsPtrAccessChain %gi32 %nps %l3 %c0",
        "%x = OpAccessChain %gv %nps %c1",
        "%x = OpBitcast %f32 %c1",
        "%x = OpBitcast %gf32 %p",
        "%x = OpIEqual %v4b %v1 %v1\n%y = OpSelect %v4i32 %x %v1 %v1",
        "%x = OpAtomicIAdd %i32 %p %c2 %c0 %c1",
        "OpControlBarrier %c2 %c2 %c0",
        "%x = OpPtrCastToGeneric %gg %p",
        "%x = OpGroupIAdd %i32 %c2 Reduce %c1",
        "OpBranch %b\n%dead = OpLabel\n%y = OpIAdd %i32 %c1 %c1\nOpBranch %b\n%b = OpLabel",
    ],
)
def test_accepted(body):
    check(body)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("%x = OpIAdd %i32 %c1 %l3", "OpIAdd: an operand has type int64, the result int32"),
        ("%x = OpFAdd %i32 %c1 %c1", "not one of float"),
        ("%x = OpIAdd %f32 %f1 %f1", "not one of int"),
        ("%x = OpLogicalAnd %i32 %c1 %c1", "not one of bool"),
        ("%x = OpShiftLeftLogical %i32 %c1 %v1", "shifted by"),
        ("%x = OpIEqual %i32 %c1 %c1", "the result has type"),
        ("%x = OpFOrdLessThan %bool %c1 %c1", "not of float"),
        ("%x = OpConvertSToF %f32 %f1", "float32 to float32"),
        ("%x = OpSConvert %i64 %v1", "to int64"),
        ("%x = OpSelect %i32 %c1 %c1 %c1", "a condition of type int32"),
        ("%x = OpGenericPtrMemSemantics %i32 %c1", "OpGenericPtrMemSemantics"),
        ("%x = OpGenericPtrMemSemantics %i32 %p", "a pointer to CrossWorkgroup"),
        ("%x = OpBitcast %i64 %c1", "int32 to int64"),
        ("%x = OpLoad %f32 %p", "a load of type float32 through"),
        ("%x = OpLoad %i32 %c1", "the pointer has type int32"),
        ("OpStore %p %f1", "a store of type float32 through"),
        ("OpCopyMemory %p %nps", "OpCopyMemory: from"),
        ("%x = OpAccessChain %gi32 %nps %c7", "member 7 of"),
        ("%x = OpAccessChain %gf32 %nps %c0", "the part int32"),
        ("%x = OpPtrAccessChain %gi32 %p %f1", "element of type float32"),
        ("%x = OpCompositeExtract %i32 %v1 4", "index 4 into"),
        ("%x = OpCompositeExtract %f32 %v1 0", "the part has type int32"),
        ("%x = OpCompositeInsert %v4i32 %f1 %v1 0", "an object of type float32"),
        ("%x = OpCompositeConstruct %v4i32 %c1 %c1", "of \\[int32, int32\\]"),
        ("%x = OpVectorShuffle %v4i32 %v1 %v1 0 1 2 8", "component 8 of 8"),
        ("%x = OpVectorShuffle %v4i32 %v1 %v1 0 1 2", "3 components"),
        ("%x = OpVectorExtractDynamic %i32 %v1 %f1", "OpVectorExtractDynamic"),
        ("%x = OpVariable %gi32 Function", "a variable of type"),
        ("%x = OpFunctionCall %void %k %p", "recursion"),
        ("%x = OpFunctionCall %void %p %p", "the callee is not a function"),
        ("OpBranchConditional %c1 %a %a\n%a = OpLabel", "a condition of type int32"),
        ("OpSwitch %f1 %a 1 %a\n%a = OpLabel", "a selector of type float32"),
        ("OpSwitch %c1 %a 1 %a 1 %a\n%a = OpLabel", "a literal occurs twice"),
        ("OpBranch %a\n%a = OpLabel\n%x = OpPhi %i32 %f1 %entry", "a value of type float32"),
        ("OpBranch %a\n%a = OpLabel\n%x = OpPhi %i32", "not the predecessors"),
        ("OpBranch %a\n%a = OpLabel\n%x = OpPhi %i32 %c1 %a", "not the predecessors"),
        ("OpBranch %entry\n%a = OpLabel", "a branch to the entry block"),
        ("OpReturnValue %c1\n%a = OpLabel", "in a function of type void"),
        ("%x = OpAtomicIAdd %i32 %p %c2 %c0 %f1", "a value of type float32"),
        ("%x = OpAtomicIAdd %i32 %p %f1 %c0 %c1", "a scope or semantics of type float32"),
        ("%x = OpAtomicFAddEXT %i32 %p %c2 %c0 %c1", "OpAtomicFAddEXT: needs the capability AtomicFloat"),
        ("%x = OpPtrCastToGeneric %gi32 %p", "to pointer"),
        ("%x = OpGenericCastToPtr %gi32 %p", "to pointer"),
        ("%x = OpExtInst %i32 %std sin %c1", "sin: the result has type int32"),
        ("%x = OpExtInst %f32 %std pow %f1 %c1", "pow: an operand of type int32"),
        ("%x = OpExtInst %i32 %std s_max %f1 %f1", "s_max"),
        ("%x = OpExtInst %v4i32 %std vloadn %l3 %p 3", "vloadn: vector"),
        ("%x = OpExtInst %i32 %std printf %c1", "the format|the pointer has|int32"),
        ("%x = OpExtInst %f32 %std printf %p", "a result of type float32"),
        ("%x = OpGroupFAdd %i32 %c2 Reduce %c1", "OpGroupFAdd"),
        ("%x = OpDPdx %f32 %f1", "needs the capability Shader"),
    ],
)
def test_refused(body, rule):
    with pytest.raises(SpirvError, match=rule) as caught:
        check(body)
    assert caught.value.offset > 0 or "Entry" in str(caught.value)


def test_definitions_dominate_uses():
    text = """
        OpBranchConditional %true %a %b
        %a = OpLabel
        %x = OpIAdd %i32 %c1 %c1
        OpBranch %join
        %b = OpLabel
        OpBranch %join
        %join = OpLabel
        USE"""
    check(text.replace("USE", "%y = OpPhi %i32 %x %a %c1 %b"))
    with pytest.raises(SpirvError, match="does not dominate"):
        check(text.replace("USE", "%y = OpIAdd %i32 %x %x"))
    with pytest.raises(SpirvError, match="not defined at the end of its parent"):
        check(text.replace("USE", "%y = OpPhi %i32 %c1 %a %x %b"))


def test_blocks_may_come_in_any_order():
    # Not by the specification, but from llvm-spirv.
    text = """
        OpBranch %middle
        %last = OpLabel
        %y = OpIAdd %i32 %x %c1
        OpStore %p %x
        OpBranch %out
        %middle = OpLabel
        %x = OpIAdd %i32 %c1 %c2
        OpBranch %TARGET
        %out = OpLabel"""
    check(text.replace("TARGET", "last"))
    (function,) = reader.read(kernel(text.replace("TARGET", "last"), MORE)).functions
    assert [b.instructions[0].op for b in function.blocks] == [Op.Branch, Op.IAdd, Op.IAdd, Op.Return]
    with pytest.raises(SpirvError, match="does not dominate"):
        check(
            text.replace("OpBranch %middle", "OpBranchConditional %true %middle %last").replace(
                "TARGET", "last"
            )
        )


def test_irreducible_control_flow_is_fine():
    check("""
        OpBranchConditional %true %a %b
        %a = OpLabel
        OpBranchConditional %true %b %out
        %b = OpLabel
        OpBranchConditional %true %a %out
        %out = OpLabel""")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("%f = OpFunction %void None %fn_void\nOpFunctionEnd", "no body, and no Import linkage"),
        ("%sv = OpTypePointer Input %i32\n%x = OpVariable %sv Input", "no BuiltIn"),
        ("%sv = OpTypePointer Uniform %i32\n%x = OpVariable %sv Uniform", "needs the capability Shader"),
        (
            "%n = OpConstant %i64 281474976710655\n%t = OpTypeArray %i32 %n\n"
            "%sv = OpTypePointer CrossWorkgroup %t\n"
            "%x = OpVariable %sv CrossWorkgroup",
            "bytes",
        ),
    ],
)
def test_module_rules(text, rule):
    with pytest.raises(SpirvError, match=rule):
        validate.validate(reader.read(assemble(PREAMBLE + TYPES + text)))


@pytest.mark.parametrize(
    ("type_", "rule"),
    [
        ("%fn = OpTypeFunction %void %pi32", "private memory"),
        ("%fn = OpTypeFunction %void %bool", "argument 0 of type bool"),
        ("%gen = OpTypePointer Generic %i32\n%fn = OpTypeFunction %void %gen", "points to Generic"),
        ("%fn = OpTypeFunction %i32 %i32", "the result of a kernel is void"),
    ],
)
def test_entry_points(type_, rule):
    with pytest.raises(SpirvError, match=rule):
        validate.validate(kernel_of(type_))


def kernel_of(type_: str, decorations: str = ""):
    """A module with a kernel of the type %fn, which has one parameter, %p."""
    result, parameter = type_.split("%fn = OpTypeFunction ")[1].split()
    text = f"""OpCapability DeviceEnqueue
        {PREAMBLE} OpEntryPoint Kernel %k "k"
        {decorations} {TYPES} {type_}
        %k = OpFunction {result} None %fn
        %p = OpFunctionParameter {parameter}
        %l = OpLabel
        OpUnreachable
        OpFunctionEnd"""
    return reader.read(assemble(text))


MEMBERS = {
    "%i32": "",
    "%f32": "",
    "%v": "",
    "%array": "",
    "%inner": "",
    "%gp": "",
    "%bool": "with bool inside",
    "%bools": "with bool inside",
    "%queue": "with queue inside",
    "%wrapped": "with event inside",
}


@pytest.mark.parametrize("passed", ["value", "ByVal"])
@pytest.mark.parametrize("member", MEMBERS)
def test_members_of_structures_that_kernels_take(member, passed):
    """Environment 2.8.2: what a host program can put there, in structures and arrays inside as well."""
    types = f"""
        %n = OpConstant %i32 3
        %v = OpTypeVector %i32 4
        %bools = OpTypeVector %bool 4
        %array = OpTypeArray %i32 %n
        %gp = OpTypePointer CrossWorkgroup %i32
        %inner = OpTypeStruct %i32 %array
        %queue = OpTypeQueue
        %event = OpTypeEvent
        %events = OpTypeArray %event %n
        %wrapped = OpTypeStruct %i32 %events
        %s = OpTypeStruct %i32 {member}
        %by = OpTypePointer Function %s
        %fn = OpTypeFunction %void {"%s" if passed == "value" else "%by"}"""
    module = kernel_of(types, "OpDecorate %p FuncParamAttr ByVal" if passed == "ByVal" else "")
    if MEMBERS[member]:
        with pytest.raises(SpirvError, match=MEMBERS[member]):
            validate.validate(module)
    else:
        validate.validate(module)


def test_capabilities_and_extensions_of_the_device():
    module = reader.read(assemble(PREAMBLE.replace("%std", 'OpExtension "SPV_INTEL_unknown"\n%std') + TYPES))
    validate.validate(module)
    with pytest.raises(SpirvError, match="Vector16 is not supported"):
        validate.validate(module, capabilities=module.capabilities - {Capability.Vector16})
    with pytest.raises(SpirvError, match="SPV_INTEL_unknown is not supported"):
        validate.validate(module, extensions=())


def test_modules_may_declare_what_the_device_reports_and_nothing_else():
    """CL_DEVICE_SPIRV_CAPABILITIES_KHR, each once, and what validation accepts: the same set."""
    reported = capabilities.spirv_capabilities(host_cpu())
    extensions = capabilities.spirv_extensions(host_cpu())
    assert len(set(reported)) == len(reported) and len(set(extensions)) == len(extensions)
    allowed, accepted = validate.accepted_capabilities(reported), set()
    for capability in Capability:
        needed = set(enumerant("Capability", capability).extensions) & set(extensions)
        lines = "".join(f'OpExtension "{name}"\n' for name in needed)
        text = f"OpCapability {capability.name}\n" + PREAMBLE.replace("%std =", f"{lines}%std =") + TYPES
        try:
            validate.validate(reader.read(assemble(text, (1, 6))), allowed, extensions)
            accepted.add(capability)
        except SpirvError as error:
            assert f"{capability.name} is not supported" in str(error)
    assert accepted == {Capability[name] for name in reported}


def test_functions_that_nothing_calls():
    module = reader.read(
        assemble(
            PREAMBLE
            + 'OpEntryPoint Kernel %k "k"\n'
            + TYPES
            + """
        %k = OpFunction %void None %fn_void
        %l = OpLabel
        OpReturn
        OpFunctionEnd
        %f = OpFunction %void None %fn_void
        %m = OpLabel
        %x = OpFAdd %i32 %c1 %c1
        OpReturn
        OpFunctionEnd"""
        )
    )
    validate.validate(module)
    with pytest.raises(SpirvError, match="OpFAdd"):
        validate.validate(module, everything=True)
