"""The check mode (CL_DRIVER_CHECK): every access to memory gets an operation before it that looks whether it
is allowed, and every barrier one that counts who comes to it.

CheckAccess, before loads, stores, atomics and copies of memory that work-items share, gives the address that
is accessed: the same, or one of no consequence. codegen/kernel/checked_kernel.py makes calls of it.

After promotion: what is a register by then needs no check, and addresses have become values.
"""

from __future__ import annotations

import copy

from ...spirv.enums import Op, StorageClass
from ...spirv.module import (
    Argument,
    Block,
    Constant,
    Function,
    Instruction,
    Kind,
    Type,
    Undef,
    Value,
    Variable,
)
from ...spirv.types import TypeTable
from ..analysis.roots import Root, roots
from ..ir.instructions import (
    ADDRESS,
    ATOMICS,
    EXTINST_PREFETCH,
    EXTINST_PRINTF,
    GROUP_OPERATIONS,
    int_value,
    is_boundary,
    is_by_value,
    is_constant_int,
    substitute,
    users,
)
from ..ir.layout import alignment_of, size_of
from ..ir.ops import PassOp
from .choices import Choices
from .integers import base, origin
from .library_calls import second_result_size, vector_place
from .private_memory import SHADOW, Shadows, copied_size, has_known_accesses, sites_of, unwanted_end
from .sites import ATOMIC, BARRIER, FENCE, LOAD, STORE, Site
from .undefined import chosen_by, is_masked

_SHARED = (StorageClass.CrossWorkgroup, StorageClass.Workgroup, StorageClass.Generic)
# OpenCL C, Atomic Functions: of pointers to global or local memory, or generic ones; what is undefined is an
# object in private memory behind these.
_PRIVATE = (StorageClass.Function, StorageClass.Private)
_ADDRESSES = ADDRESS | {
    Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr, Op.Phi, Op.Select,
    Op.GenericCastToPtrExplicit, Op.ConvertPtrToU, Op.PtrEqual, Op.PtrNotEqual, Op.PtrDiff,
    Op.GenericPtrMemSemantics, Op.LifetimeStart, Op.LifetimeStop,
}  # fmt: skip

_CHECKS = (PassOp.CheckWait, PassOp.CheckOperation, PassOp.CheckImage)  # that are there already

_MOST_CHOICES = 16  # objects that one address may lead into

# Bits of memory semantics (SPIR-V 1.6, section 3.25).
_ACQUIRE, _RELEASE = 0x2 | 0x8 | 0x10, 0x4 | 0x8 | 0x10
_LOCAL, _GLOBAL = 0x100, 0x200


def instrument(function: Function, types: TypeTable) -> None:
    """Puts the operations in."""
    _Instrumenter(function, types).run()


