"""Clones a kernel with every call of a function that has a body expanded in place, but for those that are to
stay calls (kept_calls.py).

Calls of declarations stay calls, too: the code generator finds them in the builtin library by their linkage
name.
Function variables move to the entry block, their initialisers become stores where they stood. Merge
instructions are dropped: later passes find loops and joins themselves.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from ...fast_typing import Any
from ...records import replace
from ...spirv.enums import Decoration, Op, StorageClass
from ...spirv.location import Location
from ...spirv.module import (
    Argument,
    Block,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Module,
    Value,
    Variable,
)
from ..ir.instructions import ADDRESS, Copies, append, clone_instruction, is_by_value
from ..ir.layout import alignment_of, size_of
from ..ir.plan import PlanError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

MAX_INSTRUCTIONS = 2_000_000  # of one kernel after inlining

# GroupWaitEvents: asynchronous copies are complete when they return (collectives.py).
_DROPPED = frozenset((
    Op.SelectionMerge, Op.LoopMerge, Op.Nop, Op.Line, Op.NoLine, Op.GroupWaitEvents,
    Op.ControlBarrierArriveINTEL,  # the wait is a whole barrier
))  # fmt: skip


_ACCESSES = frozenset((Op.Load, Op.Store, Op.CopyMemory, Op.CopyMemorySized))
_SAME_OBJECT = ADDRESS | {Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr}


def inline(
    module: Module, entry: Function, kept: Mapping[Function, Function] | None = None, waits: bool = False
) -> Function:
    """A new function: the entry point with calls expanded. Its Arguments are the entry's own.

    kept: the functions that stay calls, and what is called in their place. waits: those for events stay.
    PlanError if that comes to more than MAX_INSTRUCTIONS.
    """
    if not kept and inlined_size(entry) > MAX_INSTRUCTIONS:
        raise PlanError(f"more than {MAX_INSTRUCTIONS} instructions after inlining")
    return _Inliner(module, kept or {}, waits).run(entry)


def inlined_size(entry: Function) -> int:
    """Instructions of a function with all its calls expanded. PlanError if it calls itself."""
    return inlined_sizes(entry)[entry]


def inlined_sizes(entry: Function) -> dict[Function, int]:
    """The same for a function and all that it calls, callees first. PlanError if one calls itself."""
    sizes: dict[Function, int] = {}
    path: dict[Function, list[Function]] = {entry: callees(entry)}  # those begun, with what is left of each
    while path:
        function, rest = next(reversed(path.items()))
        if rest:
            callee = rest.pop()
            if callee in path:
                cycle = [f.name or "?" for f in path]
                cycle = [*cycle[list(path).index(callee) :], callee.name or "?"]
                raise PlanError("recursion is not allowed in OpenCL C: " + " calls ".join(cycle))
            if callee not in sizes:
                path[callee] = callees(callee)
            continue
        del path[function]
        own = sum(len(block.instructions) for block in function.blocks)
        sizes[function] = own + sum(sizes[callee] for callee in callees(function))
    return sizes


def callees(function: Function) -> list[Function]:
    """The functions with bodies that a function calls, once for each call."""
    called = (i.operands[0] for b in function.blocks for i in b.instructions if i.op is Op.FunctionCall)
    return [callee for callee in called if callee.blocks]


# The clone of a function: its entry, and where it returns: (block without terminator, value).
_Cloned: TypeAlias = tuple[Block, list[tuple[Block, Value | None]]]
# What is to be cloned next: a function, what stands for values in its clone, and the place of the call.
_Call: TypeAlias = tuple[Function, Copies, Location | None]
# A function being cloned: yields what it calls, is sent the clone of that, and returns its own.
_Cloning: TypeAlias = Generator[_Call, Any, _Cloned]


class _Inliner:
    def __init__(self, module: Module, kept: Mapping[Function, Function], waits: bool) -> None:
        self.dropped = _DROPPED - {Op.GroupWaitEvents} if waits else _DROPPED
        self.types = module.types
        self.kept = kept
        self.module_variables = module.variables
        self.function: Function
        self.variables: list[Instruction] = []
        self.written: dict[Argument, bool] = {}

    def volatile_pointers(self, function: Function) -> set[Value]:
        """Pointers to objects with the Volatile decoration: variables, parameters, parts of them."""
        found: set[Value] = {v for v in function.arguments if _is_volatile(v)}
        found.update(v for v in self.module_variables if _is_volatile(v))
        found.update(i for i in function.blocks[0].instructions if i.op is Op.Variable and _is_volatile(i))
        if found:
            for block in function.blocks:
                found.update(i for i in block.instructions if i.op in _SAME_OBJECT and i.operands[0] in found)
        return found

    def run(self, entry: Function) -> Function:
        new = self.function = Function(entry.type, entry.name, entry.control)
        new.arguments = entry.arguments
        new.decorations = entry.decorations
        first = Block(new, "entry")
        new.blocks.append(first)
        values = {}
        for argument in entry.arguments:
            if is_by_value(argument) and self.may_write(entry, argument):
                values[argument] = self.private_copy(argument, argument, first)
        body, returns = self.clone(entry, values)
        append(first, Op.Branch, None, [body])
        for block, value in returns:
            append(block, Op.Return) if value is None else append(block, Op.ReturnValue, None, [value])
        for variable in self.variables:
            variable.block = first
        first.instructions[:0] = self.variables
        return new

    def clone(self, function: Function, values: Copies) -> _Cloned:
        """Clones all blocks of a function.

        The bodies of callees are asked for by generators: calls may nest deeper than Python's own.
        """
        stack = [self.clone_body(function, values)]
        answer: Any = None  # what the last generator has returned
        while stack:
            try:
                request = stack[-1].send(answer)
            except StopIteration as end:
                stack.pop()
                answer = end.value
            else:
                stack.append(self.clone_body(*request))
                answer = None
        cloned: _Cloned = answer
        return cloned

    def clone_body(self, callee: Function, values: Copies, site: Location | None = None) -> _Cloning:
        """One function of `clone`: yields (callee, values, site) for what it calls, and is sent its clone.

        site: the Location of the call, if there is debug information.
        """
        new_blocks = self.function.blocks
        firsts = {block: Block(self.function, block.name) for block in callee.blocks}
        values.update(firsts)
        lasts: dict[Block, Block] = {}
        phis: list[tuple[Instruction, Instruction]] = []
        returns: list[tuple[Block, Value | None]] = []
        get = values.get
        volatile = self.volatile_pointers(callee)
        for block in callee.blocks:
            current = firsts[block]
            current.loop_control = block.loop_control
            new_blocks.append(current)
            instructions = current.instructions
            for instruction in block.instructions:
                op = instruction.op
                if op in self.dropped:
                    continue
                if op is Op.Phi:
                    copy = clone_instruction(instruction, [], current)
                    phis.append((copy, instruction))
                elif op is Op.Variable:
                    copy = self.move_variable(instruction, values, current, site)
                    values[instruction] = copy
                    continue
                elif op is Op.FunctionCall and instruction.operands[0] in self.kept:
                    called, *passed = instruction.operands
                    arguments = [get(value, value) for value in passed]
                    copy = clone_instruction(instruction, [self.kept[called], *arguments], current)
                elif op is Op.FunctionCall and instruction.operands[0].blocks:
                    current, result = yield from self.expand(instruction, values, current, site)
                    instructions = current.instructions
                    values[instruction] = result
                    continue
                elif op is Op.Return or op is Op.ReturnValue:
                    value = instruction.operands[0] if instruction.operands else None
                    returns.append((current, get(value, value)))
                    continue
                elif op is Op.Any or op is Op.All:
                    asked: Value = instruction.operands[0]
                    truths = self.truths(get(asked, asked), current)
                    if truths.type is instruction.type:
                        values[instruction] = truths
                        continue
                    copy = clone_instruction(instruction, [truths], current)
                else:
                    copy = clone_instruction(instruction, [get(o, o) for o in instruction.operands], current)
                    if volatile and op in _ACCESSES and not volatile.isdisjoint(instruction.operands[:2]):
                        copy.memory = replace(copy.memory or MemoryAccess(), volatile=True)
                if site is not None:  # what has no place of its own is where it was called
                    copy.line = site if copy.line is None else copy.line.inlined(site)
                instructions.append(copy)
                values[instruction] = copy
            lasts[block] = current
        for copy, original in phis:
            operands = original.operands
            for i in range(0, len(operands), 2):
                # A predecessor that the reader dropped has no clone, and its edge does not exist.
                if operands[i + 1] in lasts:
                    copy.operands += [get(operands[i], operands[i]), lasts[operands[i + 1]]]
        return firsts[callee.blocks[0]], returns

    def truths(self, value: Value, block: Block) -> Value:
        """The operand of OpAny or OpAll. LLVM's back end gives them the integers, scalars too, of OpenCL
        C's any() and all(), of which the most significant bits count."""
        type_, boolean = value.type, self.types.bool()
        vector = type_.kind is Kind.VECTOR
        if (type_.element if vector else type_).kind is not Kind.INT:
            return value
        wanted = self.types.vector(boolean, type_.count) if vector else boolean
        return append(block, Op.SLessThan, wanted, [value, self.types.null(type_)])

    def expand(
        self, call: Instruction, values: Copies, current: Block, site: Location | None
    ) -> Generator[_Call, Any, tuple[Block, Value]]:
        """Puts the callee's body behind `current`; returns the block to go on in, and the result. A generator
        as clone_body is."""
        callee = call.operands[0]
        inner: Copies = {}
        for parameter, argument in zip(callee.arguments, call.operands[1:], strict=True):
            value = values.get(argument, argument)
            if value.type is not parameter.type:
                # What a pointer points to may differ between a declaration and its definition elsewhere.
                value = append(current, Op.Bitcast, parameter.type, [value])
            if is_by_value(parameter) and self.may_write(callee, parameter):
                value = self.private_copy(parameter, value, current)
            inner[parameter] = value
        if call.line is not None:
            site = call.line if site is None else call.line.inlined(site)
        body, returns = yield callee, inner, site
        result: Value
        append(current, Op.Branch, None, [body])
        after = Block(self.function, current.name)
        self.function.blocks.append(after)
        for block, _ in returns:
            append(block, Op.Branch, None, [after])
        result_type = callee.type.element
        if not returns or returns[0][1] is None:
            result = self.types.undef(result_type)
        elif len(returns) == 1:
            result = returns[0][1]
        else:
            operands = [o for block, value in returns for o in (value, block)]
            result = append(after, Op.Phi, result_type, operands)
        if call.type is not result.type and call.type.kind is Kind.POINTER:
            result = append(after, Op.Bitcast, call.type, [result])
        return after, result

    def move_variable(
        self, variable: Instruction, values: Copies, current: Block, site: Location | None
    ) -> Instruction:
        copy = Instruction(Op.Variable, variable.type, [StorageClass.Function], None, variable.name)
        copy.decorations = variable.decorations
        copy.line = variable.line
        if site is not None and variable.line is not None:
            copy.line = variable.line.inlined(site)
        self.variables.append(copy)
        if len(variable.operands) > 1:
            initializer = variable.operands[1]
            append(current, Op.Store, None, [copy, values.get(initializer, initializer)], MemoryAccess())
        return copy

    def private_copy(self, parameter: Argument, pointer: Value, block: Block) -> Instruction:
        """A ByVal parameter that the function may write is a variable of its own."""
        pointee = parameter.type.element
        variable = Instruction(Op.Variable, parameter.type, [StorageClass.Function], None, parameter.name)
        alignment = parameter.decorations.get(Decoration.Alignment)
        if alignment:
            variable.decorations = {Decoration.Alignment: alignment}
        self.variables.append(variable)
        size = self.types.integer(64, size_of(pointee))
        access = MemoryAccess(alignment=alignment_of(pointee))
        append(block, Op.CopyMemorySized, None, [variable, pointer, size], access)
        return variable

    def may_write(self, function: Function, parameter: Argument) -> bool:
        """False if the memory that a ByVal parameter points to is only read in its function."""
        found = self.written.get(parameter)
        if found is None:
            found = self.written[parameter] = writes_through(function, parameter)
        return found


def _is_volatile(value: Argument | Instruction | Variable) -> bool:
    return Decoration.Volatile in value.decorations


def writes_through(function: Function, pointer: Value) -> bool:
    """True unless every use of the pointer, and of addresses computed from it, is a read."""
    derived = {pointer}
    for block in function.blocks:
        for instruction in block.instructions:
            operands = instruction.operands
            if derived.isdisjoint(o for o in operands if isinstance(o, Value)):
                continue
            op = instruction.op
            if op in ADDRESS or op is Op.Bitcast or op is Op.CopyObject:
                derived.add(instruction)
            elif op is Op.Load or op is Op.LifetimeStart or op is Op.LifetimeStop:
                continue
            elif (op is Op.CopyMemory or op is Op.CopyMemorySized) and operands[0] not in derived:
                continue
            else:
                return True
    return False
