"""A report on one program: plain data that text.py and html.py show.

What is said of lines comes from what the code generator noted (passes/ir/remarks.py) and from the machine
code (assembly.py); nothing is analysed a second time.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

from ..codegen.kernel.emit import KernelCode
from ..codegen.library.functions import OF_LANES
from ..compiler import pipeline, variants
from ..jit import emit
from ..jit.errors import CompileError
from ..passes.cost import short_rows
from ..passes.cost.estimate import Estimate
from ..passes.ir import remarks as r
from ..records import replace
from ..spirv.location import Location
from . import cost
from .advice import Advice, analyse
from .alternatives import NOTHING, Asked, alternatives, estimate_text, launch_of
from .assembly import Assembly, Code
from .mca import Analyser, Simulated
from .measured import Measured


class Annotation(NamedTuple):
    """level: "good", "fair", "poor", "bad" or "plain". text: for people."""

    level: str
    text: str


# What is said of each way to do something, and how welcome it is.
_WAYS = {
    (r.LOAD, r.UNIFORM): ("good", "load: one for all lanes (uniform)"),
    (r.LOAD, r.CONTIGUOUS): ("good", "load: contiguous"),
    (r.LOAD, r.SHUFFLED): ("fair", "load: whole vectors and shuffles"),
    (r.LOAD, r.ASKED): (
        "fair",
        "load: contiguous or one for all where it finds that when it runs, else {why}",
    ),
    (r.LOAD, r.GATHER): ("poor", "load: gather"),
    (r.LOAD, r.ROWS): ("poor", "load: an OpenCL vector for each lane, and shuffles"),
    (r.LOAD, r.LANES): ("bad", "load: lane by lane"),
    (r.STORE, r.UNIFORM): ("good", "store: one for all lanes (uniform)"),
    (r.STORE, r.CONTIGUOUS): ("good", "store: contiguous"),
    (r.STORE, r.SHUFFLED): ("fair", "store: whole vectors and shuffles"),
    (r.STORE, r.ASKED): ("fair", "store: contiguous where it finds that when it runs, else {why}"),
    (r.STORE, r.SCATTER): ("poor", "store: scatter"),
    (r.STORE, r.ROWS): ("poor", "store: an OpenCL vector for each lane, and shuffles"),
    (r.STORE, r.LANES): ("bad", "store: lane by lane"),
    (r.ATOMIC, r.REDUCED): ("good", "atomic: one for all lanes"),
    (r.ATOMIC, r.LANES): ("bad", "atomic: lane by lane"),
    (r.CALL, r.LANES): ("bad", "call: lane by lane"),
    (r.ARITHMETIC, r.VECTOR): ("good", "arithmetic: vectors"),
    (r.ARITHMETIC, r.UNIFORM): ("plain", "arithmetic: scalar, the same for all lanes"),
    (r.ARITHMETIC, r.AFFINE): ("plain", "arithmetic: scalar, lanes differ by a constant step"),
    (r.ARITHMETIC, r.LANES): ("bad", "arithmetic: lane by lane"),
    (r.CONTROL, r.UNIFORM): ("good", "branch: the same way for all lanes"),
    (r.CONTROL, r.MASKED): (
        "fair",
        "branch: lanes may differ (divergent), so both paths are executed, under masks",
    ),
    (r.CONTROL, r.LIVE): ("fair", "loop: lanes may leave it one by one, it goes on as long as any is in it"),
    (r.CONTROL, r.SKIPPED): ("plain", "jumped over where no lane takes part"),
    (r.CONTROL, r.BARRIER): ("plain", "barrier: all of the group come here, row by row, before any goes on"),
    (r.CONTROL, r.DROPPED): ("good", "barrier: nothing to do, for the whole group is in vectors"),
}
_ORDER = {"bad": 0, "poor": 1, "fair": 2, "good": 3, "plain": 4}


class Loop:
    """first, last: lines of the source; over_items: whether it is the one over work-items; items: work-items
    of an iteration; cycles: of an iteration, an estimate, or None; limit: what takes them; spills: of it;
    simulated: by llvm-mca, or None."""

    def __init__(
        self,
        first: int,
        last: int,
        over_items: bool,
        items: int,
        cycles: float | None,
        limit: str,
        spills: int,
        has_inner: bool,
    ) -> None:
        self.first, self.last = first, last
        self.over_items = over_items
        self.items = items
        self.cycles = cycles
        self.limit = limit
        self.spills = spills
        self.has_inner = has_inner
        self.simulated: Simulated | None = None


class Variant:
    """The code of a kernel for some launches. title: which; facts: (level, sentence); lines: {number of a
    line of the source: Annotations}, 0 where no line is known; instructions: {line: (all, of vectors)};
    spilled: what registers that are not there cost; assembly: {line: (instruction, what it takes)}."""

    def __init__(self, title: str, width: int, tile: tuple[int, int]) -> None:
        self.title = title
        self.width = width
        self.tile = tile
        self.facts: list[Annotation] = []
        self.loops: list[Loop] = []
        self.lines: dict[int, list[Annotation]] = {}
        self.instructions: dict[int, tuple[int, int]] = {}
        self.spilled = cost.Spills()
        self.assembly: dict[int, list[tuple[str, str]]] = {}


class Alternative(NamedTuple):
    """A way to compile a kernel: how many work-items and vectors of them at a time, whether groups are in
    lockstep, whether it was chosen for most launches, and what it costs, in words."""

    width: int
    parts: int
    in_lockstep: bool
    chosen: bool
    text: str


class Kernel:
    """name; variants, the one for most launches first; launch: what alternatives are estimated for, in
    words; usual: which variant most launches run in the end; advice: the best first; heat: the share of each
    line of the source in what the code costs; estimated: ns of a work-item of that launch, or None; measured:
    of launches that a profile has, or None."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.variants: list[Variant] = []
        self.launch = ""
        self.alternatives: list[Alternative] = []
        self.usual = 0
        self.advice: list[Advice] = []
        self.heat: dict[int, float] = {}
        self.estimated: float | None = None
        self.measured: Measured | None = None


