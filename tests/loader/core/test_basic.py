"""Kernels as simple programs use them: arguments of every kind, ids, copies of groups, host memory."""

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

from .session import CL3, Local

SCALARS = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32,
    "uint": np.uint32, "long": np.int64, "ulong": np.uint64, "float": np.float32, "double": np.float64,
}  # fmt: skip


@pytest.mark.parametrize("type_", SCALARS)
def test_arguments_by_value(session, type_):
    """Scalars and vectors of all sizes between one another: each is where the kernel looks for it."""
    dtype, sizes = SCALARS[type_], (1, 2, 3, 4, 8, 16)
    names = [f"{type_}{size if size > 1 else ''}" for size in sizes]
    parameters = ", ".join(f"{name} v{size}" for name, size in zip(names, sizes, strict=True))
    stores = "out[0] = v1;" + "".join(
        f"vstore{n}(v{n}, 0, out + {sum(sizes[:k])});" for k, n in enumerate(sizes) if k
    )
    values = np.arange(1, 1 + sum(sizes)).astype(dtype) * dtype(3)
    parts = np.split(values, np.cumsum(sizes)[:-1])
    parts[2] = np.append(parts[2], dtype(0))  # three components take the room of four (6.3.5)
    source = f"kernel void k(global {type_} *out, {parameters}) {{ {stores} }}"
    assert np.array_equal(session.compute(source, 1, dtype, sum(sizes), *parts), values)


def test_structures_by_value(session):
    source = """
        typedef struct { char c; double d; short s[3]; float4 v; } inner;
        typedef struct { int n; inner i; uchar last; } outer;
        kernel void k(global double *out, outer o, char after) {
          out[0] = o.n; out[1] = o.i.c; out[2] = o.i.d; out[3] = o.i.s[2]; out[4] = o.i.v.w; out[5] = o.last;
          out[6] = after; out[7] = sizeof(inner) * 1000 + sizeof(outer);
        }"""
    inner = np.dtype(
        {
            "names": ["c", "d", "s", "v"],
            "formats": ["i1", "f8", ("<i2", 3), ("<f4", 4)],
            "offsets": [0, 8, 16, 32],
            "itemsize": 48,
        }
    )
    outer = np.dtype(
        {"names": ["n", "i", "last"], "formats": ["<i4", inner, "u1"], "offsets": [0, 16, 64], "itemsize": 80}
    )
    value = np.zeros(1, outer)
    value["n"], value["last"] = -5, 250
    value["i"]["c"], value["i"]["d"], value["i"]["s"], value["i"]["v"] = 7, 2.5, [1, 2, -3], [0, 0, 0, 8.5]
    found = session.compute(source, 1, np.float64, 8, value, np.int8(-9))
    assert list(found) == [-5, 7, 2.5, -3, 8.5, 250, -9, 48080]


def test_arguments_keep_their_values_between_launches(session):
    """clSetKernelArg holds until the next one (5.9.2), and a launch has the values of its enqueueing."""
    kernel = session.kernel("kernel void k(global int *out, int place, int value) { out[place] = value; }")
    out = session.buffer(np.zeros(4, np.int32))
    session.launch(kernel, 1, out, np.int32(0), np.int32(10))
    for place in (1, 2, 3):
        session.cl.ok("clSetKernelArg", kernel, 1, 4, np.int32(place).tobytes())
        session.cl.ok("clEnqueueNDRangeKernel", session.queue, kernel, 1, None, [1], None, 0, None, None)
    assert list(session.read(out, np.int32, 4)) == [10] * 4


def test_several_arguments_in_local_memory(session):
    source = """
        kernel void k(global int *out, local int *a, local char *b, local double *c) {
          int i = get_local_id(0);
          a[i] = i; b[i] = i + 1; c[i] = i + 2;
          barrier(CLK_LOCAL_MEM_FENCE);
          int o = get_local_size(0) - 1 - i;
          out[get_global_id(0)] = a[o] * 10000 + b[o] * 100 + (int)c[o];
        }"""
    found = session.compute(source, 32, np.int32, 32, Local(64), Local(16), Local(128), local=16)
    back = np.arange(16)[::-1]
    assert np.array_equal(found.reshape(2, 16), [back * 10000 + (back + 1) * 100 + back + 2] * 2)


