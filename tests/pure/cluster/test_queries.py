"""What a worker's device answers: the driver's answers without what cannot be done from elsewhere."""

from __future__ import annotations

import struct

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.cluster import queries
from cl_driver.device import capabilities, remote


def name_versions(*names: str) -> bytes:
    return b"".join(struct.pack("<I64s", 1 << 22, name.encode()) for name in names)


def driver(query: int) -> bytes:
    """A driver that has everything."""
    if query in (cl.CL_DEVICE_EXTENSIONS_WITH_VERSION, cl.CL_DEVICE_OPENCL_C_FEATURES):
        return name_versions("cl_khr_fp64", "cl_khr_subgroups", "__opencl_c_fp64", "__opencl_c_pipes")
    if query == cl.CL_DEVICE_EXTENSIONS:
        return b"cl_khr_fp64 cl_khr_subgroups cl_khr_command_buffer\0"
    if query == cl.CL_DEVICE_NAME:
        return b"A CPU\0"
    if query == cl.CL_DEVICE_VERSION:
        return b"OpenCL 3.1 of a vendor\0"
    if query == cl.CL_DEVICE_NUMERIC_VERSION:
        return struct.pack("<I", 3 << 22 | 1 << 12)
    if query == cl.CL_DEVICE_OPENCL_C_ALL_VERSIONS:
        every = ((1, 2), (2, 0), (3, 0), (3, 1))
        return b"".join(struct.pack("<I64s", i << 22 | j << 12, b"OpenCL C") for i, j in every)
    return struct.pack("<Q", query)


@pytest.mark.parametrize(("cores", "words"), [(1, "1 core"), (64, "64 cores")])
def test_name(cores, words):
    found = queries.answers(driver, "host", cores)
    assert found[cl.CL_DEVICE_NAME] == f"host, {words}: A CPU".encode() + b"\0"


def test_what_is_absent_is_said_to_be():
    found = queries.answers(driver, "host", 1)
    for name in ("SVM_CAPABILITIES", "PIPE_SUPPORT", "PARTITION_PROPERTIES", "MAX_ON_DEVICE_QUEUES"):
        assert set(found[queries.number(name)]) == {0}
    assert found[cl.CL_DEVICE_EXTENSIONS] == b"cl_khr_fp64\0"
    assert found[cl.CL_DEVICE_EXTENSIONS_WITH_VERSION] == name_versions("cl_khr_fp64")
    assert found[cl.CL_DEVICE_OPENCL_C_FEATURES] == name_versions("__opencl_c_fp64")
    assert found[cl.CL_DEVICE_EXECUTION_CAPABILITIES] == struct.pack("<Q", cl.CL_EXEC_KERNEL)
    assert cl.CL_DEVICE_PLATFORM not in found and cl.CL_DEVICE_SUB_GROUP_SIZES_INTEL not in found


def test_version():
    """OpenCL 3.1 has sub-groups, OpenCL C 2.0 pipes and kernels that enqueue kernels."""
    found = queries.answers(driver, "host", 1)
    assert found[cl.CL_DEVICE_VERSION] == b"OpenCL 3.0 of a vendor\0"
    assert found[cl.CL_DEVICE_NUMERIC_VERSION] == struct.pack("<I", 3 << 22)
    assert found[cl.CL_DEVICE_OPENCL_C_ALL_VERSIONS] == struct.pack(
        "<I64sI64s", 1 << 22 | 2 << 12, b"OpenCL C", 3 << 22, b"OpenCL C"
    )


def test_what_the_driver_does_not_have_is_no_query():
    def ask(query: int) -> bytes:
        if query == cl.CL_DEVICE_HALF_FP_CONFIG:
            raise LookupError
        return driver(query)

    found = queries.answers(ask, "host", 1)
    assert cl.CL_DEVICE_HALF_FP_CONFIG not in found
    assert found[cl.CL_DEVICE_LOCAL_MEM_SIZE] == driver(cl.CL_DEVICE_LOCAL_MEM_SIZE)


def test_extensions_are_known_ones():
    rows = capabilities.CAPABILITIES
    assert {name for row in rows for name in row.extensions} >= remote.EXTENSIONS
    assert {name for row in rows for name in row.features} >= remote.FEATURES