class Report:
    """file: the source's name; source: its lines; about: sentences on the program as a whole."""

    def __init__(self, file: str, source: list[str]) -> None:
        self.file = file
        self.source = source
        self.about: list[str] = []
        self.kernels: list[Kernel] = []


def kernel_report(
    program: pipeline.Prepared,
    name: str,
    file: str,
    local_size: list[int] | None = None,
    asked: Asked = NOTHING,
) -> Kernel:
    """What became of one kernel of a program that explains. CompileError if it cannot be compiled.

    file: the source's name; local_size: of launches that may have code of their own; asked: what is known of
    the launch that costs are estimated for.
    """
    made = Kernel(name)
    code = pipeline.entry(program, name)
    made.measured = asked.measured.get(name)
    _say_alternatives(made, program, code, local_size, asked.sized(name))
    title = "for most launches" if code.has_narrow or code.tiles else "for all launches"
    if code.tiles is not None and code.has_free_groups:
        title = "for the first launches"
    made.variants.append(_variant(program, code, title, "", file, asked.analyser))
    if code.tiles is not None:
        tiled = variants.variant(
            program, name, variants.TILED, [code.width, *code.tile_of_tiles], code.apart_args
        )
        title = "for groups that consist of whole tiles"
        if code.has_free_groups:
            title = "for a kernel that has run for a while"
        _remarks(tiled).choose("parts of tiles", _remarks(code).choices.get("parts of tiles", ""))
        made.variants.append(_variant(program, tiled, title, variants.TILED, file, asked.analyser))
        made.usual = 1 if code.has_free_groups else 0
    if code.apart_args:
        args = program.reflections[name].args
        names = ", ".join(args[number].name or f"argument {number}" for number in code.apart_args)
        text = "what loops accumulate in memory is a value in them; launches whose buffers overlap that of "
        text += f"{names} get code of their own, where it is not"
        made.variants[0].facts.append(Annotation("plain", text))
    if program.exchange_ids(name):
        text = "its lanes follow dimension 1, along which neighbours are next to one another in memory"
        made.variants[0].facts.append(Annotation("plain", text))
    if code.has_narrow:
        has_sub_groups = program.uses_sub_groups(name)
        how = "whose lanes follow the linear local id" if has_sub_groups else "for one work-item at a time"
        why = "for launches that the other does not suit: narrow groups, ids of 2^29 and above"
        made.variants[0].facts.append(Annotation("plain", f"there is code {how} as well, {why}"))
    if code.specialisable_args:
        names = ", ".join(
            program.reflections[name].args[k].name or f"argument {k}" for k in code.specialisable_args
        )
        text = f"launches may get code of their own, made for values that stay the same: {names}"
        made.variants[0].facts.append(Annotation("plain", text))
    if local_size and code.has_linear and short_rows.has_idle_lanes(local_size, code.width):
        _add_size_variant(made, program, file, local_size, code.apart_args, variants.LINEAR, asked.analyser)
    elif code.may_run_in_lockstep:
        _add_size_variant(made, program, file, local_size, code.apart_args, variants.GROUP, asked.analyser)
    _advise(made, program, code, file, local_size, asked)
    return made


