"""LLVM's commented assembly of one kernel as blocks and loops: what the machine code is, line by line.

LLVM writes beside each block what it was called in the IR and which loop it is in, and beside each
instruction whether it spills a register to the stack or reloads one.
"""

from __future__ import annotations

import re

from ..codegen.llvm.versioning import PARTIAL, SLOW

# What codegen/kernel/kernel_emitter.py and codegen/kernel/wide_kernel.py call the loop over work-items, or
# LLVM's vectoriser its own.
_ITEM_LOOP = re.compile(r"r\d+\.x\b")
_VECTORISED = re.compile(r"(vec\.epilog\.)?vector\.body")
_AROUND = re.compile(r"group$|r\d+\.[yz]$")  # loops over groups, planes and rows
_TAIL = re.compile(r"r\d+\.t(ail|\d)|r\d+\.rest")
_SELDOM = re.compile(rf"({SLOW}|{PARTIAL})\d+")
_LABEL = re.compile(r"^(?:\.L|(?:#|//)\s+%)(BB\d+_\d+|bb\.\d+):\s*(.*)$")
_FUNCTION = re.compile(r'^"?([\w.$]+)"?:')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_HEADER = re.compile(r"(?:This|This Inner|Inner) Loop Header: Depth=(\d+)")
_PARENT = re.compile(r"Parent Loop (BB\d+_\d+) Depth=(\d+)")
_INSIDE = re.compile(r"in Loop: Header=(BB\d+_\d+) Depth=\d+")
_NAME = re.compile(r"%([\w.$-]+)")
_VECTOR = re.compile(r"%([xyz])mm")
_VECTOR_BITS = {"x": 128, "y": 256, "z": 512}
_STEP = re.compile(r"^\s+(%\S+) = add (?:nuw |nsw )*i64 (%\S+), (-?\d+|%[\w.]+)", re.MULTILINE)
_SCALED = r"^\s+{} = (shl|mul) (?:nuw |nsw )*i64 (%\S+), (\d+)"
_VSCALE = r"^\s+{} = (?:tail )?call .*@llvm\.vscale\.i64\(\)"


class Code:
    """One instruction. place: (file name, line) or None; spill: "", "spill" or "reload"; vector_bits: of the
    widest of x86's vector registers in it, or 0."""

    __slots__ = ("mnemonic", "operands", "place", "spill", "text", "vector_bits")

    def __init__(self, text: str, comment: str, place: tuple[str, int] | None) -> None:
        self.text = text
        self.mnemonic, _, operands = text.partition("\t")
        if self.mnemonic in ("lock", "rep", "notrack"):
            self.mnemonic, _, operands = operands.partition("\t")
        self.operands = split_operands(operands)
        self.place = place
        self.vector_bits = max((_VECTOR_BITS[letter] for letter in _VECTOR.findall(text)), default=0)
        self.spill = "spill" if "Spill" in comment else "reload" if "Reload" in comment else ""


class Block:
    """label; name: of the IR's block, "" if it has none; loop: the innermost Loop around it, or None."""

    def __init__(self, label: str, name: str) -> None:
        self.label = label
        self.name = name
        self.loop: Loop | None = None
        self.codes: list[Code] = []


class Loop:
    """header: label of its first block; parent: the Loop around it, or None."""

    def __init__(self, header: str) -> None:
        self.header = header
        self.name = ""
        self.parent: Loop | None = None
        self.blocks: list[Block] = []  # without those of inner loops
        self.step = 0  # iterations that LLVM's vectoriser takes at a time, if it made the loop
        self.is_scalable = False  # and so many for each 128 bits of SVE's vectors

    @property
    def is_over_items(self) -> bool:
        """Whether its iterations are work-items: the code generator's loop, or that of LLVM's vectoriser."""
        if _ITEM_LOOP.match(self.name):
            return True
        return bool(_VECTORISED.match(self.name)) and (self.parent is None or self.parent.within() is None)

    def within(self) -> Loop | None:
        """The loop over work-items that this is, or is in."""
        loop: Loop | None = self
        while loop is not None and not loop.is_over_items:
            loop = loop.parent
        return loop

    @property
    def codes(self) -> list[Code]:
        """Its instructions, without those of inner loops."""
        return [code for block in self.blocks for code in block.codes]

    @property
    def usual_codes(self) -> list[Code]:
        """Without the slow versions of code that has two (codegen/llvm/versioning.py)."""
        return [c for block in self.blocks if not _SELDOM.match(block.name) for c in block.codes]


