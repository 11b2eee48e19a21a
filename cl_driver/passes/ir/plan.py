"""What the passes hand to the code generator: one kernel as regions of plain SSA.

A kernel without barriers has one region. Otherwise the work-items of a group all run one region to its
RegionExit before any of them enters the next; the exit names the next region, the same for every work-item of
the group (OpenCL C 6.15.8: a barrier is met by all work-items or by none). Region 0 comes first.

All regions use the same Argument objects, those of `KernelPlan.arguments`. Values that live from one
region to another are in slots, private memory that does is in context variables; both are per-group
storage in scratch.
"""

from __future__ import annotations

from ...fast_typing import Protocol
from ...records import field, record
from ...spirv.enums import BuiltIn, StorageClass
from ...spirv.location import Location
from ...spirv.module import (
    Argument,
    Block,
    EntryPoint,
    Function,
    Instruction,
    Kind,
    Module,
    Type,
    Value,
    Variable,
)
from .remarks import Remarks
from .shapes import ShapeInfo, Stride

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Built-in variables by which a work-item can tell how work-items are divided into groups.
_OF_GROUPS = frozenset((
    BuiltIn.LocalInvocationId, BuiltIn.LocalInvocationIndex, BuiltIn.WorkgroupId, BuiltIn.WorkgroupSize,
    BuiltIn.EnqueuedWorkgroupSize, BuiltIn.NumWorkgroups, BuiltIn.SubgroupId, BuiltIn.SubgroupSize,
    BuiltIn.SubgroupMaxSize, BuiltIn.NumSubgroups, BuiltIn.NumEnqueuedSubgroups,
    BuiltIn.SubgroupLocalInvocationId,
))  # fmt: skip


class PlanError(Exception):
    """A kernel that cannot be compiled; the message is for the build log."""


# How each argument of a call differs between lanes, and whether it points into the lane's own memory.
ArgumentShapes: TypeAlias = tuple[tuple[Stride, bool], ...]


class KeptCalls(Protocol):
    """Functions that stay calls at a width above 1: vectorize/vector_functions.py."""

    parameters: dict[Instruction, tuple[Stride, bool]]  # shapes of PassOp.Parameter

    def keeps(self, function: Function) -> bool:
        """Whether calls of a function stay calls."""

    def result_of(self, function: Function, shapes: ArgumentShapes) -> Stride:
        """How what such a call returns differs between lanes."""


@record(eq=False, slots=True)
class VectorFunction:
    """A function for all lanes, whose arguments have certain shapes.

    function: linearised; its entry mask is that of the call. result: PassOp.Result, if it returns something.
    """

    name: str
    function: Function
    shapes: ShapeInfo
    parameters: list[Instruction]
    result: Instruction | None

    @property
    def returns_one(self) -> bool:
        """Whether all lanes get the same."""
        value = self.result.operands[0] if self.result is not None else None
        return value is not None and self.shapes.is_uniform(value) and value not in self.shapes.private


@record(frozen=True, slots=True)
class PlanOptions:
    """What the passes may choose by. Hashable, so it can be part of a cache key."""

    width: int = 1  # work-items per vector; above 1 the regions are linearised
    linear_lanes: bool = False  # lanes follow the linear local id, not dimension 0 alone
    linear_group: tuple[int, ...] = ()  # with these: the local size of all groups (linear_ids.py); or none
    parts: int = 1  # vectors of work-items that are executed together, at widths above 1 (coarsening.py)
    part_axis: int = 0  # the dimension in which parts follow one another; 0 with linear_lanes
    group: tuple[int, ...] = ()  # local size of all groups, each `parts` whole vectors (lockstep.py); or none
    argument_values: tuple[tuple[int, bytes], ...] = ()  # by index (lower/argument_values.py)
    unrolls: bool = True  # loops that argument values count are unrolled (loops/unroll.py)
    thorough: bool = True  # loops may be unrolled to far more code than there was, which takes its time
    few_lanes: bool = False  # loops have code for few lanes, one by one (vectorize/few_lanes.py)
    sub_groups: bool = False  # the width is the size of sub-groups, and stays what it is
    # The first global id of a group in dimension 0 is a multiple of the width: all have the size that the
    # kernel requires, and launches are asked for their offset.
    aligned_groups: bool = False
    small_ids: bool = True  # ids fit 29 bits (checked at launch), so (int)get_global_id(0) stays affine
    apart: frozenset[int] = frozenset()  # arguments whose buffers may be taken to overlap no other's
    most_text: int = 0  # bytes of LLVM IR at widths above 1 (passes/vectorize/text_size.py); 0 for no limit
    native_half: bool = False  # the CPU has arithmetic on half (codegen's has_native_half)
    check: bool = False  # every access to memory is looked at (check/instrument.py)
    zero_private: bool = False  # private memory is zeros where a program does not say what it is
    verify: bool = False  # run the IR verifier after every pass
    skip: tuple[str, ...] = ()  # names of passes to leave out (those that may be: pipeline.OPTIONAL)
    show: tuple[str, ...] = ()  # names of passes after which the function is printed, or "all"
    keeps_calls: bool = False  # at widths above 1, those of large functions stay calls
    calls: KeptCalls | None = field(default=None, compare=False, repr=False)  # which the passes set
    remarks: Remarks | None = field(default=None, compare=False, repr=False)  # who is told of decisions


