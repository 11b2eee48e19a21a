"""The compiler: a pure function from (source or SPIR-V, options, specialisation, target) to an Executable.

    source ─frontend─► SPIR-V ─read, link─► module ─passes─► plan ─codegen─► LLVM IR ─jit─► object

Each stage can be run alone. What is wrong with a program is a CompileError whose message is for the build
log. Runs in compiler processes (service/jobs.py); nothing of it is imported by the host's process.
"""

from __future__ import annotations

import functools
import math

from .. import stages
from ..builtins.library import library, library_for
from ..codegen.kernel import emit as codegen
from ..codegen.layout.arguments import LOCAL, BlockEntry
from ..codegen.layout.program_globals import host_variables, layout_globals
from ..codegen.llvm.errors import CodegenError
from ..codegen.llvm.options import CodegenOptions
from ..codegen.ops.address_spaces import lowering_of_name
from ..device import capabilities
from ..device.cpu import host_cpu
from ..device.limits import MAX_WORK_GROUP_SIZE, SUB_GROUP_SIZES, host_limits
from ..device.target import Target
from ..jit import bundle
from ..jit.errors import CompileError
from ..jit.executable import MOST_APART, MOST_SPECIALISABLE, ArgInfo, Executable, Globals, KernelInfo
from ..log import log
from ..passes import pipeline as passes
from ..passes.analysis.spin_locks import may_look, only_looks
from ..passes.analysis.written_arguments import written_arguments
from ..passes.cost import width
from ..passes.cost.one_item import depends_on_data, prefers_one
from ..passes.cost.work import PlanCosts
from ..passes.ir.link_names import NAMED_BARRIER_FUNCTIONS
from ..passes.ir.remarks import Remarks
from ..passes.ir.subgroup_operations import uses_subgroups
from ..passes.lower.exchange_ids import may_exchange_ids, with_exchanged_ids
from ..passes.lower.images import depends_on_formats, image_args, is_image_function
from ..passes.lower.lane_dimension import prefers_dimension_1
from ..passes.program.lower import WITHOUT_BODY, lower_extensions, may_enqueue
from ..passes.program.private_initializers import initialise_private_memory
from ..records import replace
from ..settings import parse_table
from ..spirv import blocks, link, local_memory, reflect
from ..spirv.enums import Capability, FunctionControl, SourceLanguage
from ..spirv.errors import LinkError, SpirvError
from ..spirv.module import EntryPoint, Module
from ..spirv.reading import reader
from ..spirv.types import TypeTable
from ..spirv.validation import validate
from . import inline_assembly
from .required_rows import requires_short_rows
from .source import Context, compile_source

__all__ = ["Context", "Prepared", "build", "check_library", "compile_source", "kernel", "library", "prepare"]

# Bytes of LLVM IR up to which LLVM's vectorisers are worth their time, which grows faster than the text, and
# up to which the rest of its pipeline is.
_VECTORIZED_TEXT = 32_000
_LARGE_TEXT = 300_000

# Instructions of SPIR-V, those with all calls expanded, and bytes of LLVM IR, up to which a kernel may be
# vector code: the time and memory that LLVM takes for much more are out of proportion (4 GB do not do for the
# 38 MB of a kernel of hashcat).
_WIDE_INSTRUCTIONS = 40_000
_WIDE_EXPANDED = 100_000
WIDE_TEXT = 1_500_000

# The same where large functions stay calls, so that LLVM never sees much at once.
_CALLING_INSTRUCTIONS = 80_000
_CALLING_TEXT = 6_000_000

# What is to be done for a kernel however small it is, as the instructions that take as long.
_KERNEL = 64

# The variant that is to be there as soon as can be (variants.py).
SOON = "soon"
ITEMS = "items"  # the same: one work-item at a time, for kernels that may be faster so

# Rows that code for any image takes at a time (passes/cost/width.py).
_MOST_ROWS = 8

# Of these a launch can look whether their buffers overlap.
_MAY_BE_APART = frozenset(range(MOST_APART))


