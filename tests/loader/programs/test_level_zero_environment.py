"""The points of the Level Zero SPIR-V environment: accepted and executed, or refused with a log.

Section titles are those of its SPIR-V programming guide.
"""

from __future__ import annotations

import ctypes
import struct

import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.images.model import Format, descriptor
from tests.loader.programs.level_zero import (  # noqa: F401
    FLOATS,
    ITEMS,
    OFFERED,
    SCALARS,
    SCOPES,
    VECTORS,
    Table,
    machine,
    module,
    needed,
    seed,
)

# --- Supported types --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scalar", SCALARS)
def test_scalar_and_vector_types(machine, scalar):  # noqa: F811
    """OpTypeInt of 8 to 64 bits, OpTypeFloat of 16 to 64, vectors of 2, 3, 4, 8 and 16 of them."""
    table = Table()
    add = "OpFAdd {x} {x}" if scalar in FLOATS else "OpIAdd {x} {x}"
    for type_ in (scalar, *(f"v{count}{scalar}" for count in VECTORS)):
        table.add(add, type_, lambda j, members: 2 * seed(j))
    table.check(machine, declare=needed("SubgroupDispatch"))


def test_bool_array_and_struct(machine):  # noqa: F811
    declarations = (
        "%array = OpTypeArray %i32 %l3\n%pair = OpTypeStruct %i32 %array\n"
        "%ppair = OpTypePointer Function %pair\n"
    )
    body = """
%big = OpUGreaterThan %bool %gid %c7
%pick = OpSelect %i32 %big %c5 %c2
%list = OpCompositeConstruct %array %gid %pick %c9
%made = OpCompositeConstruct %pair %c1 %list
%own = OpVariable %ppair Function
OpStore %own %made
%place = OpInBoundsPtrAccessChain %pi32 %own %c0 %c1 %c1
%got = OpLoad %i32 %place
%whole = OpLoad %pair %own
%first = OpCompositeExtract %i32 %whole 1 0
%sum = OpIAdd %i32 %got %first
%ints = OpBitcast %gi32 %out
%to = OpInBoundsPtrAccessChain %gi32 %ints %gid64
OpStore %to %sum
"""
    data = machine.run(module(body, declarations=declarations), 4 * ITEMS)
    assert list(struct.unpack(f"<{ITEMS}i", data)) == [j + (5 if j > 7 else 2) for j in range(ITEMS)]


IMAGES = [("1D", 0, 0), ("1D", 0, 1), ("2D", 0, 0), ("2D", 1, 0), ("2D", 0, 1), ("2D", 1, 1), ("3D", 0, 0)]


def image_module(
    dim: str, depth: int, arrayed: int, body: str, declarations="", result="", access="ReadOnly"
):
    """A kernel k(global char *out, image %a0)."""
    declare = {"1D": ["Image1D", "Sampled1D"], "Buffer": ["ImageBuffer", "SampledBuffer"]}.get(dim, [])
    dim = dim if dim == "Buffer" else f"Dim{dim}"
    text = f"%image = OpTypeImage %void {dim} {depth} {arrayed} 0 0 Unknown {access}\n{declarations}"
    return module(body + result, ["ImageBasic", *declare], declarations=text, arguments=["%image"])


@pytest.mark.parametrize("dim, depth, arrayed", [*IMAGES, ("Buffer", 0, 0)])
def test_image_types(machine, dim, depth, arrayed):  # noqa: F811
    """Every type of image is an argument's type; what order and type its channels have is told."""
    body = "%type = OpImageQueryFormat %i32 %a0\n%order = OpImageQueryOrder %i32 %a0\n"
    body += "%hundred = OpIMul %i32 %order %c100\n%got = OpIAdd %i32 %hundred %type"
    data = image_module(dim, depth, arrayed, body, "%c100 = OpConstant %i32 100\n", STORE)
    name = f"{dim} array" if arrayed else f"{dim} buffer".replace("Buffer", "1D") if dim == "Buffer" else dim
    memory = machine.cl.make("clCreateBuffer", machine.context, 0, 64, None) if dim == "Buffer" else 0
    sizes = {"1D": (8,), "2D": (8, 4), "3D": (8, 4, 2), "Buffer": (8,)}[dim]
    desc = descriptor(name, *sizes, layers=2 * arrayed, memory=memory)
    format_ = Format("CL_DEPTH", "CL_FLOAT") if depth else Format("CL_RG", "CL_SNORM_INT16")
    image = machine.cl.make("clCreateImage", machine.context, 0, format_.c, desc, None)
    expected = 100 * 13 + 14 if depth else 100 * 2 + 1  # Depth and Float; RG and SnormInt16
    assert struct.unpack("<i", machine.run(data, 4, [struct.pack("<Q", image)], 1)) == (expected,)
    for handle in filter(None, (image, memory)):
        machine.cl.ok("clReleaseMemObject", handle)


