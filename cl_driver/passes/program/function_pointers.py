"""Calls through pointers to functions (SPV_INTEL_function_pointers), as branches to what they may be of.

A program holds all functions that its pointers can point to, so the address of a function is a number that
only calls look at: the same in all kernels of the program, since pointers outlive launches in buffers. A call
becomes a switch over the functions of its type whose address is taken; where lanes have different targets,
each target runs once for the lanes that want it (vectorize/linearise.py).

By their types alone functions may seem to call each other for ever. OpenCL has no recursion, so what is
active already is no target of a call: functions on such a cycle get copies, one for each set of active ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import Op
from ...spirv.errors import SpirvError
from ...spirv.module import Block, ConstantExpr, Function, Instruction, Kind, Module, Operand, Type, Value
from ...spirv.reflect import called_by_address
from ...spirv.types import TypeTable
from ..ir.instructions import append, copy_function, rename_phi_edge

# From one function's address to the next: C++ keeps flags in the lowest bits of pointers to functions.
STRIDE = 16

MOST_COPIES = 1000  # of functions on cycles


def lower_function_pointers(module: Module) -> dict[str, int]:
    """Changes the functions that kernels reach, and constants. Returns the addresses of functions that other
    modules know by a name.

    SpirvError for too many functions on cycles."""
    lowering = _Lowering(module)
    lowering.run()
    return {f.linkage[0]: number for f, number in lowering.numbers.items() if f.linkage is not None}


class _Lowering:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.types: TypeTable = module.types
        self.targets = [f for f in called_by_address(module) if f.blocks]
        self.numbers = {function: STRIDE * (k + 1) for k, function in enumerate(self.targets)}
        self.found: dict[Type, list[Function]] = {}  # by types of functions
        self.cycles: dict[Function, frozenset[Function]] = {}  # that a function is on
        self.made: dict[tuple[Function, frozenset[Function]], Function] = {}
        self.copies = 0
        self.pending: list[tuple[Function, frozenset[Function]]] = []  # whose calls are to be lowered

    def run(self) -> None:
        roots = [entry.function for entry in self.module.entry_points]
        self.find_cycles(roots)
        for root in roots:
            self.version(root, frozenset())
        while self.pending:
            function, active = self.pending.pop()
            self.lower(function, active)
        for pointer in self.module.function_pointers:
            number = self.numbers.get(pointer.operands[0], 0)
            pointer.op, pointer.operands = Op.ConvertUToPtr, (self.types.integer(64, number),)

    # Which functions call which.

    def targets_of(self, call: Instruction) -> list[Function]:
        """The functions that a call through a pointer may be of."""
        known = _function_of(call.operands[0])
        if known is not None:
            return [known] if known.blocks else []
        type_ = call.operands[0].type.element
        if type_ not in self.found:
            self.found[type_] = [f for f in self.targets if _fits(f.type, type_)]
        return self.found[type_]

    def callees(self, function: Function) -> Iterable[Function]:
        for block in function.blocks:
            for i in block.instructions:
                if i.op is Op.FunctionCall and i.operands[0].blocks:
                    yield i.operands[0]
                elif i.op is Op.FunctionPointerCallINTEL:
                    yield from self.targets_of(i)

    def find_cycles(self, roots: list[Function]) -> None:
        """Strongly connected components (Tarjan), without recursion of this function."""
        index: dict[Function, int] = {}
        low: dict[Function, int] = {}
        open_: list[Function] = []
        is_open: set[Function] = set()
        for root in roots:
            path: list[tuple[Function, list[Function]]] = []
            if root not in index:
                index[root] = low[root] = len(index)
                open_.append(root)
                is_open.add(root)
                path.append((root, list(dict.fromkeys(self.callees(root)))))
            while path:
                function, rest = path[-1]
                if rest:
                    callee = rest.pop()
                    if callee not in index:
                        index[callee] = low[callee] = len(index)
                        open_.append(callee)
                        is_open.add(callee)
                        path.append((callee, list(dict.fromkeys(self.callees(callee)))))
                    elif callee in is_open:
                        low[function] = min(low[function], index[callee])
                    continue
                path.pop()
                if path:
                    caller = path[-1][0]
                    low[caller] = min(low[caller], low[function])
                if low[function] == index[function]:
                    start = open_.index(function)
                    members = frozenset(open_[start:])
                    del open_[start:]
                    is_open -= members
                    if len(members) > 1 or function in self.callees(function):
                        self.cycles.update(dict.fromkeys(members, members))

    # Calls as branches.

    def version(self, function: Function, active: frozenset[Function]) -> Function | None:
        """The function to call where these functions of its cycle are active; None if it is one of them."""
        cycle = self.cycles.get(function)
        active = active & cycle if cycle is not None else frozenset()
        if function in active:
            return None
        found = self.made.get((function, active))
        if found is None:
            found = function if cycle is None else copy_function(function)
            self.copies += cycle is not None
            if self.copies > MOST_COPIES:
                raise SpirvError(
                    function.offset,
                    f"OpFunction '{function.name}'",
                    f"more than {MOST_COPIES} ways through functions that may call one another by pointers",
                )
            self.made[function, active] = found
            self.pending.append((found, active | {function} if cycle is not None else frozenset()))
        return found

    def lower(self, function: Function, active: frozenset[Function]) -> None:
        """Lowers the calls of a function while these are active."""
        for block in list(function.blocks):
            current = block
            old, block.instructions = block.instructions, []
            for i in old:
                if i.op is Op.FunctionCall and i.operands[0] in self.cycles:
                    current = self.branch(i, [i.operands[0]], i.operands[1:], None, current, active)
                elif i.op is Op.FunctionPointerCallINTEL:
                    pointer, *arguments = i.operands
                    known = _function_of(pointer)
                    selector = pointer if known is None else None
                    current = self.branch(i, self.targets_of(i), arguments, selector, current, active)
                else:
                    if i.op is Op.FunctionCall and i.operands[0].blocks:
                        self.version(i.operands[0], active)
                    i.block = current
                    current.instructions.append(i)
            if current is not block:
                for successor in current.successors():
                    rename_phi_edge(successor, block, current)

    def branch(
        self,
        call: Instruction,
        targets: list[Function],
        arguments: list[Operand],
        pointer: Value | None,
        current: Block,
        active: frozenset[Function],
    ) -> Block:
        """The call as calls of what it may be of. Returns the block to go on in.

        pointer: chooses between targets; None if there is but one."""
        versions = [(target, self.version(target, active)) for target in targets]
        callable_ = [(target, made) for target, made in versions if made is not None]
        result_type = call.type
        is_void = result_type.kind is Kind.VOID
        if not callable_ or pointer is None:
            call.block = current
            if callable_:
                self.call(call, callable_[0][1], arguments, current)
            elif not is_void:  # undefined
                call.op, call.operands = Op.CopyObject, [self.types.null(result_type)]
                current.instructions.append(call)
            return current
        assert current.function is not None
        blocks = current.function.blocks
        place = blocks.index(current) + 1
        after = Block(current.function, current.name)
        number = append(current, Op.ConvertPtrToU, self.types.int(64), [pointer])
        switch = append(current, Op.Switch, None, [number, after])
        number.line = switch.line = call.line
        results: list[Operand] = [] if is_void else [self.types.null(result_type), current]
        made_blocks = []
        for target, made in callable_:
            way = Block(current.function, target.name)
            one = Instruction(Op.FunctionCall, result_type, (), way)
            one.line, one.decorations = call.line, call.decorations
            self.call(one, made, arguments, way)
            append(way, Op.Branch, None, [after]).line = call.line
            switch.operands += [self.numbers[target], way]
            if not is_void:
                results += [one, way]
            made_blocks.append(way)
        blocks[place:place] = [*made_blocks, after]
        if not is_void:
            call.op, call.operands, call.block = Op.Phi, results, after
            after.instructions.append(call)
        return after

    def call(self, call: Instruction, target: Function, arguments: list[Operand], block: Block) -> None:
        """Makes `call` one of the target, at the end of the block."""
        passed = []
        for argument, parameter in zip(arguments, target.type.members, strict=True):
            value = argument
            if value.type is not parameter:
                value = append(block, Op.Bitcast, parameter, [value])
                value.line = call.line
            passed.append(value)
        result = target.type.element
        if result is call.type:
            call.op, call.operands = Op.FunctionCall, [target, *passed]
            block.instructions.append(call)
            return
        inner = append(block, Op.FunctionCall, result, [target, *passed])
        inner.line = call.line
        call.op, call.operands = Op.Bitcast, [inner]
        block.instructions.append(call)


def _function_of(pointer: Value) -> Function | None:
    """The function that a constant points to."""
    while isinstance(pointer, (ConstantExpr, Instruction)) and pointer.op in _SAME:
        pointer = pointer.operands[0]
    if isinstance(pointer, ConstantExpr) and pointer.op is Op.ConstantFunctionPointerINTEL:
        function: Function = pointer.operands[0]
        return function
    return None


_SAME = frozenset((Op.Bitcast, Op.PtrCastToGeneric, Op.GenericCastToPtr, Op.CopyObject))


def _fits(function: Type, called: Type) -> bool:
    """Whether a call of one type may be of a function of another: what pointers point to does not count."""
    return len(function.members) == len(called.members) and all(
        a is b or (a.kind is b.kind is Kind.POINTER and a.storage is b.storage)
        for a, b in zip((function.element, *function.members), (called.element, *called.members), strict=True)
    )