@record(eq=False, slots=True)
class Slot:
    """A value kept across region boundaries: one per work-item (lane-contiguous), or one per group.

    A uniform slot is read when a group comes to a region, before any of its work-items may set it anew: a
    region can both read and advance a loop counter. A slot that is not uniform may still hold values that are
    the same in all lanes, or affine (stride): the first lane's value then stands for all.
    """

    index: int
    type: Type
    uniform: bool = False
    stride: int | None = None  # known lane stride of the value (analysis/shape.py); None: varying
    part_stride: int | None = None  # likewise from one part to the next
    name: str = ""
    line: Location | None = None  # of what it holds, if known


@record(eq=False, slots=True)
class PrivateVariable:
    """Function-storage memory that lives across region boundaries: one block of bytes per work-item."""

    index: int
    type: Type  # the pointee
    size: int  # bytes
    alignment: int
    initializer: Value | None = None  # a constant that region 0 stores
    name: str = ""


@record(eq=False, slots=True)
class LocalVariable:
    """A Workgroup variable that the kernel uses, at a fixed offset of the group's local memory."""

    variable: Variable
    offset: int
    size: int
    alignment: int


@record(eq=False, slots=True)
class Region:
    """One function without barriers: blocks that end in RegionExit (or Unreachable), never in Return.

    once: runs once per group, not per work-item: work-group collectives and asynchronous copies. Uses the
    ...Item operations, no built-in variable that differs between work-items, and shapes is all uniform.
    """

    index: int
    function: Function
    once: bool = False
    successors: tuple[int, ...] = ()  # region indices that it may exit to, REGION_END left out
    shapes: ShapeInfo = field(default_factory=ShapeInfo)  # one lane, if nobody says more: all is uniform
    edges: Block | None = None  # the code for the few vectors at edges begins (vectorize/edge_versions.py)
    few: list[Block] = field(default_factory=list)  # headers of loops over lanes (vectorize/few_lanes.py)


@record(eq=False, slots=True)
class KernelPlan:
    """One kernel, ready for code generation."""

    name: str
    entry_point: EntryPoint
    module: Module
    options: PlanOptions
    arguments: list[Argument]
    regions: list[Region]
    slots: list[Slot] = field(default_factory=list)
    private_variables: list[PrivateVariable] = field(default_factory=list)
    local_variables: list[LocalVariable] = field(default_factory=list)
    local_size: int = 0  # bytes of all local_variables
    private_size: int = 0  # bytes of Function variables that are still memory, per work-item, all regions
    called_size: int = 0  # the same of the functions that it calls, all together
    constants: list[Variable] = field(default_factory=list)  # UniformConstant variables used, transitively
    globals: list[Variable] = field(default_factory=list)  # CrossWorkgroup variables used, transitively
    builtins: set[BuiltIn] = field(default_factory=set)  # of each Input variable read
    calls: list[Function] = field(default_factory=list)  # of the library, or of kept_calls.py
    vector_functions: dict[Function, VectorFunction] = field(default_factory=dict)  # that calls are of
    returned: Slot | None = None  # says which work-items have returned before others were done
    uses_printf: bool = False
    enqueues: bool = False  # it may enqueue kernels, or uses their events
    takes_turns: bool = False  # its sub-groups may wait for one another (groups/sub_group_turns.py)
    uses_pipes: bool = False  # it may wait for what another kernel writes or reads
    has_more: bool = False  # there is something that PlanOptions.thorough would do
    has_lane_loops: bool = False  # lanes go to some branches one by one (vectorize/lane_loops.py)
    specialisable_args: list[int] = field(default_factory=list)  # by number (lower/argument_values.py)
    apart_args: list[int] = field(default_factory=list)  # those of PlanOptions.apart that it was assumed of
    # memory_order.py: work-items see others' memory in order, not at barriers alone
    orders_memory: bool = False
    assumes_small_ids: bool = False  # some shape holds only if every global id and size fits 29 bits

    @property
    def has_free_groups(self) -> bool:
        """True if no work-item can tell how they are divided into work-groups."""
        local = self.local_variables or any(
            argument.type.kind is Kind.POINTER and argument.type.storage is StorageClass.Workgroup
            for argument in self.arguments
        )
        options = self.options
        return not (
            self.uses_barrier or options.group or options.sub_groups or local or self.builtins & _OF_GROUPS
        )

    @property
    def may_run_in_lockstep(self) -> bool:
        """True if it is worth having code for groups of one size (groups/lockstep.py)."""
        options = self.options
        if options.width == 1 or options.sub_groups or self.orders_memory or self.has_lane_loops:
            return False
        return self.uses_barrier and not any(region.once for region in self.regions)

    @property
    def region_of_lanes(self) -> Region | None:
        """The region of a kernel that has lanes, but could do without; None for others."""
        regions = [region for region in self.regions if not region.once]
        may_choose = self.options.width > 1 and not self.options.sub_groups and not self.uses_barrier
        return regions[0] if may_choose and len(regions) == 1 else None

    def own_functions(self) -> list[Function]:
        """The code of its regions, and of functions for all lanes."""
        made = [function.function for function in self.vector_functions.values()]
        return [*(region.function for region in self.regions), *made]

    @property
    def uses_barrier(self) -> bool:
        """True if the group must finish one region before it starts another."""
        return len(self.regions) > 1


def recurs(plan: KernelPlan, region: Region) -> bool:
    """Whether a group may come to a region again."""
    seen, rest = set(), list(region.successors)
    while rest:
        index = rest.pop()
        if index not in seen:
            seen.add(index)
            rest += plan.regions[index].successors
    return region.index in seen
