"""Blocks that programs enqueue: what the preloaded library has clang write, and how links name it."""

from __future__ import annotations

import pytest

from cl_driver.frontend import clang, opencl_c
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


def compiled(options: str) -> bytes:
    result = opencl_c.compile(SOURCE.encode(), parse(options), language=clang.device_language())
    assert result.spirv is not None, result.log
    return result.spirv


@pytest.mark.parametrize("options", OPTIONS)
def test_blocks_become_entry_points(options):
    module = link.link([reader.read(compiled(options))])
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
