"""Regular expressions that are compiled when they are first used: many are for what few programs have, and to
import re takes long for a first program, which waits."""

from __future__ import annotations

from . import archived_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

texts: list[str] = []  # of patterns that there are


class _Late:
    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        """Of the compiled one, found here from then on."""
        found = getattr(_compiled(self._text), name)
        setattr(self, name, found)
        return found


def _compiled(text: str) -> re.Pattern[str]:
    arguments = archived_texts.arguments_of(text)
    if arguments is not None:
        import _sre  # type: ignore[import-not-found]

        made: re.Pattern[str] = _sre.compile(*arguments)
        return made
    import re

    return re.compile(text)


def arguments_of(text: str) -> tuple[Any, ...]:
    """Those with which re.compile() calls what makes a pattern of the code that it has written."""
    import re

    found: list[tuple[Any, ...]] = []

    class Listener:
        """In the place of the module that it calls."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def compile(self, *arguments: Any) -> Any:
            """Takes note of these."""
            found.append(arguments)
            return real.compile(*arguments)

    compiler: Any = re._compiler  # type: ignore[attr-defined]
    real, compiler._sre = compiler._sre, Listener()
    try:
        compiler.compile(text)
    finally:
        compiler._sre = real
    ((source, flags, code, *others),) = found
    return (source, int(flags), list(map(int, code)), *others)  # constants of its own are no plain integers


def pattern(text: str) -> re.Pattern[str]:
    """What re.compile() returns, or what behaves like it. Flags are in the text: (?m)."""
    texts.append(text)
    return _Late(text)  # type: ignore[return-value]