def _advise(
    made: Kernel,
    program: pipeline.Prepared,
    code: KernelCode,
    file: str,
    local_size: list[int] | None,
    asked: Asked,
) -> None:
    """What bounds the kernel, and which lines take how much, where that can be estimated."""
    launch = launch_of(program.reflections[made.name].args, local_size, asked.sized(made.name))
    if program.exchange_ids(made.name):
        (x, y, z), (a, b, c) = launch.global_size, launch.local_size
        launch = replace(launch, global_size=(y, x, z), local_size=(b, a, c))
    if program.is_unoptimised(made.name) or program.is_too_large(made.name):
        return
    known = bool(asked.global_size), local_size is not None
    spilled = made.variants[made.usual].spilled
    found = analyse(program, code, launch, known, spilled, lambda i: line_of(i.line, file))
    if found is not None:
        made.advice, made.heat = found.advice, found.heat


def _say_alternatives(
    made: Kernel, program: pipeline.Prepared, code: KernelCode, local_size: list[int] | None, asked: Asked
) -> None:
    """What the model of costs says of the ways to compile a kernel."""
    launch = launch_of(program.reflections[made.name].args, local_size, asked)
    made.launch = f"{_sizes(launch.global_size)} work-items in groups of {_sizes(launch.local_size)}"
    if program.exchange_ids(made.name):
        (x, y, z), (a, b, c) = launch.global_size, launch.local_size
        launch = replace(launch, global_size=(y, x, z), local_size=(b, a, c))
    for options, found, chosen in alternatives(program, code, launch, local_size is not None):
        if chosen and isinstance(found, Estimate):
            made.estimated = found.launch * 1000 / math.prod(launch.global_size)
        text = estimate_text(found) if isinstance(found, Estimate) else f"no estimate: {found}"
        shape = options.width, options.parts, bool(options.group)
        made.alternatives.append(Alternative(*shape, chosen, text))


def _sizes(sizes: tuple[int, int, int]) -> str:
    used = max(1, *(k for k, size in enumerate(sizes, 1) if size > 1)) if max(sizes) > 1 else 1
    return " \N{MULTIPLICATION SIGN} ".join(map(str, sizes[:used]))


def _remarks(code: KernelCode) -> r.Remarks:
    """What was noted of code that was made for a report."""
    if code.remarks is None:
        raise ValueError("the program does not explain")
    return code.remarks


def _add_size_variant(
    made: Kernel,
    program: pipeline.Prepared,
    file: str,
    local_size: list[int] | None,
    apart: list[int],
    kind: str,
    analyser: Analyser | None,
) -> None:
    """What launches with groups of one size get once it is made."""
    facts = made.variants[0].facts
    if local_size is None:
        text = "launches may get code of their own, made for their local size (--local-size shows it)"
        facts.append(Annotation("plain", text))
        return
    groups = " \N{MULTIPLICATION SIGN} ".join(map(str, local_size))
    try:
        code = variants.variant(program, made.name, kind, local_size, apart)
    except CompileError as error:
        facts.append(
            Annotation("plain", f"no code of their own for groups of {groups}: {str(error).strip()}")
        )
        return
    if kind == variants.GROUP:
        _remarks(code).choose("parts", "the whole group, so that its barriers have nothing left to do")
    made.variants.append(_variant(program, code, f"for groups of {groups}", kind, file, analyser))


def _variant(
    program: pipeline.Prepared,
    code: KernelCode,
    title: str,
    variant: str,
    file: str,
    analyser: Analyser | None,
) -> Variant:
    context, remarks = program.context, _remarks(code)
    made = Variant(title, code.width, code.tile)
    ways = pipeline.llvm_ways(context, code, variant)
    assembly = Assembly(*emit.commented_assembly(code.text, context.target, *ways), code.symbol)
    _say_lanes(made, code, assembly, variant)
    _say_facts(made, remarks.facts, file, code.width)
    _say_notes(made, remarks.notes, file)
    _say_code(made, assembly, file, context.target.architecture, analyser)
    for notes in made.lines.values():
        notes.sort(key=lambda note: _ORDER[note.level])
    return made


def line_of(location: Location | None, file: str) -> int:
    """The line of a file that a Location is at, or was called from; 0 if none is known."""
    while location is not None:
        if location.line and _same_file(location.file, file):
            return location.line
        location = location.at
    return 0


def _same_file(a: str, b: str) -> bool:
    return a == b or a.lstrip("/") == b.lstrip("/")


