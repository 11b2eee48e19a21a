"""Blocks that programs enqueue: what the preloaded library has clang write, or is written for a clang that
cannot have it, and how links name it."""

from __future__ import annotations

import os

import pytest

from cl_driver.frontend import clang, name_blocks, opencl_c
from cl_driver.frontend.options import parse
from cl_driver.passes.program.device_enqueue import RULES, blocks_of, lower_device_enqueue
from cl_driver.spirv import blocks, link
from cl_driver.spirv.enums import Op
from cl_driver.spirv.reading import reader
from cl_driver.spirv.reflect import called
from cl_driver.spirv.types import TypeTable

OPTIONS = ("-cl-std=CL3.0", "-cl-std=CL3.0 -cl-opt-disable", "-cl-std=CL2.0", "-cl-std=CL3.0 -g")
SOURCE = """
static void inner(global int *p, int n) {
    p[n] = n;
    if (n > 0)
        enqueue_kernel(get_default_queue(), 0, ndrange_1D(1), ^{ inner(p, n - 1); });
}
kernel void k(global int *p, queue_t q) {
    clk_event_t made, marker;
    size_t size[2] = {4, 4};
    enqueue_kernel(q, 1, ndrange_2D(size), 0, 0, &made, ^(local void *a) { p[1] = ((local int *)a)[0]; }, 64);
    enqueue_marker(q, 1, &made, &marker);
    p[0] = get_kernel_work_group_size(^{ p[9] = 4; });
    inner(p, 7);
}
kernel void plain(global int *p) {
    int (^f)(int) = ^(int x) { return x + p[0]; };
    p[2] = f(3);
}
"""


def compiled(options: str, setting: str = "") -> bytes:
    language = clang.device_language()
    result = opencl_c.compile(SOURCE.encode(), parse(options), language=language, clang=setting)
    assert result.spirv is not None, result.log
    return result.spirv


@pytest.fixture(params=["", "ziglang"])
def setting(request) -> str:
    """Of a clang into which the library is loaded, and of one that crashes."""
    if request.param:
        package = pytest.importorskip(request.param)
        return os.path.join(os.path.dirname(package.__file__), "zig")
    return ""


@pytest.mark.parametrize("options", OPTIONS)
def test_blocks_become_entry_points(options, setting):
    module = link.link([reader.read(compiled(options, setting))])
    kernels = [entry.name for entry in module.entry_points if not entry.is_block]
    assert kernels == ["k", "plain"]
    lower_device_enqueue(module, tells=False)
    hosts, own = module.entry_points[:2], module.entry_points[2:]
    assert [entry.name for entry in hosts] == kernels and all(entry.is_block for entry in own)
    assert len(own) == 3  # the one that is only called is none
    assert blocks_of(hosts[0], own) == [0, 1, 2] and blocks_of(hosts[1], own) == []
    locals_of = sorted(len(entry.function.arguments) for entry in own)
    assert locals_of == [1, 1, 2]
    # The block that enqueues itself, and nothing else.
    assert [numbers for entry in own if (numbers := blocks_of(entry, own))] == [
        [number] for number, entry in enumerate(own) if blocks_of(entry, own)
    ]
    left = {i.op for entry in module.entry_points for f in called(entry.function) for b in f.blocks
            for i in b.instructions}  # fmt: skip
    assert left.isdisjoint(RULES) and Op.FunctionCall in left


def test_modules_have_blocks_of_their_own():
    """Two modules may have blocks, of static functions, of one name."""
    table = TypeTable()
    texts = [
        "static void f(global int *p) { "
        f"enqueue_kernel(get_default_queue(), 0, ndrange_1D(1), ^{{ p[0] = {n}; }}); }}"
        f" kernel void k{n}(global int *p) {{ f(p); }}"
        for n in range(2)
    ]
    modules = []
    for text in texts:
        result = opencl_c.compile(text.encode(), parse("-cl-std=CL3.0"), language=clang.device_language())
        modules.append(reader.read(result.spirv, None, table))
    module = link.link(modules)
    names = [entry.name for entry in module.entry_points if entry.is_block]
    assert sorted(names) == [blocks.block_name(n, "__f_block_invoke_kernel") for n in (0, 1)]