BROKEN_IMAGES = {
    "sampled type": "%image = OpTypeImage %f32 Dim2D 0 0 0 0 Unknown ReadOnly",
    "Sampled": "%image = OpTypeImage %void Dim2D 0 0 0 1 Unknown ReadOnly",
    "multisampled": "%image = OpTypeImage %void Dim2D 0 0 1 0 Unknown ReadOnly",
    "an array": "%image = OpTypeImage %void Dim3D 0 1 0 0 Unknown ReadOnly",
    "Format": "%image = OpTypeImage %void Dim2D 0 0 0 0 Rgba8 ReadOnly",
}


@pytest.mark.parametrize("why", BROKEN_IMAGES)
def test_image_types_that_are_not_valid(machine, why):  # noqa: F811
    text = BROKEN_IMAGES[why] + "\n"
    assert why in machine.refuses(module("", ["ImageBasic"], declarations=text, arguments=["%image"]))


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("used", [False, True])
def test_atomics_on_images_are_refused(machine, used, width):  # noqa: F811
    """ "The Pointer operand must be a pointer to the Function, Workgroup, CrossWorkGroup, or Generic Storage
    Classes": none is to an image's pixels."""
    body = "%texel = OpImageTexelPointer %pimage %a0 %xy %c0\n"
    if used:
        body += f"%old = OpAtomicIAdd %i{width} %texel %c1 %c0 %one\n"
    declarations = f"%pimage = OpTypePointer Image %i{width}\n%one = OpConstant %i{width} 1\n"
    declarations += "%xy = OpConstantComposite %v2i32 %c1 %c2\n"
    log = machine.refuses(image_module("2D", 0, 0, body, declarations, access="ReadWrite"))
    assert ("OpAtomicIAdd: an atomic in Image" if used else "ImageTexelPointer") in log


# --- Kernels, return types, arguments ---------------------------------------------------------------------

STORE = "\n%ints = OpBitcast %gi32 %out\nOpStore %ints %got"
STRUCT = (
    "%inner = OpTypeStruct %i8 %f32\n"
    "%struct = OpTypeStruct %i16 %inner %v2i32 %gi32 %f64\n"
    "%byval = OpTypePointer Function %struct\n"
)
STRUCT_DATA = struct.pack("<h2xb3xf4x2iQd", 1, 2, 3.0, 4, 5, 0, -15.0)
SUM = """
%s0 = OpCompositeExtract %i16 %s 0
%s1 = OpCompositeExtract %i8 %s 1 0
%s2 = OpCompositeExtract %f32 %s 1 1
%s3 = OpCompositeExtract %i32 %s 2 1
%s4 = OpCompositeExtract %f64 %s 4
%w0 = OpSConvert %i32 %s0
%w1 = OpSConvert %i32 %s1
%w2 = OpConvertFToS %i32 %s2
%w4 = OpConvertFToS %i32 %s4
%x0 = OpIAdd %i32 %w0 %w1
%x1 = OpIAdd %i32 %x0 %w2
%x2 = OpIAdd %i32 %x1 %s3
%got = OpIAdd %i32 %x2 %w4
"""
POINTER = "%v = OpLoad %i8 %a0\n%got = OpSConvert %i32 %v"
# What the argument's type is, how 32 bits are made of it, the bytes: each is -3 or -4 in the end.
ARGUMENTS = {
    "OpTypeInt 8": ("%i8", "%got = OpSConvert %i32 %a0", struct.pack("<b", -3), -3),
    "OpTypeInt 16": ("%i16", "%got = OpSConvert %i32 %a0", struct.pack("<h", -3), -3),
    "OpTypeInt 32": ("%i32", "%got = OpCopyObject %i32 %a0", struct.pack("<i", -3), -3),
    "OpTypeInt 64": ("%i64", "%got = OpUConvert %i32 %a0", struct.pack("<q", -3), -3),
    "OpTypeFloat 32": ("%f32", "%got = OpConvertFToS %i32 %a0", struct.pack("<f", -3), -3),
    "OpTypeVector of ints": (
        "%v4i32",
        "%got = OpCompositeExtract %i32 %a0 2",
        struct.pack("<4i", 1, 2, -3, 4),
        -3,
    ),
    "OpTypeVector of floats": (
        "%v3f32",
        "%e = OpCompositeExtract %f32 %a0 1\n%got = OpConvertFToS %i32 %e",
        struct.pack("<4f", 1, -3, 2, 0),
        -3,
    ),
    "OpTypeStruct": ("%struct", SUM.replace("%s ", "%a0 "), STRUCT_DATA, -4),
    "OpTypeStruct by reference": ("%byval", "%s = OpLoad %struct %a0" + SUM, STRUCT_DATA, -4),
    "OpTypePointer Workgroup": ("%li8", "OpStore %a0 %minus\n" + POINTER, 64, -3),
}
if "f16" in SCALARS:
    ARGUMENTS["OpTypeFloat 16"] = ("%f16", "%got = OpConvertFToS %i32 %a0", struct.pack("<e", -3), -3)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_kernel_arguments(machine, name):  # noqa: F811
    type_, take, value, expected = ARGUMENTS[name]
    decorations = "OpDecorate %a0 FuncParamAttr ByVal" if type_ == "%byval" else ""
    declarations = STRUCT + "%minus = OpConstant %i8 253\n"
    data = module(take + STORE, arguments=[type_], declarations=declarations, decorations=decorations)
    assert struct.unpack("<i", machine.run(data, 4, [value], 1)) == (expected,)


