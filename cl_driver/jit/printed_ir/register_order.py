"""Long basic blocks in an order that keeps fewer values in vector registers at once.

Code for several vectors of work-items at a time does each operation for all of them before the next one, so
that all vectors are under way at once: a transform or a sort of a whole work-group has many more of them than
a CPU has registers, and stores and loads them at each step. LLVM keeps that order, but for what is near.

Here each store, and each value that later blocks want, is computed from its operands up, depth first; what
becomes possible on the way, and ends the lives of as many values as it begins, is done at once. So a few
vectors go through several steps before the next ones are begun. That is no gain where steps wait for one
another, so both orders are estimated. Accesses to memory stay in order, but loads among one another. Blocks
that load after they have stored stay as they are: a load of what was stored just before waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf

from ...device.target import Target
from ...late_patterns import pattern
from .text import LABEL, NAME, blocks, free_prefix, rewrite

# Instructions of a block below which LLVM's own scheduler sees enough of it.
LEAST = 200

# Registers stored or loaded again, as a share of a block's instructions, from which on another order is
# looked for, and what that may take of the time.
WORTH = 0.2
GAIN = 0.8

# A core: how many instructions on vectors it starts in a cycle, how long they and loads of what was stored
# take, and how far behind the oldest that is not done it looks for others.
_AT_ONCE = 3
_LATENCY = 4
_RELOAD = 6
_WINDOW = 224

RESULT = pattern(rf"  ({NAME}) = (?:tail |notail |musttail )?(\w+) ")
_NUMBERED = pattern(r"%(\d+)\b(?!\.)")
_OPERAND = pattern(NAME)
_TYPE = pattern(r"<(\d+) x (i\d+|float|double|half|bfloat|ptr)>|\b(float|double|half)\b")
_CALLED = pattern(r"@([-\w.$]+)\(")
_DECLARED = pattern(r"declare .*@([-\w.$]+)\(.*\) .*#(\d+)$")
_ATTRIBUTES = pattern(r"attributes #(\d+) = \{(.*)\}$")
_BITS = {"float": 32, "double": 64, "half": 16, "bfloat": 16, "ptr": 64}

# Instructions that neither look at memory nor end the block, and those that look at memory.
_CASTS = frozenset((
    "trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint",
    "inttoptr", "bitcast", "addrspacecast",
))  # fmt: skip
_PURE = _CASTS | {
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "fneg", "fadd", "fsub", "fmul", "fdiv", "frem",
    "shl", "lshr", "ashr", "and", "or", "xor", "extractelement", "insertelement", "shufflevector",
    "extractvalue", "insertvalue", "getelementptr", "icmp", "fcmp", "select", "freeze",
}  # fmt: skip
_ACCESSES = ("load", "store", "call", "tail", "fence", "atomicrmw", "cmpxchg")


class Registers:
    """How many vector registers a CPU has, their bits, and whether it has others for masks."""

    __slots__ = ("bits", "count", "has_masks")

    def __init__(self, target: Target) -> None:
        self.bits = target.vector_bits
        self.has_masks = "avx512f" in target.features
        self.count = 32 if self.has_masks or target.architecture == "aarch64" else 16

    def of(self, opcode: str, line: str) -> int:
        """How many the result of an instruction takes."""
        if opcode in _CASTS:
            line = line[line.rindex(" to ") :]
        elif opcode == "call":
            line = line.partition("@")[0]
        elif opcode in ("extractvalue", "insertvalue"):
            return 0
        found = _TYPE.findall(line)
        if not found:
            return 0
        count, element, scalar = found[-1 if opcode == "select" else 0]
        if scalar or opcode == "extractelement":
            return int((scalar or element) in _BITS and element != "ptr")
        if opcode == "shufflevector":
            count = found[-1][0]
        elif opcode == "getelementptr":
            element = "ptr"
        bits = _BITS.get(element) or int(element[1:])
        if opcode in ("icmp", "fcmp") or bits == 1:
            if self.has_masks:
                return 0
            bits = 32 if bits == 1 else bits
        return -(-int(count) * bits // self.bits)


class _Node:
    """An instruction. needs: those that must come before it, without repetition; users: those that use its
    result, and followers: those that only have to come after it."""

    __slots__ = ("followers", "is_kept", "line", "needs", "operands", "size", "users", "waits")

    def __init__(self, line: str, size: int) -> None:
        self.line = line
        self.size = size
        self.operands: list[_Node] = []  # whose results it uses
        self.needs: list[_Node] = []
        self.users: list[_Node] = []
        self.followers: list[_Node] = []
        self.waits = 0  # how many of `needs` have no place yet
        self.is_kept = False  # other blocks want its result


def reorder(text: str, target: Target) -> str | None:
    """A module, as LLVM prints it, with the instructions of long blocks in another order; None if there are
    none that gain by it."""
    if "#dbg_" in text:  # says which values variables have from there on
        return None
    registers, pure = Registers(target), _pure_functions(text.split("\n"))
    prefix = free_prefix(text, "n")

    def reorder_function(lines: list[str]) -> list[str] | None:
        ordered = _ordered(lines, registers, pure)
        return None if ordered is None else [_without_number(line, prefix) for line in ordered]

    return rewrite(text, reorder_function)


def _without_number(line: str, prefix: str) -> str:
    """LLVM wants the values that it numbered in the order of their numbers."""
    line = _NUMBERED.sub(rf"%{prefix}.\1", line)
    return f"{prefix}.{line}" if line[:1].isdigit() else line


def _ordered(lines: list[str], registers: Registers, pure: set[str]) -> list[str] | None:
    """The lines of a function in another order; None if no block gains by one."""
    if not LABEL.match(lines[1]):  # the first block has a number that is nowhere in the text
        return None
    occurrences: Counter[str] = Counter()  # of names in the function
    made: list[str] = []
    has_changed = False
    for start, end in blocks(lines):
        block, order = lines[start:end], None
        if end - start >= LEAST:
            if not occurrences:
                occurrences = Counter(_OPERAND.findall("\n".join(lines)))
            order = _Block(block, occurrences, registers, pure).better()
        has_changed |= order is not None
        made += order or block
    return made if has_changed else None


def _pure_functions(lines: list[str]) -> set[str]:
    """Functions whose calls may be anywhere between their operands and their uses."""
    attributes = {}
    for line in lines:
        found = _ATTRIBUTES.match(line)
        if found:
            words = found[2].split()
            attributes[found[1]] = (
                "memory(none)" in found[2] and "willreturn" in words and "nounwind" in words
            )
    declared = (_DECLARED.match(line) for line in lines if line.startswith("declare "))
    return {found[1] for found in declared if found and attributes.get(found[2])}


class _Block:
    """A basic block: lines that stay at its start, instructions, lines that stay at its end."""

    def __init__(
        self, lines: list[str], occurrences: dict[str, int], registers: Registers, pure: set[str]
    ) -> None:
        self._registers = registers
        self._start: list[str] = []
        self._end: list[str] = []
        self._nodes: list[_Node] = []
        self._phis: list[_Node] = []
        self._loads_after_stores = False
        named: dict[str, _Node] = {}
        seen: dict[str, int] = {}
        barrier: _Node | None = None  # the last access that others must not pass
        loads: list[_Node] = []  # since then
        for line in lines:
            result = RESULT.match(line)
            opcode = result[2] if result else line.split(None, 1)[0] if line.startswith("  ") else ""
            is_instruction = opcode in _PURE or opcode in _ACCESSES
            if self._end or not is_instruction:
                is_start = not self._nodes and (not line.startswith("  ") or opcode in ("phi", "alloca"))
                (self._start if is_start else self._end).append(line)
                if is_start and result and opcode == "phi":
                    named[result[1]] = node = _Node("", registers.of(opcode, line))
                    seen[result[1]] = 1
                    self._phis.append(node)
                continue
            self._count(line, seen)
            node = _Node(line, registers.of(opcode, line) if result else 0)
            for name in dict.fromkeys(_OPERAND.findall(line, result.end() if result else 0)):
                operand = named.get(name)
                if operand is not None:
                    node.operands.append(operand)
                    operand.users.append(node)
            node.needs = [operand for operand in node.operands if operand.line]
            if not self._may_move(opcode, line, pure):
                if opcode == "load" and " volatile " not in line and " atomic " not in line:
                    after = [barrier] if barrier is not None else []
                    self._loads_after_stores |= barrier is not None
                    loads.append(node)
                else:
                    after = [*loads, *([barrier] if barrier is not None else [])]
                    barrier, loads = node, []
                used = set(node.needs)
                for other in after:
                    if other not in used:
                        node.needs.append(other)
                        other.followers.append(node)
            if result:
                named[result[1]] = node
            self._nodes.append(node)
        for name, node in named.items():
            node.is_kept = occurrences[name] > seen[name]

    @staticmethod
    def _count(line: str, seen: dict[str, int]) -> None:
        for name in _OPERAND.findall(line):
            seen[name] = seen.get(name, 0) + 1

    @staticmethod
    def _may_move(opcode: str, line: str, pure: set[str]) -> bool:
        """Whether an instruction leaves memory alone."""
        if opcode != "call":
            return opcode in _PURE
        called = _CALLED.search(line)
        return called is not None and called[1] in pure

    def better(self) -> list[str] | None:
        """All lines in another order; None if this one is good enough."""
        if self._loads_after_stores:
            return None
        cycles, moves = self._estimate(self._nodes)
        if moves < WORTH * len(self._nodes):
            return None
        order = self._depth_first()
        if self._estimate(order)[0] > GAIN * cycles:
            return None
        return [*self._start, *(node.line for node in order), *self._end]

    def _estimate(self, order: list[_Node]) -> tuple[float, int]:
        """Cycles that a core needs for an order, and how many registers are stored and loaded again."""
        core = _Core(self._registers.count, order)
        for phi in self._phis:
            core.hold(phi, ())
        for node in order:
            core.execute(node)
        return core.retired[-1], core.moves

    def _depth_first(self) -> list[_Node]:
        """The order that the head of this file tells of."""
        for node in self._nodes:
            node.waits = len(node.needs)
        uses = {node: len(node.users) for node in self._nodes}
        placed: set[_Node] = set()
        order: list[_Node] = []
        for root in self._nodes:
            if (root.users and not root.is_kept) or root in placed:
                continue
            stack = [root]
            while stack:
                node = stack[-1]
                if node in placed:
                    stack.pop()
                    continue
                wanted = [need for need in node.needs if need not in placed]
                if wanted:
                    stack += reversed(wanted)
                    continue
                stack.pop()
                self._place(node, order, placed, uses)
        return order

    def _place(self, first: _Node, order: list[_Node], placed: set[_Node], uses: dict[_Node, int]) -> None:
        """Places an instruction, and those that it makes possible and that free registers."""
        work = [first]
        while work:
            node = work.pop()
            if node in placed:
                continue
            placed.add(node)
            order.append(node)
            for operand in node.operands:
                uses[operand] = uses.get(operand, len(operand.users)) - 1
            following = []
            for other in (*node.users, *node.followers):
                other.waits -= 1
                if other.waits == 0 and other not in placed and self._frees(other, uses):
                    following.append(other)
            for operand in node.operands:
                if uses[operand] == 1:
                    following += [
                        u for u in operand.users if u not in placed and u.waits == 0 and self._frees(u, uses)
                    ]
            work += reversed(following)

    @staticmethod
    def _frees(node: _Node, uses: dict[_Node, int]) -> bool:
        """Whether an instruction ends the lives of as many registers as it begins."""
        ending = sum(
            operand.size
            for operand in node.operands
            if not operand.is_kept and uses.get(operand, len(operand.users)) == 1
        )
        return ending >= node.size


class _Core:
    """A core that executes instructions in an order. What has no register is that which is not needed for
    longest: it was stored, once, and is loaded again."""

    def __init__(self, count: int, order: list[_Node]) -> None:
        self.moves = 0  # registers that were stored or loaded
        self.retired = [0.0] * _WINDOW  # when each instruction was done, and all before it
        self._count = count
        self._in_use = 0
        self._held: dict[_Node, None] = {}
        self._stored: set[_Node] = set()
        self._ready: dict[_Node, float] = {}
        self._issued = 0.0
        self._uses: dict[_Node, list[int]] = {}  # places in the order, the last one first
        for place in range(len(order) - 1, -1, -1):
            for operand in order[place].operands:
                self._uses.setdefault(operand, []).append(place)

    def execute(self, node: _Node) -> None:
        """The next instruction."""
        operands, ready = node.operands, self._ready
        for operand in operands:
            if operand.size and operand not in self._held:
                self.moves += operand.size
                self.hold(operand, operands)
                ready[operand] = self._start(ready.get(operand, 0.0), operand.size, _RELOAD)
        wanted = max((ready.get(operand, 0.0) for operand in operands), default=0.0)
        for operand in operands:
            places = self._uses[operand]
            places.pop()
            if not places and not operand.is_kept and operand in self._held:
                del self._held[operand]
                self._in_use -= operand.size
        ready[node] = self._start(wanted, max(node.size, 1), _LATENCY)
        if node.users or node.is_kept:
            self.hold(node, (node,))

    def hold(self, node: _Node, needed: Sequence[_Node]) -> None:
        """Finds registers for a value, but not those of what is needed meanwhile."""
        if not node.size:
            return
        self._in_use += node.size
        while self._in_use > self._count:
            others = [other for other in self._held if other not in needed]
            if not others:
                break
            out = max(others, key=self._next_use)
            del self._held[out]
            self._in_use -= out.size
            if out not in self._stored:
                self._stored.add(out)
                self.moves += out.size
                self._start(self._ready.get(out, 0.0), out.size, 1)
        self._held[node] = None

    def _next_use(self, node: _Node) -> float:
        places = self._uses.get(node)
        return places[-1] if places else inf

    def _start(self, wanted: float, operations: int, latency: int) -> float:
        """When so many operations are done that can begin at a time."""
        end = 0.0
        for _ in range(operations):
            self._issued = max(self._issued + 1 / _AT_ONCE, self.retired[-_WINDOW])
            end = max(self._issued, wanted) + latency
            self.retired.append(max(self.retired[-1], end))
        return end
