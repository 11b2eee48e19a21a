"""Bodies for the functions of cl_khr_extended_async_copies and cl_khr_async_work_group_copy_fence, which no
clang knows: they are calls of mangled names.

    async_work_group_copy_3D3D  ►  for each plane, for each line: OpGroupAsyncCopy of its bytes

The linker gives them to declarations that nothing else defines, as conversion_functions.py does. Copies are
done in their order, each before the next begins: a fence has nothing to do.
"""

from __future__ import annotations

from ..late_patterns import pattern
from .enums import Op, Scope, StorageClass
from .module import Argument, Block, Function, Instruction, Kind, Type, Value
from .types import TypeTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    _Body: TypeAlias = Callable[[list[Value]], None]

_NAME = pattern(r"(?:_Z\d+)?async_work_group_copy_(fence|2D2D|3D3D)(?:j|PU3AS\w+)?")
_MEMORIES = {StorageClass.Workgroup, StorageClass.CrossWorkgroup}


def define(function: Function, types: TypeTable) -> bool:
    """Gives a declaration a body, if its name and type are those of such a function; says whether it did."""
    name = function.linkage[0] if function.linkage else ""
    found = _NAME.fullmatch(name) if "async_work_group_copy_" in name else None
    if found is None:
        return False
    what, result, parameters = found[1], function.type.element, function.type.members
    if what == "fence":
        if result.kind is not Kind.VOID or [p.kind for p in parameters] != [Kind.INT]:
            return False
        function.arguments, block = [Argument(parameters[0], 0)], Block(function)
        block.instructions.append(Instruction(Op.Return, None, [], block))
        function.blocks, function.linkage = [block], None
        return True
    if not _is_copy(result, parameters, 10 if what == "2D2D" else 13):
        return False
    _Copy(function, types).define(what == "3D3D")
    function.linkage = None
    return True


def _is_copy(result: Type, parameters: tuple[Type, ...], count: int) -> bool:
    """Whether a function's type is that of a copy of count parameters."""
    if len(parameters) != count or result.op != Op.TypeEvent or parameters[-1] is not result:
        return False
    pointers, sizes = (parameters[0], parameters[2]), (parameters[1], *parameters[3:-1])
    return (
        all(p.kind is Kind.POINTER and p.element is not None for p in pointers)
        and {p.storage for p in pointers} == _MEMORIES
        and sizes[0].kind is Kind.INT
        and all(size is sizes[0] for size in sizes)
    )


class _Copy:
    def __init__(self, function: Function, types: TypeTable) -> None:
        self.function = function
        self.types = types
        self.size = function.type.members[1]
        function.arguments = [Argument(type_, k) for k, type_ in enumerate(function.type.members)]
        self.block = Block(function)
        function.blocks = [self.block]

    def define(self, has_planes: bool) -> None:
        """The arguments in their order: the target and where it begins, the source likewise, bytes of an
        element, elements of a line, lines, of 3D planes, what lies between lines and planes of the source,
        and of the target, an event."""
        target, to, source, from_, element, elements, lines, *rest, event = self.function.arguments
        bytes_ = [self.emit(Op.IMul, self.size, v, element) for v in (to, from_, elements)]
        places = [self.moved(self.bytes_of(target), bytes_[0]), self.moved(self.bytes_of(source), bytes_[1])]
        line = bytes_[2]

        def copy_lines(places: list[Value], source_step: Value, target_step: Value) -> None:
            self.loop(lines, places, [target_step, source_step], lambda at: self.copy(at, line, event))

        if has_planes:
            planes, *given = rest
            steps = [self.emit(Op.IMul, self.size, step, element) for step in given]
            self.loop(planes, places, [steps[3], steps[1]], lambda at: copy_lines(at, steps[0], steps[2]))
        else:
            copy_lines(places, *(self.emit(Op.IMul, self.size, step, element) for step in rest))
        self.emit(Op.ReturnValue, None, event)

    def emit(self, op: Op, type_: Type | None, *operands: object) -> Instruction:
        made = Instruction(op, type_, list(operands), self.block)
        self.block.instructions.append(made)
        return made

    def bytes_of(self, pointer: Value) -> Value:
        type_ = self.types.pointer(pointer.type.storage, self.types.int(8))
        return pointer if pointer.type is type_ else self.emit(Op.Bitcast, type_, pointer)

    def moved(self, place: Value, bytes_: Value) -> Value:
        return self.emit(Op.PtrAccessChain, place.type, place, bytes_)

    def copy(self, places: list[Value], size: Value, event: Value) -> None:
        scope = self.types.integer(32, Scope.Workgroup)
        one = self.types.constant(self.size, 1)
        self.emit(Op.GroupAsyncCopy, event.type, scope, *places, size, one, event)

    def loop(self, count: Value, places: list[Value], steps: list[Value], body: _Body) -> None:
        """Does something count times, with places that move on by so many bytes each time."""
        before = self.block
        header, inside, after = (Block(self.function) for _ in range(3))
        zero, one = (self.types.constant(self.size, value) for value in (0, 1))
        self.emit(Op.Branch, None, header)
        self.block = header
        index = self.emit(Op.Phi, self.size)
        more = self.emit(Op.ULessThan, self.types.bool(), index, count)
        self.emit(Op.BranchConditional, None, more, inside, after)
        self.block = inside
        self.function.blocks += [header, inside]
        body(
            [
                self.moved(at, self.emit(Op.IMul, self.size, index, step))
                for at, step in zip(places, steps, strict=True)
            ]
        )
        following = self.emit(Op.IAdd, self.size, index, one)
        self.emit(Op.Branch, None, header)
        index.operands = [zero, before, following, self.block]
        self.block = after
        self.function.blocks.append(after)
