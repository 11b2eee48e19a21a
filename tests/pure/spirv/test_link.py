"""Linking: imports meet exports, in every order of reading, and what does not fit is named."""

from __future__ import annotations

import pytest

from cl_driver.spirv import link
from cl_driver.spirv.enums import Op
from cl_driver.spirv.errors import LinkError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.types import TypeTable

from .assembler import PREAMBLE, TYPES, assemble

CALLER = (
    PREAMBLE
    + """
OpEntryPoint Kernel %k "k"
OpDecorate %f LinkageAttributes "f" Import
OpDecorate %x LinkageAttributes "x" Import
"""
    + TYPES
    + """
%x = OpVariable %gi32 CrossWorkgroup
%pp = OpTypePointer CrossWorkgroup %gi32
%y = OpVariable %pp CrossWorkgroup %x
%f = OpFunction %i32 None %fn_i32_i32
%fa = OpFunctionParameter %i32
OpFunctionEnd
%k = OpFunction %void None %fn_gi32
%p = OpFunctionParameter %gi32
%l = OpLabel
%v = OpFunctionCall %i32 %f %c7
%w = OpLoad %i32 %x
OpStore %p %v
OpReturn
OpFunctionEnd
"""
)

DEFINITION = (
    """
OpDecorate %f LinkageAttributes "f" KIND
OpDecorate %x LinkageAttributes "x" KIND
"""
    + TYPES
    + """
%x = OpVariable %gi32 CrossWorkgroup %VALUE
%f = OpFunction %i32 None %fn_i32_i32
%a = OpFunctionParameter %i32
%l = OpLabel
%s = OpIAdd %i32 %a %VALUE
OpReturnValue %s
OpFunctionEnd
"""
)


def definition(kind: str = "Export", value: str = "c1") -> bytes:
    return assemble(PREAMBLE + DEFINITION.replace("KIND", kind).replace("VALUE", value))


def linked(*modules: bytes, look_first: bool = False, **options):
    table = TypeTable()
    read = [reader.read(data, types=table) for data in modules]
    if look_first:
        for module in read:
            for function in module.functions:
                function.blocks  # noqa: B018
    return link.link(read, **options)


@pytest.mark.parametrize("look_first", [False, True])
@pytest.mark.parametrize("swap", [False, True])
def test_imports_meet_exports(look_first, swap):
    modules = [assemble(CALLER), definition()]
    module = linked(*(reversed(modules) if swap else modules), look_first=look_first)
    assert sorted(f.name for f in module.functions) == ["f", "k"]
    (entry,) = module.entry_points
    call, load = entry.function.blocks[0].instructions[:2]
    f = next(f for f in module.functions if f.name == "f")
    x = next(v for v in module.variables if v.name == "x")
    assert call.operands[0] is f and f.blocks[0].instructions[0].op is Op.IAdd
    assert load.operands[0] is x and x.initializer.value == 1
    (y,) = (v for v in module.variables if v is not x)
    assert y.initializer is x


def test_one_definition_of_link_once_odr_stays():
    once, other = definition("LinkOnceODR", "c1"), definition("LinkOnceODR", "c2")
    module = linked(assemble(CALLER), once, other)
    assert [v.initializer.value for v in module.variables if v.name == "x"] == [1]
    module = linked(once, assemble(CALLER), definition("Export", "c7"))
    assert [v.initializer.value for v in module.variables if v.name == "x"] == [7]


def test_inline_functions_may_be_defined_in_every_module():
    inline = PREAMBLE + DEFINITION.replace("KIND", "Export").replace("VALUE", "c1").replace(
        "OpFunction %i32 None", "OpFunction %i32 Inline"
    )
    first = assemble(inline)
    second = assemble(inline.replace('LinkageAttributes "x" Export', "Constant"))
    module = linked(assemble(CALLER), first, second)
    assert [f.name for f in module.functions].count("f") == 1


def test_duplicates_are_named():
    with pytest.raises(LinkError) as caught:
        linked(definition(), definition())
    assert "function 'f' is defined more than once" in str(caught.value)
    assert "variable 'x' is defined more than once" in str(caught.value)
    with pytest.raises(LinkError, match="kernel 'k' is defined more than once"):
        linked(assemble(CALLER), assemble(CALLER))


def test_missing_symbols():
    assert len(linked(assemble(CALLER)).functions) == 2  # a library may still lack something
    with pytest.raises(LinkError) as caught:
        linked(assemble(CALLER), provided=lambda name: False)
    missing = ["link: undefined function 'f', which 'k' uses", "link: undefined variable 'x', which 'k' uses"]
    assert sorted(str(caught.value).splitlines()) == missing and caught.value.lacks_lines
    with pytest.raises(LinkError) as caught:
        linked(assemble(CALLER), provided=lambda name: True)
    assert str(caught.value) == missing[1]


