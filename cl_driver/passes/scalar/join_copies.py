"""Elements side by side that are copied one after the other are copied as one, without lanes.

LLVM joins such loads and stores only if no store writes to what is loaded behind it, which of two pointers is
seldom known when code is made. The code asks: elements in ascending order are copied as if all were loaded
first unless the target begins within the source, behind its start.
"""

from __future__ import annotations

from ...records import record
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Block, Function, Instruction, Kind, MemoryAccess, Type, Value
from ...spirv.types import TypeTable
from ..ir.instructions import PURE, append, int_value, is_constant_int, rename_phi_edge, users
from ..ir.layout import size_of

_LEAST = 4  # elements that are worth a question
_LARGEST = 32  # bytes that are loaded at once: every CPU with vectors has them in a register or two
_STEPS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
_SOURCES = (StorageClass.CrossWorkgroup, StorageClass.Generic, StorageClass.UniformConstant)
_TARGETS = (StorageClass.CrossWorkgroup, StorageClass.Generic)


@record(slots=True)
class _Copy:
    """A store of what was loaded. source, target: see _place()."""

    load: Instruction
    store: Instruction
    source: tuple[object, int]
    target: tuple[object, int]
    size: int

    def follows(self, other: _Copy) -> bool:
        """Whether it goes on where another one ends."""
        return all(
            here[0] == there[0] and here[1] == there[1] + other.size
            for here, there in ((self.source, other.source), (self.target, other.target))
        )


def join_copies(function: Function, types: TypeTable) -> bool:
    """Changes a function in place. True if there was anything to join."""
    used_by = users(function)
    blocks = list(function.blocks)
    function.blocks = []
    changed = False
    while blocks:
        block = blocks.pop(0)
        function.blocks.append(block)
        run = _first_run(block, used_by)
        if run:
            changed = True
            fast, slow, rest = _split(block, run, types)
            function.blocks += [fast, slow]
            blocks.insert(0, rest)  # there may be more
    return changed


def _first_run(block: Block, used_by: dict[Value, list[Instruction]]) -> list[_Copy]:
    """The first copies of a block between which nothing else happens in memory, if they are enough."""
    run: list[_Copy] = []
    loaded: list[Instruction] = []  # and not yet stored, in order
    for i in block.instructions:
        if i.op is Op.Load and _is_plain(i) and len(used_by.get(i, ())) == 1:
            loaded.append(i)
            continue
        copy = _copy(i, loaded) if i.op is Op.Store else None
        if copy is not None and loaded[0] is copy.load:
            if run and not copy.follows(run[-1]):
                if len(run) >= _LEAST and not _reaches_into(run, loaded, block):
                    return run
                run = []
            run.append(copy)
            del loaded[0]
        elif i.op not in PURE:
            if len(run) >= _LEAST and not _reaches_into(run, loaded, block):
                return run
            run, loaded = [], []
    return []


def _reaches_into(run: list[_Copy], loaded: list[Instruction], block: Block) -> bool:
    """Whether something else is loaded before the last copy of a run is done."""
    number = {i: n for n, i in enumerate(block.instructions)}
    first, last = number[run[0].load], number[run[-1].store]
    inside = {i for copy in run for i in (copy.load, copy.store)}
    return any(i.op not in PURE and i not in inside for i in block.instructions[first:last])


def _copy(store: Instruction, loaded: list[Instruction]) -> _Copy | None:
    place, value = store.operands[:2]
    if not loaded or value is not loaded[0] or not _is_plain(store):
        return None
    load = loaded[0]
    origin = load.operands[0]
    if origin.type.storage not in _SOURCES or place.type.storage not in _TARGETS:
        return None
    return _Copy(load, store, _place(origin), _place(place), size_of(load.type))


def _is_plain(i: Instruction) -> bool:
    """Whether it is of a number or a vector without gaps, and no more is said of it than where it is."""
    if i.mask is not None or (i.memory is not None and (i.memory.volatile or i.memory.nontemporal)):
        return False
    type_: Type = i.type if i.op is Op.Load else i.operands[1].type
    element = type_.element if type_.kind is Kind.VECTOR else type_
    if element.kind not in (Kind.INT, Kind.FLOAT):
        return False
    count = type_.count if type_.kind is Kind.VECTOR else 1
    return 8 * size_of(type_) == element.width * count


