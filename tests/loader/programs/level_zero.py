"""Modules for the tests of the Level Zero SPIR-V environment, and what takes, refuses or runs them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.device import capabilities
from cl_driver.device.cpu import host_cpu
from tests.pure.spirv.assembler import assemble

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


def needed(*names: str) -> list[str]:
    """Of these capabilities those that the device offers: a built-in variable needs one."""
    return [name for name in names if name in OFFERED]