@pytest.mark.parametrize("storage", ["CrossWorkgroup", "UniformConstant"])
def test_kernel_arguments_that_point_to_buffers(machine, storage):  # noqa: F811
    data = module(POINTER + STORE, arguments=["%own"], declarations=f"%own = OpTypePointer {storage} %i8\n")
    buffer = machine.cl.make("clCreateBuffer", machine.context, cl.CL_MEM_COPY_HOST_PTR, 1, b"\xfd")
    assert struct.unpack("<i", machine.run(data, 4, [struct.pack("<Q", buffer)], 1)) == (-3,)
    machine.cl.ok("clReleaseMemObject", buffer)


def test_a_pointer_in_a_structure_as_argument(machine):  # noqa: F811
    """ "Member Types: OpTypePointer": an address of shared virtual memory."""
    body = """
%p = OpCompositeExtract %gi32 %a0 3
%got = OpLoad %i32 %p
"""
    data = module(body + STORE, arguments=["%struct"], declarations=STRUCT)
    number = ctypes.c_int32(-3)
    value = STRUCT_DATA[:24] + struct.pack("<Q", ctypes.addressof(number)) + STRUCT_DATA[32:]
    assert struct.unpack("<i", machine.run(data, 4, [value], 1)) == (-3,)


def test_a_sampler_as_argument_and_results_of_kernels(machine):  # noqa: F811
    """OpTypeSampler is an argument's type also where nothing is sampled; the result is OpTypeVoid."""
    machine.accepts(
        module("", ["ImageBasic"], declarations="%sampler = OpTypeSampler\n", arguments=["%sampler"])
    )
    entry = 'OpEntryPoint Kernel %bad "bad"'
    function = "%bad = OpFunction %i32 None %fn_bad\n%bl = OpLabel\nOpReturnValue %c1\nOpFunctionEnd\n"
    data = module("", declarations="%fn_bad = OpTypeFunction %i32\n", functions=function, modes=entry)
    assert "void" in machine.refuses(data)


# --- Required capabilities --------------------------------------------------------------------------------

REQUIRED = (
    *("Addresses", "Float16Buffer", "Int64", "Int16", "Int8", "Kernel", "Linkage", "Vector16"),
    *("GenericPointer", "Groups", "Float64", "Int64Atomics"),
)
WITH_IMAGES = ("LiteralSampler", "Sampled1D", "Image1D", "SampledBuffer", "ImageBuffer", "ImageReadWrite")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_required_capabilities(machine, version):  # noqa: F811
    """Of SPIR-V 1.0, 1.1 and 1.2."""
    data = bytearray(module("", REQUIRED))
    data[4:8] = bytes([0, version, 1, 0])
    machine.accepts(bytes(data))


@pytest.mark.parametrize("name", [*WITH_IMAGES, "Shader", "Geometry"])
def test_other_capabilities(machine, name):  # noqa: F811
    """Accepted as offered; refused by name where not."""
    if name in OFFERED:
        machine.accepts(module("", [name]))
    else:
        assert name in machine.refuses(module("", [name]))


# --- Validation rules -------------------------------------------------------------------------------------


def test_models(machine):  # noqa: F811
    text = module("")
    at = text.index(struct.pack("<II", 3 << 16 | 14, 2))  # OpMemoryModel Physical64
    for word, value, why in ((1, 1, "64 bits"), (1, 0, "Logical"), (2, 1, "")):
        changed = bytearray(text)
        struct.pack_into("<I", changed, at + 4 * word, value)
        assert why in machine.refuses(bytes(changed))
    assert "GLCompute" in machine.refuses(module("", modes='OpEntryPoint GLCompute %k "g"'))


def test_integers_have_no_signedness(machine):  # noqa: F811
    assert "sign" in machine.refuses(module("", declarations="%signed = OpTypeInt 32 1\n"))


