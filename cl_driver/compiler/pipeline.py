"""The compiler: a pure function from (source or SPIR-V, options, specialisation, target) to an Executable.

    source ─frontend─► SPIR-V ─read, link─► module ─passes─► plan ─codegen─► LLVM IR ─jit─► object

Each stage can be run alone. What is wrong with a program is a CompileError whose message is for the build
log. Runs in compiler processes (service/jobs.py); nothing of it is imported by the host's process.
"""

from __future__ import annotations

from .. import stages
from ..builtins.library import library, library_for
from ..codegen.kernel import emit as codegen
from ..codegen.llvm.errors import CodegenError
from ..device.target import Target
from ..jit.errors import CompileError
from ..jit.executable import MOST_APART, MOST_SPECIALISABLE, Executable, KernelInfo
from ..passes import pipeline as passes
from ..passes.cost import width
from ..passes.cost.one_item import depends_on_data, prefers_one
from ..passes.cost.work import PlanCosts
from ..passes.lower.images import depends_on_formats, image_args
from ..records import replace
from ..spirv import reflect
from ..spirv.errors import SpirvError
from .kernel_info import kernel_info
from .prepared import Prepared, check_library, codegen_options, prepare
from .required_rows import requires_short_rows
from .source import Context, compile_source

__all__ = [
    "Context",
    "Prepared",
    "build",
    "check_library",
    "codegen_options",
    "compile_source",
    "kernel",
    "kernel_info",
    "library",
    "prepare",
]

# Bytes of LLVM IR up to which LLVM's vectorisers are worth their time, which grows faster than the text, and
# up to which the rest of its pipeline is.
_VECTORIZED_TEXT = 32_000
_LARGE_TEXT = 300_000

# The same up to which a kernel may be vector code (prepared.py has those of instructions), and where large
# functions stay calls, so that LLVM never sees much at once.
WIDE_TEXT = 1_500_000
_CALLING_TEXT = 6_000_000

# The variant that is to be there as soon as can be (variants.py).
SOON = "soon"
ITEMS = "items"  # the same: one work-item at a time, for kernels that may be faster so

# Rows that code for any image takes at a time (passes/cost/width.py).
_MOST_ROWS = 8

# Of these a launch can look whether their buffers overlap.
_MAY_BE_APART = frozenset(range(MOST_APART))


def kernel(program: Prepared, name: str) -> tuple[KernelInfo, list[bytes]]:
    """Compiles one kernel of a program: what is known of it, and its object.

    That is for most launches. Code for others is made when there is one (variants.py). A kernel with images
    has no object: launches get code for the formats of theirs.
    """
    try:
        code = (block if name in program.blocks else entry)(program, name)
        objects = [] if code.is_for_any_image else [object_of(program.context, code)]
        return kernel_info(program, code), objects
    except (passes.PlanError, CodegenError, SpirvError, CompileError) as error:
        raise about(name, error) from error


def about(name: str, error: Exception) -> CompileError:
    """The error with the kernel's name in its text."""
    text = str(error)
    return CompileError(text if name in text else f"kernel '{name}': {text}")


def entry(program: Prepared, name: str) -> codegen.KernelCode:
    """A kernel as LLVM IR, for most launches. Raises PlanError, CodegenError, SpirvError or CompileError."""
    if program.checks(name):  # there is no other code
        return lower(program, name, program.lanes(name), fixed=True)
    options = replace(program.lanes(name), apart=_MAY_BE_APART)
    if options.sub_groups:
        flat = lower(program, name, narrow(program, name))
        if flat.width == 1 or flat.takes_turns:
            return flat
    code = lower(program, name, options, is_entry=True)
    required = program.reflections[name].required_local_size
    if any(required):
        code.has_linear &= required[0] % code.width > 0
        code.has_linear |= requires_short_rows(program, name) and not code.is_for_any_image
    is_aligned = program.has_aligned_groups(name, code.width)
    suits_all = code.has_free_groups and not (code.assumes_small_ids or is_aligned)
    code.has_narrow = code.width > 1 and (options.sub_groups or not suits_all)
    if code.tiles is not None and any(required) and not code.has_free_groups:
        tile, options, code.tiles = code.tile_of_tiles, code.tiles, None
        if not any(size % step for size, step in zip(required, tile, strict=False)):
            tiled = lower(program, name, options, fixed=True)
            if tiled.tile == tile:
                tiled.has_narrow, tiled.tiles, code = True, None, tiled
    return code


