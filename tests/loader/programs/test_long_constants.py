"""Constants of more parts than an instruction of SPIR-V has words."""

from __future__ import annotations

import ctypes
import struct

import pytest

from cl_driver.api.generated import enums as cl
from cl_driver.frontend import clang, find_clang, long_composites, opencl_c
from cl_driver.frontend.options import parse
from tests.marks import few, more

ITEMS = 64


def values(count: int, head: int, step: int = 7) -> list[int]:
    """Numbers below 200; `head` where each further instruction begins, where clang renames it."""
    found = [(i * step + 3) % 190 + 10 for i in range(count)]
    for place in (65532, *range(65532 + 65534, count, 65534)):
        found[place : place + 1] = [head] if place < count else []
    return found


def table(name: str, type_: str, numbers: list[int], qualifier: str = "constant") -> str:
    return f"{qualifier} {type_} {name}[{len(numbers)}] = {{{','.join(map(str, numbers))}}};\n"


@pytest.fixture
def run(opencl):
    """run(source, options, ints, names): what each kernel makes of a buffer of so many ints."""

    def do(source: str, ints: int, options: str = "", names=("k",), items: int = ITEMS) -> list[list[int]]:
        context, out = opencl.context(), []
        program = opencl.program(context, source)
        opencl.build(program, options)
        queue = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
        for name in names:
            kernel = opencl.make("clCreateKernel", program, name.encode())
            array = (ctypes.c_int32 * ints)(*[-7] * ints)
            size = ctypes.sizeof(array)
            buffer = opencl.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, size, array)
            opencl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(buffer))
            opencl.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [items], None, 0, None, None)
            opencl.ok("clEnqueueReadBuffer", queue, buffer, 1, 0, size, array, 0, None, None)
            opencl.ok("clReleaseMemObject", buffer)
            opencl.ok("clReleaseKernel", kernel)
            out.append(list(array))
        opencl.ok("clReleaseCommandQueue", queue)
        opencl.ok("clReleaseProgram", program)
        opencl.ok("clReleaseContext", context)
        return out

    return do


