"""Code of a kernel that is made for some of its launches only, when there is one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

from ..builtins.library import library, library_for
from ..codegen.kernel import emit as codegen
from ..codegen.llvm.errors import CodegenError
from ..jit.errors import CompileError
from ..jit.executable import VariantCode
from ..passes import pipeline as passes
from ..passes.cost import short_rows, width
from ..passes.cost.width import has_loops
from ..records import replace
from ..spirv import reflect
from ..spirv.errors import SpirvError
from .pipeline import ITEMS, SOON, WIDE_TEXT, Prepared, about, codegen_options, lower, narrow, object_of
from .required_rows import lanes_of_any_size, requires_short_rows

# The same up to which unrolled loops are for several vectors together: with more, values fill the registers.
_UNROLLED_TEXT = 300_000

# The kinds of such code: each is some points of the data plane's key (kind_of()). Several work-items at a
# time do not suit rows of few, and ids of 2^29 and above ((int)get_global_id(0) counts lanes up only
# below): "narrow". The entry of a kernel whose groups no work-item can tell is for whole vectors of work-
# items, and "rest" for what it leaves. "tiled" is for groups that consist of tiles, "group" for groups of
# one size. "any" is for groups that do not consist of whole vectors, where work-items can tell them.
# "tiled" is for groups that no work-item can tell, too, where the entry has no parts so that it is compiled
# soon, once the kernel has run for a while. "more" is for all launches that the entry suits: what takes so
# much longer to compile that only such a kernel is worth it (PlanOptions.thorough). For formats of images
# there is "any", and "soon", which a launch waits for: one work-item at a time, which takes less time to
# compile, but for large launches of kernels with loops. Long launches go over to "any" before they end.
# What the entry assumes of arguments (apart_args) all of these do but "narrow", "soon", and "overlap",
# which takes launches of which that is not true. "linear" is for groups of one size whose rows leave lanes
# idle: lanes go on in the next row. "short" is what "any" is for groups of which no row fills a vector: none
# is full. "plain" is for launches that do not exchange dimensions, of kernels whose other code does.
# "items" is for all launches of kernels that may be faster with one work-item at a time: nobody waits for it
# as for "narrow", so LLVM takes the time that it takes for entries.
Values: TypeAlias = tuple[tuple[int, bytes], ...]  # PlanOptions.argument_values

KINDS = "narrow", "rest", "tiled", "group", "more", "any", SOON, "overlap", "linear", "short", "plain", ITEMS
NARROW, REST, TILED, GROUP, MORE, ANY, _, OVERLAP, LINEAR, SHORT, PLAIN, _ = KINDS

# struct cld_variant_key: how much work goes into code (enum cld_tier), and which launches it is for, and
# how it takes their work-items (enum cld_launch_shape).
TIERS = FIRST, HOT = "first", "hot"
SHAPES = "items", "rest", "tiles", "group", "linear", "any", "short", "plain"

_KIND_OF = {
    (FIRST, "items"): NARROW,
    (FIRST, "rest"): REST,
    (FIRST, "any"): ANY,
    (FIRST, "short"): SHORT,
    (FIRST, "plain"): PLAIN,
    (HOT, "items"): ITEMS,
    (HOT, "tiles"): TILED,
    (HOT, "group"): GROUP,
    (HOT, "linear"): LINEAR,
    (HOT, "any"): MORE,
}


def kind_of(key: list[int]) -> str:
    """Of KINDS. key: numbers in TIERS and in SHAPES; whether the code may assume that buffers are apart;
    whether the values of arguments are formats of images."""
    number, shape, assumes_apart, has_formats = key
    tier = TIERS[number]
    if has_formats:
        return ANY if tier == HOT else SOON
    if SHAPES[shape] == ANY and not assumes_apart:
        return OVERLAP
    return _KIND_OF[tier, SHAPES[shape]]


def kernel_variant(
    program: Prepared,
    name: str,
    key: list[int],
    size: list[int],
    values: Iterable[tuple[int, bytes]],
    apart: Iterable[int],
) -> VariantCode:
    """An object of such code; see variant(). key: see kind_of(). Raises CompileError."""
    argument_values = tuple((index, data) for index, data in values)
    kind = kind_of(key)
    if kind == SOON and SHAPES[key[1]] == ANY:
        size = [1, 1, 1]
    code = variant(program, name, kind, size, apart, argument_values)
    data = object_of(program.context, code, kind, has_argument_values=bool(argument_values))
    return VariantCode(
        object=data,
        symbol=code.symbol,
        local_static=code.local_static,
        scratch_fixed=code.scratch_fixed,
        scratch_per_item=code.scratch_per_item,
    )


def variant(
    program: Prepared,
    name: str,
    kind: str,
    size: list[int],
    apart: Iterable[int] = (),
    values: Values = (),
) -> codegen.KernelCode:
    """One of KINDS as LLVM IR.

    size: the local size for "group" and "linear"; work-items per vector, and those of a row, and rows, that
    are taken at a time for "rest" and "tiled"; for "soon" zeros, or for a large launch the same of which its
    groups consist, ones for any groups.
    values: PlanOptions.argument_values, for "tiled", "group", "linear", "any" and "soon"; the size of "tiled"
    is then that of the code which it stands for: what is best hardly changes, and what is not would be held
    against the values. apart: KernelInfo.apart_args.
    """
    try:
        options = replace(program.lanes(name), argument_values=values, apart=frozenset(apart))
        if kind == GROUP:
            return group_code(program, name, size, options)
        if kind == LINEAR:
            return linear_code(program, name, size, options)
        if kind == NARROW:
            return lower(program, name, narrow(program, name), fixed=True)
        if kind == ITEMS:
            return lower(program, name, replace(narrow(program, name), apart=frozenset(apart)), fixed=True)
        if kind == ANY:
            return lower(program, name, options, "full and rest")
        if kind == SHORT:
            return lower(program, name, options, "short")
        if kind == PLAIN:
            options = replace(options, apart=frozenset())
            return lower(program, name, options, "full and rest", keeps_ids=True)
        if kind == OVERLAP:
            return lower(program, name, replace(options, apart=frozenset()), "full and rest")
        if kind == SOON:
            return _soon_code(program, name, size, replace(options, unrolls=False))
        if kind == MORE:
            options = replace(options, thorough=True)
            code = lower(program, name, options, "full and rest", hot=True)
            if code.size > _UNROLLED_TEXT:  # what was unrolled fills the registers by itself
                code = lower(program, name, options, "full and rest", fixed=True, hot=True)
            if code.width == 1:
                raise CompileError(code.remark)
            return code
        lanes, columns, rows = size
        parts = rows if rows > 1 else columns // lanes
        options = replace(options, width=lanes, parts=parts, part_axis=int(rows > 1))
        vectors = "rest" if kind == REST else "full and rest"
        code = lower(program, name, options, vectors, fixed=True, hot=kind == TILED)
        if [code.width, *code.tile] != [lanes, columns, rows]:
            raise CompileError(f"no tiles of {columns} by {rows}: {code.remark}")
        return code
    except (passes.PlanError, CodegenError, SpirvError, CompileError) as error:
        raise about(name, error) from error


def _soon_code(
    program: Prepared, name: str, size: list[int], options: passes.PlanOptions
) -> codegen.KernelCode:
    """Code that takes little time to compile, or, for a large launch of a kernel with loops, to compile and
    run, for the formats of images."""
    if not any(size) or not has_loops(reflect.called(program.entry_points[name].function)):
        options = passes.PlanOptions(width=1, argument_values=options.argument_values, unrolls=False)
        return lower(program, name, options, fixed=True)
    if size[0] > 1:
        code = lower(program, name, options, "full", alone=True)
        columns, rows = code.tile
        if not code.has_rest or not (size[1] % columns or size[2] % rows):
            return code
    return lower(program, name, options, "full and rest", alone=True)


def linear_code(
    program: Prepared, name: str, size: list[int], options: passes.PlanOptions
) -> codegen.KernelCode:
    """Code for groups of one size whose rows leave lanes idle: lanes follow the linear local id. CompileError
    where there is nothing to gain."""
    target, lanes = program.context.target, options.width
    if requires_short_rows(program, name):
        lanes = lanes_of_any_size(program, name)
    if not short_rows.has_idle_lanes(size, lanes):
        raise CompileError(f"kernel '{name}': groups of {size} have no rows that leave lanes idle\n")
    how = codegen_options(program.context)
    rows = replace(options, parts=1, part_axis=0, most_text=WIDE_TEXT, native_half=how.has_native_half)
    linear = replace(rows, width=lanes, linear_lanes=True, linear_group=tuple(size))
    point, functions = program.entry_points[name], library_for(target)
    plan, by_rows = (passes.plan(program.module, point, o, functions) for o in (linear, rows))
    if plan.options.width == 1 or not short_rows.linear_lanes_pay(by_rows, plan, target):
        raise CompileError(f"kernel '{name}': lanes across the rows of groups of {size} gain nothing\n")
    code = codegen.emit(plan, how, library(), program.globals, "full")
    if code.size > WIDE_TEXT:
        raise CompileError(f"kernel '{name}': {code.size} bytes of LLVM IR\n")
    return code


def group_code(
    program: Prepared, name: str, size: list[int], options: passes.PlanOptions
) -> codegen.KernelCode:
    """Code for groups of one size in lockstep, as LLVM IR. CompileError where that is not possible, or much
    too long."""
    lanes = short_rows.lanes_that_rows_fill(size[0], options.width)
    parts = math.prod(size) // lanes
    if lanes == 1 or parts > width.MOST_GROUP_PARTS:
        raise CompileError(f"kernel '{name}': groups of {size} cannot be executed in lockstep\n")
    how = codegen_options(program.context)
    options = replace(options, width=lanes, group=tuple(size), parts=parts, part_axis=0)
    options = replace(options, native_half=how.has_native_half, thorough=True)
    try:
        functions = library_for(program.context.target)
        plan = passes.plan(program.module, program.entry_points[name], options, functions)
        code = codegen.emit(plan, how, library(), program.globals)
    except (passes.PlanError, CodegenError) as error:
        raise CompileError(f"kernel '{name}': {error}\n") from error
    if code.size > WIDE_TEXT:
        raise CompileError(f"kernel '{name}': {code.size} bytes of LLVM IR\n")
    return code