def block(program: Prepared, name: str) -> codegen.KernelCode:
    """A block that kernels enqueue, as LLVM IR for all launches: there is nobody who could have more made."""
    options = replace(program.lanes(name), small_ids=False, aligned_groups=False)
    if options.sub_groups:
        code = lower(program, name, narrow(program, name), fixed=True)
    else:
        code = lower(program, name, options, "full and rest", alone=True)
        if code.assumes_small_ids or code.has_rest:
            code = lower(program, name, narrow(program, name), fixed=True)
    code.has_narrow = code.has_more = code.has_linear = code.tries_items = code.tiles_first = False
    code.may_run_in_lockstep = code.reads_ahead = False
    code.tiles, code.specialisable_args, code.apart_args, code.counted = None, [], [], 0
    return code


def narrow(program: Prepared, name: str) -> passes.PlanOptions:
    """For any launch: one work-item at a time, or, for kernels with sub-groups, lanes that follow the linear
    local id."""
    options = program.lanes(name)
    if options.sub_groups:
        return replace(options, linear_lanes=True, small_ids=False)
    return passes.PlanOptions(width=1, check=program.checks(name))


def lower(
    program: Prepared,
    name: str,
    options: passes.PlanOptions,
    vectors: str = "full",
    fixed: bool = False,
    alone: bool = False,
    hot: bool = False,
    is_entry: bool = False,
    keeps_ids: bool = False,
) -> codegen.KernelCode:
    """A kernel as LLVM IR, at a width or, where that is not possible, at 1.

    vectors: see codegen.emit(). fixed: with these options, or not at all. alone: without parts. hot: it has
    run for a while, so that more code is worth its time. is_entry: what is for any format of images is not
    going to be run. keeps_ids: for launches that do not exchange dimensions.
    """
    program.exchange_ids(name)
    point, refusal = (program.plain_points if keeps_ids else program.entry_points)[name], ""
    unoptimised = program.is_unoptimised(name)
    functions = library_for(program.context.target)
    how = codegen_options(program.context)
    skip = passes.OPTIONAL if unoptimised else ()
    zeroed = program.context.options
    options = replace(options, native_half=how.has_native_half, skip=skip, few_lanes=hot)
    options = replace(options, zero_private=zeroed.zero_private)
    is_optional = not options.sub_groups and vectors != "rest"  # launches need what the entry leaves
    if is_optional:
        options = replace(options, most_text=WIDE_TEXT)
    options = replace(options, keeps_calls=program.size_with_calls(name) > 0)
    may_widen = not (fixed or program.context.target.parts or program.uses_sub_groups(name))
    later = None
    lanes_of_formats = options.width if may_widen and _lacks_formats(program, name, options) else 0
    while True:
        if options.remarks is not None:
            options = replace(options, remarks=options.remarks.again())
        try:
            if lanes_of_formats and options.width > 1:
                # For launches of which the format gets no code: calls, in each lane by itself.
                if options.remarks is not None:
                    options.remarks.choose("width", "it has images, whose formats are not known")
                options = replace(options, width=1, linear_lanes=False, small_ids=True)
            with stages.stage("passes", name):
                plan = passes.plan(program.module, point, options, functions, program.globals.offsets)
            costs = PlanCosts(plan, program.context.target)
            if not (fixed or program.context.target.width) and prefers_one(costs):
                options = replace(options, width=1, linear_lanes=False, small_ids=True)
                continue
            if may_widen and not alone and not plan.vector_functions:
                may_widen = False
                chosen, may_wait = width.parts(costs)
                if may_wait and vectors == "full":
                    later = chosen
                    if options.remarks is not None:
                        options.remarks.choose("parts of tiles", options.remarks.choices["parts"])
                        options.remarks.choose("parts", "to be compiled soon; there is code with more")
                elif chosen.parts > 1:
                    options, coarsened = chosen, passes.coarsened(plan, chosen)
                    if coarsened is None:
                        continue
                    plan, costs = coarsened, PlanCosts(coarsened, program.context.target)
            if hot and not plan.vector_functions:
                passes.version_by_guards(plan)
                costs = PlanCosts(plan, program.context.target)
            specialisable: list[int] = []
            if not (unoptimised or program.uses_sub_groups(name) or program.context.options.opt_disable):
                specialisable = plan.specialisable_args[:MOST_SPECIALISABLE]
            is_for_any_image = bool(lanes_of_formats and specialisable)
            is_whole = not (is_entry and is_for_any_image) or options.remarks is not None
            with stages.stage("write LLVM IR", name):
                code = codegen.emit(plan, how, library(), program.globals, vectors, is_whole)
            most = _CALLING_TEXT if plan.vector_functions else WIDE_TEXT
            if options.width > 1 and code.size > most and is_optional:
                raise CodegenError(f"{code.size} bytes of LLVM IR")
            code.remark = code.remark or refusal
            if not program.context.target.parts:
                # Local memory that lockstep keeps in registers is nothing before it is written.
                code.may_run_in_lockstep = plan.may_run_in_lockstep and not (unoptimised or zeroed.zero_local)
                if not plan.vector_functions:
                    code.tiles, code.tiles_first = width.tiles(costs)
                code.tiles = code.tiles or (later if options.width > 1 else None)
            code.is_unoptimised = unoptimised
            code.has_more = plan.has_more and not unoptimised and not options.sub_groups
            is_plain = options.width > 1 and not (options.sub_groups or unoptimised or lanes_of_formats)
            code.tries_items = is_plain and depends_on_data(costs)
            code.has_linear = is_plain and not (code.has_free_groups or plan.vector_functions)
            code.specialisable_args = specialisable
            if lanes_of_formats:  # groups are to suit the code for formats, whatever its parts
                code.tile = lanes_of_formats, _MOST_ROWS
                code.is_for_any_image = is_for_any_image
            return code
        except (passes.PlanError, CodegenError) as error:
            if options.width == 1 or fixed:
                raise
            is_kept = options.keeps_calls and isinstance(error, passes.PlanError)
            if is_kept and not program.is_too_large(name, expanded=True):
                options = replace(options, keeps_calls=False)
                continue
            if options.parts > 1:
                if options.remarks is not None:
                    options.remarks.choose("parts", f"more are refused: {error}")
                options = replace(options, parts=1)
                continue
            refusal = f"not vectorised: {error}"
            if options.remarks is not None:
                options.remarks.choose("width", refusal)
            options = replace(options, width=1, linear_lanes=False, small_ids=True)