@pytest.mark.parametrize(
    ("text", "is_another"),
    [
        (b"kernel void k(global int *x) { x[get_global_id(0)] = __OPENCL_C_VERSION__; }", False),
        (b"#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif", False),
        (b"#if __OPENCL_VERSION__ >= 200\n#endif", True),
        (b"#pragma OPENCL EXTENSION cl_khr_subgroups : enable", True),
        (b"#if defined(__opencl_c_device_enqueue)\n#endif", True),
        (b"#define HAS(x) __opencl_c_##x", True),
        (b'#inclu\\\nde "other.h"', True),
        (b"#ifdef cl_khr_sub\\\r\ngroups\n#endif", True),
    ],
)
def test_another_program(text, is_another):
    assert remote.is_another_program([b"int x;", text]) is is_another


def answers(**changes: bytes) -> list[list]:
    """Of a worker, but for some."""
    table = queries.answers(driver, "host", 4)
    table[cl.CL_DEVICE_MAX_WORK_ITEM_SIZES] = struct.pack("<3Q", 8, 8, 8)
    table[cl.CL_DEVICE_ILS_WITH_VERSION] = name_versions("SPIR-V")
    table |= {queries.number(name): value for name, value in changes.items()}
    return [[query, value] for query, value in table.items()]


@pytest.mark.parametrize(
    ("changes", "joins"),
    [
        ({}, True),
        ({"MAX_COMPUTE_UNITS": struct.pack("<Q", 1), "MAX_CLOCK_FREQUENCY": struct.pack("<Q", 1)}, True),
        ({"GLOBAL_MEM_SIZE": struct.pack("<Q", 1 << 60)}, True),
        ({"GLOBAL_MEM_SIZE": struct.pack("<Q", 1)}, False),
        ({"MAX_WORK_ITEM_SIZES": struct.pack("<3Q", 8, 4, 8)}, False),
        ({"EXTENSIONS": b"cl_khr_fp64 cl_khr_il_program\0"}, True),
        ({"EXTENSIONS": b"\0"}, False),
        ({"SINGLE_FP_CONFIG": struct.pack("<Q", 0)}, False),
    ],
)
def test_who_joins_all_workers(changes, joins):
    """Who has at least what they have answered."""
    whole = queries.of_all([answers(), answers()])
    assert queries.can_join(whole, answers(**changes)) is joins


def test_who_lacks_a_query_does_not_join():
    lacking = [pair for pair in answers() if pair[0] != cl.CL_DEVICE_HALF_FP_CONFIG]
    assert not queries.can_join(queries.of_all([answers()]), lacking)


def test_all_workers():
    """The sum of the cores, the least of limits, what all of them have."""
    tables = [queries.answers(driver, "host", 4) for _ in range(2)]
    one, other = tables
    for table, units, most, bits, sizes in (
        (one, 4, 8192, 0b1011, (9, 5, 7)),
        (other, 12, 1024, 0b0110, (8, 6, 7)),
    ):
        table[cl.CL_DEVICE_MAX_COMPUTE_UNITS] = struct.pack("<I", units)
        table[cl.CL_DEVICE_MAX_WORK_GROUP_SIZE] = struct.pack("<Q", most)
        table[cl.CL_DEVICE_SINGLE_FP_CONFIG] = struct.pack("<Q", bits)
        table[cl.CL_DEVICE_MAX_WORK_ITEM_SIZES] = struct.pack("<3Q", *sizes)
        table[cl.CL_DEVICE_MEM_BASE_ADDR_ALIGN] = struct.pack("<I", most)
        table[cl.CL_DEVICE_ILS_WITH_VERSION] = name_versions("SPIR-V")
    other[cl.CL_DEVICE_EXTENSIONS] = b"cl_khr_il_program\0"
    other[cl.CL_DEVICE_EXTENSIONS_WITH_VERSION] = name_versions("cl_khr_il_program")
    found = dict(queries.of_all([[[q, v] for q, v in table.items()] for table in tables]))
    assert found[cl.CL_DEVICE_MAX_COMPUTE_UNITS] == struct.pack("<I", 16)
    assert found[cl.CL_DEVICE_MAX_WORK_GROUP_SIZE] == struct.pack("<Q", 1024)
    assert found[cl.CL_DEVICE_MEM_BASE_ADDR_ALIGN] == struct.pack("<I", 8192)
    assert found[cl.CL_DEVICE_SINGLE_FP_CONFIG] == struct.pack("<Q", 0b0010)
    assert found[cl.CL_DEVICE_MAX_WORK_ITEM_SIZES] == struct.pack("<3Q", 8, 5, 7)
    assert found[cl.CL_DEVICE_EXTENSIONS] == b"\0" and found[cl.CL_DEVICE_EXTENSIONS_WITH_VERSION] == b""
    assert found[cl.CL_DEVICE_NAME] == b"all 2 workers, 16 cores\0"
