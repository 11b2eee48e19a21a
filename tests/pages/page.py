"""The page itself: cl_driver/ARCHITECTURE.md, and the blocks in it that are made."""

from __future__ import annotations

import re

from tests.conftest import ROOT

PAGE = ROOT / "cl_driver" / "ARCHITECTURE.md"
_BLOCK = re.compile(r"(<!-- made: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def blocks_of(page: str) -> dict[str, str]:
    """The made blocks of a page, by name."""
    return {match[2]: match[3].rstrip("\n") for match in _BLOCK.finditer(page)}


def with_blocks(page: str, blocks: dict[str, str]) -> str:
    """The page with these blocks in place of those that it has. KeyError: it wants one that is not made."""
    return _BLOCK.sub(lambda match: match[1] + blocks[match[2]] + "\n" + match[4], page)


def differing(page: str, blocks: dict[str, str]) -> list[str]:
    """Names of blocks that a page has otherwise, or lacks, or that are not among them."""
    there = blocks_of(page)
    return sorted(name for name in there.keys() | blocks.keys() if there.get(name) != blocks.get(name))


def section(page: str, heading: str) -> str:
    """What stands under a heading ("## Recipes"), up to the next one of its rank or above."""
    rank = len(heading) - len(heading.lstrip("#"))
    rest = page.partition(f"\n{heading}\n")[2]
    assert rest, heading
    return re.split(rf"^#{{1,{rank}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]
