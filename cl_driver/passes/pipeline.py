"""The passes in their order: from a kernel of a module to a KernelPlan.

Every step works on the function that the step before left; `run_pass` prints, verifies, times and skips.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Container

from ..records import replace
from ..spirv.enums import Capability, ExecutionMode, Op
from ..spirv.module import EntryPoint, Function, Module, Variable
from ..spirv.types import TypeTable
from .analysis.memory_order import orders_memory
from .analysis.shape import analyse_parts
from .analysis.spin_locks import waiting_loops, waits_for_locks
from .groups.barriers import has_boundary, split_at_barriers
from .groups.item_early_exit import end_rows
from .groups.linear_ids import put_linear_ids
from .groups.lockstep import make_lockstep
from .groups.row_early_exit import mark_row_ends
from .groups.sub_group_turns import let_others_go_on
from .ir.dump import function_text
from .ir.instructions import instruction_count
from .ir.library import Library
from .ir.ops import REGION_END, PassOp
from .ir.plan import KernelPlan, PlanError, PlanOptions, Region
from .ir.plan_summary import describe
from .ir.shapes import ShapeInfo
from .ir.verify import verify
from .loops.byte_fills import fill_by_words
from .loops.hoist_guards import hoist_guards
from .loops.licm import hoist_arithmetic
from .loops.narrow_integers import narrow
from .loops.promote_memory import promote_memory
from .loops.unroll import unroll
from .loops.unroll_arrays import has_unrollable_arrays, unroll_arrays
from .loops.unroll_branches import has_unrollable_branches, unroll_branches
from .loops.unroll_uneven import unroll_uneven
from .lower.argument_values import find_specialisable, specialise_arguments
from .lower.expand_builtins import expand_builtins
from .lower.flush_denormals import flush_denormals
from .lower.half import promote_halves
from .lower.images import image_args, lower_images
from .lower.inline import inline, inlined_size, inlined_sizes
from .lower.kept_calls import kept_functions, private_size, sizes_with_calls
from .lower.mul24 import multiply_plainly
from .lower.named_barriers import has_named_barriers, lower_named_barriers
from .lower.powers import expand_powers
from .lower.subgroups import lower_subgroups
from .lower.toward_zero import round_toward_zero
from .lower.vloadn import load_vectors
from .program.lower import has_variable_arrays
from .scalar.component_stores import store_components
from .scalar.cse import drop_repeated
from .scalar.exchange_loops import replace_exchanges
from .scalar.join_copies import join_copies
from .scalar.late_values import compute_late
from .scalar.passed_arrays import expand_passed_copies
from .scalar.private_arrays import improve_arrays
from .scalar.reducible import make_reducible
from .scalar.scalarise import scalarise
from .scalar.simplify import remove_dead_code, simplify
from .scalar.sroa import promote
from .vectorize.coarsening import copy_parts
from .vectorize.edge_versions import has_edges, version_edges
from .vectorize.few_lanes import send_few_lanes
from .vectorize.guard_versioning import version_guards
from .vectorize.lane_loops import may_send_lanes_alone, send_lanes_alone
from .vectorize.linearise import linearise
from .vectorize.text_size import text_size
from .vectorize.vector_functions import VectorFunctions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "PlanError",
    "PlanOptions",
    "coarsened",
    "inlined_size",
    "plan",
    "size_with_calls",
    "version_by_guards",
]

DEFAULT = PlanOptions()

# Modules that may calculate with halves: those of DPC++ do, and declare no more than the second.
_HALF = {Capability.Float16, Capability.Float16Buffer}

# Instructions from which on LLVM may not get the time to look for what loops need not compute again.
_LONG = 1000

OPTIONAL = ("sroa", "simplify")  # passes that may be left out by PlanOptions.skip

timings: dict[str, float] = {}  # seconds per pass since the program began, for `cl-driver` and benchmarks


def plan(
    module: Module,
    entry_point: EntryPoint,
    options: PlanOptions = DEFAULT,
    library: Library | None = None,
    shared: Container[Variable] = frozenset(),
) -> KernelPlan:
    """Compiles one entry point of a module to a plan. The module is not changed.

    library: see lower/expand_builtins.py; without one, library functions stay calls and instructions at every
    width. shared: program-scope variables whose place only launches know.
    Raises PlanError for what OpenCL forbids: recursion, calls through pointers.
    """
    types = module.types
    options = replace(options, width=useful_width(entry_point, options))
    kept = _kept_functions(module, entry_point, options, shared, library)
    calls = VectorFunctions(module, options) if kept and options.width > 1 else None
    if calls is not None:
        options = calls.options
    still_kept = {callee: callee for callee in kept.values()}
    function = run_pass("inline", inline, options, None, module, entry_point.function, kept, options.check)
    if has_variable_arrays(module):
        from .program.variable_arrays import lower_variable_arrays

        run_pass("variable_arrays", lower_variable_arrays, options, function, types, options.zero_private)
    if options.check:
        from .check.undefined import watch_operations

        run_pass("undefined", watch_operations, options, function)
    if options.check and library is not None:
        from .check.library_calls import expose_calls

        if run_pass("library_calls", expose_calls, options, function, library):
            function = run_pass("inline", inline, options, None, module, function, None, True)
    has_order = orders_memory(function)
    run_pass("vloadn", load_vectors, options, function, types)
    run_pass("mul24", multiply_plainly, options, function)
    has_images = module.images or Capability.ImageBasic in module.capabilities
    if has_images:
        # Before anything looks at instructions: images are memory and arithmetic from here on.
        if run_pass("images", lower_images, options, function, types, library, options.argument_values):
            function = run_pass("inline", inline, options, None, module, function)
    if options.argument_values:
        run_pass("argument_values", specialise_arguments, options, function, types, options.argument_values)
    run_pass("powers", expand_powers, options, function, types)

    flushed = entry_point.modes.get(ExecutionMode.DenormFlushToZero)
    if flushed:
        run_pass("flush_denormals", flush_denormals, options, function, flushed)

    truncated = entry_point.modes.get(ExecutionMode.RoundingModeRTZ)
    if truncated and run_pass("toward_zero", round_toward_zero, options, function, types, truncated, library):
        function = run_pass("inline", inline, options, None, module, function)

    if _HALF & module.capabilities:
        # Before expansion, which then finds functions of float.
        run_pass("half", promote_halves, options, function, types, options.native_half)

    if options.width > 1 and library is not None:
        # As early as possible, so that the library's code is simplified with the program's.
        if run_pass("expand_builtins", expand_builtins, options, function, types, library):
            function = run_pass("inline", inline, options, None, module, function, still_kept)

    if options.sub_groups or Capability.NamedBarrier in module.capabilities:
        run_pass("named_barriers", lower_named_barriers, options, function, types)

    if options.check:
        from .check.private_memory import keep_unwritten

        run_pass("private_memory", keep_unwritten, options, function, types)

    # Before anything is simplified: what sub-groups do becomes arithmetic.
    run_pass("subgroups", lower_subgroups, options, function, types, options.width)

    # Before promotion: dead blocks would only make phis.
    run_pass("simplify", simplify, options, function, types)

    # Promotion makes values of the addresses and conditions that were in variables; the second simplify
    # folds what they turned out to be, and drops the addresses that nobody needs any more.
    run_pass("sroa", promote, options, function, types)
    run_pass("simplify", simplify, options, function, types)
    if options.check:
        from .check.instrument import instrument

        run_pass("instrument", instrument, options, function, types)
    if has_images and options.width > 1:
        run_pass("scalarise", scalarise, options, function, types)
        run_pass("simplify", simplify, options, function, types)
    if options.width > 1 and run_pass("exchange_loops", replace_exchanges, options, function, types):
        run_pass("simplify", simplify, options, function, types)

    run_pass("byte_fills", fill_by_words, options, function, types)
    if options.linear_group:
        run_pass("linear_ids", put_linear_ids, options, function, types, options.linear_group)

    if options.width > 1 and options.most_text and text_size(function) > options.most_text:
        raise PlanError(f"more than {options.most_text} bytes of LLVM IR")

    if options.width > 1 or options.sub_groups or has_boundary(function):
        # Loops must have one header before anything reasons about loops.
        run_pass("reducible", make_reducible, options, function, types)

    if options.width > 1 and not options.sub_groups and waits_for_locks(function):
        if options.remarks is not None:
            options.remarks.choose("width", "its work-items wait for locks that others of a vector may hold")
        if options.group or options.linear_group:
            raise PlanError("work-items that wait for each other's locks")
        alone = replace(options, width=1, parts=1, part_axis=0, calls=None)
        return plan(module, entry_point, alone, library, shared)

    takes_turns = options.sub_groups and run_pass("sub_group_turns", let_others_go_on, options, function)
    if takes_turns:
        options, has_order = replace(options, linear_lanes=True, small_ids=False), True
    result = KernelPlan(entry_point.name, entry_point, module, options, function.arguments, regions=[])
    result.takes_turns = takes_turns
    if options.width == 1:
        result.called_size = sum(map(private_size, kept.values()))
    if not has_order and not options.skip:
        apart = {a for number, a in enumerate(function.arguments) if number in options.apart}
        found = run_pass("promote_memory", promote_memory, options, function, apart)
        result.apart_args = [number for number, a in enumerate(function.arguments) if a in found]
    if run_pass("hoist_guards", hoist_guards, options, function, types):
        run_pass("simplify", simplify, options, function, types)
    if options.width > 1:
        # After promotion: what is still in memory are arrays.
        run_pass("private_arrays", improve_arrays, options, function, types)
    if calls is not None:
        expand_passed_copies([*kept.values(), function], types)
        for callee in kept.values():
            calls.add(callee)
    if options.width > 1 and options.thorough and not kept:
        # LLVM does it at width 1.
        run_pass("unroll_arrays", unroll_arrays, options, function, types)
        run_pass("unroll_branches", unroll_branches, options, function, types)
    elif options.width > 1 and not kept:
        result.has_more = has_unrollable_arrays(function, types) or has_unrollable_branches(function, types)
    if options.width == 1 and not options.skip and not takes_turns:
        run_pass("unroll_uneven", unroll_uneven, options, function, types)
        run_pass("join_copies", join_copies, options, function, types)
        if instruction_count(function) >= _LONG:
            # LLVM does it, too, where the text is not too long for that.
            run_pass("licm", hoist_arithmetic, options, function)
    if options.width > 1:
        run_pass("narrow_integers", narrow, options, function, types)
    result.orders_memory = has_order
    if not options.argument_values:
        # Code for values has no calls, so there is none of what is large.
        result.specialisable_args = [] if kept else image_args(function) + find_specialisable(function)
    elif options.width > 1 and options.unrolls and not options.group:
        run_pass("unroll", unroll_short_loops, options, function, types, 2_400 if has_images else 800)
    if options.group:
        run_pass("lockstep", make_lockstep, options, function, types, options)
    if has_boundary(function):
        # After simplification, so that values that do not matter are not kept across barriers.
        run_pass("barriers", split_at_barriers, options, function, result)
    else:
        result.regions.append(only_region(function))
    for region in result.regions:
        finish_region(region, result)
        if calls is not None:
            run_pass("vector_functions", calls.bind, options, region.function, region.shapes)
    if calls is not None:
        result.vector_functions = calls.made
        result.assumes_small_ids |= any(made.shapes.assumes_small_ids for made in calls.made.values())
        if options.remarks is not None:
            options.remarks.fact("calls", *(made.name for made in calls.made.values()))
    describe(result)
    return result


def _kept_functions(
    module: Module,
    entry_point: EntryPoint,
    options: PlanOptions,
    shared: Container[Variable],
    library: Library | None,
) -> dict[Function, Function]:
    """What a kernel goes on calling: each such function, and what is made of it."""
    has_lanes = options.width > 1
    is_plain = not (options.sub_groups or options.group or options.linear_group or options.parts > 1)
    if has_lanes and not (options.keeps_calls and is_plain and _lanes_may_call(entry_point)):
        return {}
    if options.check or options.argument_values or options.skip or not _may_call(module, entry_point):
        return {}
    made: dict[Function, Function] = {}
    types = module.types
    for original in kept_functions(module, entry_point.function, shared, has_lanes):
        function = run_pass("inline", inline, options, None, module, original, made)
        run_pass("vloadn", load_vectors, options, function, types)
        if has_lanes:
            run_pass("mul24", multiply_plainly, options, function)
        run_pass("powers", expand_powers, options, function, types)
        if has_lanes and library is not None:
            if run_pass("expand_builtins", expand_builtins, options, function, types, library):
                kept = {callee: callee for callee in made.values()}
                function = run_pass("inline", inline, options, None, module, function, kept)
        made[original] = function
        run_pass("simplify", simplify, options, function, types)
        run_pass("sroa", promote, options, function, types)
        run_pass("simplify", simplify, options, function, types)
        drop_lifetimes(function)
        if has_lanes:
            run_pass("private_arrays", improve_arrays, options, function, types)
            run_pass("narrow_integers", narrow, options, function, types)
        if options.sub_groups:
            run_pass("reducible", make_reducible, options, function, types)
            if waiting_loops(function) or has_named_barriers(function):
                return {}  # only kernels themselves let other sub-groups go on
    return made


def _may_call(module: Module, entry_point: EntryPoint) -> bool:
    """Whether functions are as they would be in any kernel."""
    modes = (ExecutionMode.DenormFlushToZero, ExecutionMode.RoundingModeRTZ)
    special = _HALF | {Capability.ImageBasic}
    return not (special & module.capabilities or any(map(entry_point.modes.get, modes)))


def _lanes_may_call(entry_point: EntryPoint) -> bool:
    """Whether no private memory lives across barriers."""
    return not any(map(has_boundary, inlined_sizes(entry_point.function)))


def size_with_calls(module: Module, entry_point: EntryPoint, shared: Container[Variable]) -> int:
    """Instructions of a kernel with lanes and of the functions that it goes on calling, or 0 without any."""
    if not (_may_call(module, entry_point) and _lanes_may_call(entry_point)):
        return 0
    kept = kept_functions(module, entry_point.function, shared, has_lanes=True)
    return sum(sizes_with_calls([*kept, entry_point.function], kept)) if kept else 0


def coarsened(plan: KernelPlan, options: PlanOptions) -> KernelPlan | None:
    """A plan of one region, made for one part, with the parts of these options, which are otherwise its own.
    None where parts go different ways that their lanes share, so that it must be made anew: it has changed.
    """
    (region,) = plan.regions
    function, shapes = region.function, region.shapes
    run_pass("shape", analyse_parts, options, function, options, shapes)
    if shapes.divergent_branches or shapes.divergent_loops:
        return None
    run_pass("coarsening", copy_parts, options, function, plan.module.types, shapes, options.parts)
    if options.verify:
        verify(function, "region 0")
    made = replace(plan, options=options, local_variables=[], constants=[], globals=[])
    made.assumes_small_ids |= shapes.assumes_small_ids
    describe(made)
    return made


def version_by_guards(plan: KernelPlan) -> None:
    """Gives a finished plan code of its own for vectors away from edges: about twice as much to compile."""
    for region in plan.regions:
        if plan.options.width > 1 and not region.once:
            types, shapes = plan.module.types, region.shapes
            run_pass(
                "guard_versioning", version_guards, plan.options, region.function, types, shapes, plan.options
            )


def useful_width(entry_point: EntryPoint, options: PlanOptions) -> int:
    """The width that was asked for, or less for kernels that say that their groups are narrower."""
    if options.sub_groups:
        return options.width
    size = entry_point.modes.get(ExecutionMode.LocalSize) or entry_point.modes.get(
        ExecutionMode.LocalSizeHint
    )
    if not size:
        return options.width
    lanes = size[0] * size[1] * size[2] if options.linear_lanes else size[0]
    width = options.width
    while width > max(lanes, 1):
        width //= 2
    return width


def unroll_short_loops(function: Function, types: TypeTable, budget: int) -> None:
    """Unrolls short loops that argument values count. Longer ones gain nothing."""
    unroll(function, types, budget, budget, 16)
    drop_repeated(function)


def finish_region(region: Region, plan: KernelPlan) -> None:
    """What is done to each region by itself, once the kernel is split."""
    options = plan.options
    drop_lifetimes(region.function)
    if _HALF & plan.module.capabilities:
        # What operations of groups and sub-groups have become meanwhile.
        promote_halves(region.function, plan.module.types, options.native_half)
    region.shapes = ShapeInfo()  # one lane: everything is uniform
    end_at_undefined(region.function)
    if options.width > 1 and not region.once:
        types = plan.module.types
        run_pass("component_stores", store_components, options, region.function, types, options)
        if may_send_lanes_alone(plan):
            if run_pass("lane_loops", send_lanes_alone, options, region.function, types, options):
                plan.has_lane_loops = True
        if not plan.uses_barrier and plan.options.calls is None:
            if options.thorough:
                region.edges = run_pass(
                    "edge_versions", version_edges, options, region.function, types, options
                )
            else:
                plan.has_more |= has_edges(region.function, types, options)
            if options.few_lanes:
                region.few = run_pass("few_lanes", send_few_lanes, options, region.function, types, options)
        region.shapes = run_pass("linearise", linearise, options, region.function, types, options)
        plan.assumes_small_ids |= region.shapes.assumes_small_ids
        if plan.uses_barrier:
            run_pass("row_early_exit", mark_row_ends, options, region.function, types)
        if options.parts > 1:
            run_pass("coarsening", copy_parts, options, region.function, types, region.shapes, options.parts)
    elif not region.once:
        run_pass("item_early_exit", end_rows, options, region.function, plan.module.types)
    run_pass("late_values", compute_late, options, region.function, region.shapes, options.width)
    if options.verify:
        verify(region.function, f"region {region.index}")


def drop_lifetimes(function: Function) -> None:
    """Lifetime marks have served groups/barriers.py; addresses computed for them alone go, too."""
    found = False
    for block in function.blocks:
        kept = [i for i in block.instructions if i.op is not Op.LifetimeStart and i.op is not Op.LifetimeStop]
        if len(kept) != len(block.instructions):
            block.instructions = kept
            found = True
    if found:
        remove_dead_code(function)


def end_at_undefined(function: Function) -> None:
    """What does nothing but what is undefined ends. clang makes that of a kernel that divides by a constant
    zero, whose value OpenCL C leaves open, but not that it comes back; LLVM leaves no code at all of it, and
    the CPU goes on with whatever follows."""
    terminator = function.blocks[0].terminator
    if terminator.op is Op.Unreachable:
        terminator.op = PassOp.RegionExit
        terminator.operands = [REGION_END]


def only_region(function: Function) -> Region:
    """A kernel without barriers as its only region."""
    for block in function.blocks:
        terminator = block.terminator
        if terminator.op is Op.Return:
            terminator.op = PassOp.RegionExit
            terminator.operands = [REGION_END]
    return Region(0, function)


def run_pass(
    name: str, pass_: Callable[..., Any], options: PlanOptions, function: Function | None, *arguments: Any
) -> Any:
    """Runs one pass on a function in place (or to make one), unless the options skip it."""
    if name in options.skip and name in OPTIONAL:
        return None
    start = time.perf_counter()
    result = pass_(*arguments) if function is None else pass_(function, *arguments)
    timings[name] = timings.get(name, 0.0) + time.perf_counter() - start
    if function is None:
        function = result
    if name in options.show or "all" in options.show:
        print(f"; after {name}\n{function_text(function)}", file=sys.stderr)
    if options.verify and name not in ("barriers", "expand_builtins", "images", "toward_zero"):
        verify(function, name)
    return result