def atomic_module(storage: str, type_: str, scope: str = "%c1") -> bytes:
    """Adds 1 to a 0 in memory of a storage class; what is there afterwards goes to out."""
    place = {
        "CrossWorkgroup": f"%place = OpBitcast %g{type_} %out",
        "Generic": f"%global = OpBitcast %g{type_} %out\n%place = OpPtrCastToGeneric %a{type_} %global",
        "Workgroup": f"%place = OpCopyObject %l{type_} %shared",
        "Function": f"%place = OpVariable %p{type_} Function",
    }[storage]
    body = f"""
{place}
{"" if storage in ("CrossWorkgroup", "Generic") else "OpStore %place %nothing"}
%old = OpAtomicIAdd %{type_} %place {scope} %c0 %one
%new = OpLoad %{type_} %place
%whole = OpBitcast %g{type_} %out
OpStore %whole %new
"""
    declarations = f"%one = OpConstant %{type_} 1\n%nothing = OpConstantNull %{type_}\n"
    if storage == "Workgroup":
        declarations += f"%shared = OpVariable %l{type_} Workgroup\n"
    return module(body, ["Int64Atomics"], declarations=declarations)


@pytest.mark.parametrize("storage", ["CrossWorkgroup", "Workgroup", "Generic", "Function"])
@pytest.mark.parametrize("type_", ["i32", "i64"])
def test_atomics(machine, storage, type_):  # noqa: F811
    assert struct.unpack("<q", machine.run(atomic_module(storage, type_), 8, (), 1)) == (1,)


@pytest.mark.parametrize("type_", ["i8", "i16"])
def test_atomics_of_narrow_integers_are_refused(machine, type_):  # noqa: F811
    assert "OpAtomicIAdd" in machine.refuses(atomic_module("CrossWorkgroup", type_))


def test_recursion_is_refused(machine):  # noqa: F811
    functions = """
%f = OpFunction %void None %fn_void
%fl = OpLabel
%fr = OpFunctionCall %void %g
OpReturn
OpFunctionEnd
%g = OpFunction %void None %fn_void
%gl = OpLabel
%gr = OpFunctionCall %void %f
OpReturn
OpFunctionEnd
"""
    data = module(
        "%r = OpFunctionCall %void %f", declarations="%fn_void = OpTypeFunction %void", functions=functions
    )
    assert "recurs" in machine.refuses(data)


COPY = """
%from = OpBitcast %gi32 %out
%event = OpGroupAsyncCopy %event_t SCOPE %shared0 %from %l16 %l1 %null_event
OpStore %events %event
OpGroupWaitEvents SCOPE %c1 %events
%mine = OpInBoundsPtrAccessChain %li32 %shared0 %gid64
%v = OpLoad %i32 %mine
%more = OpIAdd %i32 %v %gid
%to = OpInBoundsPtrAccessChain %gi32 %from %gid64
OpStore %to %more
"""


@pytest.mark.parametrize("scope", SCOPES)
def test_scope_of_asynchronous_copies(machine, scope):  # noqa: F811
    """ "OpGroupAsyncCopy and OpGroupWaitEvents: Workgroup"."""
    declarations = """
%event_t = OpTypeEvent
%null_event = OpConstantNull %event_t
%pevent = OpTypePointer Function %event_t
%room = OpTypeArray %i32 %l16
%proom = OpTypePointer Workgroup %room
%shared = OpVariable %proom Workgroup
"""
    body = "%events = OpVariable %pevent Function\n%shared0 = OpInBoundsPtrAccessChain %li32 %shared %c0 %c0"
    data = module(body + COPY.replace("SCOPE", f"%c{SCOPES[scope]}"), ["Groups"], declarations=declarations)
    if scope == "Workgroup":
        assert list(struct.unpack("<16i", machine.run(data, 64))) == list(range(16))
    else:
        assert "cope" in machine.refuses(data)


@pytest.mark.parametrize("scope", SCOPES)
def test_scope_of_execution(machine, scope):  # noqa: F811
    data = module(
        f"OpControlBarrier %c{SCOPES[scope]} %c2 %c{0x110}",
        ["SubgroupDispatch"][: "SubgroupDispatch" in OFFERED],
    )
    if scope in ("Workgroup", "Subgroup"):
        machine.run(data, 4)
    else:
        assert "cope" in machine.refuses(data)


@pytest.mark.parametrize("scope", [*SCOPES, "QueueFamily"])
def test_scope_of_memory(machine, scope):  # noqa: F811
    number = {**SCOPES, "QueueFamily": 5}[scope]
    barrier = module(f"OpMemoryBarrier %c{number} %c{0x210}")
    if scope == "QueueFamily":
        assert "cope" in machine.refuses(barrier)
        assert "cope" in machine.refuses(atomic_module("CrossWorkgroup", "i32", "%c5"))
        return
    machine.run(barrier, 4)
    result = machine.run(atomic_module("CrossWorkgroup", "i32", f"%c{number}"), 8, (), 1)
    assert struct.unpack("<i", result[:4]) == (1,)
