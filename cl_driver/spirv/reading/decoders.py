"""Decoders of the instructions that do not have one of the two common forms; FORMS says which has which.

Nearly all instructions are type, result and ids, or ids only: body.py's inner loop decodes these. The others
have a function here, or follow their pattern from the grammar.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat

from ...fast_typing import Any
from .. import instruction_sets
from ..enumerant import Enumerant
from ..enums import Op, OpenCLStd
from ..module import Argument, Constant, Kind, MemoryAccess, Operand, Type
from ..tables import ID_KINDS, MASK_KINDS, OPENCL_STD, ROWS, VALUE_KINDS, parameters
from .assembly import ASSEMBLY_HANDLERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .body import Body

MEMORY_VOLATILE, MEMORY_ALIGNED, MEMORY_NONTEMPORAL = 1, 2, 4
# Bits of MemoryAccess that one word follows: Aligned, the two of the Vulkan memory model, the alias scopes.
MEMORY_WITH_WORD = 0x2 | 0x8 | 0x10 | 0x10000 | 0x20000
# Those that need a capability.
MEMORY_DECLARED = (0x8, 0x10, 0x20, 0x10000, 0x20000)
MEMORY_KNOWN = MEMORY_WITH_WORD | 0x1 | 0x4 | 0x20

# Some of their operands are types.
TAKES_TYPES = frozenset((
    Op.UntypedVariableKHR, Op.UntypedAccessChainKHR, Op.UntypedInBoundsAccessChainKHR,
    Op.UntypedPtrAccessChainKHR, Op.UntypedInBoundsPtrAccessChainKHR, Op.UntypedArrayLengthKHR,
    Op.UntypedPrefetchKHR, Op.UntypedGroupAsyncCopyKHR, Op.UntypedImageTexelPointerEXT,
    Op.UntypedVariableLengthArrayINTEL, Op.CooperativeMatrixLengthKHR, Op.CooperativeMatrixLengthNV,
))  # fmt: skip


# Decoders: (body, word offset, number of words, op).


def _parameter(body: Body, p: int, n: int, op: Op) -> None:
    if body.blocks:
        raise body.error(p, "parameters come before the first block")
    function, words = body.function, body.words
    type_, index = body.type(p, words[p + 1]), len(function._arguments)
    if index >= len(function.type.members) or type_ is not function.type.members[index]:
        raise body.error(p, "the parameter's type is not that of the function's type")
    argument = Argument(type_, index)
    body.define(p, words[p + 2], argument)
    body.describe(argument, words[p + 2])
    function._arguments.append(argument)


def _label(body: Body, p: int, n: int, op: Op) -> None:
    if body.block is not None:
        raise body.error(p, "the block before has no terminator")
    rid, reader = body.words[p + 1], body.reader
    if rid in body.placed or rid in body.values or rid in reader.values or rid in body.types:
        raise body.error(p, f"result id {rid} is defined twice")
    if not 0 < rid < reader.bound:
        raise body.error(p, f"result id {rid} is not below the bound {reader.bound}")
    body.placed.add(rid)
    body.position.start_block()
    body.block = block = body.label(rid)
    if rid in reader.names:
        block.name = reader.string(reader.names[rid] + 2)[0]
    body.blocks.append(block)


def _line(body: Body, p: int, n: int, op: Op) -> None:
    words = body.words
    body.position.set_line(body.reader.string_of(p, words[p + 1]), words[p + 2], words[p + 3])


def _no_line(body: Body, p: int, n: int, op: Op) -> None:
    body.position.no_line()


def _nothing(body: Body, p: int, n: int, op: Op) -> None:
    pass


def _undef(body: Body, p: int, n: int, op: Op) -> None:
    words = body.words
    body.define(p, words[p + 2], body.reader.table.undef(body.type(p, words[p + 1])))


def _selection_merge(body: Body, p: int, n: int, op: Op) -> None:
    body.label(body.words[p + 1])


def _loop_merge(body: Body, p: int, n: int, op: Op) -> None:
    first = p + 1
    if op == Op.LoopMerge:
        body.label(body.words[p + 1])
        body.label(body.words[p + 2])
        first = p + 3
    else:
        _check_loop_control(body, p, n)
    control = body.words[first]
    if control or op == Op.LoopControlINTEL:
        assert body.block is not None
        body.block.loop_control = (control, tuple(body.words[first + 1 : p + n]))


def _check_loop_control(body: Body, p: int, n: int) -> None:
    """SPV_INTEL_unstructured_loop_controls: "it must be the second-to-last instruction in its block"."""
    words = body.words
    body.reader.module.uses.setdefault(("Instruction", Op.LoopControlINTEL), p)
    following = p + n
    while words[following] & 0xFFFF in (Op.Line, Op.NoLine) and words[following] >> 16:
        following += words[following] >> 16
    if words[following] & 0xFFFF not in (Op.Branch, Op.BranchConditional):
        raise body.error(p, "no OpBranch or OpBranchConditional comes next")
    if n < 2:
        raise body.error(p, "no loop control")
    control = words[p + 1]
    bits = [1 << bit for bit in range(32) if control >> bit & 1]
    for bit in bits:
        body.reader.enumerant(p, "LoopControl", bit)
    wanted = sum(len(parameters("LoopControl", bit)) for bit in bits)
    if n - 2 != wanted:
        raise body.error(p, f"{n - 2} parameters, where the loop control has {wanted}")


def _branch(body: Body, p: int, n: int, op: Op) -> None:
    body.add(p, op, None, 0, [body.label(body.words[p + 1])])
    body.block = None


def _branch_conditional(body: Body, p: int, n: int, op: Op) -> None:
    words = body.words
    if n not in (4, 6):
        raise body.error(p, f"{n} words, where 4 or 6 are right")
    operands = [body.value(p, words[p + 1]), body.label(words[p + 2]), body.label(words[p + 3])]
    body.add(p, op, None, 0, operands + words[p + 4 : p + n])
    body.block = None


def _switch(body: Body, p: int, n: int, op: Op) -> None:
    words = body.words
    selector = body.value(p, words[p + 1])
    if selector.type is None:
        raise body.error(p, "the selector's definition comes later")
    size = max(1, -(-getattr(selector.type, "width", 0) // 32))
    operands = [selector, body.label(words[p + 2])]
    if (n - 3) % (size + 1):
        raise body.error(p, "literals and labels do not come in pairs")
    mask = (1 << (getattr(selector.type, "width", 0) or 32)) - 1
    for q in range(p + 3, p + n, size + 1):
        literal = sum(words[q + k] << 32 * k for k in range(size))
        operands += (literal & mask, body.label(words[q + size]))
    body.add(p, op, None, 0, operands)
    body.block = None


def _phi(body: Body, p: int, n: int, op: Op) -> None:
    words = body.words
    if n % 2 == 0:
        raise body.error(p, "values and labels do not come in pairs")
    assert body.block is not None
    instructions = body.block.instructions
    if instructions and instructions[-1].op != Op.Phi:
        raise body.error(p, "after another instruction of its block")
    phi = body.add(p, op, body.type(p, words[p + 1]), words[p + 2], [])
    operands = phi.operands
    values = body.values
    for q in range(p + 3, p + n, 2):
        try:
            operands.append(values[words[q]])
        except KeyError:
            body.late.append((phi, len(operands), words[q]))
            operands.append(None)
        operands.append(body.label(words[q + 1]))


def memory_access(body: Body, p: int, q: int, end: int) -> tuple[MemoryAccess, int]:
    """The memory operands at word q and the word after them."""
    words = body.words
    mask = words[q]
    if mask & ~MEMORY_KNOWN:
        raise body.error(p, f"unknown memory operands {mask:#x}")
    for bit in MEMORY_DECLARED if mask & ~0x7 else ():
        if mask & bit:
            body.reader.module.uses.setdefault(("MemoryAccess", bit), p)
    last = q + 1 + (mask & MEMORY_WITH_WORD).bit_count()
    if last > end:
        raise body.error(p, "memory operands are cut short")
    alignment = words[q + 1] if mask & MEMORY_ALIGNED else 0
    if mask & MEMORY_ALIGNED and (alignment == 0 or alignment & (alignment - 1)):
        raise body.error(p, f"alignment {alignment} is not a power of two")
    return MemoryAccess(alignment, bool(mask & MEMORY_VOLATILE), bool(mask & MEMORY_NONTEMPORAL)), last


def _memory(body: Body, p: int, n: int, op: Op) -> None:
    """OpLoad, OpStore, OpCopyMemory, OpCopyMemorySized."""
    words, end = body.words, p + n
    type_, rid, q = None, 0, p + 1
    if op == Op.Load:
        type_, rid, q = body.type(p, words[p + 1]), words[p + 2], p + 3
    count = MEMORY_IDS[op]
    operands = [body.value(p, w) for w in words[q : q + count]]
    q += count
    access = None
    if q < end:
        access, q = memory_access(body, p, q, end)
        if q < end and op in (Op.CopyMemory, Op.CopyMemorySized):
            source, q = memory_access(body, p, q, end)  # the second set is the source's
            # One alone does not tell how the other is aligned.
            alignment = min(access.alignment, source.alignment) or int(access.alignment != source.alignment)
            access = MemoryAccess(
                alignment, access.volatile or source.volatile, access.nontemporal and source.nontemporal
            )
        if q != end:
            raise body.error(p, "words after the memory operands")
    body.add(p, op, type_, rid, operands).memory = access


MEMORY_IDS = {Op.Load: 1, Op.Store: 2, Op.CopyMemory: 2, Op.CopyMemorySized: 3}


def _extended(body: Body, p: int, n: int, op: Op) -> None:
    words = body.words
    name = body.reader.sets.get(words[p + 3])
    if name is None:
        raise body.error(p, f"id {words[p + 3]} is not an extended instruction set")
    if name != instruction_sets.OPENCL:
        if name in instruction_sets.DEBUG:
            body.position.instruction(p, n)
        return  # the reader refuses sets that are neither this nor non-semantic
    if body.block is None:
        raise body.error(p, "outside of a block")
    if words[p + 4] not in OpenCLStd:
        raise body.error(p, f"{words[p + 4]} is no instruction of OpenCL.std")
    number = OpenCLStd(words[p + 4])
    kinds = OPENCL_STD[number]
    count = n - 5
    if count != len(kinds) and not (number == OpenCLStd.printf and count >= 1):
        raise body.error(p, f"{number.name} has {len(kinds)} operands, not {count}")
    operands: list[Operand] = [name, number]
    for word, kind in zip(words[p + 5 : p + n], chain(kinds, repeat("IdRef")), strict=False):
        if kind == "IdRef":
            operands.append(body.value(p, word))
        elif kind == "LiteralInteger":
            operands.append(word)
        else:
            operands.append(enumerant(body, p, kind, word))
    body.add(p, op, body.type(p, words[p + 1]), words[p + 2], operands)


def _pattern(body: Body, p: int, n: int, op: Op) -> None:
    """Any other instruction, by its operands in the grammar."""
    words, end, q = body.words, p + n, p + 1
    row = ROWS[op]
    type_, rid = None, 0
    operands: list[Operand] = []
    for kind, quantifier in row.operands:
        while True:
            if q >= end:
                if not quantifier:
                    raise body.error(p, f"operand {kind} is missing")
                break
            if kind == "IdResultType":
                type_ = body.type(p, words[q])
            elif kind == "IdResult":
                rid = words[q]
            elif kind in ID_KINDS:
                if words[q] in body.types and op in TAKES_TYPES:
                    operands.append(body.types[words[q]])
                else:
                    operands.append(body.value(p, words[q]))
            elif kind == "LiteralString":
                text, q = body.reader.string(q, end)
                operands.append(text)
                q -= 1
            elif kind in VALUE_KINDS:
                operands.append(enumerant(body, p, kind, words[q]))
            elif kind == "ImageOperands":
                # The mask, then the ids that its bits announce.
                operands.append(words[q])
                operands += (body.value(p, w) for w in words[q + 1 : end])
                q = end - 1
            elif kind == "LiteralInteger" or kind in MASK_KINDS:
                operands.append(words[q])
            else:
                raise body.error(p, f"operands of kind {kind} are not for kernels")
            q += 1
            if quantifier != "*":
                break
    if q != end:
        raise body.error(p, f"{end - q} words too many")
    body.add(p, op, type_, rid, operands)


def _vector_shuffle(body: Body, p: int, n: int, op: Op) -> None:
    _pattern(body, p, n, op)
    assert body.block is not None
    shuffle = body.block.instructions[-1]
    a, b = shuffle.operands[:2]
    if a.type is None or b.type is None or a.type.kind is not Kind.VECTOR or b.type.kind is not Kind.VECTOR:
        return
    if a.type.element is not b.type.element and not any(
        a.type.count <= pick < a.type.count + b.type.count for pick in shuffle.operands[2:]
    ):
        # LLVM's SPIR-V back end writes an undefined vector of integers where no component is picked.
        table = body.reader.table
        shuffle.operands[1] = table.undef(table.vector(a.type.element, b.type.count))


def _composite_continued(body: Body, p: int, n: int, op: Op) -> None:
    """More constituents of the instruction before (SPV_INTEL_long_composites)."""
    words = body.words
    assert body.block is not None
    head = body.block.instructions[-1] if body.block.instructions else None
    if (
        head is None
        or head.op != Op.CompositeConstruct
        or p not in (head.offset + (words[head.offset] >> 16), body.continued)
    ):
        raise body.error(p, "does not follow an OpCompositeConstruct that it could continue")
    body.reader.module.uses.setdefault(("Instruction", op), p)
    head.operands += [body.value(p, w) for w in words[p + 1 : p + n]]
    body.continued = p + n


def _bitwise_and(body: Body, p: int, n: int, op: Op) -> None:
    words = body.words
    type_ = body.type(p, words[p + 1])
    value, mask = body.value(p, words[p + 3]), body.value(p, words[p + 4])
    if type(mask) is Constant and mask.type is type_ and _int_width(value.type) > _int_width(type_) > 0:
        # LLVM's SPIR-V back end makes a mask of a truncation and an extension, and forgets to truncate.
        value = body.add(p, Op.UConvert, type_, 0, [value])
    body.add(p, op, type_, words[p + 2], [value, mask])


def _wait_at_split_barrier(body: Body, p: int, n: int, op: Op) -> None:
    """Whoever waits at a whole barrier knows as much of what the others did before they arrived."""
    operands: list[Operand] = [body.value(p, word) for word in body.words[p + 1 : p + n]]
    body.add(p, Op.ControlBarrier, None, 0, operands)


def _assembly(body: Body, p: int, n: int, op: Op) -> None:
    """SPV_INTEL_inline_assembly: declarations, which "can also appear in function bodies"."""
    reader, id_ = body.reader, body.words[p + (1 if op == Op.AsmTargetINTEL else 2)]
    if id_ in body.values or id_ in body.labels or id_ in reader.local_ids:
        raise body.error(p, f"result id {id_} is defined twice")
    reader.module.uses.setdefault(("Instruction", op), p)
    ASSEMBLY_HANDLERS[op](reader, p, n, op)


def _int_width(type_: Type | None) -> int:
    """Bits of an integer, or of a component of a vector of integers; 0 for what is neither."""
    if type_ is not None and type_.kind is Kind.VECTOR:
        type_ = type_.element
    return type_.width if type_ is not None and type_.kind is Kind.INT else 0


def enumerant(body: Body, p: int, kind: str, value: int) -> Enumerant:
    """The member of an enumeration of the grammar, as Reader.enumerant."""
    found: Enumerant = body.reader.enumerant(p, kind, value)
    return found


RESULT_IDS, IDS, IN_BLOCK, ANYWHERE = 1, 0, 2, 3

Decoder: TypeAlias = "Callable[[Body, int, int, Op], None]"
DECODERS: dict[Op, tuple[int, Decoder]] = {
    Op.FunctionParameter: (ANYWHERE, _parameter),
    Op.Label: (ANYWHERE, _label),
    Op.Line: (ANYWHERE, _line),
    Op.NoLine: (ANYWHERE, _no_line),
    Op.Nop: (ANYWHERE, _nothing),
    Op.Undef: (ANYWHERE, _undef),
    Op.LoopMerge: (IN_BLOCK, _loop_merge),
    Op.LoopControlINTEL: (IN_BLOCK, _loop_merge),
    Op.SelectionMerge: (IN_BLOCK, _selection_merge),
    Op.Branch: (IN_BLOCK, _branch),
    Op.BranchConditional: (IN_BLOCK, _branch_conditional),
    Op.Switch: (IN_BLOCK, _switch),
    Op.Phi: (IN_BLOCK, _phi),
    Op.Load: (IN_BLOCK, _memory),
    Op.Store: (IN_BLOCK, _memory),
    Op.CopyMemory: (IN_BLOCK, _memory),
    Op.CopyMemorySized: (IN_BLOCK, _memory),
    Op.VectorShuffle: (IN_BLOCK, _vector_shuffle),
    Op.BitwiseAnd: (IN_BLOCK, _bitwise_and),
    Op.ControlBarrierWaitINTEL: (IN_BLOCK, _wait_at_split_barrier),
    Op.CompositeConstructContinuedINTEL: (IN_BLOCK, _composite_continued),
    Op.AsmTargetINTEL: (ANYWHERE, _assembly),
    Op.AsmINTEL: (ANYWHERE, _assembly),
    Op.ExtInst: (ANYWHERE, _extended),
    Op.ExtInstWithForwardRefsKHR: (ANYWHERE, _extended),
}
ENDS = frozenset(
    {
        Op.Return,
        Op.ReturnValue,
        Op.Unreachable,
        Op.Kill,
        Op.TerminateInvocation,
        Op.AbortKHR,
        Op.IgnoreIntersectionKHR,
        Op.TerminateRayKHR,
        Op.EmitMeshTasksEXT,
    }
)
NOT_IN_BODIES = frozenset(
    {"Type-Declaration", "Constant-Creation", "Annotation", "Mode-Setting", "Debug", "Extension", "Function"}
)


# Form, Op, least words, most words, and the decoder; where there is none, whether it ends a block.
_Form: TypeAlias = tuple[int, Op, int, int, Any]


class _Forms(dict[int, _Form]):
    """{opcode: its form}, each made when it is first looked up; KeyError for what is not an instruction of
    bodies."""

    def __missing__(self, op: int) -> _Form:
        row = ROWS[op]
        decoder: Decoder | bool
        if row.op in DECODERS:
            form, decoder = DECODERS[row.op]
        elif row.class_ in NOT_IN_BODIES and row.op != Op.FunctionCall:
            raise KeyError(op)
        else:
            rest = [o.kind for o in row.operands if o.kind not in ("IdResultType", "IdResult")]
            plain = all(kind in ID_KINDS for kind in rest) and row.op not in TAKES_TYPES
            if plain and row.has_type == row.has_result:
                form, decoder = RESULT_IDS if row.has_type else IDS, row.op in ENDS
            else:
                form, decoder = IN_BLOCK, _pattern
        found = self[op] = (form, row.op, row.min_words, row.max_words, decoder)
        return found


FORMS = _Forms()