class Assembly:
    """The kernel's function: blocks, and loops by the label of their first block. others: functions beside
    it, which were not inlined; body: blocks that are executed for full vectors of work-items."""

    def __init__(self, text: str, ir: str, symbol: str) -> None:
        self.blocks: list[Block] = []
        self.loops: dict[str, Loop] = {}
        self.others: list[str] = []
        self._files: dict[int, str] = {}
        self._comment = "//" if "aarch64" in ir[:2000] else "#"
        self._read(text.split("\n"), symbol)
        for loop in self.loops.values():
            if _VECTORISED.match(loop.name):
                loop.step, loop.is_scalable = _vector_step(ir, loop.name)

    @property
    def body(self) -> list[Block]:
        """Without the last vectors of a row, which have a copy of the code, and the loops around it."""
        found = [b for b in self.blocks if b.loop is not None and b.loop.within() is not None]
        return found or [b for b in self.blocks if not _TAIL.match(b.name)]

    def body_loops(self) -> list[Loop]:
        """The loops of the body. Groups in lockstep have none over work-items."""
        found = [loop for loop in self.loops.values() if loop.within() is not None]
        found = found or [loop for loop in self.loops.values() if not _AROUND.match(loop.name)]
        return [loop for loop in found if loop.usual_codes]

    def _loop(self, header: str) -> Loop:
        return self.loops.setdefault(header, Loop(header))

    def _read(self, lines: list[str], symbol: str) -> None:
        inside, block, place = False, None, None
        for line in lines:
            if line.startswith("\t.") or line.startswith("  ."):
                found = _LOC.match(line)
                if found:
                    number = int(found[2])
                    place = (self._files.get(int(found[1]), ""), number) if number else None
                elif found := _FILE.match(line):
                    folder, name = (found[2], found[3]) if found[3] is not None else ("", found[2])
                    self._files[int(found[1])] = name if name.startswith("/") else f"{folder}/{name}"
                continue
            if line.startswith(".Lfunc_end"):
                inside = False
                continue
            label = _LABEL.match(line) if inside else None
            if label:
                name = _NAME.search(label[2])
                block = Block(label[1], name[1] if name else "")
                self.blocks.append(block)
                self._note_loop(block, label[2])
                continue
            if line[:1] not in ("", "\t", " ", "#", ".", "/"):
                found = _FUNCTION.match(line)
                if found and found[1] == symbol:
                    inside, place = True, None
                    block = Block("entry", "entry")
                    self.blocks.append(block)
                elif found and "@function" in self._kind(lines, found[1]):
                    inside = False
                    self.others.append(found[1])
                continue
            if not inside or block is None:
                continue
            stripped = line.strip()
            if stripped.startswith(self._comment):
                self._note_loop(block, stripped)
            elif line.startswith("\t"):
                text, _, comment = stripped.partition(self._comment)
                if text.strip():
                    block.codes.append(Code(text.strip(), comment, place))
        for block in self.blocks:
            if block.loop is not None:
                block.loop.blocks.append(block)

    def _kind(self, lines: list[str], name: str) -> str:
        return next((line for line in lines if line.startswith("\t.type") and name in line), "")

    def _note_loop(self, block: Block, comment: str) -> None:
        """What a comment beside a block says of loops."""
        if found := _INSIDE.search(comment):
            block.loop = self._loop(found[1])
        elif found := _PARENT.search(comment):
            parent = self._loop(found[1])
            loop = self._loop(block.label)
            loop.parent = parent  # the last one that is named is the nearest
        if _HEADER.search(comment):
            block.loop = self._loop(block.label)
            block.loop.name = block.name


def _vector_step(ir: str, name: str) -> tuple[int, bool]:
    """By how many iterations of what it was a loop of LLVM's vectoriser goes on (0 if it does not show), and
    whether by a multiple of that, for vectors of a size that only the CPU knows."""
    found = re.search(rf"^{re.escape(name)}:.*?(?=^\S)", ir, re.MULTILINE | re.DOTALL)
    block = found[0] if found else ""
    for following, counter, step in _STEP.findall(block):
        if f"[ {following}, %{name} ]" in block and f"{counter} = phi i64" in block:
            return (_of_vscale(ir, step), True) if step.startswith("%") else (abs(int(step)), False)
    return 0, False


def _of_vscale(ir: str, value: str) -> int:
    """What a value is a multiple of vscale by; 0 if it is none."""
    factor = 1
    if found := re.search(_SCALED.format(re.escape(value)), ir, re.MULTILINE):
        value = found[2]
        factor = 1 << int(found[3]) if found[1] == "shl" else int(found[3])
    return factor if re.search(_VSCALE.format(re.escape(value)), ir, re.MULTILINE) else 0


def split_operands(text: str) -> list[str]:
    """Operands, separated by commas outside of parentheses and brackets."""
    found: list[str] = []
    depth = start = 0
    for k, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            found.append(text[start:k].strip())
            start = k + 1
    rest = text[start:].strip()
    return [*found, rest] if rest else found
