"""The runtime process: the control plane for a host that cannot have Python in its own process.

native_shim/src/python/runtime_process.c starts it and says what goes over the sockets.
"""

from __future__ import annotations

import _thread
import os
import struct

# Neither socket nor threading: they import more than everything else that a context costs.
from _socket import CMSG_SPACE, SCM_RIGHTS, SOL_SOCKET, socket

from .api import entrypoint
from .door.dispatch import serve
from .log import log
from .spawn import CHILD_DESCRIPTOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZE = struct.Struct("<Q")
_DESCRIPTOR = struct.Struct("@i")


def _receive(connection: socket, size: int) -> bytearray | None:
    """Exactly size bytes, or None at the end of the stream."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return data


def converse(connection: socket) -> None:
    """Answers the requests of one connection until its other end closes."""
    while head := _receive(connection, _SIZE.size):
        request = _receive(connection, *_SIZE.unpack(head))
        if request is None:
            return
        answer = serve(bytes(request))
        connection.sendall(_SIZE.pack(len(answer)))
        connection.sendall(answer)


def _run(connection: socket) -> None:
    try:
        converse(connection)
    except OSError as error:
        log(1, f"runtime process: a connection broke: {error}")
    finally:
        connection.close()


def _connections(control: socket) -> Iterator[socket]:
    """The connections that come over the control socket, until nobody holds its other end any more."""
    while True:
        data, parts, _, _ = control.recvmsg(1, CMSG_SPACE(_DESCRIPTOR.size))
        for level, kind, content in parts:
            if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
                for (descriptor,) in _DESCRIPTOR.iter_unpack(content):
                    os.set_inheritable(descriptor, False)
                    yield socket(fileno=descriptor)
        if not data:
            return


def main(highest_key: int) -> None:
    """Serves connections until the last process that may ask for one has gone.

    highest_key: of the runtime process that this one replaces; 0 if there was none.
    """
    control = socket(fileno=CHILD_DESCRIPTOR)
    entrypoint.start_keys_after(highest_key)
    try:
        for connection in _connections(control):
            _thread.start_new_thread(_run, (connection,))
    except BaseException:
        import traceback

        log(1, f"runtime process: {traceback.format_exc()}")
    # Whoever holds a connection held the control socket: nobody is left to be answered. Threads that still
    # work for somebody who died, and their objects, go with the process.
    os._exit(0)