class _Instrumenter:
    def __init__(self, function: Function, types: TypeTable) -> None:
        self.function = function
        self.types = types
        self.used_by = users(function)
        self.shadows = Shadows(function, types)
        self.choices = Choices(function, types)
        self.is_followed: dict[Instruction, bool] = {}
        self.events: dict[Value, Instruction] = {}  # of copies
        self.block: Block

    def run(self) -> None:
        self.find_chosen()
        for block in self.function.blocks:
            old, block.instructions = block.instructions, []
            self.block = block
            for i in old:
                self.visit(i)
                block.instructions.append(i)
                if i.op is Op.GroupAsyncCopy and i in self.events:
                    block.instructions.append(self.events[i])
        self.choices.insert()
        substitute(self.function, self.events)

    def add(self, i: Instruction, op: Op, operands: list[object], is_address: bool = True) -> Instruction:
        """A new instruction before i, of its line."""
        type_ = operands[0].type if is_address else None  # type: ignore[attr-defined]
        new = Instruction(op, type_, operands, self.block)
        new.line = i.line
        self.block.instructions.append(new)
        return new

    def find_chosen(self) -> None:
        """Of operations whose results the program chooses, the checks come where it does, or nowhere."""
        replaced: dict[Value, Value] = {}
        before: dict[Instruction, list[Instruction]] = {}  # checks by what chooses
        for block in self.function.blocks:
            old, block.instructions = block.instructions, []
            for i in old:
                if i.op is not PassOp.CheckOperation:
                    block.instructions.append(i)
                    continue
                *operands, site = i.operands
                chosen = chosen_by(i, self.used_by)
                if chosen is not None:
                    select, site.if_true = chosen
                    site.chosen = True
                    i.operands = [*operands, select.operands[0], site]
                    i.block = select.block
                    before.setdefault(select, []).append(i)
                elif not is_masked(i, self.used_by):
                    block.instructions.append(i)
                    continue
                replaced[i] = operands[-1]
        for block in self.function.blocks:
            if not before.keys().isdisjoint(block.instructions):
                block.instructions = [i for at in block.instructions for i in (*before.get(at, ()), at)]
        substitute(self.function, replaced)

    def visit(self, i: Instruction) -> None:
        op = i.op
        if op is Op.Load:
            ((at, site),) = sites_of(i, self.used_by)
            self.access(i, at, site)
        elif op is Op.Store:
            value = i.operands[1]
            ((at, site),) = sites_of(i, self.used_by)
            if not isinstance(value, Undef):
                self.access(i, at, site, value)
        elif op in ATOMICS:
            self.atomic(i)
        elif op is Op.CopyMemory or op is Op.CopyMemorySized:
            self.copy(i)
        elif op is Op.GroupAsyncCopy and _of_group(i):
            self.group_copy(i)
        elif op in ADDRESS:
            self.indices(i)
        elif is_boundary(i) or op in GROUP_OPERATIONS:
            if op not in GROUP_OPERATIONS or _of_group(i):
                bits = _integer(i.operands[2]) if op is Op.ControlBarrier else 0
                self.add(i, PassOp.CheckBarrier, [_ordering(Site(BARRIER, i.line), bits)], False)
            if op in GROUP_OPERATIONS:
                self.unknown(i)
        elif op is PassOp.CheckImage:
            image, *_, site = i.operands
            if isinstance(image, Argument) and image in self.function.arguments:
                site.root, site.name = image, image.name
        elif op is Op.MemoryBarrier:
            site = _ordering(Site(FENCE, i.line), _integer(i.operands[1]))
            self.add(i, PassOp.CheckFence, [site], False)
        elif op is Op.ExtInst:
            self.extended(i)
        elif op not in _ADDRESSES and op not in _CHECKS:
            self.unknown(i)

    def extended(self, i: Instruction) -> None:
        """An instruction of OpenCL.std: some load or store vectors, some have a second result."""
        number = i.operands[1]
        if number in (EXTINST_PRINTF, EXTINST_PREFETCH):
            return
        place = vector_place(self.block, i, self.types)
        if place is not None:
            at, size, alignment, is_load = place
            if is_load:  # vloada_half3 is a vload_half4
                size -= int(size * unwanted_end(i, self.used_by))
            self.access(i, at, Site(LOAD if is_load else STORE, i.line, size, alignment))
        elif second_result_size(i):
            size = second_result_size(i)
            self.access(i, len(i.operands) - 1, Site(STORE, i.line, size, size))
        else:
            self.unknown(i)

    def unknown(self, i: Instruction) -> None:
        """What nobody looks at may write to what it has the address of."""
        for operand in i.operands:
            if isinstance(operand, Value) and operand.type is not None and operand.type.kind is Kind.POINTER:
                if operand.type.storage in _SHARED and not isinstance(operand, (Undef, Constant)):
                    self.add(i, PassOp.CheckUnknown, [operand], False)

    def access(self, i: Instruction, at: int, site: Site, value: Value | None = None) -> None:
        """Checks the address that operand number `at` is."""
        pointer = i.operands[at]
        if self.chosen(i, at, site) or not self.find_root(pointer, site):
            return
        root = site.root
        if site.kind == ATOMIC and site.storage in _PRIVATE:
            self.add(i, PassOp.CheckFault, [pointer, site])
        if isinstance(root, Variable) and site.storage is StorageClass.UniformConstant and site.kind != LOAD:
            i.operands[at] = self.add(i, PassOp.CheckFault, [pointer, site])  # it may be no memory at all
            return
        if isinstance(root, Instruction):
            operands = [pointer, root, site]
            if root not in self.is_followed:
                self.is_followed[root] = has_known_accesses(root, self.used_by)
            if self.is_followed[root]:
                operands.insert(2, self.shadows.of(root))
            op = PassOp.CheckPrivate if self.is_followed[root] else PassOp.CheckObject
        elif site.storage is StorageClass.Function or (
            isinstance(root, Variable) and site.storage is StorageClass.UniformConstant
        ):
            operands, op = [pointer, root, site], PassOp.CheckObject
        else:
            operands, op = [pointer, site], PassOp.CheckAccess
            if site.runs:  # of a vector: none but these are accessed, whatever the instruction does
                site.no_read = site.kind == LOAD and not sum(site.runs[-1])
                site.alignment = 1
            elif value is not None and _has_bytes(value.type):
                site.has_value = True
                operands.append(value)
        i.operands[at] = self.add(i, op, operands)

    def chosen(self, i: Instruction, at: int, site: Site) -> bool:
        """Checks an address that is chosen among objects whose sizes are known, if it is."""
        pointer = i.operands[at]
        found = None if isinstance(pointer, (Undef, Constant)) else roots(pointer)
        is_load = site.kind == LOAD
        if (
            found is None
            or not 1 < len(found) <= _MOST_CHOICES
            or not all(_has_size(root, is_load) for root in found)
        ):
            return False
        number = self.choices.number(pointer, found)
        operands: list[object] = [pointer, number]
        for root in sorted(found, key=self.choices.object):
            one = copy.copy(site)
            if not self.find_root(root, one):
                return False
            operands += [root, self.choices.object(root), one]
        i.operands[at] = self.add(i, PassOp.CheckChosen, operands)
        return True

    def find_root(self, pointer: Value, site: Site) -> bool:
        """Fills in what an address points into; False where there is nothing to check."""
        if isinstance(pointer, (Undef, Constant)):
            return False
        site.storage = pointer.type.storage
        found = roots(origin(pointer))
        if found is None or len(found) != 1:
            is_constant = site.storage is StorageClass.UniformConstant
            return site.storage in _SHARED or (is_constant and not _is_of_driver(pointer, found))
        (root,) = found
        if isinstance(root, Variable) and root.builtin is not None:
            return False
        if root.type.kind is not Kind.POINTER or root.type.element is None:
            return site.storage in _SHARED
        if isinstance(root, Instruction) and root.name == SHADOW:
            return False
        site.root, site.storage, site.name = root, root.type.storage, root.name
        if isinstance(root, Argument):
            if root not in self.function.arguments:
                return False
            if is_by_value(root):
                site.storage, site.bytes = StorageClass.Function, size_of(root.type.element)
        else:
            site.bytes = size_of(root.type.element)
        return True

    def group_copy(self, i: Instruction) -> None:
        """A copy that all work-items of the group make together."""
        target, source, count, stride, event = i.operands[1:6]
        size = size_of(target.type.element)
        sites = []
        for kind, pointer in ((STORE, target), (LOAD, source)):
            sites.append(Site(kind, i.line, size, size))
            self.find_root(pointer, sites[-1])
        # The functions that copy in more than one dimension give the event back that they got.
        has_event = i in self.used_by
        operands = [target, source, count, stride, event, has_event, *sites]
        check = Instruction(PassOp.CheckCopy, count.type, operands, self.block)
        check.line = i.line
        self.block.instructions.append(check)
        i.operands[3] = check
        if has_event:
            self.events[i] = Instruction(PassOp.CheckEvent, i.type, [], self.block)
            self.events[i].line = i.line

    def indices(self, i: Instruction) -> None:
        """Of arrays in structures: a whole variable's bounds say nothing of these."""
        base, *indices = i.operands
        if base.type.element is None or not isinstance(base, Instruction):
            return
        type_, is_inside = base.type.element, _is_in_structure(base)
        if i.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
            indices = indices[1:]
        for index in indices:
            if type_.kind is Kind.STRUCT:
                is_inside, type_ = True, type_.members[int_value(index)]
                continue
            if type_.kind is Kind.ARRAY and is_inside and type_.count > 1:
                if not is_constant_int(index) or int_value(index) >= type_.count:
                    site = Site(LOAD, i.line, bytes=type_.count)
                    self.add(i, PassOp.CheckIndex, [index, site], False)
            type_ = type_.element

    def atomic(self, i: Instruction) -> None:
        pointer = i.operands[0]
        type_ = i.type if i.type is not None and i.type.kind is not Kind.VOID else None
        if i.op is Op.AtomicFlagTestAndSet or i.op is Op.AtomicFlagClear:
            type_ = self.types.int(32)
        elif i.op is Op.AtomicStore:
            type_ = i.operands[3].type
        if type_ is None:
            return
        site = Site(ATOMIC, i.line, size_of(type_), alignment_of(type_))
        bits = _integer(i.operands[2])
        site.acquires = bool(bits & _ACQUIRE) and i.op is not Op.AtomicStore
        site.releases = bool(bits & _RELEASE) and i.op is not Op.AtomicLoad
        site.no_read = i.op in (Op.AtomicStore, Op.AtomicFlagClear)
        site.no_write = i.op is Op.AtomicLoad
        site.any_content = i.op is Op.AtomicExchange and i not in self.used_by
        exchanges = i.op in (Op.AtomicCompareExchange, Op.AtomicCompareExchangeWeak)
        if pointer.type.kind is Kind.POINTER:
            self.access(i, 0, site, i.operands[5] if exchanges else None)

    def copy(self, i: Instruction) -> None:
        """Both sides, of a number of bytes that is known."""
        if copied_size(i) is None:
            self.unknown(i)
            return
        for at, site in sites_of(i, self.used_by):
            self.access(i, at, site)


