"""clSetProgramSpecializationConstant on constants of every type, and on what is made of them."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.instructions.module import DTYPES, Kernel

# Type: (SpecId, default, another value)
SCALARS = {
    "i8": (10, 100, 255),
    "i16": (11, 30000, 65535),
    "i32": (12, 70000, 1 << 31),
    "i64": (13, 1 << 40, (1 << 64) - 1),
    "f32": (14, 1.5, -0.0),
    "f64": (15, 2.25, 1e300),
}
FORMATS = {"i8": "B", "i16": "H", "i32": "I", "i64": "Q", "f32": "f", "f64": "d"}
TRUE, FALSE, LENGTH, ITEMS, TWICE = 1, 2, 20, 21, 22
SET = "clSetProgramSpecializationConstant"


def module() -> Kernel:
    """A kernel that writes each constant, a vector of three with the constant in the middle, and what
    OpSpecConstantOp makes of it."""
    k = Kernel("specialised", 8, version=(1, 2))
    for scalar, (number, default, _) in SCALARS.items():
        bits = int(np.array(default, DTYPES[scalar]).view(DTYPES["i" + scalar[1:]]))
        name = k.declare(f"%s{scalar}", f"OpSpecConstant {k.type(scalar)} {bits}")
        k.decorations.append(f"OpDecorate {name} SpecId {number}")
        zero = k.constant(scalar, 0)
        vector = k.declare(
            f"%v{scalar}", f"OpSpecConstantComposite {k.type(scalar + 'x3')} {zero} {name} {zero}"
        )
        negate = "FNegate" if scalar[0] == "f" else "SNegate"
        minus = k.declare(f"%m{scalar}", f"OpSpecConstantOp {k.type(scalar)} {negate} {name}")
        picked = k.declare(f"%p{scalar}", f"OpSpecConstantOp {k.type(scalar)} CompositeExtract {vector} 1")
        for label, value in (("constant", name), ("negated", minus), ("extracted", picked)):
            k.store(f"{scalar} {label}", scalar, k.emit("CopyObject", scalar, value))
        k.store(f"{scalar} vector", f"{scalar}x3", k.emit("CopyObject", f"{scalar}x3", vector))
    for name, value, number in (("%yes", "True", TRUE), ("%no", "False", FALSE)):
        k.declare(name, f"OpSpecConstant{value} {k.type('bool')}")
        k.decorations.append(f"OpDecorate {name} SpecId {number}")
        k.store(name, "bool", k.emit("CopyObject", "bool", name))
    i32 = k.type("i32")
    for name, value, number in (("%length", 3, LENGTH), ("%items", 2, ITEMS)):
        k.declare(name, f"OpSpecConstant {i32} {value}")
        k.decorations.append(f"OpDecorate {name} SpecId {number}")
    k.declare("%array", f"OpTypeArray {i32} %length")
    k.declare("%parray", "OpTypePointer Function %array")
    k.variables.append("%memory = OpVariable %parray Function")
    k.declare("%last", f"OpSpecConstantOp {i32} ISub %length {k.constant('i32', 1)}")
    place = k.emit("AccessChain", "Function*i32", "%memory", "%last")
    k.emit("Store", None, place, "%last")
    k.store("last", "i32", k.emit("Load", "i32", place))
    # Two constants with one SpecId get the same value.
    for name in ("%first", "%second"):
        k.declare(name, f"OpSpecConstant {i32} 5")
        k.decorations.append(f"OpDecorate {name} SpecId {TWICE}")
        k.store(name, "i32", k.emit("CopyObject", "i32", name))
    one = k.constant("i32", 1)
    k.modes.append(f"OpExecutionModeId %k LocalSizeId %items {one} {one}")
    return k


@pytest.fixture(scope="module")
def context(opencl):
    made = opencl.context()
    yield made
    opencl.ok("clReleaseContext", made)


@pytest.fixture
def program(opencl, context):
    data = module().module()
    made = opencl.make("clCreateProgramWithIL", context, data, len(data))
    yield made
    opencl.ok("clReleaseProgram", made)


def run(opencl, context, program, local: int = 2) -> dict:
    """{label: result} of a build."""
    opencl.build(program)
    k = module()
    kernel = opencl.make("clCreateKernel", program, b"k")
    queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    out = (ctypes.c_uint8 * k.out_size)()
    buffer = opencl.make("clCreateBuffer", context, 0, len(out), None)
    for index in range(2):
        opencl.ok("clSetKernelArg", kernel, index, 8, ctypes.c_uint64(buffer))
    group = opencl.words(
        "clGetKernelWorkGroupInfo", kernel, opencl.device(), cl.CL_KERNEL_COMPILE_WORK_GROUP_SIZE
    )
    assert group == [local, 1, 1]
    opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [local], [local], 0, None, None)
    opencl.ok("clEnqueueReadBuffer", queue, buffer, cl.CL_TRUE, 0, len(out), out, 0, None, None)
    for kind, handle in (("MemObject", buffer), ("CommandQueue", queue), ("Kernel", kernel)):
        opencl.ok(f"clRelease{kind}", handle)
    data = np.frombuffer(out, np.uint8)
    return {result.label: result.of(data, k.items)[0].copy() for result in k.results}


def check(results: dict, values: dict) -> None:
    for scalar, value in values.items():
        dtype = DTYPES[scalar]
        wanted = np.array(value, dtype)
        assert results[f"{scalar} constant"].tobytes() == wanted.tobytes(), scalar
        assert results[f"{scalar} extracted"].tobytes() == wanted.tobytes(), scalar
        with np.errstate(over="ignore"):
            assert results[f"{scalar} negated"].tobytes() == (-wanted).astype(dtype).tobytes(), scalar
        assert results[f"{scalar} vector"].tolist() == [0, wanted.tolist(), 0], scalar


def test_defaults(opencl, context, program):
    results = run(opencl, context, program)
    check(results, {scalar: default for scalar, (_, default, _) in SCALARS.items()})
    assert results["%yes"] == 1 and results["%no"] == 0
    assert results["last"] == 2 and results["%first"] == results["%second"] == 5


def test_every_type(opencl, context, program):
    for scalar, (number, _, value) in SCALARS.items():
        data = ctypes.create_string_buffer(struct.pack(f"<{FORMATS[scalar]}", value))
        opencl.ok(SET, program, number, struct.calcsize(FORMATS[scalar]), data)
    # "A value of zero will set the specialization constant to false; any other value will set it to true."
    opencl.ok(SET, program, TRUE, 1, ctypes.c_uint8(0))
    opencl.ok(SET, program, FALSE, 1, ctypes.c_uint8(200))
    opencl.ok(SET, program, LENGTH, 4, ctypes.c_uint32(70))
    opencl.ok(SET, program, ITEMS, 4, ctypes.c_uint32(8))
    opencl.ok(SET, program, TWICE, 4, ctypes.c_uint32(6))
    results = run(opencl, context, program, 8)
    check(results, {scalar: value for scalar, (_, _, value) in SCALARS.items()})
    assert results["%yes"] == 0 and results["%no"] == 1
    assert results["last"] == 69 and results["%first"] == results["%second"] == 6


def test_errors(opencl, context, program):
    sizes = {number: struct.calcsize(FORMATS[scalar]) for scalar, (number, _, _) in SCALARS.items()}
    value = (ctypes.c_uint8 * 16)()
    for number, right in {**sizes, TRUE: 1, FALSE: 1, LENGTH: 4}.items():
        for size in (0, 1, 2, 4, 8, 16):
            status = cl.CL_SUCCESS if size == right else cl.CL_INVALID_VALUE
            assert opencl.call(SET, program, number, size, value) == status, (number, size)
        assert opencl.fails(SET, program, number, right, None) == cl.CL_INVALID_VALUE
    for unknown in (0, 3, 9, 16, 23, 0xFFFFFFFF):
        assert opencl.fails(SET, program, unknown, 4, value) == cl.CL_INVALID_SPEC_ID
    assert opencl.fails(SET, context, 10, 1, value) == cl.CL_INVALID_PROGRAM
    assert opencl.fails(SET, None, 10, 1, value) == cl.CL_INVALID_PROGRAM
    source = opencl.program(context, "kernel void k() {}")
    assert opencl.fails(SET, source, 10, 1, value) == cl.CL_INVALID_PROGRAM
    opencl.ok("clReleaseProgram", source)


def test_big_endian_modules(opencl, context):
    words = module().module()
    data = struct.pack(f">{len(words) // 4}I", *struct.unpack(f"<{len(words) // 4}I", words))
    made = opencl.make("clCreateProgramWithIL", context, data, len(data))
    opencl.ok(SET, made, 10, 1, ctypes.c_uint8(9))
    results = run(opencl, context, made)
    assert results["i8 constant"] == 9 and results["i64 constant"] == 1 << 40
    opencl.ok("clReleaseProgram", made)
