"""The reader: what modules come out as, and that malformed ones are refused with the place and the rule."""

from __future__ import annotations

import struct

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.spirv import layout, reflect
from cl_driver.spirv.enums import (
    BuiltIn,
    Capability,
    Decoration,
    ExecutionMode,
    FunctionParameterAttribute,
    LinkageType,
    Op,
    OpenCLStd,
    StorageClass,
)
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.module import Argument, Block, Constant, Instruction, Kind, MemoryAccess, Undef
from cl_driver.spirv.reading import reader
from cl_driver.spirv.reading.dis import disassemble
from cl_driver.spirv.types import TypeTable
from cl_driver.spirv.validation import validate

from .assembler import PREAMBLE, TYPES, assemble, kernel


def body_of(data: bytes, index: int = 0) -> list[Instruction]:
    return reader.read(data).functions[index].blocks[0].instructions


def test_module_level():
    module = reader.read(
        assemble(
            PREAMBLE
            + """
        OpEntryPoint Kernel %k "name" %gid
        OpExecutionMode %k LocalSize 8 4 2
        OpExecutionMode %k VecTypeHint 262149
        OpSource OpenCL_C 102000
        OpName %k "shown"
        OpDecorate %gid BuiltIn GlobalInvocationId
        OpDecorate %x LinkageAttributes "exported" Export
        OpDecorate %x Alignment 16
        """
            + TYPES
            + """
        %v3i64 = OpTypeVector %i64 3
        %in = OpTypePointer Input %v3i64
        %c42 = OpConstant %i32 42
        %gid = OpVariable %in Input
        %x = OpVariable %gi32 CrossWorkgroup %c42
        %k = OpFunction %void None %fn_void
        %l = OpLabel
        OpReturn
        OpFunctionEnd
        """
        )
    )
    assert module.version == (1, 4)
    assert module.address_bits == 64
    assert Capability.Vector16 in module.capabilities
    assert module.source == (3, 102000)
    (entry,) = module.entry_points
    assert entry.name == "name"
    assert entry.function.name == "shown"
    assert entry.modes == {ExecutionMode.LocalSize: (8, 4, 2), ExecutionMode.VecTypeHint: (262149,)}
    gid, x = module.variables
    assert entry.interface == [gid]
    assert gid.builtin == BuiltIn.GlobalInvocationId
    assert gid.type.element.count == 3
    assert x.linkage == ("exported", LinkageType.Export)
    assert x.decorations == {Decoration.Alignment: (16,)}
    assert x.initializer.value == 42


def test_both_endiannesses_are_one_module():
    text = (
        PREAMBLE
        + TYPES
        + """
        %f = OpFunction %i32 None %fn_i32_i32
        %a = OpFunctionParameter %i32
        %l = OpLabel
        %s = OpIAdd %i32 %a %c7
        OpReturnValue %s
        OpFunctionEnd"""
    )
    for big in (False, True):
        data = assemble(text.replace("%std", 'OpExtension "SPV_KHR_linkonce_odr"\n%std', 1), big_endian=big)
        module = reader.read(data)
        assert module.extensions == {"SPV_KHR_linkonce_odr"}
        add, result = module.functions[0].blocks[0].instructions
        assert add.op is Op.IAdd and add.operands[1].value == 7
        assert isinstance(add.operands[0], Argument)
        assert result.operands == [add]
        assert "OpIAdd" in disassemble(data)


def test_equal_types_and_constants_are_one_object():
    table = TypeTable()
    first = reader.read(kernel("%x = OpIAdd %i32 %c1 %c2"), types=table)
    second = reader.read(kernel("%x = OpIAdd %i32 %c2 %c2"), types=table)
    a, b = (m.functions[0].blocks[0].instructions[0] for m in (first, second))
    assert a.type is b.type
    assert a.operands[1] is b.operands[1]
    assert TypeTable(table).int(32) is a.type


def test_constants():
    module = reader.read(
        assemble(
            PREAMBLE
            + TYPES
            + """
        %a = OpConstant %i64 -2
        %b = OpConstant %f64 1.5
        %d = OpConstant %i8 -1
        %n = OpConstantNull %v4i32
        %v = OpConstantComposite %v4i32 %c0 %c1 %c2 %c7
        %u = OpUndef %i32
        %s = OpTypeStruct %i8 %i64 %v4i32
        %sc = OpConstantComposite %s %d %a %n
        %ps = OpTypePointer CrossWorkgroup %s
        %x = OpVariable %ps CrossWorkgroup %sc
        """
        )
    )
    (variable,) = module.variables
    d, a, n = variable.initializer.value
    assert (d.value, a.value, n.value) == (0xFF, (1 << 64) - 2, None)
    struct_type = variable.type.element
    assert layout.size_of(struct_type) == 32
    assert layout.member_offsets(struct_type) == [0, 8, 16]


