"""The sentences of advice (advice.py): what bounds a kernel, and what to change."""

from __future__ import annotations

from collections.abc import Sequence

from ..passes.cost.cpu_models import CpuModel
from ..passes.cost.estimate import Estimate
from . import causes
from .causes import Cause

_PORTS = {
    "instructions of all kinds": "the number of instructions that a core starts in a cycle",
    "scalar arithmetic": "the ports for scalar arithmetic",
    "vector arithmetic": "the ports for vector arithmetic",
    "products": "the ports for multiplications (FMA)",
    "sums": "the ports for floating-point additions",
    "shuffles": "the port for shuffles",
    "loads": "the load ports",
    "stores": "the store port",
    "divisions and roots": "the divider",
}


def of_cause(cause: Cause, lines: list[int], width: int) -> tuple[str, str]:
    """(what bounds the kernel, what to change), for a plan of so many work-items per vector."""
    return _SAID[cause.kind](cause, _place(lines), width)


def _place(lines: Sequence[int]) -> str:
    """Lines in words."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    if len(lines) <= 4:
        return "lines " + ", ".join(map(str, lines[:-1])) + f" and {lines[-1]}"
    return f"lines {lines[0]} to {lines[-1]}"


def _gather(cause: Cause, place: str, width: int) -> tuple[str, str]:
    loads, stores = _counts(cause)
    what = "gathers" if loads and not stores else "scatters" if not loads else "gathers and scatters"
    return (
        f"Bound by {what}: at {place} the {width} work-items of a vector access unrelated addresses, "
        "one cache access for each of them",
        "order the data so that neighbouring work-items access neighbouring elements (sort the indices, or "
        "copy what a work-group needs to local memory once), or read each value once and keep it in a "
        "variable",
    )


def _stride(cause: Cause, place: str, width: int) -> tuple[str, str]:
    step = f"{cause.detail} bytes" if cause.detail else "a distance that the launch decides"
    return (
        f"Bound by strided access: at {place} neighbouring work-items are {step} apart in memory, so a "
        f"vector of {width} touches up to {width} cache lines",
        "let get_global_id(0) select neighbouring elements: exchange the indices, transpose the data, or "
        "stage a tile of it in local memory",
    )


def _struct(cause: Cause, place: str, width: int) -> tuple[str, str]:
    step = f", {cause.detail} bytes from one to the next" if cause.detail else ""
    return (
        f"Bound by uncoalesced structures: at {place} each work-item accesses members of its own "
        f"structure{step}, so vectors are put together by shuffles, and members that are not used take "
        "bandwidth as well",
        "turn the array of structures into a structure of arrays, one array for each member that this "
        "kernel uses",
    )


def _atomic(cause: Cause, place: str, width: int) -> tuple[str, str]:
    assert isinstance(cause.detail, tuple)
    where, step = cause.detail
    advice = {
        causes.VARIABLE: "add up in a variable of each work-item, and do one atomic behind the loop",
        causes.COPY: "add up in a copy in local memory, and do one global atomic for each group and counter",
        causes.COPY_OF_MORE: "let each work-item take several elements, add up in a copy in local memory, "
        "and do one global atomic for each group and counter",
    }
    return (
        f"Bound by atomics: at {place} {where} atomics are executed one work-item at a time",
        advice[step],
    )


def _division(cause: Cause, place: str, width: int) -> tuple[str, str]:
    if cause.detail:
        return (
            f"Bound by divisions: at {place} floats are divided by a value that stays the same",
            "compute its reciprocal once, outside of the loop or on the host, and multiply",
        )
    return (
        f"Bound by divisions: at {place} integers are divided by a variable, for which CPUs have no vector "
        "instruction",
        "make the divisor a constant (-DN=..., better a power of two), or compute quotient and remainder "
        "incrementally, or with one multiplication by a reciprocal",
    )


def _double(cause: Cause, place: str, width: int) -> tuple[str, str]:
    return (
        f"Bound by double precision: at {place} floats are converted to double, calculated with and "
        "converted back, at half as many work-items per instruction",
        "write constants as floats (0.5f), or build with -cl-single-precision-constant; drop casts to double",
    )


def _call(cause: Cause, place: str, width: int) -> tuple[str, str]:
    what = "printf" if cause.detail else "a function that was not inlined"
    more = ", one work-item at a time," if width > 1 else ""
    return (
        f"Bound by calls: {what} is called{more} at {place}, and registers are saved around the call",
        "leave it out of the released kernel (#ifdef DEBUG)"
        if cause.detail
        else "make the function smaller, or call it from one place, so that it is inlined",
    )


def _divergence(cause: Cause, place: str, width: int) -> tuple[str, str]:
    share = f"{100 * float(str(cause.detail)):.0f} %"
    return (
        f"Bound by divergence: at {place} the work-items of a vector may take different branches: all "
        f"{width} compute what {share} of them need (a guess where branches depend on data)",
        "let neighbouring work-items take the same branch (sort the work by kind, or launch one kernel for "
        "each kind), or move what the branches have in common out of them",
    )


def _waiting(cause: Cause, place: str, width: int) -> tuple[str, str]:
    return (
        f"Bound by latency: at {place} each iteration waits for the result of the one before",
        "add to several independent sums in turn, which are added up after the loop"
        if cause.detail
        else "let each work-item compute several independent values at a time",
    )


_SAID = {
    causes.GATHER: _gather,
    causes.STRIDE: _stride,
    causes.STRUCT: _struct,
    causes.ATOMIC: _atomic,
    causes.DIVISION: _division,
    causes.DOUBLE: _double,
    causes.CALL: _call,
    causes.DIVERGENCE: _divergence,
    causes.WAITING: _waiting,
}


def _counts(cause: Cause) -> tuple[int, int]:
    stores = sum(1 for i in cause.instructions if i.type is None or i.type.kind.name == "VOID")
    return len(cause.instructions) - stores, stores


def of_spills(registers: int, number: int, lines: Sequence[int]) -> tuple[str, str]:
    """Of loops whose values do not fit into registers."""
    where = f" at {_place(lines)}" if lines else ""
    return (
        f"Bound by spilled registers: the innermost loops{where} need more than the {registers} vector "
        f"registers there are, and store and reload values {number} times",
        "keep fewer values alive at once: split the kernel or the loop, use smaller private arrays, "
        "recompute what is cheap",
    )


def of_small_launch(items: int, share: float) -> tuple[str, str]:
    """Of a launch that is over before it has begun."""
    return (
        f"Bound by a small launch: with {items} work-items, {100 * share:.0f} % of its time is the launch "
        "itself",
        "give one launch more work-items (batch several launches), or do the work of several kernels in one",
    )


def of_few_groups(groups: int, cores: int) -> tuple[str, str]:
    """Of cores that have nothing to do."""
    return (
        f"Bound by a small launch: its {groups} work-groups leave {cores - groups} of {cores} cores without "
        "work",
        "use smaller work-groups, or launch more of them",
    )


def of_tail(row: int, width: int) -> tuple[str, str]:
    """Of rows that do not fill vectors."""
    return (
        f"Bound by the tail: a row of {row} work-items does not fill vectors of {width}, and the last one "
        "of each row is executed under a mask",
        f"make get_global_size(0) a multiple of {width}: put the longest dimension first, or join rows",
    )


def of_local_size(size: tuple[int, int, int], better: tuple[int, int, int], width: int) -> tuple[str, str]:
    """Of groups that do not fill vectors, or are too small."""
    return (
        f"Bound by a bad local size: rows of groups of {_sizes(size)} do not suit vectors of {width} "
        "work-items, or there are so many groups that starting them takes long",
        f"use a local size of {_sizes(better)}, or pass NULL and let the driver choose",
    )


def _sizes(sizes: tuple[int, int, int]) -> str:
    used = max([1, *(k for k, size in enumerate(sizes, 1) if size > 1)])
    return " \N{MULTIPLICATION SIGN} ".join(map(str, sizes[:used]))


def of_nothing(found: Estimate, model: CpuModel) -> tuple[str, str]:
    """Of kernels that leave little to wish for."""
    if found.fetching > found.busy:
        moved = 64 * found.lines[-1] if found.lines else 0.0
        where = "memory bandwidth" if moved else "the bandwidth of the caches"
        bound = f"Bound by {where}, with accesses that suit vectors"
    elif found.limit in _PORTS:
        bound = f"Bound by {_PORTS[found.limit]}, with code that suits vectors"
    else:
        bound = f"Bound by latency: {found.limit}"
    return bound, "nothing to gain that this report knows of; only less work, or less data, would help"
