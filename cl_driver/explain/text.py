"""Reports as plain text: for each kernel what was chosen, its loops, and the lines with what was done."""

from __future__ import annotations

from .advice import Advice
from .measured import measured_text
from .report import Alternative, Kernel, Loop, Report, Variant


def loop_text(loop: Loop) -> str:
    """A loop in a sentence."""
    what = "loop over work-items" if loop.over_items else "loop"
    if loop.first:
        what += f", line{'' if loop.first == loop.last else 's'} {loop.first}"
        what += "" if loop.first == loop.last else f" to {loop.last}"
    if loop.has_inner:
        what += ", without the loops in it"
    if loop.cycles is None:
        return f"{what}: {loop.items} work-items at a time; no estimate of cycles for this architecture"
    each = loop.cycles / max(loop.items, 1)
    text = f"{what}: about {loop.cycles:.0f} cycles for {loop.items} work-items, {each:.2g} each"
    text += f", that is how long {loop.limit} take" if loop.cycles else ""
    if loop.simulated is not None:
        text += f"; by llvm-mca {loop.simulated.cycles:.3g} cycles"
        if loop.simulated.cycles > 1.1 * loop.simulated.least:
            text += f", {loop.simulated.least:.3g} if nothing waited for a result"
    return f"{text}; {loop.spills} spills and reloads" if loop.spills else text


LEGEND = (
    "cycles are estimates from the machine code and a table of instructions (cl_driver/explain/cost.py): "
    "caches hit, and all of a loop's code is executed in each iteration, except the slower one of two "
    "versions that a test at run time chooses from"
)


ESTIMATED = (
    "estimates are from a table of CPUs (cl_driver/passes/cost), not from machine code: they tell which of "
    "several is faster; loops that nobody knows the end of run 8 times (--global-size, --value)"
)


def alternative_text(alternative: Alternative) -> str:
    """An alternative in a sentence."""
    count, parts = alternative.width, alternative.parts
    what = f"{count} work-item{'s' if count > 1 else ''}" + (f" by {parts} vectors" if parts > 1 else "")
    what += ", the whole group" if alternative.in_lockstep else ""
    return f"{what} at a time{' (chosen)' if alternative.chosen else ''}: {alternative.text}"


def sentences(kernel: Kernel, advice: Advice) -> list[str]:
    """A piece of advice: what bounds the kernel, what to change, what that would gain."""
    found = [f"{advice.bound}.", f"{advice.change[:1].upper()}{advice.change[1:]}."]
    if advice.gain > 1:
        found.append(
            f"Estimated gain: {advice.gain:.2g} times as fast (by the model of costs, for {kernel.launch})."
        )
    return found


def measurements(kernel: Kernel) -> list[str]:
    """What a profile has of the kernel."""
    return [] if kernel.measured is None else [measured_text(kernel.measured, kernel.estimated)]


def heading(variant: Variant) -> str:
    """What a variant is."""
    columns, rows = variant.tile
    shape = f"{columns} \N{MULTIPLICATION SIGN} {rows}" if rows > 1 else str(columns)
    return f"{variant.title}: {shape} work-item{'s' if columns * rows > 1 else ''} at a time"


def report_text(report: Report) -> str:
    """The whole report."""
    out = [report.file or "a program without debug information", *(f"  {line}" for line in report.about)]
    out += [f"  {LEGEND}"]
    for kernel in report.kernels:
        if kernel.advice or kernel.measured is not None:
            out += ["", f"kernel {kernel.name}", *(f"  {one}" for one in measurements(kernel))]
            out += [f"  {sentence}" for advice in kernel.advice for sentence in sentences(kernel, advice)]
        if kernel.alternatives:
            out += ["", f"kernel {kernel.name}, estimates for {kernel.launch}", f"  {ESTIMATED}"]
            out += [f"  {alternative_text(alternative)}" for alternative in kernel.alternatives]
        for variant in usual_first(kernel):
            out += ["", f"kernel {kernel.name}, {heading(variant)}"]
            out += [f"  {fact.text}" for fact in variant.facts]
            out += [f"  {loop_text(loop)}" for loop in variant.loops]
            out += _lines(report, variant, kernel.heat if variant is kernel.variants[kernel.usual] else {})
    out += ["", *LEVELS]
    return "\n".join(out) + "\n"


def usual_first(kernel: Kernel) -> list[Variant]:
    """The variants, that which most launches run in the end first."""
    usual = kernel.variants[kernel.usual]
    return [usual, *(variant for variant in kernel.variants if variant is not usual)]


def _lines(report: Report, variant: Variant, heat: dict[int, float]) -> list[str]:
    out = []
    for number in sorted(variant.lines):
        source = report.source[number - 1].rstrip() if 0 < number <= len(report.source) else ""
        out.append(f"{number:5} | {source}" if number else "      (no line known)")
        if heat.get(number, 0.0) >= _WARM:
            bar = _BAR * max(1, round(20 * heat[number]))
            out.append(f"      |     {bar} {100 * heat[number]:.0f} % of the estimated cycles")
        out += [f"      |     {MARKS[note.level]} {note.text}" for note in variant.lines[number]]
    return out


_WARM = 0.05  # the share of a line that is worth a bar
_BAR = "\N{BLACK SQUARE}"
MARKS = {"good": "+", "fair": "~", "poor": "-", "bad": "!", "plain": "."}
LEVELS = (
    "marks: + as good as it gets, ~ some overhead, - costly, ! one work-item at a time or a call, . scalar "
    "code",
    f"{_BAR}: a line's share of the cycles that the model of costs finds, caches aside",
)