def test_packed_structures_and_vec3():
    module = reader.read(
        assemble(
            PREAMBLE
            + "OpDecorate %s CPacked\n"
            + TYPES
            + """
        %v3 = OpTypeVector %f32 3
        %s = OpTypeStruct %i8 %v3 %i16
        %t = OpTypeStruct %i8 %v3 %i16
        %ps = OpTypePointer CrossWorkgroup %s
        %pt = OpTypePointer CrossWorkgroup %t
        %x = OpVariable %ps CrossWorkgroup
        %y = OpVariable %pt CrossWorkgroup
        """
        )
    )
    packed, plain = (v.type.element for v in module.variables)
    assert packed.packed and not plain.packed
    assert (layout.size_of(packed), layout.alignment_of(packed)) == (19, 1)
    assert (layout.size_of(plain), layout.alignment_of(plain)) == (48, 16)
    assert layout.member_offsets(plain) == [0, 16, 32]


def test_vectors_of_one_component_are_scalars():
    module = reader.read(
        assemble(
            PREAMBLE
            + TYPES
            + "%v1 = OpTypeVector %i32 1\n%p1 = OpTypePointer CrossWorkgroup %v1\n"
            + "%x = OpVariable %p1 CrossWorkgroup %c7\n"
        )
    )
    assert module.variables[0].type.element is module.types.int(32)


def test_recursive_structures():
    module = reader.read(
        assemble(
            PREAMBLE
            + """
        OpTypeForwardPointer %node CrossWorkgroup
        """
            + TYPES
            + """
        %list = OpTypeStruct %i32 %node
        %node = OpTypePointer CrossWorkgroup %list
        %x = OpVariable %node CrossWorkgroup
        """.replace("OpTypeForwardPointer", "")
        )
    )
    type_ = module.variables[0].type
    assert type_.element.members[1] is type_
    assert layout.size_of(type_.element) == 16


def test_memory_operands_leave_the_operands():
    load, store, copy = body_of(
        kernel("""
        %a = OpLoad %i32 %p Volatile|Aligned 16
        OpStore %p %a Aligned|Nontemporal 4
        OpCopyMemorySized %p %p %c7 Aligned 8""")
    )[:3]
    assert load.memory == MemoryAccess(16, True, False) and len(load.operands) == 1
    assert store.memory == MemoryAccess(4, False, True) and len(store.operands) == 2
    assert copy.memory.alignment == 8 and len(copy.operands) == 3


def test_control_flow_and_phis():
    module = reader.read(
        kernel("""
        OpBranch %loop
        %loop = OpLabel
        %i = OpPhi %i32 %c0 %entry %next %loop
        %next = OpIAdd %i32 %i %c1
        %more = OpULessThan %bool %next %c7
        OpLoopMerge %done %loop Unroll
        OpBranchConditional %more %loop %done
        %done = OpLabel
        OpSwitch %next %other 1 %one 4294967295 %one
        %one = OpLabel
        OpBranch %other
        %other = OpLabel""")
    )
    entry, loop, done, one, other = module.functions[0].blocks
    assert [b.instructions[-1].op for b in (entry, loop, done, one)] == [
        Op.Branch,
        Op.BranchConditional,
        Op.Switch,
        Op.Branch,
    ]
    (phi,) = loop.phis()
    assert phi.operands == [phi.operands[0], entry, loop.instructions[1], loop]
    assert loop.loop_control == (1, ())
    assert loop.successors() == [loop, done]
    assert done.terminator.operands[1:] == [other, 1, one, 0xFFFFFFFF, one]
    assert all(isinstance(b, Block) for b in done.successors())


def test_extended_instructions_and_literals():
    sine, load, shuffled = body_of(
        kernel(
            """
        %s = OpExtInst %f32 %std sin %f
        %v = OpExtInst %v4i32 %std vloadn %o %p 4
        %w = OpVectorShuffle %v4i32 %v %v 0 5 4294967295 3""",
            """
        %f = OpConstant %f32 0.5
        %o = OpConstant %i64 3""",
        )
    )[:3]
    assert sine.operands[:2] == ["OpenCL.std", OpenCLStd.sin]
    assert load.operands[-1] == 4
    assert shuffled.operands[2:] == [0, 5, 0xFFFFFFFF, 3]