def _say_lanes(made: Variant, code: KernelCode, assembly: Assembly, variant: str) -> None:
    """Width and parts, and why."""
    choices, facts = _remarks(code).choices, made.facts
    why = choices.get("width", "")
    if code.width == 1:
        facts.append(Annotation("poor", f"1 work-item at a time: {why}" if why else "1 work-item at a time"))
        vectorised = [loop for loop in assembly.loops.values() if loop.step]
        if vectorised:
            counts = " or ".join(map(str, sorted({loop.step for loop in vectorised})))
            text = f"LLVM vectorised loops of it, so that they take {counts} iterations at a time"
            if any(loop.is_scalable for loop in vectorised):
                text += " for each 128 bits of an SVE vector"
            facts.append(Annotation("good", text))
        return
    facts.append(Annotation("good", f"{code.width} work-items per vector: {why}"))
    if "lanes" in choices:
        facts.append(Annotation("good", f"lanes go on in the next row: {choices['lanes']}"))
    parts = code.tile[0] * code.tile[1] // code.width
    along = ", of the next rows" if code.tile[1] > 1 else ", of the same row"
    along = "" if variant == variants.GROUP else along
    count = f"{parts} vectors of work-items at a time{along}" if parts > 1 else "1 vector at a time"
    why = choices.get("parts of tiles" if variant == variants.TILED else "parts", "")
    facts.append(Annotation("good" if parts > 1 else "plain", f"{count}: {why}" if why else count))


def _say_facts(made: Variant, facts: dict[str, list[tuple[Any, ...]]], file: str, width: int) -> None:
    """Regions and what is kept across barriers, memory."""

    def say(level: str, text: str) -> None:
        made.facts.append(Annotation(level, text))

    regions = facts.get("region", [])
    if len(regions) > 1:
        once = sum(1 for _, is_once, _ in regions if is_once)
        more = f", of which {once} run once per group" if once else ""
        say("plain", f"barriers divide it into {len(regions)} regions{more}")
    if facts.get("takes turns"):
        say("poor", "its sub-groups may wait for one another: each has a stack of its own, and takes turns")
    kinds = {"group": "once per group", "affine": "one per work-item, read once per vector"}
    for name, type_, kind, location in facts.get("kept", []):
        line = line_of(location, file)
        where = f" (line {line})" if line else ""
        what = f"{type_} {name}".strip()
        say("plain", f"kept across barriers: {what}{where}, {kinds.get(kind, 'one per work-item')}")
    for name, size in facts.get("kept memory", []):
        say("poor", f"private memory that outlives barriers: {size} bytes {name}".rstrip())
    for names in facts.get("calls", []):
        count = len(set(names))
        versions = f" in {len(names)} versions" if len(names) > count else ""
        say("plain", f"calls {count} functions at {width} lanes{versions}: {', '.join(sorted(set(names)))}")
    for name, size in facts.get("local", []):
        say("plain", f"local memory: {size} bytes {name.rpartition('.')[2]}".rstrip())
    for variable, piece, why in facts.get("private", []):
        name, line = variable.name or "an array", line_of(variable.line, file)
        where = f" (line {line})" if line else ""
        if piece:
            say("good", f"private memory of {name}{where}: interleaved, so that lanes lie side by side")
        else:
            say("poor", f"private memory of {name}{where}: a block for each lane, since {why}")
    ((private, fixed, per_item),) = facts.get("scratch", [(0, 0, 0)])
    if private and width == 1:
        say("plain", f"private memory: {private} bytes per work-item")
    if fixed or per_item:
        more = f", and {per_item} for each work-item of a group" if per_item else ""
        say("plain", f"scratch memory of a thread: {fixed} bytes{more}")


def _say_notes(made: Variant, notes: Counter[r.Note], file: str) -> None:
    """What the code generator did, line by line."""
    counts: Counter[tuple[int, str, str, str, bool, float]] = Counter()
    for note, count in notes.items():
        line = line_of(note.location, file)
        if line or note.what not in (r.ARITHMETIC, r.CONTROL):  # what has no line is masks and addresses
            counts[line, note.what, note.how, note.why, note.masked, note.cycles] += count
    for (line, what, how, why, masked, cycles), count in counts.items():
        if how == r.MASKED and any(key[:3] == (line, r.CONTROL, r.LIVE) for key in counts):
            continue  # a loop's exits are said to be that
        level, text = _WAYS.get((what, how), ("plain", f"{what}: {how}"))
        if how == r.ASKED:
            text = text.format(why=_words(why))
        elif why:
            text += f" ({why})"
        if masked:
            text += ", masked"
            level = "fair" if level == "good" else level
        if count > 1 and what is not r.CONTROL:
            text += f" \N{MULTIPLICATION SIGN}{count}"
        if cycles:
            text += f", {cycles:.2g} cycle{'' if cycles == 1 else 's'}" + (" each" if count > 1 else "")
        made.lines.setdefault(line, []).append(Annotation(level, text))