def test_constants(session):
    """Tables of the program, and a constant argument (6.7.3)."""
    source = """
        constant int table[5] = {2, 3, 5, 7, 11};
        constant struct { float f[2]; char c; } nested[2] = {{{1.5f, 2.5f}, 3}, {{4.5f, 5.5f}, 6}};
        kernel void k(global float *out, constant float *scale) {
          int i = get_global_id(0);
          out[i] = table[i % 5] * scale[i] + nested[i % 2].f[i % 3 == 0] + nested[1 - i % 2].c;
        }"""
    scale = np.linspace(-1, 1, 64).astype(np.float32)
    i = np.arange(64)
    expected = np.array([2, 3, 5, 7, 11], np.float32)[i % 5] * scale
    expected += np.array([[1.5, 2.5], [4.5, 5.5]])[i % 2, (i % 3 == 0).astype(int)] + np.array([6, 3])[i % 2]
    found = session.compute(source, 64, np.float32, 64, session.buffer(scale, cl.CL_MEM_READ_ONLY))
    assert np.allclose(found, expected, rtol=1e-6)


def test_work_item_functions(session):
    """Of a launch with offsets in three dimensions, and outside of them (6.15.1)."""
    source = """
        kernel void k(global uint *out) {
          size_t at = 0, n = 0, each = 14;
          for (int d = 2; d >= 0; d--) at = at * get_global_size(d) + get_global_id(d) - get_global_offset(d);
          out += at * each;
          out[n++] = get_work_dim();
          for (uint d = 0; d < 3; d++)
            out[n++] = get_global_id(d) * 100 + get_local_id(d) * 10 + get_group_id(d);
          for (uint d = 0; d < 3; d++) out[n++] = get_num_groups(d) * 10 + get_local_size(d);
          out[n++] = get_global_id(3); out[n++] = get_global_size(3); out[n++] = get_local_size(7);
          out[n++] = get_num_groups(4); out[n++] = get_group_id(3) + get_local_id(3) + get_global_offset(3);
          out[n++] = get_global_linear_id(); out[n++] = get_local_linear_id();
        }"""
    shape, local, offset = (8, 6, 4), (4, 3, 2), (100, 20, 3)
    found = session.compute(source, shape, np.uint32, 8 * 6 * 4 * 14, local=local, offset=offset).reshape(
        -1, 14
    )
    for at, row in enumerate(found):
        ids = (at % 8, at // 8 % 6, at // 48)
        inside = [i % size for i, size in zip(ids, local, strict=True)]
        expected = [3]
        for d in range(3):
            expected.append((ids[d] + offset[d]) * 100 + inside[d] * 10 + ids[d] // local[d])
        expected += [24, 23, 22, 0, 1, 1, 1, 0, at, inside[0] + inside[1] * 4 + inside[2] * 12]
        assert list(row) == expected


@pytest.mark.parametrize("type_", ["char", "float", "int3", "double4", "ushort16"])
def test_copies_of_a_group(session, type_):
    """async_work_group_copy and its strided form, both ways; the other elements stay (6.15.11)."""
    source = f"""
        kernel void k(global {type_} *out, global const {type_} *in, local {type_} *a, local {type_} *b) {{
          int n = 24, g = get_group_id(0);
          event_t e = async_work_group_copy(a, in + g * n, n, 0);
          e = async_work_group_strided_copy(b, in + g, n, 3, e);
          wait_group_events(1, &e);
          for (int i = get_local_id(0); i < n; i += get_local_size(0)) a[i] += b[i];
          barrier(CLK_LOCAL_MEM_FENCE);
          event_t f[2] = {{ async_work_group_copy(out + g * 3 * n, a, n, 0),
                            async_work_group_strided_copy(out + (g * 3 + 1) * n, a, n / 2, 2, 0) }};
          wait_group_events(2, f);
        }}"""
    base = type_.rstrip("0123456789")
    size = {"": 1, "3": 4}.get(type_[len(base) :]) or int(type_[len(base) :])
    data = (np.arange(100 * size) % 100).astype(SCALARS[base])
    room = 24 * size * data.itemsize
    found = session.compute(
        source, 14, data.dtype, 2 * 72 * size, session.buffer(data), Local(room), Local(room), local=7
    ).reshape(2, 72, size)
    data, used = data.reshape(-1, size), 3 if type_ == "int3" else size
    for g in range(2):
        sums = data[g * 24 : g * 24 + 24] + data[g : g + 72 : 3]
        expected = np.zeros((72, size), data.dtype)
        expected[:24], expected[24:48:2] = sums, sums[:12]
        assert np.array_equal(found[g, :, :used], expected[:, :used])


@pytest.mark.parametrize("flag", [cl.CL_MEM_USE_HOST_PTR, cl.CL_MEM_ALLOC_HOST_PTR])
def test_host_memory(session, flag):
    """What is mapped has what the kernel wrote, and the kernel sees what was written there (5.2.4)."""
    import ctypes

    data = np.arange(256, dtype=np.int32)
    pointer = data.ctypes.data if flag == cl.CL_MEM_USE_HOST_PTR else None
    handle = session.made(
        "clReleaseMemObject", session.cl.make("clCreateBuffer", session.context, flag, 1024, pointer)
    )
    kernel = session.kernel("kernel void k(global int *p) { p[get_global_id(0)] *= 3; }")
    where, how = (0, 1024, 0, None, None), cl.CL_MAP_READ | cl.CL_MAP_WRITE

    def mapped():
        address = session.cl.make("clEnqueueMapBuffer", session.queue, handle, cl.CL_TRUE, how, *where)
        return address, np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_int32)), (256,))

    address, view = mapped()
    if pointer:
        assert address == pointer
    view[:] = np.arange(256) + 1
    session.cl.ok("clEnqueueUnmapMemObject", session.queue, handle, address, 0, None, None)
    session.cl.ok("clSetKernelArg", kernel, 0, 8, ctypes.c_uint64(handle))
    session.cl.ok("clEnqueueNDRangeKernel", session.queue, kernel, 1, None, [256], None, 0, None, None)
    address, view = mapped()
    assert np.array_equal(view, 3 * (np.arange(256) + 1))
    session.cl.ok("clEnqueueUnmapMemObject", session.queue, handle, address, 0, None, None)
    session.finish()


