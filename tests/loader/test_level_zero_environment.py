"""The points of the Level Zero SPIR-V environment: accepted and executed, or refused with a log.

Section titles are those of its SPIR-V programming guide. What needs images is refused: the device has none.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.device import capabilities
from cl_driver.device.cpu import host_cpu
from tests.pure.spirv_assembler import assemble

OFFERED = frozenset(capabilities.spirv_capabilities(host_cpu()))
EXTENSIONS = frozenset(capabilities.spirv_extensions(host_cpu()))
ITEMS = 16
# Scalar types: SPIR-V's name, how struct has it, bytes.
INTS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q"}
FLOATS = {"f32": "f", "f64": "d"} | ({"f16": "e"} if "Float16" in OFFERED else {})
SCALARS = INTS | FLOATS
VECTORS = (2, 3, 4, 8, 16)
BASE = ("Addresses", "Linkage", "Kernel", "Int8", "Int16", "Int64", "Float64", "Vector16", "GenericPointer")
SCOPES = {"CrossDevice": 0, "Device": 1, "Workgroup": 2, "Subgroup": 3, "Invocation": 4}


def code_of(type_: str) -> tuple[str, int]:
    """(struct's letter, components): v4f32 is ("f", 4)."""
    if type_.startswith("v"):
        count, scalar = type_[1:].replace("i", " i").replace("f", " f").split()
        return SCALARS[scalar], int(count)
    return SCALARS[type_], 1


def types() -> str:
    lines = ["%void = OpTypeVoid", "%bool = OpTypeBool"]
    lines += [f"%{name} = OpTypeInt {name[1:]} 0" for name in INTS]
    lines += [f"%{name} = OpTypeFloat {name[1:]}" for name in FLOATS]
    lines += [f"%v{count}{name} = OpTypeVector %{name} {count}" for name in SCALARS for count in VECTORS]
    for storage, letter in (("CrossWorkgroup", "g"), ("Workgroup", "l"), ("Function", "p"), ("Generic", "a")):
        names = [*SCALARS, *(f"v{count}{name}" for name in SCALARS for count in VECTORS)]
        lines += [f"%{letter}{name} = OpTypePointer {storage} %{name}" for name in names]
    lines += [f"%c{number} = OpConstant %i32 {number}" for number in (*range(17), 32, 0x110, 0x210)]
    lines += [f"%l{number} = OpConstant %i64 {number}" for number in range(17)]
    return "\n".join([*lines, "%true = OpConstantTrue %bool"])


def module(
    body: str,
    declare=(),
    extensions=(),
    declarations: str = "",
    functions: str = "",
    modes: str = "",
    decorations: str = "",
    builtins=("GlobalInvocationId",),
    arguments=(),
) -> bytes:
    """A kernel k(global char *out, arguments %a0, %a1...) with %gid, the first component of the global id in
    32 bits. arguments: their types."""
    wanted = [*BASE, *(["Float16"] if "Float16" in OFFERED else []), *declare]
    names = {"GlobalInvocationId": "v3i64"}
    lines = [f"OpCapability {name}" for name in dict.fromkeys(wanted)]
    lines += [f'OpExtension "{name}"' for name in extensions]
    lines += ['%std = OpExtInstImport "OpenCL.std"', "OpMemoryModel Physical64 OpenCL"]
    lines += ['OpEntryPoint Kernel %k "k" ' + " ".join(f"%in_{name}" for name in builtins), modes]
    lines += [f"OpDecorate %in_{name} BuiltIn {name}" for name in builtins]
    lines += [decorations, types()]
    for name in builtins:
        type_ = names.get(name, "v4i32" if name.endswith("Mask") else "i32")
        lines.append(f"%pt_{name} = OpTypePointer Input %{type_}")
        lines.append(f"%in_{name} = OpVariable %pt_{name} Input")
    lines += [declarations, " ".join(["%fn_kernel = OpTypeFunction %void %gi8", *arguments]), functions]
    lines += ["%k = OpFunction %void None %fn_kernel", "%out = OpFunctionParameter %gi8"]
    lines += [f"%a{number} = OpFunctionParameter {type_}" for number, type_ in enumerate(arguments)]
    lines += ["%entry = OpLabel", "%all_ids = OpLoad %v3i64 %in_GlobalInvocationId"]
    lines += ["%gid64 = OpCompositeExtract %i64 %all_ids 0", "%gid = OpUConvert %i32 %gid64", body]
    lines += ["OpReturn", "OpFunctionEnd"]
    return assemble("\n".join(lines))


class Machine:
    def __init__(self, opencl):
        self.cl, self.context = opencl, opencl.context()
        self.queue = opencl.make("clCreateCommandQueueWithProperties", self.context, opencl.device(), None)

    def build(self, data: bytes) -> tuple[int, str]:
        """(program or 0, log)."""
        program, status = self.cl.call("clCreateProgramWithIL", self.context, data, len(data))
        if status:
            assert status == cl.CL_INVALID_VALUE
            return 0, "clCreateProgramWithIL"
        status = self.cl.call("clBuildProgram", program, 0, None, None, None, None)
        if status == cl.CL_SUCCESS:
            return program, ""
        assert status == cl.CL_BUILD_PROGRAM_FAILURE
        log = self.cl.build_log(program)
        self.cl.ok("clReleaseProgram", program)
        assert log
        return 0, log

    def refuses(self, data: bytes) -> str:
        program, log = self.build(data)
        assert not program, "the module was accepted"
        return log

    def accepts(self, data: bytes) -> None:
        program, log = self.build(data)
        assert program, log
        self.cl.ok("clReleaseProgram", program)

    def run(self, data: bytes, size: int, arguments=(), items: int = ITEMS) -> bytes:
        """What k leaves in a buffer of zeros; further arguments as bytes, or as a size of local memory."""
        program, log = self.build(data)
        assert program, log
        kernel = self.cl.make("clCreateKernel", program, b"k")
        buffer = self.cl.make("clCreateBuffer", self.context, cl.CL_MEM_COPY_HOST_PTR, size, bytes(size))
        self.cl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
        for index, value in enumerate(arguments, 1):
            local = isinstance(value, int)
            self.cl.ok(
                "clSetKernelArg", kernel, index, value if local else len(value), None if local else value
            )
        launch = (self.queue, kernel, 1, None, [items], [items], 0, None, None)
        self.cl.ok("clEnqueueNDRangeKernel", *launch)
        result = ctypes.create_string_buffer(size)
        self.cl.ok("clEnqueueReadBuffer", self.queue, buffer, 1, 0, size, result, 0, None, None)
        for handle, release in (
            (buffer, "clReleaseMemObject"),
            (kernel, "clReleaseKernel"),
            (program, "clReleaseProgram"),
        ):
            self.cl.ok(release, handle)
        return result.raw


@pytest.fixture(scope="module")
def machine(opencl):
    made = Machine(opencl)
    yield made
    opencl.ok("clReleaseCommandQueue", made.queue)
    opencl.ok("clReleaseContext", made.context)


class Table:
    """Instructions on values that differ between work-items, in one kernel; each has a slot of the output.

    A value of work-item j is seed(j), in every component. expected(j, members): what j gets, members being
    the work-items of its sub-group in order; None where nothing is defined.
    """

    SLOT = ITEMS * 16 * 8

    def __init__(self):
        self.lines: list[str] = []
        self.values: dict[str, str] = {}
        self.rows: list[tuple[str, str, Callable]] = []
        self.position = self.slot_of("i32")
        self.store(self.position, "i32", "%lane")

    @staticmethod
    def seed(j: int) -> int:
        return 3 * j + 1

    def value(self, type_: str) -> str:
        """The id of this work-item's value of a type."""
        if type_ not in self.values:
            if type_ == "bool":
                made = "OpINotEqual %bool %odd %c0"
            elif type_.startswith("v"):
                count, scalar = code_of(type_)[1], type_[len(str(code_of(type_)[1])) + 1 :]
                made = f"OpCompositeConstruct %{type_} " + " ".join([self.value(scalar)] * count)
            elif type_ in FLOATS:
                made = f"OpConvertUToF %{type_} %seed"
            else:
                made = f"OpUConvert %{type_} %seed" if type_ != "i32" else "OpCopyObject %i32 %seed"
            self.values[type_] = f"%value_{type_}"
            self.lines.append(f"%value_{type_} = {made}")
        return self.values[type_]

    def slot_of(self, type_: str) -> int:
        self.rows.append(("", type_, lambda j, members: None))
        return len(self.rows) - 1

    def add(self, what: str, type_: str, expected: Callable, result: str = "") -> None:
        """what: the instruction without result, {x} for the value. result: its type if it is another."""
        result = result or type_
        x = self.value(type_)
        number = len(self.rows)
        name, _, operands = what.format(x=x).partition(" ")
        self.lines.append(f"%r{number} = {name} %{result} {operands}")
        stored, id_ = result, f"%r{number}"
        if result == "bool":
            self.lines.append(f"%s{number} = OpSelect %i32 %r{number} %c1 %c0")
            stored, id_ = "i32", f"%s{number}"
        self.rows.append((f"{what} of {type_}", stored, expected))
        self.store(number, stored, id_)

    def store(self, number: int, type_: str, id_: str) -> None:
        code, count = code_of(type_)
        step = struct.calcsize(code) * (4 if count == 3 else count)
        self.lines += [
            f"%k{number} = OpConstant64 {number * self.SLOT} {step}",
            f"%b{number} = OpIMul %i64 %gid64 %step{number}",
            f"%o{number} = OpIAdd %i64 %b{number} %base{number}",
            f"%q{number} = OpInBoundsPtrAccessChain %gi8 %out %o{number}",
            f"%t{number} = OpBitcast %g{type_} %q{number}",
            f"OpStore %t{number} {id_}",
        ]

    def check(self, machine: Machine, **parts) -> None:
        constants, body = [], []
        for line in self.lines:
            if "OpConstant64" in line:
                number, (base, step) = line.split()[0][2:], line.split()[-2:]
                constants.append(f"%base{number} = OpConstant %i64 {base}")
                constants.append(f"%step{number} = OpConstant %i64 {step}")
            else:
                body.append(line)
        start = [
            "%lane = OpLoad %i32 %in_SubgroupLocalInvocationId",
            "%tripled = OpIMul %i32 %gid %c3",
            "%seed = OpIAdd %i32 %tripled %c1",
            "%odd = OpBitwiseAnd %i32 %gid %c1",
        ]
        parts["declarations"] = "\n".join([parts.get("declarations", ""), *constants])
        parts["builtins"] = ("GlobalInvocationId", "SubgroupLocalInvocationId", *parts.get("builtins", ()))
        data = machine.run(module("\n".join([*start, *body]), **parts), self.SLOT * len(self.rows))
        lanes = [self.read(data, self.position, "i32", j)[0] for j in range(ITEMS)]
        assert lanes[0] == 0 and all(lane < ITEMS for lane in lanes)
        for number, (what, type_, expected) in enumerate(self.rows):
            for j in range(ITEMS):
                members = [i for i in range(ITEMS) if i - lanes[i] == j - lanes[j]]
                answer = expected(j, members)
                if answer is not None:
                    found = self.read(data, number, type_, j)
                    wanted = list(answer) if isinstance(answer, list) else [answer] * len(found)
                    assert found == [wrapped(type_, v) for v in wanted], f"{what}, work-item {j} of {members}"

    def read(self, data: bytes, number: int, type_: str, j: int) -> list:
        code, count = code_of(type_)
        step = struct.calcsize(code) * (4 if count == 3 else count)
        return list(struct.unpack_from(f"<{count}{code}", data, number * self.SLOT + j * step))


def wrapped(type_: str, value):
    """As the type holds it."""
    code = code_of(type_)[0]
    if code in "efd":
        return float(value)
    bits = 8 * struct.calcsize(code)
    return (int(value) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


seed = Table.seed

# --- Supported types --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scalar", SCALARS)
def test_scalar_and_vector_types(machine, scalar):
    """OpTypeInt of 8 to 64 bits, OpTypeFloat of 16 to 64, vectors of 2, 3, 4, 8 and 16 of them."""
    table = Table()
    add = "OpFAdd {x} {x}" if scalar in FLOATS else "OpIAdd {x} {x}"
    for type_ in (scalar, *(f"v{count}{scalar}" for count in VECTORS)):
        table.add(add, type_, lambda j, members: 2 * seed(j))
    table.check(machine, declare=needed("SubgroupDispatch"))


def needed(*names: str) -> list[str]:
    """Of these capabilities those that the device offers: a built-in variable needs one."""
    return [name for name in names if name in OFFERED]


def test_bool_array_and_struct(machine):
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


@pytest.mark.skipif("ImageBasic" in OFFERED, reason="images are offered, and tested where images are")
@pytest.mark.parametrize("dim, depth, arrayed", [*IMAGES, ("Buffer", 0, 0)])
def test_image_types_are_refused(machine, dim, depth, arrayed):
    declare = ["ImageBasic", *{"1D": ["Sampled1D"], "Buffer": ["SampledBuffer"]}.get(dim, [])]
    dim = dim if dim == "Buffer" else f"Dim{dim}"
    text = f"%image = OpTypeImage %void {dim} {depth} {arrayed} 0 0 Unknown ReadOnly\n"
    text += "%size = OpTypeFunction %i32 %image\n"
    function = "%f = OpFunction %i32 None %size\n%i = OpFunctionParameter %image\n%fl = OpLabel\n"
    function += "%n = OpImageQueryFormat %i32 %i\nOpReturnValue %n\nOpFunctionEnd\n"
    entry = 'OpEntryPoint Kernel %reader "reader"'
    text += "%fn_reader = OpTypeFunction %void %image\n"
    function += "%reader = OpFunction %void None %fn_reader\n%image2 = OpFunctionParameter %image\n"
    function += "%rl = OpLabel\n%n2 = OpFunctionCall %i32 %f %image2\nOpReturn\nOpFunctionEnd\n"
    data = module("", declare, declarations=text, functions=function, modes=entry)
    assert "mage" in machine.refuses(data) or "Sampled" in machine.refuses(data)


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
def test_kernel_arguments(machine, name):
    type_, take, value, expected = ARGUMENTS[name]
    decorations = "OpDecorate %a0 FuncParamAttr ByVal" if type_ == "%byval" else ""
    declarations = STRUCT + "%minus = OpConstant %i8 253\n"
    data = module(take + STORE, arguments=[type_], declarations=declarations, decorations=decorations)
    assert struct.unpack("<i", machine.run(data, 4, [value], 1)) == (expected,)


@pytest.mark.parametrize("storage", ["CrossWorkgroup", "UniformConstant"])
def test_kernel_arguments_that_point_to_buffers(machine, storage):
    data = module(POINTER + STORE, arguments=["%own"], declarations=f"%own = OpTypePointer {storage} %i8\n")
    buffer = machine.cl.make("clCreateBuffer", machine.context, cl.CL_MEM_COPY_HOST_PTR, 1, b"\xfd")
    assert struct.unpack("<i", machine.run(data, 4, [struct.pack("<Q", buffer)], 1)) == (-3,)
    machine.cl.ok("clReleaseMemObject", buffer)


def test_a_pointer_in_a_structure_as_argument(machine):
    """ "Member Types: OpTypePointer": an address of shared virtual memory."""
    body = """
%p = OpCompositeExtract %gi32 %a0 3
%got = OpLoad %i32 %p
"""
    data = module(body + STORE, arguments=["%struct"], declarations=STRUCT)
    number = ctypes.c_int32(-3)
    value = STRUCT_DATA[:24] + struct.pack("<Q", ctypes.addressof(number)) + STRUCT_DATA[32:]
    assert struct.unpack("<i", machine.run(data, 4, [value], 1)) == (-3,)


def test_a_sampler_as_argument_and_results_of_kernels(machine):
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
def test_required_capabilities(machine, version):
    """Of SPIR-V 1.0, 1.1 and 1.2."""
    data = bytearray(module("", REQUIRED))
    data[4:8] = bytes([0, version, 1, 0])
    machine.accepts(bytes(data))


@pytest.mark.parametrize("name", [*WITH_IMAGES, "Shader", "Geometry"])
def test_other_capabilities(machine, name):
    """Accepted as offered; refused by name where not."""
    if name in OFFERED:
        machine.accepts(module("", [name]))
    else:
        assert name in machine.refuses(module("", [name]))


# --- Validation rules -------------------------------------------------------------------------------------


def test_models(machine):
    text = module("")
    at = text.index(struct.pack("<II", 3 << 16 | 14, 2))  # OpMemoryModel Physical64
    for word, value, why in ((1, 1, "64 bits"), (1, 0, "Logical"), (2, 1, "")):
        changed = bytearray(text)
        struct.pack_into("<I", changed, at + 4 * word, value)
        assert why in machine.refuses(bytes(changed))
    assert "GLCompute" in machine.refuses(module("", modes='OpEntryPoint GLCompute %k "g"'))


def test_integers_have_no_signedness(machine):
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
def test_atomics(machine, storage, type_):
    assert struct.unpack("<q", machine.run(atomic_module(storage, type_), 8, (), 1)) == (1,)


@pytest.mark.parametrize("type_", ["i8", "i16"])
def test_atomics_of_narrow_integers_are_refused(machine, type_):
    assert "OpAtomicIAdd" in machine.refuses(atomic_module("CrossWorkgroup", type_))


def test_recursion_is_refused(machine):
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
def test_scope_of_asynchronous_copies(machine, scope):
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
def test_scope_of_execution(machine, scope):
    data = module(
        f"OpControlBarrier %c{SCOPES[scope]} %c2 %c{0x110}",
        ["SubgroupDispatch"][: "SubgroupDispatch" in OFFERED],
    )
    if scope in ("Workgroup", "Subgroup"):
        machine.run(data, 4)
    else:
        assert "cope" in machine.refuses(data)


@pytest.mark.parametrize("scope", [*SCOPES, "QueueFamily"])
def test_scope_of_memory(machine, scope):
    number = {**SCOPES, "QueueFamily": 5}[scope]
    barrier = module(f"OpMemoryBarrier %c{number} %c{0x210}")
    if scope == "QueueFamily":
        assert "cope" in machine.refuses(barrier)
        assert "cope" in machine.refuses(atomic_module("CrossWorkgroup", "i32", "%c5"))
        return
    machine.run(barrier, 4)
    result = machine.run(atomic_module("CrossWorkgroup", "i32", f"%c{number}"), 8, (), 1)
    assert struct.unpack("<i", result[:4]) == (1,)