def test_a_vector_of_which_nothing_is_picked_may_be_of_any_type():
    """What clang 22 makes of float8.even."""
    picks = "%w = OpVectorShuffle %v4f32 %f %u 0 2 4294967295 4294967295"
    declared = "%f = OpConstantNull %v4f32\n%u = OpConstantNull %v4i32"
    shuffle = body_of(kernel(picks, declared))[0]
    assert isinstance(shuffle.operands[1], Undef)
    assert shuffle.operands[1].type is shuffle.type
    validate.validate(reader.read(kernel(picks, declared)))
    with pytest.raises(SpirvError, match="VectorShuffle"):
        validate.validate(reader.read(kernel(picks.replace(" 2 ", " 4 "), declared)))


def test_decorations_names_and_lines():
    module = reader.read(
        assemble(
            PREAMBLE
            + """
        OpEntryPoint Kernel %k "k"
        %file = OpString "a.cl"
        OpName %s "sum"
        OpDecorate %s NoSignedWrap
        OpDecorate %s NoUnsignedWrap
        OpDecorate %p FuncParamAttr NoWrite
        OpDecorate %p FuncParamAttr NoAlias
        OpDecorate %p Alignment 4294967168
        OpDecorate %g Restrict
        %g = OpDecorationGroup
        OpGroupDecorate %g %p
        """
            + TYPES
            + """
        %k = OpFunction %void None %fn_gi32
        %p = OpFunctionParameter %gi32
        %l = OpLabel
        OpLine %file 12 3
        %s = OpIAdd %i32 %c1 %c2
        OpNoLine
        %u = OpUndef %i32
        %t = OpIAdd %i32 %s %u
        OpReturn
        OpFunctionEnd"""
        )
    )
    function = module.functions[0]
    (p,) = function.arguments
    first, second, _ = function.blocks[0].instructions
    assert p.decorations[Decoration.FuncParamAttr] == {
        FunctionParameterAttribute.NoWrite,
        FunctionParameterAttribute.NoAlias,
    }
    assert Decoration.Restrict in p.decorations
    assert p.decorations[Decoration.Alignment] == (128,)  # as clang-22 writes it
    assert set(first.decorations) == {Decoration.NoSignedWrap, Decoration.NoUnsignedWrap}
    assert first.name == "sum" and first.line[:3] == ("a.cl", 12, 3)
    assert second.line is None and isinstance(second.operands[1], Undef)


def test_execution_modes_by_id_are_normalised():
    module = reader.read(
        assemble(
            PREAMBLE
            + """
        OpEntryPoint Kernel %k "k"
        OpExecutionModeId %k LocalSizeId %c7 %c2 %c1
        OpExecutionMode %k DenormPreserve 32
        OpExecutionMode %k DenormPreserve 64
        """
            + TYPES
            + """
        %k = OpFunction %void None %fn_void
        %l = OpLabel
        OpReturn
        OpFunctionEnd"""
        )
    )
    modes = module.entry_points[0].modes
    assert modes[ExecutionMode.LocalSize] == (7, 2, 1)
    assert modes[ExecutionMode.DenormPreserve] == (32, 64)


def test_debug_and_non_semantic_instructions_are_left_out():
    text = (
        PREAMBLE.replace("OpMemoryModel", '%dbg = OpExtInstImport "NonSemantic.Whatever"\nOpMemoryModel')
        + TYPES
    )
    data = assemble(
        text
        + """
        %info = OpExtInst %void %dbg sin
        %f = OpFunction %void None %fn_void
        %l = OpLabel
        %more = OpExtInst %void %dbg sin %info
        OpReturn
        OpFunctionEnd"""
    )
    (only,) = body_of(data)
    assert only.op is Op.Return


def test_bodies_are_decoded_when_first_used():
    bad = kernel("%x = OpIAdd %i32 %c1 %nowhere")
    module = reader.read(bad)
    for _ in range(2):
        with pytest.raises(SpirvError, match=r"OpIAdd: id .* used before its definition"):
            module.functions[0].blocks  # noqa: B018