def test_sizes_and_alignments_of_types(session):
    """6.3: the sizes of types are the same on every device; vectors are aligned to their size."""
    types = [f"{name}{size}" for name in SCALARS for size in ("", 2, 3, 4, 8, 16)] + [
        "half",
        "size_t",
        "ptrdiff_t",
    ]
    types += ["global int *", "event_t *"]
    source = "kernel void k(global int *out) {"
    for index, type_ in enumerate(types):
        source += f"{{ struct s {{ char c; {type_} t; }}; out[{2 * index}] = sizeof({type_});"
        source += f"out[{2 * index + 1}] = (int)__builtin_offsetof(struct s, t); }}"
    found = session.compute(source + "}", 1, np.int32, 2 * len(types)).reshape(-1, 2)
    for type_, (size, offset) in zip(types, found, strict=True):
        base = type_.rstrip("0123456789")
        expected = np.dtype(SCALARS[base]).itemsize if base in SCALARS else 2 if type_ == "half" else 8
        expected *= {"": 1, "3": 4}.get(type_[len(base) :]) or int(type_[len(base) :])
        assert (size, offset) == (expected, expected), type_


def test_a_kernel_calls_a_kernel(session):
    """6.8: "a kernel function may be called by another" as any function."""
    source = """
        kernel void twice(global int *p) { p[get_global_id(0)] *= 2; }
        kernel void k(global int *p) { p[get_global_id(0)] = get_global_id(0) + 1; twice(p); twice(p); }"""
    assert np.array_equal(session.compute(source, 100, np.int32, 100), 4 * np.arange(1, 101))


def test_kernels_without_arguments_and_empty_programs(session):
    kernel = session.kernel("kernel void k(void) {}")
    session.launch(kernel, (3, 5))
    program = session.program("", CL3)
    assert session.cl.text("clGetProgramInfo", program, cl.CL_PROGRAM_KERNEL_NAMES) == ""
    session.finish()


@pytest.mark.parametrize("bits", [5, 37, 64, 100, 128])
def test_integers_of_other_sizes(session, bits):
    """clang's _BitInt, an extension of its own, by way of SPV_INTEL_arbitrary_precision_integers."""
    source = f"""kernel void k(global ulong *out) {{
      unsigned _BitInt({bits}) a = 987654321987654321 * (get_global_id(0) + 1), b = 29, c = a * b;
      out[get_global_id(0) * 3] = a / b;
      out[get_global_id(0) * 3 + 1] = c;
      out[get_global_id(0) * 3 + 2] = c >> {bits - 3};
    }}"""
    found = session.compute(source, (9,), np.uint64, 27).reshape(-1, 3)
    mask = (1 << bits) - 1
    for i, row in enumerate(found):
        a = 987654321987654321 * (i + 1) % (1 << 64) & mask
        c = a * (29 & mask) & mask
        assert row.tolist() == [a // (29 & mask), c % (1 << 64), c >> (bits - 3)]
