"""The entry of the code generator: a kernel plan to LLVM IR, and what the data plane must know of it."""

from __future__ import annotations

from ...passes.analysis.redundant_items import repeated_dimensions
from ...passes.ir.dump import type_text
from ...passes.ir.plan import KernelPlan, PlanOptions
from ...passes.ir.remarks import Remarks
from ...records import field, record
from ..atomic.privatised_histogram import PrivatisedHistogram
from ..layout.arguments import BlockEntry
from ..layout.program_globals import GlobalsLayout, layout_globals
from ..layout.scratch import Scratch
from ..library.functions import Library, ModuleEmitter
from ..llvm.errors import CodegenError
from ..llvm.options import CodegenOptions
from ..ops import lowerings  # noqa: F401
from .kernel_emitter import KernelEmitter
from .vector_function import emit_vector_functions
from .wide_kernel import WideKernelEmitter


@record(slots=True)
class KernelCode:
    """LLVM IR of one kernel, and what the data plane must know to run it.

    scratch: the thread's scratch memory needs scratch_fixed + scratch_per_item * items bytes, items being the
    product of the enqueued local size.
    """

    text: str
    symbol: str
    name: str
    block: list[BlockEntry]
    block_size: int
    local_static: int
    scratch_fixed: int
    scratch_per_item: int
    private_size: int
    width: int
    uses_printf: bool
    uses_pipes: bool
    enqueues: bool
    takes_turns: bool  # see KernelPlan
    assumes_small_ids: bool  # holds only where every global id and size fits 29 bits
    tile: tuple[int, int]  # work-items of a row, and rows, that are taken at a time
    has_free_groups: bool  # see KernelPlan
    once_along: frozenset[int]  # dimensions of a group along which it takes one work-item: redundant_items.py
    repeated_dimensions: int  # the last ones, along which groups do the same (redundant_items.py)
    # 1 + the number of the argument that threads may have copies of (privatised_histogram.py), or 0
    counted: int = 0
    counted_size: int = 0  # bytes of its elements
    apart_args: list[int] = field(default_factory=list)  # see KernelPlan
    remark: str = ""
    reads_ahead: bool = False  # has prefetches, for launches that want them (access/prefetch.py)
    has_rest: bool = False  # takes whole tiles only: see emit()
    has_narrow: bool = False  # does not suit all launches
    tiles: PlanOptions | None = None  # for groups that consist of tiles, if it pays (passes/cost/width.py)
    tiles_first: bool = False  # the first launch of such groups waits for that code
    has_more: bool = False  # see KernelPlan
    has_linear: bool = False  # there may be code for groups of short rows (passes/groups/linear_ids.py)
    tries_items: bool = False  # one work-item at a time may be faster (passes/cost/one_item.py)
    may_run_in_lockstep: bool = False  # there may be code for groups of one size (passes/groups/lockstep.py)
    specialisable_args: list[int] = field(default_factory=list)  # see KernelPlan; none if not worth it
    is_for_any_image: bool = False  # launches run code for the formats of their images, if there may be some
    is_unoptimised: bool = False  # LLVM is to leave it as it is, too
    debug_size: int = 0  # bytes of the text that are debug information
    remarks: Remarks | None = None  # what was decided, where somebody wants to know

    @property
    def tile_of_tiles(self) -> tuple[int, int]:
        """Work-items of a row, and rows, of the tiles of `tiles`, which must be there."""
        options = self.tiles
        assert options is not None
        along = options.width * (1 if options.part_axis else options.parts)
        return along, options.parts if options.part_axis else 1

    @property
    def size(self) -> int:
        """Bytes of the text that become code: decisions are the same with and without -g."""
        return len(self.text) - self.debug_size


def emit(
    plan: KernelPlan,
    options: CodegenOptions,
    library: Library | None = None,
    globals_layout: GlobalsLayout | None = None,
    vectors: str = "full and rest",
    is_whole: bool = True,
) -> KernelCode:
    """Lowers a planned kernel. CodegenError names what cannot be lowered.

    library: has function(name) -> Function | None. globals_layout: that of the whole program; computed from
    the plan's module if absent. vectors: "full" for groups that consist of whole tiles of
    work-items only, or, if no work-item can tell its group, for the whole tiles of all groups; "rest" for
    what that leaves of their rows and columns; "short" for all groups, best those of which no row fills a
    vector. Both where it pays, else the code is for all. is_whole: with
    the functions that it calls; without, the text is not for LLVM.
    """
    if globals_layout is None:
        globals_layout = layout_globals(plan.module)
    module = ModuleEmitter(options, library, globals_layout.offsets, probes_stack=plan.takes_turns)
    width = plan.options.width
    histogram: PrivatisedHistogram | None = None
    emitter: KernelEmitter
    if plan.options.check:
        from .checked_kernel import CheckedKernelEmitter

        emitter = CheckedKernelEmitter(module, plan)
        vectors = "full and rest"
    elif width == 1:
        emitter, vectors = KernelEmitter(module, plan), "full and rest"
    else:
        wide = WideKernelEmitter(module, plan, width, vectors)
        emitter, vectors, histogram = wide, wide.vectors, wide.histogram
    try:
        text = emitter.kernel_text()
        if isinstance(emitter, WideKernelEmitter):
            module.functions += emit_vector_functions(emitter)
        if is_whole:
            module.emit_pending()
    except CodegenError as error:
        raise CodegenError(f"kernel {plan.name}: {error}") from error
    scratch, counted, counted_size = emitter.scratch, 0, 0
    if histogram is not None and histogram.argument is not None:
        counted, counted_size = plan.arguments.index(histogram.argument) + 1, histogram.size
    return KernelCode(
        text=module.text(text),
        symbol=emitter.symbol,
        name=plan.name,
        block=emitter.block,
        block_size=emitter.block_size,
        local_static=plan.local_size,
        scratch_fixed=scratch.fixed,
        scratch_per_item=scratch.per_item,
        private_size=plan.private_size + plan.called_size,
        width=width,
        uses_printf=plan.uses_printf,
        uses_pipes=plan.uses_pipes,
        enqueues=plan.enqueues,
        takes_turns=plan.takes_turns,
        assumes_small_ids=plan.assumes_small_ids,
        tile=emitter.tile,
        has_free_groups=plan.has_free_groups and not plan.options.check,
        once_along=emitter.redundant - ({0} if width > 1 else set()),
        repeated_dimensions=0 if plan.options.check else repeated_dimensions(plan),
        reads_ahead=emitter.ahead is not None and emitter.ahead.is_used,
        has_rest=vectors == "full",
        counted=counted,
        counted_size=counted_size,
        apart_args=plan.apart_args,
        debug_size=emitter.debug.size if emitter.debug is not None else 0,
        remarks=_plan_remarks(plan, scratch),
    )


def _plan_remarks(plan: KernelPlan, scratch: Scratch) -> Remarks | None:
    """What was decided, with what is to be said of regions and what they hand to one another."""
    remarks = plan.options.remarks
    if remarks is None:
        return None
    for region in plan.regions:
        remarks.fact("region", region.index, region.once, region.successors)
    if plan.takes_turns:
        remarks.fact("takes turns")
    for slot in plan.slots:
        kind = "group" if slot.uniform else "lanes" if slot.stride is None else "affine"
        remarks.fact("kept", slot.name, type_text(slot.type), kind, slot.line)
    for variable in plan.private_variables:
        remarks.fact("kept memory", variable.name, variable.size)
    for local in plan.local_variables:
        remarks.fact("local", local.variable.name, local.size)
    remarks.fact("scratch", plan.private_size, scratch.fixed, scratch.per_item)
    return remarks
