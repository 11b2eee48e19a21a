"""From a request's bytes to an answer's: finds the operation, calls it, turns exceptions into a status.

Request: operation, list of keys whose peers may go, then the operation's values.
Answer: status, the highest key handed out so far, then the answer's values. Those of an operation that
failed: whether that is an error of the program, and why, for the log: C knows the call and its arguments.
"""

from __future__ import annotations

import time

from ..api import entrypoint
from ..api.errors import CLError, UnknownQuery, name
from ..api.generated.enums import CL_OUT_OF_HOST_MEMORY
from ..log import level, log
from .codec import decode, encode


def serve(request: bytes) -> bytes:
    """Answers one request. Raises nothing but KeyboardInterrupt and the like."""
    operation = "?"
    status = 0
    start = time.perf_counter_ns() if level >= 2 else 0
    try:
        first, forgotten, *arguments = decode(request)
        operation = first.decode("ascii")
        if forgotten:
            entrypoint.forget(forgotten)
        values = entrypoint.call(operation, arguments)
        answer = encode((0, entrypoint.highest_key(), *values))
    except CLError as error:
        status = error.code
        answer = _failure(status, error.why, is_error=not isinstance(error, UnknownQuery))
    except ImportError as error:
        # Chapters are imported at their first call: a host that has changed its root folder has none.
        status = CL_OUT_OF_HOST_MEMORY
        answer = _failure(status, f"the driver's files are not there any more: {error}")
    except Exception as error:
        import traceback  # slow to import, and only a defect needs it

        status = CL_OUT_OF_HOST_MEMORY
        answer = _failure(status, f"a defect of the driver: {type(error).__name__}")
        log(1, traceback.format_exc())
    if level >= 2:
        log(2, f"{operation}: {name(status)} ({(time.perf_counter_ns() - start) / 1000:.0f} us)")
    return answer


def _failure(status: int, why: str, is_error: bool = True) -> bytes:
    data = why.encode("utf-8", "backslashreplace")  # options and names may be no UTF-8
    return encode((status, entrypoint.highest_key(), int(is_error), data))