def codegen_options(context: Context) -> CodegenOptions:
    """What the code generator may depend on."""
    options, target = context.options, context.target
    return CodegenOptions(
        features=frozenset(target.features),
        vector_bits=target.vector_bits,
        mad_enable=options.mad_enable,
        no_signed_zeros=options.no_signed_zeros,
        unsafe_math=options.unsafe_math_optimizations,
        finite_math_only=options.finite_math_only,
        fast_relaxed_math=options.fast_relaxed_math,
        aarch64=target.architecture == "aarch64",
        exact_division=options.fp32_correctly_rounded_divide_sqrt,
        slow_division=target.slow_division,
        far_ahead=target.far_ahead,
        slow_masked_stores=target.slow_masked_stores,
        terminable=options.terminate,
    )


def _is_relaxed(context: Context) -> bool:
    """Whether options let floating-point numbers be computed otherwise than a program says."""
    options = context.options
    return options.unsafe_math_optimizations or options.fast_relaxed_math or options.finite_math_only


def _is_ours(name: str) -> bool:
    """True for functions that programs call and this driver has: in the library, or as instructions."""
    if name in WITHOUT_BODY or name in NAMED_BARRIER_FUNCTIONS or blocks.is_call(name):
        return True
    return library().has(name) or lowering_of_name(name) is not None or is_image_function(name)


@functools.cache
def _accepted() -> tuple[frozenset[int], frozenset[str]]:
    """The SPIR-V capabilities and extensions of modules that this machine's device takes."""
    cpu = host_cpu()
    return (
        validate.accepted_capabilities(capabilities.spirv_capabilities(cpu)),
        frozenset(capabilities.spirv_extensions(cpu)),
    )


def _read(il: bytes) -> list[Module]:
    """The modules of a program, over one table of types."""
    table = TypeTable(library().types)
    return [reader.read(spirv, constants, table) for spirv, constants in bundle.unpack(il)]


def check_library(il: bytes, context: Context) -> str:
    """Links modules that may still lack definitions. The log. Raises CompileError if they do not fit."""
    try:
        link.link(_read(il))
    except (SpirvError, bundle.BundleError) as error:
        raise CompileError(f"{error}\n") from error
    return ""


