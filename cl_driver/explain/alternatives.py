"""A kernel's plans as there could be: what the model of costs (passes/cost/estimate.py) says of each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..builtins.library import library_for
from ..codegen.kernel.emit import KernelCode
from ..codegen.llvm.errors import CodegenError
from ..compiler import variants
from ..compiler.pipeline import Prepared, codegen_options
from ..passes import pipeline as passes
from ..passes.cost.cpu_models import model_of
from ..passes.cost.estimate import Estimate, estimate
from ..passes.cost.launch import Launch, Number
from ..passes.cost.short_rows import lanes_that_rows_fill
from ..passes.cost.width import MOST_GROUP_PARTS
from ..passes.ir.instructions import instruction_count
from ..passes.ir.plan import KernelPlan
from ..records import replace
from ..spirv.errors import SpirvError
from ..spirv.module import Kind
from ..spirv.reflect import ArgReflection
from .mca import Analyser
from .measured import Measured

_LARGEST = 30_000  # instructions of a plan that is looked at


class Asked(NamedTuple):
    """What is known of a launch. global_size: empty if it is not; values: of arguments by their names;
    measured: by the names of kernels; analyser: which is asked about machine code."""

    global_size: tuple[int, ...] = ()
    values: Mapping[str, int] = MappingProxyType({})
    measured: Mapping[str, Measured] = MappingProxyType({})
    analyser: Analyser | None = None

    def sized(self, kernel: str) -> Asked:
        """With the work-items of a launch that was measured where nobody said how many: in a row, for a
        profile does not tell their shape."""
        measured = self.measured.get(kernel)
        if self.global_size or measured is None or measured.items % measured.launches:
            return self
        return self._replace(global_size=(max(1, measured.items // measured.launches),))


NOTHING = Asked()


def launch_of(args: list[ArgReflection], local_size: list[int] | None, asked: Asked) -> Launch:
    """The launch that costs are estimated for: a million work-items if nobody says more."""
    x, y, z = (*(local_size or (64, 1, 1)), 1, 1)[:3]
    width, height, depth = (*(asked.global_size or (1 << 20,)), 1, 1)[:3]
    values: dict[int, Number] = {}
    for index, argument in enumerate(args):
        if argument.name in asked.values and argument.type.kind is Kind.INT:
            values[index] = asked.values[argument.name] & ((1 << argument.type.width) - 1)
    return Launch((width, height, depth), (x, y, z), values)


def chosen_options(
    program: Prepared, code: KernelCode, values: Mapping[int, bytes] | None = None
) -> passes.PlanOptions:
    """Those of what a kernel runs once it has run for a while, launches of one local size apart. values: of
    arguments; for formats of images there is other code."""
    options = replace(program.lanes(code.name), remarks=None)
    if code.is_for_any_image and values:
        kept = tuple(sorted(values.items()))
        code = variants.variant(program, code.name, variants.ANY, [], code.apart_args, kept)
    elif code.is_for_any_image:
        return replace(options, width=code.tile[0], thorough=True)
    elif code.tiles is not None:
        return replace(code.tiles, remarks=None, thorough=True)
    columns, rows = code.tile
    parts = rows if rows > 1 else columns // max(code.width, 1)
    return replace(options, width=code.width, parts=parts, part_axis=int(rows > 1), thorough=True)


def lockstep_plan(
    program: Prepared, code: KernelCode, local_size: tuple[int, int, int], values: Mapping[int, bytes]
) -> KernelPlan | None:
    """The plan of code for groups of one size, if there is such code for the kernel."""
    chosen = chosen_options(program, code, values)
    width = lanes_that_rows_fill(local_size[0], chosen.width)
    parts = local_size[0] * local_size[1] * local_size[2] // width
    if width == 1 or not code.may_run_in_lockstep or parts > MOST_GROUP_PARTS:
        return None
    options = replace(chosen, width=width, group=local_size, parts=parts, part_axis=0)
    try:
        plan = plan_of(program, code.name, options, values)
    except (passes.PlanError, CodegenError, SpirvError):
        return None
    return plan if plan.options.group else None


def plan_of(
    program: Prepared, name: str, options: passes.PlanOptions, values: Mapping[int, bytes] | None = None
) -> KernelPlan:
    """A plan, with fewer parts or without constants where it cannot be made with all. values: of arguments.
    PlanError, CodegenError or SpirvError where there is none at this width."""
    options = replace(options, native_half=codegen_options(program.context).has_native_half)
    options = replace(options, keeps_calls=program.size_with_calls(name) > 0)
    functions = library_for(program.context.target)
    ways = [replace(options, argument_values=tuple(sorted((values or {}).items()))), options]
    ways.append(replace(options, parts=1, part_axis=0, group=()))
    for way in ways[not values :]:
        try:
            return passes.plan(
                program.module, program.entry_points[name], way, functions, program.globals.offsets
            )
        except (passes.PlanError, CodegenError):
            if way is ways[-1]:
                raise
    raise AssertionError


def alternatives(
    program: Prepared, code: KernelCode, launch: Launch, has_size: bool
) -> list[tuple[passes.PlanOptions, Estimate | str, bool]]:
    """(options, estimate or why there is no such code, whether it was chosen): one work-item at a time,
    vectors of the CPU's width, and twice that, as far as the kernel leaves a choice; and code for whole
    groups in lockstep, where has_size says that the launch's local size is one that somebody asked for."""
    target = program.context.target
    model = model_of(target)
    chosen = chosen_options(program, code)
    native = target.vector_bits // 32
    widths = [1, native, 2 * native]
    if chosen.sub_groups or program.is_unoptimised(code.name) or program.is_too_large(code.name):
        widths = []
    ways = [replace(chosen, width=width, parts=1, part_axis=0) for width in widths if width != chosen.width]
    found: list[tuple[passes.PlanOptions, Estimate | str, bool]] = []
    for way in sorted([*ways, chosen], key=lambda options: options.width):
        try:
            plan = plan_of(program, code.name, way)
        except (passes.PlanError, CodegenError, SpirvError) as error:
            found.append((way, str(error), way is chosen))
            continue
        if sum(instruction_count(region.function) for region in plan.regions) > _LARGEST:
            found.append((plan.options, "it is too large to be estimated", way is chosen))
        elif plan.options.width == way.width:
            found.append((plan.options, estimate(plan, model, launch), way is chosen))
    in_lockstep = lockstep_plan(program, code, launch.local_size, {}) if widths and has_size else None
    if in_lockstep is not None:
        found.append((in_lockstep.options, estimate(in_lockstep, model, launch), False))
    return found


def estimate_text(found: Estimate) -> str:
    """An estimate in words."""
    items, kinds = found.items, sorted(found.bytes.items(), key=lambda pair: -pair[1])
    text = f"{found.per_item:.3g} cycles each (arithmetic {found.arithmetic / items:.2g}, memory "
    text += f"{found.memory / items:.2g}, waiting {found.latency / items:.2g}), bound by {found.limit}; "
    moved = ", ".join(f"{count:.3g} {kind}" for kind, count in kinds if count >= 0.05)
    text += f"bytes each: {moved}; " if moved else ""
    return f"{text}the launch {found.launch / 1000:.3g} ms"