def _has_size(root: Root, is_load: bool) -> bool:
    """Whether it is an object of a known size that may be accessed so: constant memory is only read."""
    if isinstance(root, Argument):
        return is_by_value(root)
    storage = root.type.storage
    return storage is StorageClass.Function or (storage is StorageClass.UniformConstant and is_load)


def _is_of_driver(pointer: Value, found: frozenset[Root] | None) -> bool:
    """Whether an address of constant memory is in what the driver has made, and is no allocation: variables
    of the program, what stands behind an image or a sampler."""
    if found is not None:
        return all(isinstance(root, Variable) for root in found)
    return base(pointer).type.kind is not Kind.POINTER


def _integer(value: Value) -> int:
    """A constant; of what is not known, all bits."""
    return int_value(value) if is_constant_int(value) else 0x31E


def _ordering(site: Site, bits: int) -> Site:
    site.orders_local, site.orders_global = bool(bits & _LOCAL), bool(bits & _GLOBAL)
    return site


def _of_group(i: Instruction) -> bool:
    """Whether an operation is one of the work-group: its scope is the first operand."""
    return is_constant_int(i.operands[0]) and int_value(i.operands[0]) == 2


def _is_in_structure(pointer: Value) -> bool:
    """Whether an address is that of a structure's member, or of a part of one."""
    while isinstance(pointer, Instruction) and pointer.op in ADDRESS:
        base, *indices = pointer.operands
        type_ = base.type.element
        if pointer.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
            indices = indices[1:]
        for _ in indices:
            if type_.kind is Kind.STRUCT:
                return True
            type_ = type_.element
        pointer = base
    return False


def _has_bytes(type_: Type) -> bool:
    """Whether a value is numbers alone, of whole bytes."""
    element = type_.element if type_.kind is Kind.VECTOR else type_
    return element.kind in (Kind.INT, Kind.FLOAT) and element.width % 8 == 0