class Prepared:
    """A program that was read, specialised and linked. names: of its kernels, in order; log: for the user."""

    def __init__(self, context: Context, il: bytes) -> None:
        """Raises CompileError for a program that is wrong."""
        self.context = context
        self.il = il
        self.log = ""
        self._sub_groups: dict[str, bool] = {}  # see uses_sub_groups
        self._sizes_with_calls: dict[str, int] = {}
        self._exchanged: dict[str, bool] = {}
        self.explains = False  # whether decisions are noted: passes/ir/remarks.py
        try:
            self.module = link.link(_read(il), _is_ours)
            inline_assembly.refuse(self.module)
            validate.validate(self.module, *_accepted())
            inline_assembly.check_targets(self.module, context.target.architecture)
            self.addresses = lower_extensions(self.module, _is_relaxed(context), context.debug)
            if context.options.zero_private:
                initialise_private_memory(self.module)
            local_memory.check(self.module, host_limits().local_memory)
            self.reflections = {kernel.name: kernel for kernel in reflect.reflect(self.module)}
            self.globals = layout_globals(self.module)
        except LinkError as error:
            raise CompileError(f"{error}\n", error.lacks_lines) from error
        except (SpirvError, CodegenError, bundle.BundleError) as error:
            raise CompileError(f"{error}\n") from error
        self.entry_points = {entry.name: entry for entry in self.module.entry_points}
        self.plain_points: dict[str, EntryPoint] = {}  # of exchange_ids(), as they were
        self.names = list(self.entry_points)
        self.blocks = {entry.name: entry for entry in self.module.entry_points if entry.is_block}

    @property
    def uniform_groups(self) -> bool:
        """Whether all work-groups must be full: those of programs in OpenCL C before 2.0 must, and those
        built with -cl-uniform-work-group-size (clEnqueueNDRangeKernel)."""
        language, version = (*self.module.source, 0, 0)[:2]
        old = language == SourceLanguage.OpenCL_C and 0 < version < 200_000
        return old or self.context.options.uniform_work_group_size

    def lanes(self, name: str) -> passes.PlanOptions:
        """Work-items per vector that a kernel gets, and vectors that are executed together."""
        self.exchange_ids(name)
        remarks = Remarks() if self.explains else None
        if self.checks(name):
            return passes.PlanOptions(width=1, check=True, remarks=remarks)
        if self.uses_sub_groups(name):
            if remarks is not None:
                remarks.choose("width", "that is the size of its sub-groups")
            lanes = self.sub_group_size(name)
            return passes.PlanOptions(width=lanes, sub_groups=True, thorough=False, remarks=remarks)
        if self.enqueues(name):
            if remarks is not None:
                remarks.choose("width", "work-items enqueue kernels, each for itself")
            return passes.PlanOptions(width=1, remarks=remarks)
        if self.is_unoptimised(name) or self.is_too_large(name):
            if remarks is not None:
                remarks.choose("width", "it has optnone" if self.is_unoptimised(name) else "it is too large")
            return passes.PlanOptions(width=1, remarks=remarks)
        functions = reflect.called(self.entry_points[name].function)
        target, size = self.context.target, self.reflections[name].required_local_size
        chosen = width.choose(functions, size, target, remarks)
        if target.parts and remarks is not None:
            remarks.choose("parts", "a setting asks for it")
        parts = target.parts or "1x"  # without the setting, lower() looks again
        return passes.PlanOptions(
            width=chosen,
            parts=int(parts[0]),
            part_axis="xy".index(parts[1]),
            thorough=False,
            aligned_groups=self.has_aligned_groups(name, chosen),
            remarks=remarks,
        )

    def enqueues(self, name: str) -> bool:
        """Whether a kernel may enqueue others, or has to do with their events."""
        if not may_enqueue(self.module):
            return False
        from ..passes.program import device_enqueue

        return device_enqueue.enqueues(reflect.called(self.entry_points[name].function))

    def blocks_of(self, name: str) -> list[int]:
        """The numbers of the blocks that a kernel enqueues, and that these do."""
        if not self.enqueues(name):
            return []
        from ..passes.program import device_enqueue

        return device_enqueue.blocks_of(self.entry_points[name], list(self.blocks.values()))

    def exchange_ids(self, name: str) -> bool:
        """Whether lanes are to follow dimension 1: the kernel's code has dimensions 0 and 1 exchanged from
        now on, and so have its launches, except those of PLAIN code (variants.py)."""
        found = self._exchanged.get(name)
        if found is None:
            point = self.entry_points[name]
            is_large = self.size(name) > _WIDE_INSTRUCTIONS
            functions = [] if is_large or self.context.options.opt_disable else reflect.called(point.function)
            found = bool(functions) and not self.is_unoptimised(name) and name not in self.blocks
            found = found and may_exchange_ids(point, functions) and prefers_dimension_1(point.function)
            self._exchanged[name] = found
            if found:
                self.plain_points[name] = point
                self.entry_points[name] = with_exchanged_ids(self.module, point, functions)
        return found

    def has_aligned_groups(self, name: str, lanes: int) -> bool:
        """Whether rows of groups fill vectors of so many lanes: launches are asked for their offset."""
        columns = self.reflections[name].required_local_size[0]
        has_images = self.module.images or Capability.ImageBasic in self.module.capabilities
        return lanes > 1 and columns > 0 and columns % lanes == 0 and not has_images

    def is_too_large(self, name: str, expanded: bool = False) -> bool:
        """Whether a kernel is too much to be vector code. expanded: with all calls."""
        size = passes.inlined_size(self.entry_points[name].function)
        if self.size(name) <= _WIDE_INSTRUCTIONS and size <= _WIDE_EXPANDED:
            return False
        return expanded or not 0 < self.size_with_calls(name) <= _CALLING_INSTRUCTIONS

    def size_with_calls(self, name: str) -> int:
        """Instructions of a kernel as vector code that calls large functions; 0 if it is to call none.
        Vectors of the program's own do not go well with it: each component is a value of all lanes."""
        if name not in self._sizes_with_calls:
            point = self.entry_points[name]
            size = passes.size_with_calls(self.module, point, self.globals.offsets)
            if size and width.works_on_vectors(reflect.called(point.function)):
                size = 0
            self._sizes_with_calls[name] = size
        return self._sizes_with_calls[name]

    def checks(self, name: str) -> bool:
        """Whether a kernel looks at what it does (passes/check/), one work-item at a time."""
        if not self.context.target.checks:
            return False
        return not self.uses_sub_groups(name) or self.has_small_sub_groups(name)

    def has_small_sub_groups(self, name: str) -> bool:
        """Whether sub-groups may be of one work-item, of kernels with checks: nobody asks for another size,
        and none of them waits for another one."""
        if self.reflections[name].sub_group_size or Capability.NamedBarrier in self.module.capabilities:
            return False
        if name in parse_table(self.context.target.kernel_sub_groups):
            return False
        return not may_look(reflect.called(self.entry_points[name].function))

    def is_unoptimised(self, name: str) -> bool:
        """Whether a kernel, or a function that becomes a part of it, has OptNoneEXT."""
        if self.context.target.checks:
            return False  # clang says so of all
        if Capability.OptNoneEXT not in self.module.capabilities:
            return False
        functions = reflect.called(self.entry_points[name].function)
        return any(function.control & FunctionControl.OptNoneEXT for function in functions)

    def uses_sub_groups(self, name: str) -> bool:
        """Whether a kernel can tell its sub-groups apart, or they wait for one another."""
        found = self._sub_groups.get(name)
        if found is None:
            functions = reflect.called(self.entry_points[name].function)
            found = uses_subgroups(functions) or only_looks(self.entry_points[name].function)
            self._sub_groups[name] = found
        return found

    def sub_group_size(self, name: str) -> int:
        """Work-items per sub-group: what the kernel requires, or else a setting for it, or the target's.
        CompileError for a number that no width serves."""
        if self.checks(name) and self.uses_sub_groups(name):
            return 1
        required = self.reflections[name].sub_group_size
        if required and required not in SUB_GROUP_SIZES:
            raise CompileError(f"kernel '{name}': no sub-groups of {required} work-items\n")
        target = self.context.target
        return required or int(parse_table(target.kernel_sub_groups).get(name, target.sub_group_size))

    def weight(self, name: str) -> int:
        """About how long a kernel takes to compile, in instructions. CompileError if it cannot be compiled
        for a reason that is seen at once: its functions call themselves, or it wants sub-groups of another
        size than there are."""
        self.sub_group_size(name)
        return _KERNEL + self.size(name)

    def size(self, name: str) -> int:
        """Instructions of a kernel and the functions that it calls. CompileError if these call
        themselves."""
        try:
            functions = reflect.called(self.entry_points[name].function)
            return sum(len(block.instructions) for function in functions for block in function.blocks)
        except SpirvError as error:
            raise CompileError(f"kernel '{name}': {error}\n") from error

    def executable(self, kernels: list[tuple[KernelInfo, list[bytes]]]) -> Executable:
        """The executable of these kernels; more can be added to it."""
        made = Executable(
            target=self.context.target.key,
            options=self.context.text,
            names=self.names,
            block_count=len(self.blocks),
            weights=[self.weight(name) for name in self.names],
            kernels=[],
            objects=[],
            globals=Globals(
                size=self.globals.size,
                align=self.globals.alignment,
                image=self.globals.image,
                fixups=[list(pair) for pair in self.globals.fixups],
                variables=[list(variable) for variable in host_variables(self.globals)],
            ),
            il=self.il,
            functions=[[name, address] for name, address in self.addresses.items()],
        )
        for info, objects in kernels:
            made.add(info, objects)
        return made


