"""Regular expressions that are compiled when they are first used: many are for what few programs have, and to
import re takes long for a first program, which waits."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any


class _Late:
    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        """Of the compiled one, found here from then on."""
        import re

        found = getattr(re.compile(self._text), name)
        setattr(self, name, found)
        return found


def pattern(text: str) -> re.Pattern[str]:
    """What re.compile() returns, or what behaves like it. Flags are in the text: (?m)."""
    return _Late(text)  # type: ignore[return-value]
