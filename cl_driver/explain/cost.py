"""An estimate of the cycles that the body of a loop takes on an x86 CPU of today with AVX2 or AVX-512.

Not a simulation. Each instruction belongs to a class, with the execution slots that it takes and the cycles
until its result is there: rounded figures for Intel's Sunny Cove and Golden Cove cores, as in the tables
of uops.info and of Agner Fog. A loop takes as long as its busiest resource, or as its longest chain from one
iteration to the next. Caches are taken to hit, branches to be predicted, all blocks of a loop to be executed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .assembly import Assembly, Code

# Slots a cycle of each resource. "vector": ports for vector arithmetic, "mul": for floating-point and
# products, "shuffle": for moves across lanes, "issue": micro-operations in all.
_SLOTS = {"issue": 6.0, "scalar": 4.0, "branch": 2.0, "load": 2.0, "divide": 1.0, "mask": 1.0, "shuffle": 1.0}
_WIDE = {"vector": 2.0, "mul": 2.0, "store": 1.0}  # of 512 bits
_NARROW = {"vector": 3.0, "mul": 2.0, "store": 2.0}

# Pattern of mnemonics: slots of resources, cycles until the result is there. The first that fits counts.
_CLASSES: list[tuple[re.Pattern[str], Mapping[str, float], int]] = [
    (re.compile(pattern), slots, latency)
    for pattern, slots, latency in (
        (r"(j\w+|ret\w*|call\w*)$", {"branch": 1}, 1),
        (r"(nop|vzeroupper|endbr64|push|pop|ud2)", {}, 1),
        (r"k(mov)", {"mask": 1}, 2),
        (r"k(ortest|test)", {"mask": 1}, 2),
        (r"k(unpck|shift|add)", {"shuffle": 1}, 4),
        (r"k[a-z]+[bwdq]$", {"mask": 1}, 1),
        (r"v?div[ps]s|v?rcpps$", {"divide": 5, "mul": 1}, 11),
        (r"v?div[ps]d", {"divide": 8, "mul": 1}, 14),
        (r"v?sqrt[ps]s", {"divide": 6, "mul": 1}, 12),
        (r"v?sqrt[ps]d", {"divide": 12, "mul": 1}, 18),
        (r"i?div[bwlq]?$", {"divide": 8, "scalar": 4}, 14),
        (r"vp?gather", {"gather": 1}, 20),
        (r"vp?scatter", {"scatter": 1}, 12),
        (r"vpmulld|vpmullq", {"mul": 2}, 10),
        (r"v(pmul|pmadd|psadbw|pdp)", {"mul": 1}, 5),
        (r"vf(n?madd|n?msub)|v?(add|sub|mul|max|min|addsub)[ps][sdh]$", {"mul": 1}, 4),
        (r"v?u?comis|vptest|vtest", {"vector": 1, "scalar": 1}, 3),
        (r"v?p?cmp", {"mask_compare": 1}, 3),
        (r"vptestn?m", {"mask_compare": 1}, 3),
        (r"v?(cvt|round|rndscale|getexp|getmant|scalef|fixupimm|range|reduce|rsqrt|rcp)", {"mul": 1}, 5),
        (r"v(perm|pshuf|shuf|unpck|punpck|palign|alignr|align|pack|extract|pextr|insert|pinsr|expand|"
         r"compress|pexpand|pcompress|pmov[sz]x|pmov|broadcast|pbroadcast|psl?ldq|psrldq|movh|movl[hp])",
         {"shuffle": 1}, 3),
        (r"v?mov(d|q)$|vmov(w|d|q)$", {"shuffle": 1}, 2),
        (r"v?mov\w*|vmaskmov\w*|vpmaskmov\w*", {"move": 1}, 1),
        (r"v[a-z]", {"vector": 1}, 1),
        (r"(add|sub|mul|and|or|xor|andn|max|min|p[a-z]+|shuf|unpck)\w*[ps][sd]$", {"vector": 1}, 4),
        (r"i?mul|mulx", {"scalar": 1}, 3),
        (r"(mov|lea|cmov|set|test|cmp|add|adc|sub|sbb|inc|dec|neg|not|and|or|xor|sh|sa|ro|bt|bs|pop|lz|tz|"
         r"c|x|b)", {"scalar": 1}, 1),
    )
]  # fmt: skip

_REGISTER = re.compile(r"%([a-z][a-z0-9]*)")
_LEGACY = {
    name: f"r{x}"
    for x in ("si", "di", "bp", "sp", "ax", "bx", "cx", "dx")
    for name in (f"r{x}", f"e{x}", x, f"{x}l", *((f"{x[0]}l", f"{x[0]}h") if x[1] == "x" else ()))
}

# Which keep nothing of the register that they write: all with three operands, moves, conversions.
_WRITES_ONLY = re.compile(r"v|mov|lea|set|k|cvt|pop|lz|tz|bs|broadcast|andn|shlx|sarx|shrx|mulx|rorx|pshuf")
_READS_TARGET = re.compile(r"vf(n?m)|vpternlog|vpdp|vpermt2|vpermi2|vfixup|vgather|vpgather")
_STORES = re.compile(r"v?p?mov|set|vextract|v?pextr|vp?compress")
_WRITES_NOTHING = re.compile(r"(v?u?comis|test|cmp|bt|vptest|vtest|ktest|kortest|j|ret|push|nop|prefetch)")


def _family(register: str) -> str:
    """One name for all parts of a register."""
    if register[0] in "xyz" and register[1:3] == "mm":
        return "v" + register[3:]
    if register in _LEGACY:
        return _LEGACY[register]
    if register[0] == "r" and register[1:2].isdigit():
        return register.rstrip("bwd")
    return register


def _class_of(code: Code) -> tuple[Mapping[str, float], int]:
    for pattern, slots, latency in _CLASSES:
        if pattern.match(code.mnemonic):
            return slots, latency
    return {"scalar": 1}, 1


def _is_memory(operand: str) -> bool:
    return "(" in operand and "%" in operand


def _lanes(code: Code) -> int:
    """How many elements a gather or scatter has."""
    element = 8 if code.mnemonic.endswith(("qq", "dq", "qpd", "dpd")) else 4
    index = re.search(r",%([xyz])mm", code.text)
    bytes_ = {"x": 16, "y": 32, "z": 64}[index[1]] if index else 16
    return max(min(bytes_, max(code.vector_bits // 8, 16)), 8) // element


def slots_of(code: Code) -> tuple[dict[str, float], int]:
    """What an instruction takes of each resource, and the cycles until its result is there."""
    taken, latency = _class_of(code)
    slots: dict[str, float] = dict(taken)
    is_wide = code.vector_bits == 512
    memory = [k for k, operand in enumerate(code.operands) if _is_memory(operand)]
    if "gather" in slots:
        n = _lanes(code)
        return {"load": n, "vector": 3, "shuffle": 1, "issue": n + 4}, 12 + n
    if "scatter" in slots:
        n = _lanes(code)
        return {"store": n, "vector": 3, "shuffle": 1, "issue": 2 * n + 4}, 12 + n
    if "mask_compare" in slots:
        to_mask = code.operands and code.operands[-1].startswith("%k")
        slots = {"shuffle": 1} if to_mask else {"vector": 1} if code.mnemonic[0] == "v" else {"scalar": 1}
        latency = latency if to_mask else 1
    if "move" in slots:
        slots = {"vector": 1} if "{%k" in code.text else {}  # others are renamed, or loads and stores
    if is_wide and "divide" in slots:
        slots["divide"] *= 3
        latency += 6
    elif code.vector_bits == 256 and "divide" in slots:
        slots["divide"] *= 1.6
    if memory and not code.mnemonic.startswith(("lea", "nop", "prefetch")):
        last = len(code.operands) - 1
        if memory[-1] == last and not _WRITES_NOTHING.match(code.mnemonic):
            slots["store"] = 1
            if not _STORES.match(code.mnemonic):
                slots["load"] = 1
        else:
            slots["load"] = 1
            if "broadcast" in code.mnemonic or re.match(r"v?mov[dq]?$|vmov[dqw]$", code.mnemonic):
                slots.pop("shuffle", None)  # the load does it
                slots.pop("scalar", None)
            latency += 5 if code.mnemonic[0] != "v" else 7
    slots["issue"] = max(sum(1 for name in slots if name != "divide"), 1)
    return slots, latency


def words(code: Code) -> str:
    """What an instruction takes of a core, in words: slots of its ports, and its latency."""
    slots, latency = slots_of(code)
    ports = [f"{count:.2g} {_SHORT[name]}" for name, count in slots.items() if name != "issue" and count]
    return ", ".join([*ports, f"latency {latency}"])


def throughput(codes: list[Code]) -> tuple[float, str]:
    """Cycles that the busiest resource needs for all of the instructions, and which it is."""
    per_cycle = _SLOTS | (_WIDE if any(code.vector_bits == 512 for code in codes) else _NARROW)
    taken: dict[str, float] = {}
    for code in codes:
        for name, count in slots_of(code)[0].items():
            taken[name] = taken.get(name, 0) + count
    # What goes to the ports of products, and shuffles and mask operations, share those of vector arithmetic.
    shared = taken.get("vector", 0) + taken.get("mul", 0) + taken.get("shuffle", 0) + taken.get("mask", 0)
    if shared:
        taken["vector"] = shared
    times = {name: count / per_cycle[name] for name, count in taken.items()}
    name = max(times, key=lambda n: times[n], default="issue")
    return times.get(name, 0.0), name


def registers(code: Code) -> tuple[set[str], set[str]]:
    """Registers that an instruction reads, and those that it writes."""
    names = [[_family(r) for r in _REGISTER.findall(operand)] for operand in code.operands]
    reads = {r for group in names for r in group}
    if not names or _WRITES_NOTHING.match(code.mnemonic):
        return reads, set()
    target = code.operands[-1]
    if _is_memory(target):
        return reads, set()
    written = set(names[-1][:1])
    keeps = not _WRITES_ONLY.match(code.mnemonic) and len(code.operands) < 3
    merges = "{%k" in target and "{z}" not in target
    same = code.mnemonic.lstrip("v").startswith(("xor", "pxor")) and len({*code.operands}) == 1
    if same:
        return set(), written  # a register set to zero
    if not keeps and not merges and not _READS_TARGET.match(code.mnemonic):
        others = {r for group in names[:-1] for r in group} | set(names[-1][1:])
        reads = others
    return reads, written


def chain(codes: list[Code]) -> float:
    """Cycles per iteration of the longest chain of instructions that wait for one another."""
    ready: dict[str, float] = {}
    ends = []
    steps = [(*registers(code), slots_of(code)[1]) for code in codes]
    for _ in range(12):
        for reads, written, latency in steps:
            if written:
                start = max((ready.get(r, 0.0) for r in reads), default=0.0)
                for r in written:
                    ready[r] = start + latency
        ends.append(max(ready.values(), default=0.0))
    return (ends[-1] - ends[3]) / (len(ends) - 4)


NAMES = {
    "issue": "all instructions", "scalar": "scalar arithmetic", "branch": "branches", "load": "loads",
    "store": "stores", "divide": "divisions and roots", "mask": "masks", "shuffle": "shuffles",
    "vector": "vector arithmetic", "mul": "floating-point arithmetic and products",
    "chain": "instructions that wait for one another",
}  # fmt: skip


_SHORT = {
    "scalar": "scalar", "branch": "branch", "load": "load", "store": "store", "divide": "divider",
    "mask": "mask", "shuffle": "shuffle", "vector": "vector", "mul": "FMA",
}  # fmt: skip


def estimate(codes: list[Code], is_loop: bool) -> tuple[float, str]:
    """Cycles of an iteration (is_loop) or of straight code, and what limits them, in words."""
    cycles, name = throughput(codes)
    if is_loop:
        waiting = chain(codes)
        if waiting > cycles:
            cycles, name = waiting, "chain"
    return cycles, NAMES[name]


class Spills(NamedTuple):
    """Registers that are stored and loaded again in the innermost loops of the machine code. gain: the
    factor by which these would be faster without; number: of such instructions; lines: where they are, or
    between which."""

    gain: float = 1.0
    number: int = 0
    lines: tuple[int, ...] = ()


def spilled(assembly: Assembly, is_of_file: Callable[[str], bool]) -> Spills:
    """What the innermost loops would gain without stores and reloads of registers. is_of_file: whether a
    file's name is that of the source."""
    parents = {loop.parent for loop in assembly.loops.values()}
    taken = without = 0.0
    lines: Counter[int] = Counter()
    for loop in assembly.body_loops():
        if loop in parents:
            continue
        codes = loop.usual_codes
        taken += estimate(codes, True)[0]
        without += estimate([code for code in codes if not code.spill], True)[0]
        places = [code.place for code in codes if code.spill]
        lines.update(place[1] if place is not None and is_of_file(place[0]) else 0 for place in places)
    number = lines.total()
    del lines[0]
    shown = sorted(lines) if len(lines) <= 4 else sorted((min(lines), max(lines)))
    return Spills(taken / without if without else 1.0, number, tuple(shown))