@pytest.mark.parametrize("type_", few(["int", "uchar", "short", "long", "float"], 2))
@pytest.mark.parametrize("count", few([65533, 65532, 200000], 1))
def test_tables(run, type_, count):
    """The number where the second instruction begins is a constant of the kernel, too."""
    numbers = values(count, 5)
    first = max(0, min(65532, count - 1) - 5)
    (found,) = run(
        f"{table('t', type_, numbers)} kernel void k(global int *o) {{ int i = get_global_id(0);"
        f"o[i] = t[i * {count // ITEMS}] + 5;"
        f"o[{ITEMS} + i] = i < 6 ? t[{first} + i] * 5 : t[{count - 1}]; }}",
        2 * ITEMS,
    )
    assert found[:ITEMS] == [numbers[i * (count // ITEMS)] + 5 for i in range(ITEMS)]
    assert found[ITEMS : ITEMS + 6] == [numbers[first + i] * 5 for i in range(6)]
    assert {*found[ITEMS + 6 :]} == {numbers[-1]}


def test_several_tables_in_several_kernels(run):
    one, two = values(80000, 5), values(150000, 0, 11)
    source = table("t", "int", one) + table("u", "int", two) + table("v", "short", one)
    source += """
        kernel void k(global int *o) { int i = get_global_id(0); o[i] = t[i * 1000] + u[i * 2000] + 5; }
        kernel void l(global int *o) { int i = get_global_id(0); o[i] = u[65500 + i] + v[65500 + i] * 5; }"""
    k, m = run(source, ITEMS, names=("k", "l"))
    assert k == [one[i * 1000] + two[i * 2000] + 5 for i in range(ITEMS)]
    assert m == [two[65500 + i] + one[65500 + i] * 5 for i in range(ITEMS)]


def test_tables_of_structures_and_of_global_memory(run):
    """A structure of arrays, which itself has few constituents."""
    numbers = values(70000, 6)
    text = ",".join(map(str, numbers))
    source = f"typedef struct {{ int a[70000]; char b; }} S; constant S t = {{{{{text}}}, 4}};\n"
    more = values(70000, 6, 11)
    source += table("g", "int", more, "global")
    source += """kernel void k(global int *o) { int i = get_global_id(0);
        o[i] = t.a[i + 65500] * 3 + t.b + g[i + 65510]; g[i + 65510] = 1; }"""
    (found,) = run(source, ITEMS, "-cl-std=CL3.0")
    assert found == [numbers[i + 65500] * 3 + 4 + more[i + 65510] for i in range(ITEMS)]


# Tables of what has several numbers: the type, the text of element i, and what makes 4 * i of it.
ELEMENTS = {
    "arrays": ("typedef int T[2];", "{{{i}, {i} * 3}}", "e[0] + e[1]"),
    "structures": ("typedef struct {{ int a; float b; }} T;", "{{{i}, {i} * 3}}", "e.a + (int)e.b"),
    "bytes and gaps": (
        "typedef struct {{ uchar a; int b; short c; }} T;",
        "{{{i} % 100, {i} * 4, -({i} % 100)}}",
        "e.a + e.b + e.c",
    ),
    "packed": (
        "typedef struct __attribute__((packed)) {{ uchar a; int b; }} T;",
        "{{{i} % 100, {i} * 4 - {i} % 100}}",
        "e.a + e.b",
    ),
    "nested": (
        "typedef struct {{ struct {{ short a[3]; long b; }} c; double d; }} T;",
        "{{{{{{1, 2, {i} % 100}}, {i} * 4 - 4000000000L}}, 4e9 - {i} % 100 - 3}}",
        "(int)(e.c.a[0] + e.c.a[1] + e.c.a[2] + e.c.b + (long)e.d)",
    ),
    "vectors": ("typedef int3 T;", "(int3)({i}, {i}, {i} * 2)", "e.x + e.y + e.z"),
    "halves": (
        "typedef struct {{ half a; int b; }} T;",
        "{{1, {i} * 4 - 1}}",
        "(int)vload_half(0, &e.a) + e.b",
    ),
}


MANY, ENOUGH = 66_000, 5_000  # more than an instruction has room for; that clang's back end does not get


@pytest.mark.parametrize(
    ("name", "count", "qualifier", "options"),
    [
        more("structures", MANY, "constant", ""),
        ("nested", ENOUGH, "constant", "-g"),
        *(more(name, ENOUGH, "constant", "") for name in ELEMENTS),
        *(more(name, ENOUGH, "global", "") for name in ELEMENTS),
        more("arrays", MANY, "constant", "-cl-opt-disable"),
    ],
)
def test_tables_of_arrays_and_structures(run, name, count, qualifier, options):
    declaration, element, value = ELEMENTS[name]
    text = ",".join(element.format(i=i) for i in range(count))
    source = declaration.format() + f"{qualifier} T t[{count}] = {{{text}}};\n"
    source += f"#define e (*p)\nint of({qualifier} const T *p) {{ return {value}; }}\n"
    source += (
        f"kernel void k(global int *o) {{ int i = get_global_id(0); o[i] = of(&t[i * {count // ITEMS}]);"
    )
    source += f"o[{ITEMS} + i] = of(&t[{count - ITEMS} + i]); }}"
    (found,) = run(source, 2 * ITEMS, f"-cl-std=CL3.0 {options}")
    places = [*(i * (count // ITEMS) for i in range(ITEMS)), *range(count - ITEMS, count)]
    assert found == [4 * i for i in places]


def test_a_table_of_structures_that_kernels_write_to(run):
    count = 20_000
    text = ",".join(f"{{{i}, {i} + 1}}" for i in range(count))
    source = f"""typedef struct {{ int a; float b; }} S; global S t[{count}] = {{{text}}};
        kernel void w(global int *o) {{ int i = get_global_id(0); t[i + 5000].b = 7; t[i].a += 2; }}
        kernel void k(global int *o) {{
            int i = get_global_id(0); o[i] = t[i + 5000].b; o[i + {ITEMS}] = t[i].a;
        }}"""
    _, found = run(source, 2 * ITEMS, "-cl-std=CL3.0", ("w", "k"))
    assert found == [7] * ITEMS + [i + 2 for i in range(ITEMS)]


@pytest.mark.parametrize("ends", few([(1, 2, 1), (1, 2), (1, 2, 3), (1, 2, 2), (1, 1, 2), (1, 1)], 1))
@pytest.mark.parametrize("qualifier", ["constant", "global"])
def test_tables_that_differ_behind_the_first_instruction(run, qualifier, ends):
    """clang writes the instruction that is the same in all of them once."""
    head, names = values(65532, 5), [f"t{k}" for k in range(len(ends))]
    source = table("other", "int", [7, *head[1:], 2], qualifier)  # it ends as one of them does
    source += "".join(
        table(name, "int", [*head, end], qualifier) for name, end in zip(names, ends, strict=True)
    )
    stores = "".join(f"o[{4 * k} + i] = {name}[65529 + i];" for k, name in enumerate(names))
    source += (
        f"kernel void k(global int *o) {{ int i = get_global_id(0); {stores} o[60 + i] = other[65532 - i]; }}"
    )
    (found,) = run(source, ITEMS, "-cl-std=CL3.0", items=4)
    assert found[: 4 * len(ends)] == [n for end in ends for n in (*head[-3:], end)]


def test_a_million_numbers(run):
    numbers = values(1_000_000, 5)
    (found,) = run(
        table("t", "int", numbers)
        + "kernel void k(global int *o) { int i = get_global_id(0); o[i] = t[i * 15000 + 40000]; }",
        ITEMS,
    )
    assert found == [numbers[i * 15000 + 40000] for i in range(ITEMS)]


@pytest.mark.parametrize("options", ["", "-cl-opt-disable", "-g"])
@pytest.mark.parametrize("bytes_", few([65536, 131072 - 12], 1))
def test_loops_that_store_one_byte_everywhere(run, bytes_, options):
    """clang makes llvm.memset of them, and its back end a constant."""
    count = bytes_ // 4
    (found,) = run(
        f"kernel void k(global int *o) {{ for (int i = 0; i < {count}; i++) o[i] = 0x41414141; }}",
        count + 3,
        options,
        items=1,
    )
    assert found == [0x41414141] * count + [-7] * 3


PRIVATE = """
kernel void k(global int *o) {
    char a[80000];
    __builtin_memset(a, 3, sizeof a);
    a[o[3] + 10] = 9;
    int sum = 0;
    for (int i = 0; i < 80000; i++) sum += a[i];
    o[0] = sum;
}
"""


@pytest.mark.parametrize("options", ["", "-cl-opt-disable"])
def test_memory_that_a_program_sets_itself(run, options):
    """Here is no loop that clang could leave as it is."""
    assert run(PRIVATE, 5, options, items=1)[0][0] == 80000 * 3 + 6


def test_a_constant_whose_words_are_miscounted_is_mended():
    found = find_clang.find()
    command = [*clang.base_arguments(found), "-cl-std=CL1.2", "-O2", "-c", "-o", "-", "-"]
    done = clang.run(found, command, PRIVATE.replace("o[3]", "4 * o[3]").encode(), {}, None)
    assert done.status == 0 and long_composites.are_cut(done.output)
    mended = long_composites.mended(done.output)
    assert not long_composites.are_cut(mended) and long_composites.mended(mended) == mended
    words, sizes, p = struct.unpack(f"<{len(mended) // 4}I", mended), [], 5
    while p < len(words):
        if words[p] & 0xFFFF in (44, 6091) and words[p] >> 16 > 1000:
            sizes.append(words[p] >> 16)
        p += words[p] >> 16
    assert p == len(words) and sizes == [0xFFFF, 80000 - 65532 + 1]
    assert opencl_c.compile(PRIVATE.encode(), parse("")).spirv
