"""From a request's bytes to an answer's: finds the operation, calls it, turns exceptions into a status.

Request: operation, list of keys whose peers may go, then the operation's values.
Answer: status, the highest key handed out so far, then the answer's values (none unless the status is 0).
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
        status, answer = error.code, b""
        log(2 if isinstance(error, UnknownQuery) else 1, f"{operation}: {error}")
    except ImportError as error:
        # Chapters are imported at their first call: a host that has changed its root folder has none.
        status, answer = CL_OUT_OF_HOST_MEMORY, b""
        log(1, f"{operation}: the driver's files are not there any more: {error}")
    except Exception:
        import traceback  # slow to import, and only a defect needs it

        status, answer = CL_OUT_OF_HOST_MEMORY, b""
        log(1, f"{operation}: {traceback.format_exc()}")
    if level >= 2:
        log(2, f"{operation}: {name(status)} ({(time.perf_counter_ns() - start) / 1000:.0f} us)")
    return answer or encode((status, entrypoint.highest_key()))
