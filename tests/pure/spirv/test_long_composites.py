"""SPV_INTEL_long_composites: instructions that continue others, read, written and checked."""

from __future__ import annotations

import pytest

from cl_driver.spirv import link, local_memory, writer
from cl_driver.spirv.enums import Op
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate

from .assembler import PREAMBLE, TYPES, assemble

LONG = PREAMBLE.replace("%std =", 'OpExtension "SPV_INTEL_long_composites"\n%std =')
LONG = "OpCapability LongCompositesINTEL\n" + LONG
ARRAY = "%n = OpConstant %i32 5\n%a = OpTypeArray %i32 %n\n%gp = OpTypePointer UniformConstant %a\n"
TABLE = (
    ARRAY
    + """
%t = OpConstantComposite %a %c0 %c1
OpConstantCompositeContinuedINTEL %c2
OpConstantCompositeContinuedINTEL %c1 %c0
%v = OpVariable %gp UniformConstant %t
"""
)
KERNEL = "%k = OpFunction %void None %fn_void\n%l = OpLabel\n"
END = "OpReturn\nOpFunctionEnd\n"


def module(declarations: str, body: str = "", preamble: str = LONG):
    text = f'{preamble}OpEntryPoint Kernel %k "k"\n{TYPES}{declarations}{KERNEL}{body}{END}'
    return reader.read(assemble(text))


def test_constants():
    read = module(TABLE)
    validate.validate(read)
    assert [part.value for part in read.variables[0].initializer.value] == [0, 1, 2, 1, 0]


def test_specialisation_constants():
    table = TABLE.replace("ConstantComposite", "SpecConstantComposite")
    spec = "%s = OpSpecConstant %i32 9\n"
    text = LONG + 'OpEntryPoint Kernel %k "k"\nOpDecorate %s SpecId 3\n' + TYPES + spec
    text += table.replace("Intel %c2", "INTEL %s").replace("INTEL %c2", "INTEL %s") + KERNEL + END
    read = reader.read(assemble(text), {3: (77).to_bytes(4, "little")})
    validate.validate(read)
    assert [part.value for part in read.variables[0].initializer.value] == [0, 1, 77, 1, 0]


def test_structures():
    read = module("""%s = OpTypeStruct %i32
        OpTypeStructContinuedINTEL %f32 %i64
        OpTypeStructContinuedINTEL %i8
        %p = OpTypePointer CrossWorkgroup %s
        %v = OpVariable %p CrossWorkgroup
""")
    validate.validate(read)
    members = read.variables[0].type.element.members
    assert [(m.kind.value, m.width) for m in members] == [
        ("int", 32), ("float", 32), ("int", 64), ("int", 8)
    ]  # fmt: skip


def test_composites_in_functions():
    body = """%x = OpCompositeConstruct %a %c0 %c1
        OpCompositeConstructContinuedINTEL %c2 %c1
        OpCompositeConstructContinuedINTEL %c0
        %y = OpCompositeExtract %i32 %x 2
        """
    read = module(ARRAY, body)
    validate.validate(read)
    (block,) = read.entry_points[0].function.blocks
    assert [operand.value for operand in block.instructions[0].operands] == [0, 1, 2, 1, 0]


@pytest.mark.parametrize(
    ("declarations", "body"),
    [
        ("OpTypeStructContinuedINTEL %i32\n", ""),
        (TABLE.replace("%t = OpConstantComposite %a %c0 %c1\n", ""), ""),
        (TABLE.replace("%t =", "%s = OpTypeStruct %i32\nOpConstantCompositeContinuedINTEL %c0\n%t ="), ""),
        (
            TABLE.replace(
                "OpConstantCompositeContinuedINTEL %c2", "OpSpecConstantCompositeContinuedINTEL %c2"
            ),
            "",
        ),
        (TABLE.replace("OpConstantCompositeContinuedINTEL %c2", "%z = OpConstant %i32 8"), ""),
        (ARRAY, "OpCompositeConstructContinuedINTEL %c0\n"),
        (ARRAY, "%x = OpIAdd %i32 %c0 %c0\nOpCompositeConstructContinuedINTEL %c0\n"),
    ],
)
def test_what_continues_nothing_is_refused(declarations, body):
    with pytest.raises(SpirvError, match="Continued|constituents"):
        validate.validate(module(declarations, body))


def test_the_capability_is_needed():
    for declarations, body in ((TABLE, ""), (ARRAY, "%x = OpCompositeConstruct %a %c0 %c1 %c0 %c1\n"
            "OpCompositeConstructContinuedINTEL %c0\n")):  # fmt: skip
        with pytest.raises(SpirvError, match="needs the capability LongCompositesINTEL"):
            validate.validate(module(declarations, body, PREAMBLE))


@pytest.mark.parametrize("count", [65532, 65533, 65532 + 65534, 200_001])
def test_round_trip(count):
    """The writer cuts what is too long."""
    lines = [f"%n = OpConstant %i32 {count}", "%a = OpTypeArray %i32 %n"]
    lines.append("%gp = OpTypePointer UniformConstant %a")
    for start in range(0, count, 50_000):
        head = "OpConstantCompositeContinuedINTEL" if start else "%t = OpConstantComposite %a"
        names = " ".join(f"%c{i * i % 3}" for i in range(start, min(start + 50_000, count)))
        lines.append(f"{head} {names}")
    lines.append("%v = OpVariable %gp UniformConstant %t\n")
    data = writer.write(module("\n".join(lines)))
    again = reader.read(data)
    validate.validate(again)
    assert [part.value for part in again.variables[0].initializer.value] == [i * i % 3 for i in range(count)]


def test_words_that_wrapped_are_refused():
    """An instruction of 65,536 + 2 words says that it has 2."""
    data = bytearray(assemble(f'{LONG}OpEntryPoint Kernel %k "k"\n{TYPES}{TABLE}{KERNEL}{END}'))
    words = memoryview(data).cast("I")
    p = 5
    while words[p] & 0xFFFF != Op.ConstantComposite:
        p += words[p] >> 16
    for size in (0, 3, 4, 60000):
        words[p] = size << 16 | Op.ConstantComposite
        with pytest.raises(SpirvError):
            validate.validate(reader.read(bytes(data)))


LOCAL = """
%n = OpConstant %i32 1000
%a = OpTypeArray %i32 %n
%lp = OpTypePointer Workgroup %a
%v = OpVariable %lp Workgroup
%w = OpVariable %lp Workgroup
%f = OpFunction %void None %fn_void
%fl = OpLabel
%x = OpLoad %a %v
OpStore %w %x
OpReturn
OpFunctionEnd
%g = OpFunction %void None %fn_void
%gl = OpLabel
%gc = OpFunctionCall %void CALLED
OpReturn
OpFunctionEnd
"""


def test_local_memory_of_functions_that_a_kernel_calls():
    call = "%c = OpFunctionCall %void %g\n"
    local_memory.check(module(LOCAL.replace("CALLED", "%f"), call), 8000)
    with pytest.raises(
        SpirvError, match="^kernel 'k': 8000 bytes of local memory, of which the device has 7999"
    ):
        local_memory.check(module(LOCAL.replace("CALLED", "%f"), call), 7999)
    local_memory.check(module(LOCAL.replace("CALLED", "%f")), 10)  # nothing calls them


def test_recursion_names_the_kernel_and_the_functions():
    read = link.link([module(LOCAL.replace("CALLED", "%g"), "%c = OpFunctionCall %void %g\n")])
    with pytest.raises(SpirvError, match="recursion in kernel 'k'"):
        validate.validate(read)