def test_arguments_of_kernels_are_reflected():
    module = reader.read(
        assemble(
            PREAMBLE
            + """
        OpEntryPoint Kernel %k "k"
        OpExecutionMode %k LocalSizeHint 4 1 1
        %t = OpString "kernel_arg_type.k.int*,float4*,struct s,"
        OpName %a "a"
        OpName %b "b"
        OpName %d "d"
        OpDecorate %d FuncParamAttr ByVal
        """
            + TYPES
            + """
        %s = OpTypeStruct %i32 %i64
        %ps = OpTypePointer Function %s
        %lv4 = OpTypePointer Workgroup %v4f32
        %fn = OpTypeFunction %void %gi32 %lv4 %ps
        %k = OpFunction %void None %fn
        %a = OpFunctionParameter %gi32
        %b = OpFunctionParameter %lv4
        %d = OpFunctionParameter %ps
        %l = OpLabel
        OpReturn
        OpFunctionEnd"""
        )
    )
    (k,) = reflect.reflect(module)
    assert [(a.kind, a.size, a.align) for a in k.args] == [
        (reflect.GLOBAL, 8, 8),
        (reflect.LOCAL, 0, 16),
        (reflect.VALUE, 16, 8),
    ]
    assert [(a.name, a.type_name, a.address_qualifier) for a in k.args] == [
        ("a", "int*", 0x119B),
        ("b", "float4*", 0x119C),
        ("d", "struct s", 0x119E),
    ]
    assert k.attributes == "work_group_size_hint(4,1,1)"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda w: w[:4], "whole number of words"),
        (lambda w: [1, *w[1:]], "magic number"),
        (lambda w: [w[0], 0x00020000, *w[2:]], "version"),
        (lambda w: [*w[:3], 0, *w[4:]], "bound is 0"),
        (lambda w: [*w[:4], 7, *w[5:]], "schema"),
        (lambda w: w[:-1], "no OpFunctionEnd"),
        (lambda w: [*w, 0], "unknown opcode|reach past|0 words"),
        (lambda w: [*w, 0x00010000 | 9999], "unknown opcode"),
        (lambda w: [*w, 0xFFFF0000 | 17], "past the end"),
        (lambda w: [*w[:3], 3, *w[4:]], "bound"),
    ],
)
def test_malformed_words(change, rule):
    words = struct.unpack(f"<{len(data) // 4}I", data) if (data := kernel("")) else ()
    changed = change(list(words))
    with pytest.raises(SpirvError, match=rule):
        reader.read(struct.pack(f"<{len(changed)}I", *changed)).functions[0].blocks  # noqa: B018


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("OpReturn\n%x = OpIAdd %i32 %c1 %c2", "outside of a block"),
        ("%x = OpIAdd %i32 %y %c1\n%y = OpIAdd %i32 %c1 %c1", "used before its definition"),
        ("OpStore %p %later\n%later = OpIAdd %i32 %c1 %c1", "used before its definition"),
        ("OpBranch %nowhere\n%b = OpLabel", "labels no block"),
        ("%x = OpIAdd %i32 %c1 %i32", "is a type where a value is needed"),
        ("%x = OpIAdd %c1 %c1 %c1", "not a type"),
        ("%c1 = OpIAdd %i32 %c1 %c1", "defined twice"),
        ("OpBranch %b\n%b = OpLabel\nOpBranch %b\n%b = OpLabel", "defined twice"),
        ("%x = OpLoad %i32 %p Aligned 3", "not a power of two"),
        ("%x = OpIAdd %i32 %c1 %c1\n%y = OpPhi %i32", "after another instruction"),
        ("OpReturn\n%x = OpExtInst %f32 %std sin %c1", "outside of a block"),
        ("%x = OpExtInst %f32 %std sin", "has 1 operands, not 0"),
        ("%x = OpExtInst %f32 %i32 sin %c1", "not an extended instruction set"),
        ("%x = OpTypeInt 16 0", "not an instruction of function bodies"),
    ],
)
def test_malformed_bodies(body, rule):
    module = reader.read(kernel(body))
    with pytest.raises(SpirvError, match=rule):
        module.functions[0].blocks  # noqa: B018


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("%t = OpTypeInt 1025 0", "width 1025"),
        ("%t = OpTypeVector %i32 17", "17 components"),
        ("%t = OpTypeArray %i32 %c0", "array of 0 elements"),
        ("%t = OpTypeArray %void %c7", "not a type of objects"),
        ("%t = OpConstantComposite %v4i32 %c0 %c1", "2 constituents"),
        ("%t = OpConstantComposite %v4f32 %c0 %c1 %c1 %c1", "constituent 0 has type"),
        ("%t = OpConstant %v4i32 1", "not a numeric type"),
        ("%t = OpVariable %gi32 Workgroup", "not a pointer into Workgroup"),
        ("%t = OpVariable %pi32 Function", "outside of functions"),
        ("%t = OpTypeStruct %nothing", "not a type"),
        ("%t = OpSpecConstantOp %i32 CompositeExtract %c1 0", "has no components"),
        ("%t = OpSpecConstantOp %i32 IAdd %c1 %true", "where int is needed"),
    ],
)
def test_malformed_declarations(text, rule):
    with pytest.raises(SpirvError, match=rule):
        reader.read(assemble(PREAMBLE + TYPES + text))


