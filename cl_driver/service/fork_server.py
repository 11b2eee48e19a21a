"""Starts compiler processes: `python -m cl_driver.service.fork_server`, started by cl_driver/spawn.py with a
socket, on which the service and its host's forks ask for them (forks.py).

If the first of them is for a source, it needs clang, which takes longer to load than all modules of this
process to be imported. So clang is started before these are.
"""

from __future__ import annotations

import os
from _socket import MSG_DONTWAIT, MSG_PEEK, socket
from select import select

from .. import module_archive, settings
from ..frontend import clang_start
from ..jit import clang_paths
from ..spawn import CHILD_DESCRIPTOR
from . import limits
from .protocol import CONNECT_FOR_SOURCE

# Seconds to wait for the first request: who starts this process asks at once, but may lose its CPU before.
_FIRST_REQUEST = 0.1


def _is_for_source() -> bool:
    """Whether this process is first asked for one that shall compile a source."""
    select([CHILD_DESCRIPTOR], [], [], _FIRST_REQUEST)
    control = socket(fileno=CHILD_DESCRIPTOR)
    try:
        return control.recv(1, MSG_PEEK | MSG_DONTWAIT) == CONNECT_FOR_SOURCE
    except OSError:
        return False
    finally:
        control.detach()


def _start_clang() -> clang_start.Started | None:
    """The clang that programs will most likely need. If they need another one, resident.py ends it."""
    path = next(iter(clang_paths.candidates(settings.text("CL_DRIVER_CLANG"))), "")
    if not path or clang_paths.version_in_name(path) < clang_paths.OLDEST:
        return None
    try:
        return clang_start.Started(path, clang_start.environment())
    except OSError:
        return None


def main(arguments: list[str]) -> None:
    """Runs until nobody needs this process, and in each fork until nobody needs that. Arguments: seconds to
    stay idle, bytes of address space, each 0 for no limit; the program that it becomes when nobody has asked
    for long, or ""."""
    idle, memory, holder = arguments
    os.set_inheritable(CHILD_DESCRIPTOR, False)  # clang must not keep the socket open
    limits.raise_limits()
    limits.limit_memory(int(memory))
    clang = _start_clang() if not clang_start.has_few_descriptors() and _is_for_source() else None

    from .. import arenas

    arenas.use()  # before there is much

    module_archive.expect(0)
    from . import forks, worker

    server = forks.Server(CHILD_DESCRIPTOR, float(idle), holder, clang)
    worker.run(server.serve(), float(idle))
