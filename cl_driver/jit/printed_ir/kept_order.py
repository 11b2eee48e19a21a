"""Long basic blocks whose order LLVM's scheduler may change only a little.

Code that goes through more vectors than a CPU has registers, one after the other, loads and stores each of
them once: all that is done to one is done while it is in a register. LLVM's scheduler, which has the whole
block to choose from, may take the first step of all vectors, then the next step of all: a step that ends the
life of a vector as it begins that of another costs it nothing. Each step then loads and stores them all.

It does not move instructions past a label. So labels, which nothing refers to, cut the block for it and for
nobody else: instruction selection still makes operands of loads, and there is no instruction at a label.

That is done only to blocks whose order is good: what they compute on the way fits into half of the registers,
so that only what they are given and what they leave is stored and loaded again.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from ...device.target import Target
from ...late_patterns import pattern
from .register_order import LEAST, RESULT, Registers
from .text import LABEL, NAME, blocks, rewrite

# How many times the registers must be taken by what a block is given and what it leaves, and the share of
# them that anything else may take.
TIMES = 2
SHARE = 0.5

# Instructions between labels: enough to hide latencies among.
APART = 32

_LABEL = "  call void @llvm.codeview.annotation(metadata !{})"
_DECLARATION = "declare void @llvm.codeview.annotation(metadata)"

_OPERAND = pattern(NAME)
_SPLAT = pattern(
    rf"  {NAME} = shufflevector <\d+ x \w+> ({NAME}), .*, <\d+ x i32> "
    r"(?:zeroinitializer|splat \(.*\)|<i32 (\d+)(?:, i32 \2)*>)$"
)


def keep(text: str, target: Target) -> str | None:
    """A module, as LLVM prints it, with labels in such blocks; None if it has none."""
    registers = Registers(target)
    made = rewrite(text, lambda lines: _labelled(lines, registers))
    return None if made is None else f"{made}\n{_DECLARATION}\n"


def _labelled(lines: list[str], registers: Registers) -> list[str] | None:
    """The lines of a function with labels, None if it needs none."""
    of_lines = blocks(lines)
    if all(end - start < LEAST for start, end in of_lines):
        return None
    sizes: dict[str, int] = {}  # of its vectors, but for arguments
    for line in lines:
        if " x " in line and (result := RESULT.match(line)):
            sizes[result[1]] = registers.of(result[2], line)
    occurrences = Counter(_OPERAND.findall("\n".join(lines)))
    made: list[str] = []
    for start, end in of_lines:
        block = lines[start:end]
        if end - start >= LEAST and LABEL.match(block[0]):
            block = _cut(block) if _is_good(block, sizes, occurrences, registers) else block
        made += block
    return made if len(made) > len(lines) else None


def _is_good(
    block: list[str], sizes: dict[str, int], occurrences: dict[str, int], registers: Registers
) -> bool:
    """Whether what a block is given and what it leaves takes the registers TIMES over, and anything else no
    more than a SHARE of them."""
    made: dict[str, int] = {}  # the lines of what is neither
    last: dict[str, int] = {}  # and those of the last use
    seen: Counter[str] = Counter()
    loaded: set[str] = set()
    folded: set[str] = set()
    has_stored = False
    for number, line in enumerate(block):
        result = RESULT.match(line)
        if result and result[2] == "phi":
            continue
        has_stored |= line.startswith("  store ")
        if has_stored and result and result[2] == "load":
            return False
        names = _OPERAND.findall(line)
        seen.update(names)
        last.update(dict.fromkeys(names, number))
        if result:
            made[result[1]] = number
            if result[2] == "load":
                loaded.add(result[1])
            elif registers.has_masks and (splat := _SPLAT.match(line)) and splat[1] in loaded:
                folded |= {result[1], splat[1]}  # an operand in memory, repeated in all lanes
    vectors = [name for name in seen if sizes.get(name)]
    inner = [name for name in vectors if name in made and occurrences[name] == seen[name]]
    if sum(sizes[name] for name in set(vectors).difference(inner)) < TIMES * registers.count:
        return False
    change: Counter[int] = Counter()  # of the registers in use, in each line
    for name in inner:
        if name not in folded:
            change[made[name]] += sizes[name]
            change[last[name]] -= sizes[name]
    most = max(accumulate(change[number] for number in range(len(block))))
    return most <= SHARE * registers.count


def _cut(block: list[str]) -> list[str]:
    """A block with labels."""
    made: list[str] = []
    count = 0
    for line in block:
        result = RESULT.match(line)
        if line[:2] == "  " and line[2:3] != " " and not (result and result[2] in ("phi", "alloca")):
            count += 1
            if count % APART == 0:
                made.append(_LABEL)
        made.append(line)
    return made