def _lacks_formats(program: Prepared, name: str, options: passes.PlanOptions) -> bool:
    """Whether a kernel would be vector code, were the formats of its images known."""
    if options.width == 1 or program.context.target.width:
        return False
    function = program.entry_points[name].function
    unknown = set(image_args(function)).difference(index for index, _ in options.argument_values)
    return bool(unknown) and depends_on_formats(reflect.called(function))


def object_of(
    context: Context, code: codegen.KernelCode, variant: str = "", has_argument_values: bool = False
) -> bytes:
    """LLVM IR to an object. variant: of variants.KINDS, or "" for the entry; has_argument_values: whether
    values of arguments are constants in it. Raises CompileError."""
    from ..jit import emit  # loads LLVM: a front-end job need not wait for it

    name = code.name + ("." + variant if variant else "") + (".values" if has_argument_values else "")
    context.dump(f"{name}.ll", code.text)
    ways = llvm_ways(context, code, variant, has_argument_values)
    data = emit.compile_ir(code.text, context.target, *ways)
    context.dump(f"{name}.o", data)
    return data


def llvm_ways(
    context: Context, code: codegen.KernelCode, variant: str = "", has_argument_values: bool = False
) -> tuple[str, int]:
    """LLVM's passes for a kernel or one of its variants, and the level of its code generator."""
    level = 0 if code.is_unoptimised else 2
    if variant == SOON:
        return "short", level
    takes_long = variant in ("", ITEMS) or code.is_for_any_image or (code.width == 1 and has_argument_values)
    # What a launch waits for is not to wait for a look at the order of instructions.
    return llvm_passes(context, code) if takes_long else "ordered", level


def llvm_passes(context: Context, code: codegen.KernelCode) -> str:
    """Which of LLVM's passes a kernel gets (jit/README.md has what each costs and gains)."""
    if code.is_unoptimised:
        return "O0"
    if context.target.checks:
        return usual_passes(code)
    return "O1" if context.options.opt_disable else usual_passes(code)


def usual_passes(code: codegen.KernelCode) -> str:
    """The same for an optimised kernel under no options."""
    if code.width > 1 or code.size > _LARGE_TEXT:
        return "short"
    return "O2" if code.size <= _VECTORIZED_TEXT else "scalar"


def build(il: bytes, options: str, target: Target) -> Executable:
    """All stages after the front end, for all kernels, in this process. Raises CompileError."""
    program = prepare(il, Context(target, options, {}))
    return program.executable([kernel(program, name) for name in program.names])
