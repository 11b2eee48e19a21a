"""Vectors of any number of components (SPV_EXT_long_vector, VectorAnyINTEL) and vectors of pointers
(SPV_INTEL_masked_gather_scatter), as vectors and scalars that all stages know.

A value of such a type becomes pieces: vectors of 16, 8, 4 and 2 components and single ones, of which an
instruction takes one after another; of pointers, single ones. In memory nothing changes: what is in arrays
and structures, and arguments of kernels, are looked at component by component.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import Op, OpenCLStd
from ...spirv.errors import SpirvError
from ...spirv.layout import alignment_of, size_of
from ...spirv.module import (
    Argument,
    Block,
    Constant,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Operand,
    Type,
    Value,
)
from ...spirv.types import TypeTable
from ..ir.instructions import ADDRESS, PURE, rename_phi_edge, reverse_postorder
from .vector_pieces import Pieces, holds_split, is_split, sizes_of

_ALIGNED = 128  # bytes that memory of such a type is sure to be aligned to: CL_DEVICE_MEM_BASE_ADDR_ALIGN

_Std = OpenCLStd
# Functions that do not compute each component from those of their arguments.
_OF_WHOLE_VECTORS = frozenset((
    _Std.cross, _Std.distance, _Std.length, _Std.normalize, _Std.fast_distance, _Std.fast_length,
    _Std.fast_normalize, _Std.vloadn, _Std.vstoren, _Std.vload_halfn, _Std.vstore_halfn, _Std.vstore_halfn_r,
    _Std.vloada_halfn, _Std.vstorea_halfn, _Std.vstorea_halfn_r, _Std.shuffle, _Std.shuffle2, _Std.printf,
    _Std.prefetch,
))  # fmt: skip
# Instructions that take components one by one, beside those of PURE.
_BY_COMPONENT = ADDRESS | {Op.GenericCastToPtrExplicit, Op.CopyObject, Op.ExtInst}
_NOT_BY_COMPONENT = frozenset((
    Op.Dot, Op.Any, Op.All, Op.IAddCarry, Op.ISubBorrow, Op.UMulExtended, Op.SMulExtended, Op.SDot, Op.UDot,
    Op.SUDot, Op.SDotAccSat, Op.UDotAccSat, Op.SUDotAccSat, Op.SizeOf, Op.GenericPtrMemSemantics,
    Op.MatrixTimesScalar, Op.MatrixTimesVector, Op.VectorTimesMatrix, Op.MatrixTimesMatrix, Op.OuterProduct,
    Op.Transpose,
))  # fmt: skip


def split_vectors(functions: Iterable[Function], entries: Iterable[Function], types: TypeTable) -> None:
    """Changes functions, and the types of those that are no kernels. SpirvError for what vectors of such
    types cannot do."""
    functions, kernels = list(functions), set(map(id, entries))
    for function in functions:
        function.blocks  # noqa: B018  decoded while its type is still what it was
    for function in functions:
        _Splitting(function, types, id(function) in kernels).run()


class _Splitting(Pieces):
    def __init__(self, function: Function, types: TypeTable, is_kernel: bool) -> None:
        super().__init__(types)
        self.function = function
        self.is_kernel = is_kernel
        self.phis: list[tuple[list[Instruction], Instruction]] = []

    def run(self) -> None:
        function = self.function
        if not self.concerns():
            return
        if not function.blocks:
            if holds_split(function.type.element) or any(map(is_split, function.type.members)):
                what = f"'{function.name}', a function without a body, takes or gives vectors"
                raise SpirvError(function.offset, "OpFunction", f"{what} of a size that it cannot be for")
            return
        function.blocks = reverse_postorder(function)
        entry = function.blocks[0]
        self.block, self.line = entry, entry.instructions[0]
        self.take_arguments()
        self.initialise(entry)
        started, self.out = self.out, []
        made: list[Block] = []
        for block in function.blocks:
            made.append(block)
            self.lower_block(block, made)
        function.blocks = made
        place = next(k for k, i in enumerate(entry.instructions) if i.op is not Op.Variable)
        entry.instructions[place:place] = started
        for phis, phi in self.phis:
            for value, parent in zip(phi.operands[::2], phi.operands[1::2], strict=True):
                # Components of what comes from there are made there.
                for one, piece in zip(phis, self.known(value), strict=True):
                    one.operands += [piece, parent]

    def concerns(self) -> bool:
        types = [self.function.type.element, *self.function.type.members]
        for block in self.function.blocks:
            for i in block.instructions:
                types += [v.type for v in (i, *i.operands) if isinstance(v, Value) and v.type is not None]
        return any(map(holds_split, dict.fromkeys(types)))

    def take_arguments(self) -> None:
        function, types = self.function, self.types
        if self.is_kernel:
            for argument in function.arguments:
                if is_split(argument.type):
                    each = range(argument.type.count)
                    element = argument.type.element
                    made = [self.emit(Op.CompositeExtract, element, [argument, k]) for k in each]
                    self.pieces[argument] = self.joined(list(made), argument.type)
            return
        arguments: list[Argument] = []
        for argument in function.arguments:
            if not is_split(argument.type):
                argument.index = len(arguments)
                arguments.append(argument)
                continue
            own = [Argument(t, len(arguments) + k, argument.name)
                   for k, t in enumerate(self.piece_types(argument.type))]  # fmt: skip
            arguments += own
            self.pieces[argument] = list(own)
        function.arguments = arguments
        result = self.result_type(function.type.element)
        function.type = types.function(result, tuple(argument.type for argument in arguments))

    def initialise(self, entry: Block) -> None:
        """Initialisers of variables become stores, in pieces."""
        for i in entry.instructions:
            if i.op is Op.Variable and len(i.operands) > 1 and is_split(i.operands[1].type):
                *i.operands, value = i.operands
                store = Instruction(Op.Store, None, [i, value], entry)
                self.line = i
                for piece, place in zip(self.known(value), self.places(i, value.type), strict=True):
                    self.store(store, piece, *place)

    # Instructions.

    def lower_block(self, block: Block, made: list[Block]) -> None:
        """The block, and those that come of it: `made` gets them."""
        self.block, self.out = block, []
        old, successors = block.instructions, block.successors()
        for i in old:
            self.line = i
            if i.op in (Op.MaskedGatherINTEL, Op.MaskedScatterINTEL):
                self.access_masked(i, made)
            elif self.touches(i):
                self.lower(i)
            else:
                i.block = self.block
                self.out.append(i)
        self.block.instructions, self.out = self.out, []
        if self.block is not block:
            for successor in successors:
                rename_phi_edge(successor, block, self.block)
            for _, phi in self.phis:
                if phi.block in successors:
                    phi.operands = [self.block if o is block else o for o in phi.operands]

    def touches(self, i: Instruction) -> bool:
        """Whether an instruction has to do with values that become pieces."""
        values = (i, *i.operands)
        return i.op is Op.FunctionCall or any(isinstance(v, Value) and is_split(v.type) for v in values)

    def lower(self, i: Instruction) -> None:
        op = i.op
        if op is Op.Load:
            self.pieces[i] = [self.load(i, *place) for place in self.places(i.operands[0], i.type)]
        elif op is Op.Store:
            pointer, value = i.operands
            for piece, place in zip(self.known(value), self.places(pointer, value.type), strict=True):
                self.store(i, piece, *place)
        elif op is Op.Variable:
            self.variables(i)
        elif op is Op.Phi:
            phis = [Instruction(Op.Phi, t, (), self.block) for t in self.piece_types(i.type)]
            self.out += phis
            self.pieces[i] = list(phis)
            self.phis.append((phis, i))
        elif op is Op.FunctionCall:
            self.call(i)
        elif op is Op.ReturnValue:
            pieces = self.known(i.operands[0])
            type_ = self.result_type(i.operands[0].type)
            value = pieces[0] if len(pieces) == 1 else self.emit(Op.CompositeConstruct, type_, pieces)
            self.become(i, op, [value])
        elif op is Op.CompositeExtract:
            self.extract(i)
        elif op is Op.CompositeInsert:
            self.insert(i)
        elif op is Op.CompositeConstruct:
            self.construct(i)
        elif op is Op.VectorShuffle:
            a, b, *picks = i.operands
            components = self.components(a) + self.components(b)
            undef = self.types.undef(i.type.element)
            self.define(i, [components[k] if k < len(components) else undef for k in picks])
        elif op is Op.VectorExtractDynamic:
            self.extract_dynamic(i)
        elif op is Op.VectorInsertDynamic:
            self.insert_dynamic(i)
        elif op in (Op.Any, Op.All, Op.Dot):
            self.reduce(i)
        elif op is Op.Bitcast and not self.is_even(i):
            self.bitcast(i)
        elif (op in PURE and op not in _NOT_BY_COMPONENT) or op in _BY_COMPONENT:
            self.each(i)
        else:
            raise self.refusal(self.what(i))

    # Memory.

    def places(self, pointer: Value, type_: Type) -> list[tuple[Value, int]]:
        """Where the pieces of a vector are, as pointers to them, with the bytes before them."""
        storage, size = pointer.type.storage, size_of(type_.element)
        to_element = self.types.pointer(storage, type_.element)
        first = pointer
        if pointer.type is not to_element:
            first = self.emit(Op.Bitcast, to_element, [pointer])
        places, start = [], 0
        for count in sizes_of(type_):
            place: Value = first
            if start:
                index = self.types.integer(64, start)
                place = self.emit(Op.InBoundsPtrAccessChain, to_element, [first, index])
            wanted = self.types.pointer(storage, self.piece(type_, count))
            if place.type is not wanted:
                place = self.emit(Op.Bitcast, wanted, [place])
            places.append((place, start * size))
            start += count
        return places

    def access(self, i: Instruction, type_: Type, offset: int) -> MemoryAccess:
        """What is said of a vector, of the piece that many bytes behind its beginning."""
        whole = i.memory or MemoryAccess()
        alignment = min(whole.alignment or alignment_of(type_), _ALIGNED)
        if offset:
            alignment = min(alignment, offset & -offset)
        return MemoryAccess(alignment, whole.volatile, whole.nontemporal)

    def load(self, i: Instruction, place: Value, offset: int) -> Value:
        made = self.like(i, place.type.element, [place])
        made.memory = self.access(i, i.type, offset)
        return made

    def store(self, i: Instruction, piece: Value, place: Value, offset: int) -> None:
        self.emit(Op.Store, None, [place, piece]).memory = self.access(i, i.operands[1].type, offset)

    def variables(self, i: Instruction) -> None:
        """A variable for each component of a vector of pointers."""
        made = [Instruction(Op.Variable, t, i.operands[:1], self.block) for t in self.piece_types(i.type)]
        self.out[:0] = made
        self.pieces[i] = list(made)

    def access_masked(self, i: Instruction, made: list[Block]) -> None:
        """A branch for each component: what the mask leaves out is not touched."""
        is_gather = i.op is Op.MaskedGatherINTEL
        if is_gather:
            pointers, alignment, mask, fill = i.operands
            element, fills = i.type.element, self.components(fill)
            fills = fills * i.type.count if len(fills) == 1 else fills
            stored: list[Value] = []
        else:
            data, pointers, alignment, mask = i.operands
            element, stored, fills = data.type.element, self.components(data), []
        places, bits = self.components(pointers), self.components(mask)
        memory = MemoryAccess(min(alignment, _ALIGNED) or size_of(element))
        results: list[Value] = []
        for k, (place, bit) in enumerate(zip(places, bits, strict=True)):
            is_known = isinstance(bit, Constant)
            if isinstance(bit, Constant) and not bit.value:
                results += fills[k : k + 1]
                continue
            before, join = self.block, self.block
            if not is_known:
                then, join = Block(self.function), Block(self.function)
                made += [then, join]
                self.emit(Op.BranchConditional, None, [bit, then, join])
                self.start(then)
            if is_gather:
                loaded = self.emit(Op.Load, element, [place])
                loaded.memory = memory
                results.append(loaded)
            else:
                self.emit(Op.Store, None, [place, stored[k]]).memory = memory
            if is_known:
                continue
            self.emit(Op.Branch, None, [join])
            then = self.block
            self.start(join)
            if is_gather:
                operands = [results[k], then, fills[k], before]
                results[k] = self.emit(Op.Phi, element, operands)
        if is_gather:
            self.define(i, results)

    def start(self, block: Block) -> None:
        """What follows is in that block."""
        self.block.instructions, self.out = self.out, []
        self.block = block

    # Calls.

    def call(self, i: Instruction) -> None:
        callee, *arguments = i.operands
        passed: list[Value] = []
        for argument in arguments:
            passed += self.known(argument) if is_split(argument.type) else [argument]
        if not is_split(i.type):
            self.become(i, i.op, [callee, *passed])
            return
        made = self.like(i, self.result_type(i.type), [callee, *passed])
        types = self.piece_types(i.type)
        if len(types) == 1:
            self.pieces[i] = [made]
        else:
            self.pieces[i] = [self.emit(Op.CompositeExtract, t, [made, k]) for k, t in enumerate(types)]

    # Composites.

    def extract(self, i: Instruction) -> None:
        composite, *path = i.operands
        if is_split(composite.type):
            self.become(i, Op.CopyObject, [self.components(composite)[path[0]]])
            return
        each = range(i.type.count)
        element = i.type.element
        self.define(i, [self.emit(Op.CompositeExtract, element, [composite, *path, k]) for k in each])

    def insert(self, i: Instruction) -> None:
        value, composite, *path = i.operands
        if is_split(composite.type):
            components = list(self.components(composite))
            components[path[0]] = value
            self.define(i, components)
            return
        self.become(i, Op.CopyObject, [self.inserted(value, composite, path)])

    def inserted(self, value: Value, composite: Value, path: list[int]) -> Value:
        """A composite of which a member is a vector that becomes pieces."""
        for k, component in enumerate(self.components(value)):
            composite = self.emit(Op.CompositeInsert, composite.type, [component, composite, *path, k])
        return composite

    def construct(self, i: Instruction) -> None:
        if i.type.kind is Kind.VECTOR:
            self.define(i, [c for operand in i.operands for c in self.components(operand)])
            return
        composite: Value = self.types.undef(i.type)
        for k, value in enumerate(i.operands):
            if is_split(value.type):
                composite = self.inserted(value, composite, [k])
            else:
                composite = self.emit(Op.CompositeInsert, i.type, [value, composite, k])
        self.become(i, Op.CopyObject, [composite])

    def extract_dynamic(self, i: Instruction) -> None:
        vector, index = i.operands
        found: Value | None = None
        start = vector.type.count
        for piece in reversed(self.known(vector)):
            end, start = start, start - self.size(piece)
            value = piece
            if self.size(piece) > 1:
                value = self.emit(i.op, i.type, [piece, self.within(index, start, piece)])
            if found is not None:
                is_before = self.emit(Op.ULessThan, self.types.bool(), [index, self.number(index, end)])
                value = self.emit(Op.Select, i.type, [is_before, value, found])
            found = value
        assert found is not None
        self.become(i, Op.CopyObject, [found])

    def insert_dynamic(self, i: Instruction) -> None:
        vector, value, index = i.operands
        pieces: list[Value] = []
        start = 0
        for piece in self.known(vector):
            size = self.size(piece)
            distance = self.emit(Op.ISub, index.type, [index, self.number(index, start)])
            is_in = self.emit(Op.ULessThan, self.types.bool(), [distance, self.number(index, size)])
            changed = value
            if size > 1:
                place = self.within(index, start, piece)
                changed = self.emit(i.op, piece.type, [piece, value, place])
            pieces.append(self.emit(Op.Select, piece.type, [is_in, changed, piece]))
            start += size
        self.pieces[i] = pieces

    # Arithmetic.

    def each(self, i: Instruction) -> None:
        """The instruction, of each piece; where pieces are not alike, of each component."""
        vectors = [v.type for v in (i, *i.operands) if isinstance(v, Value) and self.is_vector(v)]
        if i.op is Op.ExtInst and i.operands[1] in _OF_WHOLE_VECTORS:
            raise self.refusal(self.what(i))
        if any(type_.count != vectors[0].count for type_ in vectors):
            raise self.refusal("vectors of different sizes")
        if any(type_.element.kind is Kind.POINTER or not is_split(type_) for type_ in vectors):
            sizes = [1] * vectors[0].count
        else:
            sizes = sizes_of(vectors[0])
        columns = [self.column(operand, sizes) for operand in i.operands]
        results: list[Value] = []
        for k, size in enumerate(sizes):
            type_ = self.piece(i.type, size) if i.type.kind is Kind.VECTOR else i.type
            operands = [column[k] for column in columns]
            if i.op is Op.VectorTimesScalar and size == 1:
                results.append(self.emit(Op.FMul, type_, operands))
                results[-1].decorations = i.decorations  # type: ignore[attr-defined]
            else:
                results.append(self.like(i, type_, operands))
        if sizes == sizes_of(i.type) and is_split(i.type):
            self.pieces[i] = results
        else:
            self.define(i, results)

    def column(self, operand: Operand, sizes: list[int]) -> list[Operand]:
        """An operand's pieces of these sizes; the same for all where it is no vector."""
        if not isinstance(operand, Value) or operand.type is None:
            return [operand] * len(sizes)
        type_ = operand.type
        if type_.kind is Kind.VECTOR:
            alike = is_split(type_) and sizes_of(type_) == sizes
            return list(self.known(operand) if alike else self.components(operand))
        pointee = type_.element if type_.kind is Kind.POINTER else None
        if self.line.op is Op.ExtInst and pointee is not None and is_split(pointee):
            return [place for place, _ in self.places(operand, pointee)]
        return [operand] * len(sizes)

    def reduce(self, i: Instruction) -> None:
        """OpAny, OpAll, OpDot: of each piece, then of these."""
        join = {Op.Any: Op.LogicalOr, Op.All: Op.LogicalAnd, Op.Dot: Op.FAdd}[i.op]
        found: Value | None = None
        for pieces in zip(*map(self.known, i.operands), strict=True):
            value = pieces[0]
            if self.size(value) > 1:
                value = self.like(i, i.type, pieces)
            elif i.op is Op.Dot:
                value = self.emit(Op.FMul, i.type, pieces)
            found = value if found is None else self.emit(join, i.type, [found, value])
        assert found is not None
        self.become(i, Op.CopyObject, [found])

    def is_even(self, i: Instruction) -> bool:
        """Whether a bitcast is one of each component."""
        (value,) = i.operands
        return self.is_vector(i) and self.is_vector(value) and value.type.count == i.type.count

    def bitcast(self, i: Instruction) -> None:
        """One component of several, or several of one."""
        given = self.components(i.operands[0])
        made = i.type.element if i.type.kind is Kind.VECTOR else i.type
        from_, to = size_of(given[0].type), size_of(made)
        results: list[Value] = []
        if from_ == to:
            results += [self.emit(i.op, made, [value]) for value in given]
        elif from_ < to:
            ratio = to // from_
            narrow = self.types.vector(given[0].type, ratio)
            for k in range(0, len(given), ratio):
                some = self.emit(Op.CompositeConstruct, narrow, given[k : k + ratio])
                results.append(self.emit(i.op, made, [some]))
        else:
            ratio = from_ // to
            narrow = self.types.vector(made, ratio)
            for value in given:
                some = self.emit(i.op, narrow, [value])
                results += [self.emit(Op.CompositeExtract, made, [some, k]) for k in range(ratio)]
        if i.type.kind is Kind.VECTOR:
            self.define(i, results)
        else:
            self.become(i, Op.CopyObject, results)
