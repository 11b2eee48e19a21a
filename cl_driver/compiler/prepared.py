"""A program between its front end and its kernels: read, linked, and what holds for all of them."""

from __future__ import annotations

import functools

from .. import stages
from ..builtins.library import library
from ..codegen.layout.program_globals import host_variables, layout_globals
from ..codegen.llvm.errors import CodegenError
from ..codegen.llvm.options import CodegenOptions
from ..codegen.ops.address_spaces import lowering_of_name
from ..device import capabilities
from ..device.cpu import host_cpu
from ..device.limits import SUB_GROUP_SIZES, host_limits
from ..jit import bundle
from ..jit.errors import CompileError
from ..jit.executable import Executable, Globals, KernelInfo
from ..passes import pipeline as passes
from ..passes.analysis.spin_locks import may_look, only_looks
from ..passes.cost import width
from ..passes.ir.link_names import NAMED_BARRIER_FUNCTIONS
from ..passes.ir.remarks import Remarks
from ..passes.ir.subgroup_operations import uses_subgroups
from ..passes.lower.exchange_ids import may_exchange_ids, with_exchanged_ids
from ..passes.lower.images import is_image_function
from ..passes.lower.lane_dimension import prefers_dimension_1
from ..passes.program.lower import WITHOUT_BODY, lower_extensions, may_enqueue
from ..passes.program.private_initializers import initialise_private_memory
from ..settings import parse_table
from ..spirv import blocks, link, local_memory, reflect
from ..spirv.enums import Capability, FunctionControl, SourceLanguage
from ..spirv.errors import LinkError, SpirvError
from ..spirv.module import EntryPoint, Module
from ..spirv.reading import reader
from ..spirv.types import TypeTable
from ..spirv.validation import validate
from . import inline_assembly
from .source import Context

# Instructions of SPIR-V, and those with all calls expanded, up to which a kernel may be vector code: the time
# and memory that LLVM takes for much more are out of proportion (4 GB do not do for the 38 MB of a kernel of
# hashcat).
_WIDE_INSTRUCTIONS = 40_000
_WIDE_EXPANDED = 100_000

# The same where large functions stay calls, so that LLVM never sees much at once.
_CALLING_INSTRUCTIONS = 80_000

# What is to be done for a kernel however small it is, as the instructions that take as long.
_KERNEL = 64


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


def is_builtin(name: str) -> bool:
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
            self.module = link.link(_read(il), is_builtin)
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