def _words(ways: str) -> str:
    return ways.replace(r.ROWS, "an OpenCL vector for each lane").replace(r.LANES, "lane by lane")


def _say_code(
    made: Variant, assembly: Assembly, file: str, architecture: str, analyser: Analyser | None
) -> None:
    """What the machine code shows: instructions of each line, loops and their cycles, spills, calls."""
    counts: Counter[int] = Counter()
    vectors: Counter[int] = Counter()
    spills: Counter[tuple[int, str]] = Counter()
    calls: Counter[tuple[int, str]] = Counter()
    figures = analyser.figures([c for b in assembly.body for c in b.codes]) if analyser is not None else {}
    for block in assembly.body:
        for code in block.codes:
            line = code.place[1] if code.place and _same_file(code.place[0], file) else 0
            counts[line] += 1
            takes = cost.words(code) if architecture == "x86_64" else ""
            takes = figures[code.text].words() if code.text in figures else takes
            made.assembly.setdefault(line, []).append((code.text.replace("\t", " "), takes))
            vectors[line] += _is_vector(code, architecture)
            if code.spill:
                spills[line, code.spill] += 1
            if code.mnemonic in ("call", "callq", "bl") and code.operands:
                name = code.operands[0].strip('"').removesuffix("@PLT")
                if not name.startswith(OF_LANES):  # scalar code for each lane, which is told of already
                    calls[line, name] += 1
    if made.width == 1:  # LLVM's vectoriser decides, after the code generator
        for line, count in counts.items():
            found = vectors[line]
            text = f"code: {found} of {count} instructions on vectors" if found else "code: scalar"
            note = Annotation("good" if found else "plain", text)
            if line:
                made.lines.setdefault(line, []).append(note)
    made.instructions = {line: (count, vectors[line]) for line, count in sorted(counts.items())}
    for (line, name), count in sorted(calls.items()):
        times = f" \N{MULTIPLICATION SIGN}{count}" if count > 1 else ""
        note = Annotation("bad", f"call: of {name.split('.')[0]}, which is not inlined{times}")
        made.lines.setdefault(line, []).append(note)
    for line in sorted({line for line, _ in spills}):
        if line:
            text = f"registers: {spills[line, 'spill']} spilled, {spills[line, 'reload']} reloaded"
            made.lines.setdefault(line, []).append(Annotation("poor", text))
    inner = sum(1 for loop in assembly.body_loops() if not loop.is_over_items for c in loop.codes if c.spill)
    total = sum(spills.values())
    if total:
        stored = sum(n for (_, kind), n in spills.items() if kind == "spill")
        where = f", {inner} of these in loops of the kernel" if inner else ", none in loops of the kernel"
        text = f"spilled registers: {stored} stores and {total - stored} reloads{where}"
        made.facts.append(Annotation("poor" if inner else "fair", text))
    else:
        made.facts.append(Annotation("good", "spilled registers: none"))
    if not calls:
        made.facts.append(Annotation("good", "calls that were not inlined: none"))
    parents = {loop.parent for loop in assembly.loops.values()}
    if architecture == "x86_64":
        made.spilled = cost.spilled(assembly, lambda name: _same_file(name, file))
    for loop in assembly.body_loops():
        lines = {c.place[1] for c in loop.codes if c.place and _same_file(c.place[0], file)}
        is_known = architecture == "x86_64"
        cycles, limit = cost.estimate(loop.usual_codes, loop not in parents) if is_known else (None, "")
        spilled = sum(1 for c in loop.codes if c.spill)
        over = loop.within()
        items = (over.step if over is not None else 0) or made.tile[0] * made.tile[1]
        first, last = (min(lines), max(lines)) if lines else (0, 0)
        shape = loop.is_over_items, items, cycles, limit, spilled, loop in parents
        made.loops.append(Loop(first, last, *shape))
    if analyser is not None:
        simulated = analyser.loops([loop.usual_codes for loop in assembly.body_loops()])
        for shown, one in zip(made.loops, simulated, strict=True):
            shown.simulated = one


def _is_vector(code: Code, architecture: str) -> bool:
    """Whether an instruction works on more than one element."""
    if architecture != "x86_64":
        return any("." in operand and operand[0] == "v" for operand in code.operands)
    if code.vector_bits > 128:
        return True
    name = code.mnemonic.removeprefix("v")
    return code.vector_bits > 0 and not name.endswith(("ss", "sd", "sh")) and name not in ("movd", "movq")