def test_types_must_fit():
    text = PREAMBLE + DEFINITION.replace("KIND", "Export").replace("VALUE", "c1").replace(
        "gi32 Cross", "gf32 Cross"
    )
    with pytest.raises(LinkError, match="'x' has different types"):
        linked(assemble(CALLER), assemble(text.replace("CrossWorkgroup %c1", "CrossWorkgroup")))


ASSERTING = (
    PREAMBLE
    + """
OpCapability GenericPointer
OpEntryPoint Kernel %k "k"
OpDecorate %f LinkageAttributes "__devicelib_assert_fail" Import
"""
    + TYPES
    + """
%n = OpConstant %i32 9
%text = OpTypeArray %i8 %n
%gtext = OpTypePointer Generic %TEXT
%nowhere = OpConstantNull %gtext
%fn_fail = OpTypeFunction %void %gtext %gtext %i32 %gtext %i64 %i64 %i64 %i64 %i64 %i64
%f = OpFunction %void None %fn_fail
%f0 = OpFunctionParameter %gtext
%f1 = OpFunctionParameter %gtext
%f2 = OpFunctionParameter %i32
%f3 = OpFunctionParameter %gtext
%f4 = OpFunctionParameter %i64
%f5 = OpFunctionParameter %i64
%f6 = OpFunctionParameter %i64
%f7 = OpFunctionParameter %i64
%f8 = OpFunctionParameter %i64
%f9 = OpFunctionParameter %i64
OpFunctionEnd
%k = OpFunction %void None %fn_gi32
%p = OpFunctionParameter %gi32
%l = OpLabel
%zero = OpUConvert %i64 %c0
%v = OpFunctionCall %void %f %nowhere %nowhere %c1 %nowhere %zero %zero %zero %zero %zero %zero
OpReturn
OpFunctionEnd
"""
)


@pytest.mark.parametrize("text", ["text", "i8"])
def test_assertions_have_a_body(text):
    """Of pointers to characters, or to arrays of such as DPC++ writes them."""
    module = linked(assemble(ASSERTING.replace("%TEXT", f"%{text}")), provided=lambda name: False)
    (f,) = (f for f in module.functions if len(f.arguments) == 10)
    assert [i.op for i in f.blocks[0].instructions] == [Op.ExtInst, Op.Return]


def test_assertions_of_other_types_have_none():
    with pytest.raises(LinkError, match="__devicelib_assert_fail"):
        linked(assemble(ASSERTING.replace("%TEXT", "%i32")), provided=lambda name: False)


COPYING = (
    PREAMBLE
    + """
OpEntryPoint Kernel %k "k"
OpDecorate %f LinkageAttributes "%NAME" Import
"""
    + TYPES
    + """
%event = OpTypeEvent
%li8 = OpTypePointer Workgroup %i8
%ggi8 = OpTypePointer CrossWorkgroup %i8
%fn_copy = OpTypeFunction %event %li8 %SIZE %FROM %i64 %i64 %i64 %i64 %i64 %i64 %event
%f = OpFunction %event None %fn_copy
%f0 = OpFunctionParameter %li8
%f1 = OpFunctionParameter %SIZE
%f2 = OpFunctionParameter %FROM
%f3 = OpFunctionParameter %i64
%f4 = OpFunctionParameter %i64
%f5 = OpFunctionParameter %i64
%f6 = OpFunctionParameter %i64
%f7 = OpFunctionParameter %i64
%f8 = OpFunctionParameter %i64
%f9 = OpFunctionParameter %event
OpFunctionEnd
%k = OpFunction %void None %fn_gi32
%p = OpFunctionParameter %gi32
%l = OpLabel
OpReturn
OpFunctionEnd
"""
)


def copying(name="_Z26async_work_group_copy_2D2DPU3AS3vmPU3AS1Kvmmmmmm9ocl_event", size="i64", from_="ggi8"):
    text = COPYING.replace("%NAME", name).replace("%SIZE", f"%{size}").replace("%FROM", f"%{from_}")
    return linked(assemble(text), provided=lambda name: False)


@pytest.mark.parametrize("name", ["_Z26async_work_group_copy_2D2DPU3AS3vm", "async_work_group_copy_2D2D"])
def test_copies_of_lines_get_a_body(name):
    function = next(f for f in copying(name).functions if f.linkage is None and len(f.type.members) == 10)
    assert any(i.op is Op.GroupAsyncCopy for block in function.blocks for i in block.instructions)


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": "i32"},
        {"from_": "li8"},
        {"name": "_Z26async_work_group_copy_3D3DPU3AS3vmPU3AS1Kvmmmmmm9ocl_event"},
        {"name": "_Z27async_work_group_copy_fencej"},
        {"name": "async_work_group_copy_2D"},
    ],
)
def test_copies_of_other_types_have_none(wrong):
    with pytest.raises(LinkError, match="async_work_group_copy"):
        copying(**wrong)