def prepare(il: bytes, context: Context) -> Prepared:
    """The part of a build that all kernels of a program share. il: of jit/bundle.py. Raises CompileError."""
    for number, (spirv, _) in enumerate(bundle.unpack(il)):
        context.dump(f"module{number}.spv", spirv)
    with stages.stage("read and link SPIR-V"):
        return Prepared(context, il)


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


def _account(program: Prepared, name: str) -> list[int]:
    """What is known of the bytes and operations of launches, where a profile is wanted."""
    if not program.context.settings.get("CL_DRIVER_PROFILE") or program.is_too_large(name, expanded=True):
        return []
    from ..passes.traffic.prepare import account_of

    point = program.plain_points.get(name) or program.entry_points[name]
    try:
        account = account_of(program.module, point)
        for number in account:
            number.to_bytes(8, "little", signed=True)  # as launches have them: OverflowError
        return account
    except Exception as error:  # a profile is not worth a build that fails
        log(1, f"kernel {name} has no account of its bytes and operations: {type(error).__name__}: {error}")
        return []


def kernel_info(program: Prepared, code: codegen.KernelCode) -> KernelInfo:
    """What the data plane and the queries know of a kernel."""
    reflection = program.reflections[code.name]
    uses_sub_groups = program.uses_sub_groups(code.name)
    written = written_arguments(program.entry_points[code.name].function)
    tile = code.tile if code.tiles is None else code.tile_of_tiles
    return KernelInfo(
        name=code.name,
        has_entry=not code.is_for_any_image,
        symbol=code.symbol,
        object_index=0,
        args=[
            _argument(arg, entry, number in written)
            for number, (arg, entry) in enumerate(zip(reflection.args, code.block, strict=True))
        ],
        block_size=code.block_size,
        local_static=code.local_static,
        scratch_fixed=code.scratch_fixed,
        scratch_per_item=code.scratch_per_item,
        required_local_size=list(reflection.required_local_size),
        max_local_size=list(reflection.max_local_size),
        max_group_size=min(MAX_WORK_GROUP_SIZE, math.prod(reflection.max_local_size) or MAX_WORK_GROUP_SIZE),
        width=code.width,
        uses_printf=code.uses_printf,
        uses_pipes=code.uses_pipes,
        enqueues=code.enqueues,
        takes_turns=code.takes_turns,
        is_block=code.name in program.blocks,
        blocks=program.blocks_of(code.name),
        zeroes_local=program.context.options.zero_local,
        terminable=program.context.options.terminate,
        uniform_groups=program.uniform_groups,
        is_wide=code.width > 1,
        has_narrow=code.has_narrow,
        has_rest=code.has_rest,
        has_tiled=code.tiles is not None,
        has_more=code.has_more,
        has_linear=code.has_linear,
        reads_ahead=code.reads_ahead,
        tries_items=code.tries_items,
        tiles_first=code.tiles is not None and code.tiles_first,
        private_size=code.private_size,
        attributes=reflection.attributes,
        sub_group_size=reflection.sub_group_size,
        sub_groups_per_group=reflection.sub_groups_per_group,
        sub_group_width=code.width if uses_sub_groups else program.sub_group_size(code.name),
        uses_sub_groups=uses_sub_groups,
        tile_width=tile[0],
        tile_height=tile[1],
        free_groups=code.has_free_groups,
        exchanged=program.exchange_ids(code.name),
        once_along=sorted(code.once_along),
        aligned_groups=program.has_aligned_groups(code.name, code.width) and not uses_sub_groups,
        repeated_dimensions=code.repeated_dimensions,
        most_group_items=code.width * width.MOST_GROUP_PARTS if code.may_run_in_lockstep else 0,
        counted=code.counted,
        counted_size=code.counted_size,
        apart_args=code.apart_args,
        account=_account(program, code.name),
        specialisable_args=code.specialisable_args,
        remark=code.remark,
    )


def _argument(reflection: reflect.ArgReflection, entry: BlockEntry, written: bool) -> ArgInfo:
    return ArgInfo(
        kind=reflection.kind,
        size=reflection.size,
        align=entry.alignment if entry.kind != LOCAL else reflection.align,
        offset=entry.offset,
        constant=reflection.constant,
        known=reflection.known,
        name=reflection.name,
        type_name=reflection.type_name,
        address_qualifier=reflection.address_qualifier,
        access_qualifier=reflection.access_qualifier,
        type_qualifier=reflection.type_qualifier,
        image_type=reflection.image_type,
        depth=reflection.depth,
        written=written,
    )


def build(il: bytes, options: str, target: Target) -> Executable:
    """All stages after the front end, for all kernels, in this process. Raises CompileError."""
    program = prepare(il, Context(target, options, {}))
    return program.executable([kernel(program, name) for name in program.names])