def test_types_nest_only_so_deep():
    lines = "%t0 = OpTypeStruct %i32\n" + "".join(f"%t{i} = OpTypeStruct %t{i - 1}\n" for i in range(1, 300))
    with pytest.raises(SpirvError, match="nest deeper"):
        reader.read(assemble(PREAMBLE + TYPES + lines))


def test_the_error_says_where():
    with pytest.raises(SpirvError) as caught:
        reader.read(assemble(PREAMBLE + TYPES + "%t = OpTypeInt 1025 0"))
    data = assemble(PREAMBLE + TYPES)
    assert caught.value.offset == len(data) // 4
    assert caught.value.instruction == "OpTypeInt"
    assert str(caught.value).startswith(f"SPIR-V word {len(data) // 4}: OpTypeInt: ")


@pytest.mark.parametrize("dim, depth, arrayed, access, expected", [
    ("Dim1D", 0, 0, "ReadOnly", (cl.CL_MEM_OBJECT_IMAGE1D, False, 0x11A0)),
    ("Buffer", 0, 0, "WriteOnly", (cl.CL_MEM_OBJECT_IMAGE1D_BUFFER, False, 0x11A1)),
    ("Dim1D", 0, 1, "ReadWrite", (cl.CL_MEM_OBJECT_IMAGE1D_ARRAY, False, 0x11A2)),
    ("Dim2D", 0, 0, "ReadOnly", (cl.CL_MEM_OBJECT_IMAGE2D, False, 0x11A0)),
    ("Dim2D", 1, 0, "ReadOnly", (cl.CL_MEM_OBJECT_IMAGE2D, True, 0x11A0)),
    ("Dim2D", 0, 1, "ReadOnly", (cl.CL_MEM_OBJECT_IMAGE2D_ARRAY, False, 0x11A0)),
    ("Dim2D", 1, 1, "WriteOnly", (cl.CL_MEM_OBJECT_IMAGE2D_ARRAY, True, 0x11A1)),
    ("Dim3D", 0, 0, "ReadOnly", (cl.CL_MEM_OBJECT_IMAGE3D, False, 0x11A0)),
])  # fmt: skip
def test_image_arguments(dim, depth, arrayed, access, expected):
    """What clSetKernelArg checks images against."""
    text = f"""
        %image = OpTypeImage %void {dim} {depth} {arrayed} 0 0 Unknown {access}
        %sampler = OpTypeSampler
        %fn2 = OpTypeFunction %void %image %sampler
        %k2 = OpFunction %void None %fn2
        %a2 = OpFunctionParameter %image
        %b2 = OpFunctionParameter %sampler
        %l2 = OpLabel
        OpReturn
        OpFunctionEnd"""
    module = reader.read(assemble(PREAMBLE + 'OpEntryPoint Kernel %k2 "k"\n' + TYPES + text))
    (kernel_,) = reflect.reflect(module)
    image, sampler = kernel_.args
    assert (image.kind, image.size) == (reflect.IMAGE, 8) and (sampler.kind, sampler.size) == (
        reflect.SAMPLER,
        8,
    )
    assert (image.image_type, image.depth, image.access_qualifier) == expected
    assert (sampler.image_type, sampler.depth, sampler.access_qualifier) == (0, False, 0x11A3)


def test_kinds_of_types():
    module = reader.read(
        kernel("", "%img = OpTypeImage %void Dim2D 0 0 0 0 Unknown ReadOnly\n%e = OpTypeEvent")
    )
    function = module.functions[0].type
    assert function.kind is Kind.FUNCTION and function.members[0].storage is StorageClass.CrossWorkgroup
    assert isinstance(module.types.integer(32, -1), Constant)
    assert module.types.integer(32, -1).value == 0xFFFFFFFF