def test_names():
    assert blocks.kernel_of_call("__cld__enqueue_kernel_basic.__k_block_invoke_kernel") == (
        "enqueue_kernel_basic",
        "__k_block_invoke_kernel",
    )
    for name in ("__cld_pipe_reserve", "enqueue.kernel", "__cld__enqueue_kernel_basic.", "f"):
        assert blocks.kernel_of_call(name) is None and not blocks.is_call(name)
    assert blocks.is_call(blocks.MARKER)


def test_both_ways_give_the_same():
    """Where no pass runs, by which one has names of labels."""
    zig = os.path.join(os.path.dirname(pytest.importorskip("ziglang").__file__), "zig")
    assert compiled(OPTIONS[1], zig) == compiled(OPTIONS[1])


def test_sizes_alone(setting):
    """Of which no clang crashes."""
    text = """kernel void k(global uint *p) {
        p[0] = get_kernel_work_group_size(^{}) + get_kernel_preferred_work_group_size_multiple(^{}); }"""
    language = clang.device_language()
    made = opencl_c.compile(text.encode(), parse("-cl-std=CL2.0"), language=language, clang=setting)
    assert made.spirv.count(b"__get_kernel_") == made.spirv.count(b"__cld__get_kernel_") > 0


def test_nothing_is_said_of_headers(setting):
    text, headers = b'#include "h.h"\n' + SOURCE.encode(), {"h.h": b"#define H\n"}
    made = opencl_c.compile(text, parse(OPTIONS[0]), headers, clang.device_language(), clang=setting)
    assert made.spirv is not None and made.log == ""


CALL = """\
@literal = addrspace(1) constant { i32, i32, ptr addrspace(4) } { i32 16, i32 8, ptr addrspace(4) null }
@text = constant [12 x i8] c"@9ocl_queue\\00"
declare spir_func i32 @__get_kernel_work_group_size_impl(ptr addrspace(4), ptr addrspace(4))
define spir_func i32 @"f.9ocl_queue"() {
  %1 = call spir_func i32 @__get_kernel_work_group_size_impl(KERNEL, ptr addrspace(4) BLOCK) #1, !dbg !7
  ret i32 %1
}
"""
KERNEL = "ptr addrspace(4) addrspacecast (ptr @g_block_invoke_kernel to ptr addrspace(4))"
BLOCK = "addrspacecast (ptr addrspace(1) @literal to ptr addrspace(4))"


def test_calls_in_text():
    text = name_blocks.named(CALL.replace("KERNEL", KERNEL).replace("BLOCK", BLOCK))
    name = '@"__cld__get_kernel_work_group_size_impl.g_block_invoke_kernel"'
    assert f"%1 = call spir_func i32 {name}(ptr addrspace(4) {BLOCK}, i32 16, i32 8) #1, !dbg !7\n" in text
    assert text.endswith(f"declare spir_func i32 {name}(ptr addrspace(4), i32, i32)\n")
    assert 'define spir_func i32 @"f.9cld_queue"() {' in text and 'c"@9ocl_queue' in text
    assert "@__get_kernel_work_group_size_impl" not in text


@pytest.mark.parametrize(
    "kernel, block", [("ptr addrspace(4) null", BLOCK), (KERNEL, "%x"), (KERNEL, "null")]
)
def test_calls_of_what_is_not_seen_stay(kernel, block):
    text = CALL.replace("KERNEL", kernel).replace("BLOCK", block)
    named = name_blocks.named(text)
    assert named.count("@__get_kernel_work_group_size_impl(") == 2 and "__cld" not in named


def test_text_without_blocks():
    assert name_blocks.named("define spir_kernel void @k() {\n  ret void\n}\n") is None
