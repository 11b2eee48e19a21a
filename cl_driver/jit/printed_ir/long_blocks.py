"""Basic blocks of very many instructions, cut for LLVM's code generator.

Instruction selection asks for each load whether it may become an operand, which takes a walk over what comes
before it in the block. The scheduler compares accesses to memory with one another, and, on x86, each
instruction that leaves flags with all others. Both look at one block at a time: their time grows with the
accesses of a block times its instructions, and, much more slowly, with the square of the latter. Blocks below
that are left alone, since values that live across a cut may have to go to memory.

LLVM merges blocks that a plain branch joins, so the cut is a `callbr` of empty inline assembly: no machine
instruction, and a terminator that no pass takes away. It comes after LLVM's passes on IR, which work on the
block as it was.
"""

from __future__ import annotations

from ...late_patterns import pattern
from .text import LABEL, NAME, blocks, free_prefix, rewrite

# The cost (_cost) from which on a block is cut, and that of the pieces. Kernels of hashcat have at most 1.8
# million (2,700 instructions, 570 of them accesses), the benchmark's at most 5 million (a Fourier transform
# of a whole work-group), for which LLVM needs less than half a second.
LONG = 8_000_000
PIECE = 1_000_000

# How many instructions cost as much as an access.
_INSTRUCTIONS_OF_ACCESS = 32

# Bytes of LLVM IR below which no block is long.
LEAST_TEXT = 40_000

# Instructions before the end of a block that stay with its branch.
_TAIL = 16

_ACCESS = pattern(
    r"  (?:%\S+ = )?(?:load|store|atomicrmw|cmpxchg|fence"
    r"|(?:(?:tail|notail) )?call .*@(?:llvm\.(?:masked|mem)|(?!llvm\.)))"
)
_PHI = pattern(r"  %\S+ = phi ")
_STATIC = pattern(r"  %\S+ = (?:phi|alloca) ")
_INCOMING = pattern(rf"({NAME}) \]")


def cut(text: str) -> str | None:
    """A module, as LLVM prints it, with long blocks cut; None if there are none."""
    count = text.count("\n")
    if _cost(count, count) < LONG:
        return None
    prefix = free_prefix(text, "cut")
    labels = 0

    def cut_function(lines: list[str]) -> list[str] | None:
        nonlocal labels
        function, labels = _cut_function(lines, prefix, labels)
        return function

    return rewrite(text, cut_function)


def _cut_function(lines: list[str], prefix: str, labels: int) -> tuple[list[str] | None, int]:
    """A function's lines with its long blocks cut, None if it has none, and how many labels there are now."""
    of_lines = blocks(lines)
    most = max(end - start for start, end in of_lines)
    if _cost(most, most) < LONG:
        return None, labels
    last_pieces: dict[str, str] = {}  # of the blocks that were cut
    made: list[str] = []
    for start, end in of_lines:
        label = LABEL.match(lines[start])
        block, before = lines[start:end], 0
        if label:  # a first block without a name has a number that is nowhere in the text
            for place in _places(block):
                labels += 1
                name = f"{prefix}.{labels}"
                last_pieces["%" + label[1]] = "%" + name
                made += block[before:place]
                made += [f'  callbr void asm "", ""() to label %{name} []', "", f"{name}:"]
                before = place
        made += block[before:]
    if not last_pieces:
        return None, labels
    return [
        _INCOMING.sub(lambda found: f"{last_pieces.get(found[1], found[1])} ]", line)
        if _PHI.match(line)
        else line
        for line in made
    ], labels


def _cost(instructions: int, accesses: int) -> int:
    """What a block costs, as the product of its instructions with its accesses."""
    return instructions * (accesses + instructions // _INSTRUCTIONS_OF_ACCESS)


def _places(block: list[str]) -> list[int]:
    """The lines before which a block is to be cut, none for one that is short."""
    if _cost(len(block), len(block)) < LONG:
        return []
    # Lines of instructions; those of a switch have more.
    numbers = [
        number for number, line in enumerate(block) if line[:2] == "  " and line[2:3] not in (" ", "]")
    ]
    is_access = [_ACCESS.match(block[number]) is not None for number in numbers]
    if _cost(len(numbers), sum(is_access)) < LONG:
        return []
    # Memory of the stack that is not allocated at the start of a function costs a frame pointer.
    first = max((place for place, n in enumerate(numbers) if _STATIC.match(block[n])), default=0) + 1
    places: list[int] = []
    instructions = accesses = 0
    for place, number in enumerate(numbers[:-_TAIL]):
        if _cost(instructions, accesses) >= PIECE and place >= first:
            places.append(number)
            instructions = accesses = 0
        instructions += 1
        accesses += is_access[place]
    return places
