"""What is compiled of texts while the driver runs, methods of records and regular expressions, as the archive
of modules has it (module_archive.py): to read it takes less time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

# Those who may know what has been made of a text: of archives that are in use.
sources: list[Callable[[str], Any]] = []


def code_of(text: str) -> CodeType:
    """The code of a text (records.py)."""
    for source in sources:
        found: CodeType | None = source(text)
        if found is not None:
            return found
    return compile(text, "<string>", "exec", dont_inherit=True)


def arguments_of(text: str) -> tuple[Any, ...] | None:
    """Those of which a pattern can be made (late_patterns.py), None where they are not known: to import re
    takes longer."""
    return next((found for source in sources if (found := source(text)) is not None), None)
