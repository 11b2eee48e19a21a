"""How many work-items per vector a kernel gets, and how many vectors at a time, unless settings say."""

from __future__ import annotations

from dataclasses import replace

from cl_driver.jit.target import Target
from cl_driver.passes.ir import ADDRESS, int_value, is_constant_int
from cl_driver.passes.plan import KernelPlan, PlanOptions, recurs
from cl_driver.passes.pressure import divergent_loops, vector_pressure
from cl_driver.spirv.enums import BuiltIn, Op
from cl_driver.spirv.module import Function, Instruction, Kind, Type, Variable

# Registers that parts may want, as a share of those that there are: not all are wanted all the time, and
# outside of loops a spilled one costs little (measured: tests/bench).
_IN_LOOPS = 1.2
_WITHOUT_LOOPS = 1.5

# Vectors of a group that are executed together where code is made for its size.
MOST_GROUP_PARTS = 32

_IDS = (BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId)

# Registers that one value of all lanes may take: with more, code grows and spills.
_VALUE_REGISTERS = 16

# Eight short chains of operations keep two units busy that take four cycles; they are only worth it while all
# that they hold leaves registers over.
_ROOM_OF_EIGHT = 20


def choose(functions: list[Function], required_local_size, target: Target, remarks=None) -> int:
    """functions: the kernel and what it calls."""

    def say(why: str) -> None:
        if remarks is not None:
            remarks.choose("width", why)

    if target.width:
        say("a setting asks for it")
        return target.width
    lanes = target.vector_bits // 32
    if 0 < required_local_size[0] < lanes:
        say(f"the kernel requires rows of {required_local_size[0]} work-items, less than {lanes} lanes")
        return 1
    say(f"vectors of {target.vector_bits} bits hold {lanes} values of 32")
    widest = max((_bits(i.type) for f in functions for b in f.blocks for i in b.instructions), default=0)
    while lanes > 1 and lanes * widest > _VALUE_REGISTERS * target.vector_bits:
        lanes //= 2
        say(f"its values of {widest} bits in all lanes take {_VALUE_REGISTERS} registers at most")
    return lanes


def _bits(type_: Type | None) -> int:
    if type_ is None:
        return 0
    if type_.kind is Kind.VECTOR:
        return type_.count * type_.element.width
    return type_.width if type_.kind in (Kind.INT, Kind.FLOAT) else 0


def parts(plan: KernelPlan, target: Target) -> PlanOptions:
    """The options of a plan with as many parts as its values leave registers for.

    Only where groups can be made to fit: more rows than a launch has, or longer ones, would be idle lanes.
    """
    options = plan.options

    def say(why: str) -> None:
        if options.remarks is not None:
            options.remarks.choose("parts", why)

    if options.width == 1:
        return options
    if not plan.has_free_groups:
        say("work-items can tell how they are divided into groups, which may not fill several vectors")
        return options
    region = plan.regions[0]
    pressure = vector_pressure(region.function, region.shapes, target.vector_bits // options.width)
    if pressure is None:
        say("the kernel is too large to look at")
        return options
    axis = int(_uses_rows(region.function))
    loops = divergent_loops(region.function)
    room = _registers(target) * (_IN_LOOPS if loops is not None else _WITHOUT_LOOPS)
    # Neighbours in a row part more often than those in the next rows, and the last one to leave counts.
    most = 2 if loops and axis == 0 else 4
    fitting = [n for n in (4, 2) if n <= most and n * pressure <= room]
    if loops == 0 and 8 * pressure <= _ROOM_OF_EIGHT:
        fitting = [8]
    limit = "" if most == 4 else ", and 2 is the most along rows whose lanes leave loops one by one"
    say(f"each needs {pressure} vector registers at once, and there is room for {room:g}{limit}")
    return replace(options, parts=fitting[0], part_axis=axis) if fitting else options


def tiles(plan: KernelPlan, target: Target) -> PlanOptions | None:
    """The options of code with parts for launches whose groups consist of tiles, or None if that is not worth
    another object: without loops, or along rows between barriers (trees leave rows early, row by row)."""
    options = plan.options
    if options.width == 1 or options.parts > 1 or options.sub_groups or plan.has_free_groups:
        return None
    regions = [region for region in plan.regions if not region.once]
    axis = int(any(_uses_rows(region.function) for region in regions))
    if plan.uses_barrier and not axis:
        return None
    if not any(recurs(plan, region) or divergent_loops(region.function) is not None for region in regions):
        return None
    lane_bits = target.vector_bits // options.width
    pressures = [vector_pressure(region.function, region.shapes, lane_bits) for region in regions]
    room = _registers(target) * _IN_LOOPS
    fitting = [n for n in (4, 2) if all(p is not None and n * p <= room for p in pressures)]
    if not plan.uses_barrier and all(p is not None and 8 * p <= _ROOM_OF_EIGHT for p in pressures):
        fitting = [8]
    if fitting and options.remarks is not None:
        most = max(pressures, default=0)
        why = f"for groups of whole tiles: each vector needs {most} registers at once, there are {room:g}"
        options.remarks.choose("parts of tiles", why)
    return replace(options, parts=fitting[0], part_axis=axis) if fitting else None


def _registers(target: Target) -> int:
    return 32 if target.vector_bits == 512 or target.architecture == "aarch64" else 16


def _uses_rows(function: Function) -> bool:
    """Whether a kernel asks for an id of dimension 1."""
    for block in function.blocks:
        for i in block.instructions:
            source = i.operands[0] if i.operands else None
            if i.op is Op.CompositeExtract and i.operands[1:] == [1] and isinstance(source, Instruction):
                source = source.operands[0] if source.op is Op.Load else None
            elif i.op not in ADDRESS or not is_constant_int(i.operands[-1]) or int_value(i.operands[-1]) != 1:
                continue
            if isinstance(source, Variable) and source.builtin in _IDS:
                return True
    return False
