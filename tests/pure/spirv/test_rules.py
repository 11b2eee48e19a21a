"""Rules of whole modules: layout, versions, capabilities, types, scopes. Each has a module that breaks it,
and the same module without the fault is accepted."""

from __future__ import annotations

import struct

import pytest

from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.types import MAX_PARAMETERS
from cl_driver.spirv.validation import validate

from .assembler import KERNEL, assemble


def check(text: str, version=(1, 4)) -> None:
    validate.validate(reader.read(assemble(text, version)), everything=True)


def refused(text: str, rule: str, version=(1, 4)) -> SpirvError:
    with pytest.raises(SpirvError, match=rule) as caught:
        check(text, version)
    return caught.value


def with_kernel(body: str = "", declared: str = "", more: str = "") -> str:
    """A module: instructions of its kernel, what stands behind its capabilities, what behind its types."""
    text = KERNEL.replace("BODY", body).replace("%std =", f"{declared}\n%std =", 1)
    return text.replace("%k = OpFunction", f"{more}\n%k = OpFunction", 1)


LAYOUT = """
OpCapability Kernel
OpCapability Addresses
OpExtension "SPV_KHR_expect_assume"
%set = OpExtInstImport "OpenCL.std"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k"
OpExecutionMode %k ContractionOff
%file = OpString "a.cl"
OpName %k "name"
OpDecorate %k Restrict
%void = OpTypeVoid
%type = OpTypeFunction %void
%k = OpFunction %void None %type
%entry = OpLabel
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize(
    "line",
    [
        "OpCapability Addr",
        "OpExtension",
        "%set",
        "OpEntry",
        "OpExecutionMode",
        "%file",
        "OpName",
        "OpDecorate",
    ],
)
def test_layout(line):
    check(LAYOUT)
    lines = LAYOUT.splitlines()
    (moved,) = (text for text in lines if text.startswith(line))
    lines.remove(moved)
    lines.insert(lines.index("%void = OpTypeVoid") + 1, moved)
    error = refused("\n".join(lines), "too late in the logical layout")
    assert error.offset > 5 and error.instruction in moved


def test_declarations_come_before_functions():
    refused(LAYOUT + "%late = OpTypeEvent", "OpTypeEvent: comes too late")


def test_one_memory_model():
    model = "OpMemoryModel Physical64 OpenCL\n"
    refused(LAYOUT.replace(model, ""), "no OpMemoryModel")
    refused(LAYOUT.replace(model, model * 2), "OpMemoryModel: a second one")


@pytest.mark.parametrize(
    ("line", "instruction"),
    [
        ('OpName %p "abc"', "OpName"),
        ('OpExtension "abc"', "OpExtension"),
        ('%x = OpExtInstImport "OpenCL.std"', "OpExtInstImport"),
    ],
)
def test_strings_end_with_their_instruction(line, instruction):
    data = bytearray(assemble(line))
    data[22] += 1  # the number of words
    data += bytes(4)
    with pytest.raises(SpirvError, match=f"{instruction}: .*string"):
        reader.read(bytes(data))


NO_WRAP = "OpDecorate %x NoSignedWrap\n%void = OpTypeVoid"


def test_versions():
    # What is newer than the module needs its extension.
    add = with_kernel("%x = OpIAdd %i32 %c1 %c2").replace("%void = OpTypeVoid", NO_WRAP)
    check(add, (1, 4))
    refused(add, "NoSignedWrap: needs SPIR-V 1.4 or the extension", (1, 3))
    declared = add.replace("%std =", 'OpExtension "SPV_KHR_no_integer_wrap_decoration"\n%std =', 1)
    check(declared, (1, 0))
    equal = with_kernel("%x = OpPtrEqual %bool %p %p")
    check(equal, (1, 4))
    assert "OpPtrEqual" in str(refused(equal, "needs SPIR-V 1.4", (1, 3)))
    elect = with_kernel("%x = OpGroupNonUniformElect %bool %c3")
    elect = elect.replace("%c2 =", "%c3 = OpConstant %i32 3\n%c2 =", 1)
    refused(elect, "OpGroupNonUniformElect: needs the capability GroupNonUniform")
    elect = "OpCapability GroupNonUniform\n" + elect
    check(elect, (1, 3))
    refused(elect, "Capability GroupNonUniform: needs SPIR-V 1.3", (1, 2))


def test_capabilities_name_their_extensions():
    """Modules in oneMKL declare SubgroupShuffleINTEL alone, and no capability for sizes of sub-groups."""
    expect = "OpCapability ExpectAssumeKHR\n" + with_kernel("%x = OpExpectKHR %i32 %c1 %c2")
    check(expect)
    check(expect.replace("%std =", 'OpExtension "SPV_KHR_expect_assume"\n%std =', 1))
    refused(expect.replace("OpCapability ExpectAssumeKHR\n", ""), "needs the capability ExpectAssumeKHR")
    size = LAYOUT.replace("ContractionOff", "SubgroupSize 16")
    check(size, (1, 1))
    none = "%f32 = OpTypeFloat 32\n%i32 = OpTypeInt 32 0\n%none = OpConstant %i32 0\n%void = OpTypeVoid"
    default = LAYOUT.replace(
        "OpExecutionMode %k ContractionOff", "OpExecutionModeId %k FPFastMathDefault %f32 %none"
    )
    check(default.replace("%void = OpTypeVoid", none))
    refused(size.replace("SubgroupSize 16", "SubgroupsPerWorkgroup 2"), "SubgroupDispatch", (1, 1))


@pytest.mark.parametrize(
    ("type_", "capability"),
    [
        ("%t = OpTypeInt 8 0", "Int8"),
        ("%t = OpTypeInt 16 0", "Int16"),
        ("%t = OpTypeInt 64 0", "Int64"),
        ("%t = OpTypeFloat 16", "Float16"),
        ("%t = OpTypeFloat 16", "Float16Buffer"),
        ("%t = OpTypeFloat 64", "Float64"),
        ("%i32 = OpTypeInt 32 0\n%t = OpTypeVector %i32 8", "Vector16"),
        ("%i32 = OpTypeInt 32 0\n%t = OpTypeVector %i32 16", "Vector16"),
        ("%i32 = OpTypeInt 32 0\n%t = OpTypePointer Generic %i32", "GenericPointer"),
    ],
)
def test_types_need_capabilities(type_, capability):
    text = LAYOUT.replace("%void =", f"{type_}\n%void =", 1)
    assert refused(text, f"needs the capability .*{capability}").offset > 5
    check(f"OpCapability {capability}\n{text}")


def test_integers_have_no_sign():
    refused(LAYOUT.replace("%void =", "%t = OpTypeInt 32 1\n%void =", 1), "OpTypeInt: signedness 1")


BUILTIN = """
%vector = OpTypeVector %i64 3
%pointer = OpTypePointer Input %vector
%variable = OpVariable %pointer Input
"""
DECORATED = "OpDecorate %variable BuiltIn {}\n%void = OpTypeVoid"


@pytest.mark.parametrize(
    ("builtin", "type_"),
    [
        ("GlobalInvocationId", "%i64 3"),
        ("LocalInvocationId", "%i64 3"),
        ("WorkgroupSize", "%i64 3"),
        ("GlobalLinearId", "%i64"),
        ("LocalInvocationIndex", "%i64"),
        ("WorkDim", "%i32"),
        ("SubgroupSize", "%i32"),
        ("SubgroupId", "%i32"),
    ],
)
def test_types_of_builtins(builtin, type_):
    def module(shape):
        declared = BUILTIN
        if " " not in shape:
            declared = declared.replace("%vector = OpTypeVector %i64 3\n", "").replace("%vector", shape)
        text = with_kernel(more=declared.replace("%i64 3", shape))
        return text.replace("%void = OpTypeVoid", DECORATED.format(builtin))

    check(module(type_))
    for other in {"%i64 3", "%i64", "%i32", "%i32 3", "%f32 3"} - {type_}:
        refused(module(other), f"OpVariable '.*': {builtin} of type")


def test_builtins_are_inputs():
    more = "%pointer = OpTypePointer CrossWorkgroup %i64\n%variable = OpVariable %pointer CrossWorkgroup"
    text = with_kernel(more=more).replace("%void = OpTypeVoid", DECORATED.format("GlobalLinearId"))
    refused(text, "BuiltIn GlobalLinearId in storage class CrossWorkgroup")


@pytest.mark.parametrize(
    ("image", "rule"),
    [
        ("%void Dim2D 0 0 0 0 Unknown ReadOnly", None),
        ("%void Dim1D 0 1 0 0 Unknown WriteOnly", None),
        ("%f32 Dim2D 0 0 0 0 Unknown ReadOnly", "a sampled type float32"),
        ("%void Dim2D 0 0 0 1 Unknown ReadOnly", "Sampled is 1"),
        ("%void Dim2D 0 0 1 0 Unknown ReadOnly", "multisampled"),
        ("%void Dim3D 0 1 0 0 Unknown ReadOnly", "an array of dimension Dim3D"),
        ("%void Dim2D 0 2 0 0 Unknown ReadOnly", "Arrayed is 2"),
        ("%void Cube 0 0 0 0 Unknown ReadOnly", "dimension Cube|needs the capability"),
        ("%void Dim2D 0 0 0 0 Rgba8 ReadOnly", "format Rgba8|needs the capability"),
        ("%void Dim2D 0 0 0 0 Unknown", "no access qualifier"),
    ],
)
def test_images(image, rule):
    text = "OpCapability ImageBasic\nOpCapability Sampled1D\n" + with_kernel(
        more=f"%image = OpTypeImage {image}"
    )
    if rule is None:
        check(text)
    else:
        assert "OpTypeImage" in str(refused(text, rule)) or "|" in rule


def test_entry_points():
    double = with_kernel().replace("OpEntryPoint", 'OpEntryPoint Kernel %k "k"\nOpEntryPoint', 1)
    refused(double, "a second entry point of that name")
    array = LAYOUT.replace(
        "%type = OpTypeFunction %void",
        "%i32 = OpTypeInt 32 0\n%n = OpConstant %i32 4\n%a = OpTypeArray %i32 %n\n"
        "%type = OpTypeFunction %void %a",
    ).replace("%entry = OpLabel", "%p = OpFunctionParameter %a\n%entry = OpLabel")
    refused(array, "argument 0 of type array")


MORE = """
%c5 = OpConstant %i32 5
%both = OpConstant %i32 6
%event = OpTypeEvent
%pe = OpTypePointer Function %event
%lp = OpTypePointer Workgroup %i32
%tile = OpVariable %lp Workgroup
%no = OpConstantNull %event
%l1 = OpConstant %i64 1
%true4 = OpConstantComposite %v4i32 %c1 %c1 %c1 %c1
"""


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("OpControlBarrier %c2 %c1 %c0", None),
        ("%x = OpAtomicLoad %i32 %p %c1 %c2", None),
        ("%x = OpGroupAsyncCopy %event %c2 %tile %p %l1 %l1 %no", None),
        ("OpControlBarrier %c1 %c1 %c0", "OpControlBarrier: scope 1 for execution"),
        ("OpControlBarrier %c2 %c5 %c0", "OpControlBarrier: scope 5"),
        ("OpMemoryBarrier %c7 %c0", "OpMemoryBarrier: scope 7"),
        ("OpMemoryBarrier %c1 %both", "OpMemoryBarrier: memory semantics 0x6 with several orders"),
        ("%x = OpAtomicLoad %i32 %p %c5 %c2", "OpAtomicLoad: scope 5"),
        ("%x = OpAtomicLoad %i32 %p %c1 %both", "OpAtomicLoad: memory semantics 0x6"),
        ("%x = OpGroupIAdd %i32 %c1 Reduce %c1", "OpGroupIAdd: scope 1 for execution"),
        ("%x = OpGroupAll %bool %c1 %true", "OpGroupAll: scope 1 for execution"),
        ("%x = OpGroupBroadcast %i32 %c1 %c1 %c0", "OpGroupBroadcast: scope 1 for execution"),
        ("%x = OpGroupAsyncCopy %event %c1 %tile %p %l1 %l1 %no", "OpGroupAsyncCopy: scope 1 for execution"),
        ("%e = OpVariable %pe Function\nOpGroupWaitEvents %c1 %c1 %e", "OpGroupWaitEvents: scope 1"),
        (
            "%x = OpLoad %i32 %p NonPrivatePointer",
            "needs the capability VulkanMemoryModel",
        ),
        ("%x = OpSizeOf %i32 %p", None),
        ("%x = OpSizeOf %i32 %c1", "OpSizeOf: "),
        ("%x = OpSizeOf %i64 %p", "OpSizeOf: a size of type"),
        ("%x = OpCompositeExtract %v4i32 %true4", "OpCompositeExtract: no index"),
        ("%x = OpCompositeInsert %v4i32 %true4 %true4", "OpCompositeInsert: no index"),
        ("OpSelectionMerge %c1 None\nOpBranch %a\n%a = OpLabel", "used as a label"),
        ("OpLoopMerge %a %c1 None\nOpBranch %a\n%a = OpLabel", "used as a label"),
    ],
)
def test_scopes_and_more(body, rule):
    text = with_kernel(body, more=MORE)
    if rule is None:
        check(text)
    else:
        refused(text, rule)


def test_ids_of_functions_differ():
    text = with_kernel() + "%f = OpFunction %void None %fn_void\n%{} = OpLabel\nOpReturn\nOpFunctionEnd"
    check(text.replace("%{}", "%other"))
    refused(text.replace("%{}", "%entry"), "is defined in two functions")


def test_unknown_sets_without_semantics_are_ignored():
    extra = '%debug = OpExtInstImport "NonSemantic.Something.New"\n%std ='
    declared = with_kernel("%x = OpExtInst %void %debug 7 %c1 %c2", 'OpExtension "SPV_KHR_non_semantic_info"')
    check(declared.replace("%std =", extra, 1))
    refused(
        declared.replace("%std =", extra.replace("NonSemantic.", ""), 1), "unknown extended instruction set"
    )


def test_physical32_is_for_other_devices():
    module = reader.read(assemble(LAYOUT.replace("Physical64", "Physical32")))
    validate.validate(module)
    with pytest.raises(SpirvError, match="Physical32 on a device with addresses of 64 bits"):
        validate.validate(module, capabilities=module.capabilities)


def test_unknown_function_control():
    check(with_kernel().replace("OpFunction %void None", "OpFunction %void Inline|Pure"))
    data = bytearray(assemble(with_kernel(), (1, 4)))
    word = struct.pack("<I", 5 << 16 | 54)  # OpFunction of five words
    place = data.index(word) + 12
    data[place : place + 4] = struct.pack("<I", 0x40)
    with pytest.raises(SpirvError, match="OpFunction 'k': unknown function control 0x40"):
        validate.validate(reader.read(bytes(data)), everything=True)


def test_spec_ids_are_of_specialisation_constants():
    def module(constant):
        text = with_kernel(more=f"%spec = {constant}")
        return text.replace("%void = ", "OpDecorate %spec SpecId 3\n%void = ", 1)

    check(module("OpSpecConstant %i32 4"))
    check(module("OpSpecConstantTrue %bool"))
    for constant in ("OpConstant %i32 4", "OpSpecConstantOp %i32 IAdd %c1 %c2", "OpTypeEvent"):
        refused(module(constant), "SpecId decorates id .*, which is no specialisation constant")


def with_parameters(count: int) -> str:
    """A module with a function of so many parameters."""
    parameters = "\n".join(f"%q{n} = OpFunctionParameter %i32" for n in range(count))
    type_ = f"%many = OpTypeFunction %void {'%i32 ' * count}"
    body = "%label_of_f = OpLabel\nOpReturn\nOpFunctionEnd\n"
    return with_kernel(more=f"{type_}\n%f = OpFunction %void None %many\n{parameters}\n{body}")


def test_the_most_parameters_of_a_function():
    check(with_parameters(MAX_PARAMETERS))
    refused(with_parameters(MAX_PARAMETERS + 1), f"OpTypeFunction: more than {MAX_PARAMETERS} parameters")
