"""The score of a run: as a table, and on a page that is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .mutations import Mutation
from .pool import Result

_MOST_NAMED = 40  # functions on the page; the run prints each mutation

BEGIN, END = "<!-- mutate: begin -->", "<!-- mutate: end -->"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def table(results: list[Result]) -> Iterator[str]:
    """Lines of Markdown: for each folder how many mutations were noticed."""
    yield "| folder | tried | noticed | survived | no test calls it | score |"
    yield "|---|---|---|---|---|---|"
    folders: dict[str, list[Result]] = {}
    for result in results:
        folders.setdefault(Path(result.mutation.path).parent.as_posix(), []).append(result)
    rows = sorted(folders.items())
    for folder, of in [*rows, *([("all", results)] if len(rows) > 1 else [])]:
        lost = [r for r in of if r.has_survived]
        unreached = sum(r.outcome == "unreached" for r in lost)
        noticed = len(of) - len(lost)
        counts = f"{len(of)} | {noticed} | {len(lost) - unreached} | {unreached}"
        yield f"| `{folder}` | {counts} | {_percent(noticed, len(of))} |"


def survivors(results: list[Result]) -> list[tuple[str, Mutation]]:
    """(survived or unreached, mutation) of what no test noticed, in the order of the files."""
    lost = [(r.outcome, r.mutation) for r in results if r.has_survived]
    return sorted(lost, key=lambda pair: (pair[1].path, pair[1].index))


def weakest(results: list[Result]) -> Iterator[str]:
    """Lines of Markdown: the functions in which most mutations were not noticed, the most first."""
    lost = Counter((r.mutation.path, r.mutation.function) for r in results if r.has_survived)
    yield "| function | not noticed |"
    yield "|---|---|"
    worst = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    for (path, function), count in worst[:_MOST_NAMED]:
        yield f"| `{path}`: `{function}` | {count} |"


def write(path: Path, results: list[Result], found: int, seed: int, command: str) -> None:
    """Puts a run's score between the marks of a page. ValueError if it has no marks."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{path} has no marks")
    lines = [
        f"`{command}`: {len(results)} of {found} mutations, seed {seed}.",
        "",
        *table(results),
        "",
        "Where most were not noticed:",
        "",
        *weakest(results),
    ]
    text = "\n".join(lines)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
