"""What failed and why, for those who ask (CL_DRIVER_LOG); so does native_shim/src/base/log.c."""

from __future__ import annotations

import os
from _thread import get_native_id

from . import settings

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable

_LEVELS = {"off": 0, "errors": 1, "calls": 2}
level = _LEVELS[settings.text("CL_DRIVER_LOG")]
_others: list[Callable[[int, str], None]] = []


def hand_to(function: Callable[[int, str], None]) -> None:
    """Gives lines to function(level, text) from now on, in a process whose stderr nobody sees."""
    _others[:] = [function]


def log(at_level: int, text: str) -> None:
    """Writes lines at level 1 (errors) or 2 (calls); does nothing below the level that was asked for.

    Never raises, and never touches sys.stderr, which may be the host program's.
    """
    if at_level > level:
        return
    if _others:
        _others[0](at_level, text)
        return
    prefix = f"cl_driver[{get_native_id()}]: "
    lines = "".join(f"{prefix}{line}\n" for line in text.rstrip().split("\n"))
    data = lines.encode("utf-8", "backslashreplace")
    path = settings.text("CL_DRIVER_LOG_FILE")
    try:
        if not path:
            os.write(2, data)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        file = os.open(path, flags, 0o600)  # without waiting: a FIFO may have no reader
        try:
            os.write(file, data)
        finally:
            os.close(file)
    except OSError:  # not contextlib.suppress, which every host would import for this
        pass