def _place(pointer: Value) -> tuple[object, int]:
    """What a pointer is computed of, and the constant that is added to that, in bytes. The same sum may be
    computed more than once."""
    behind, steps = 0, []
    while isinstance(pointer, Instruction):
        if pointer.op in _STEPS and len(pointer.operands) == 2:
            type_, index = pointer.operands[0].type.element, pointer.operands[1]
            if not isinstance(type_, Type):
                break
            if is_constant_int(index):
                number = int_value(index)
                behind += size_of(type_) * (number - (number >> index.type.width - 1 << index.type.width))
            else:
                steps.append((index, size_of(type_)))
        elif pointer.op is not Op.Bitcast or pointer.operands[0].type.kind is not Kind.POINTER:
            break
        pointer = pointer.operands[0]
    return (pointer, *steps), behind


def _split(block: Block, run: list[_Copy], types: TypeTable) -> tuple[Block, Block, Block]:
    """Ends a block with the question. Returns what is done for either answer, and what follows."""
    function, instructions = block.function, block.instructions
    fast, slow, rest = (Block(function, name) for name in ("joined", "one by one", "copied"))
    first, last = instructions.index(run[0].load), instructions.index(run[-1].store)
    accesses = {i for copy in run for i in (copy.load, copy.store)}
    inside = instructions[first : last + 1]
    slow.instructions = [i for i in inside if i in accesses]
    rest.instructions = instructions[last + 1 :]
    block.instructions = instructions[:first] + [i for i in inside if i not in accesses]
    for moved in (slow, rest):
        for i in moved.instructions:
            i.block = moved
    for successor in set(rest.successors()):
        rename_phi_edge(successor, block, rest)
    source, target = run[0].load.operands[0], run[0].store.operands[0]
    size = sum(copy.size for copy in run)
    address = types.int(64)
    ends = [append(block, Op.ConvertPtrToU, address, [pointer]) for pointer in (target, source)]
    distance = append(block, Op.ISub, address, ends)
    behind = append(block, Op.ISub, address, [distance, types.integer(64, 1)])
    is_apart = append(block, Op.UGreaterThanEqual, types.bool(), [behind, types.integer(64, size - 1)])
    append(block, Op.BranchConditional, None, [is_apart, fast, slow])
    append(slow, Op.Branch, None, [rest])
    values = []
    for offset, type_ in _pieces(size, types):
        load = append(fast, Op.Load, type_, [_at(fast, source, offset, type_, types)])
        load.memory = MemoryAccess(_alignment(run[0].load, type_))
        values.append(load)
    for load, (offset, type_) in zip(values, _pieces(size, types), strict=True):
        store = append(fast, Op.Store, None, [_at(fast, target, offset, type_, types), load])
        store.memory = MemoryAccess(_alignment(run[0].store, type_))
    append(fast, Op.Branch, None, [rest])
    for i in (*block.instructions[-6:], *fast.instructions):
        i.line, i.offset = run[0].store.line, run[0].store.offset
    return fast, slow, rest


def _alignment(first: Instruction, piece: Type) -> int:
    """In bytes, of a piece, which is a multiple of its size behind where a run begins."""
    known = first.memory.alignment if first.memory is not None else 0
    type_ = first.type if first.op is Op.Load else first.operands[1].type
    return min(known or size_of(type_), size_of(piece))


def _pieces(size: int, types: TypeTable) -> list[tuple[int, Type]]:
    """Where in so many bytes to load and store what."""
    word = types.int(32)
    found, offset, piece = [], 0, _LARGEST
    while offset < size:
        if piece > size - offset:
            piece //= 2
            continue
        found.append((offset, types.vector(word, piece // 4) if piece > 8 else types.int(8 * piece)))
        offset += piece
    return found


def _at(block: Block, pointer: Value, offset: int, type_: Type, types: TypeTable) -> Instruction:
    storage = pointer.type.storage
    start = append(block, Op.Bitcast, types.pointer(storage, types.int(8)), [pointer])
    if offset:
        start = append(block, Op.InBoundsPtrAccessChain, start.type, [start, types.integer(64, offset)])
    return append(block, Op.Bitcast, types.pointer(storage, type_), [start])
