"""The runtime process: the control plane for a host that cannot have Python in its own process.

native_shim/src/guest_process.c starts it and says what goes over the sockets.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import traceback

from cl_driver.api import entrypoint
from cl_driver.door.dispatch import serve
from cl_driver.log import log
from cl_driver.spawn import CHILD_DESCRIPTOR

_SIZE = struct.Struct("<Q")


def _receive(connection: socket.socket, size: int) -> bytearray | None:
    """Exactly size bytes, or None at the end of the stream."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return data


def converse(connection: socket.socket) -> None:
    """Answers the requests of one connection until its other end closes."""
    with connection:
        while head := _receive(connection, _SIZE.size):
            request = _receive(connection, *_SIZE.unpack(head))
            if request is None:
                return
            answer = serve(bytes(request))
            connection.sendall(_SIZE.pack(len(answer)))
            connection.sendall(answer)


def _thread(connection: socket.socket) -> None:
    try:
        converse(connection)
    except OSError as error:
        log(1, f"runtime process: a connection broke: {error}")


def main(highest_key: int) -> None:
    """Serves connections until the last process that may ask for one has gone.

    highest_key: of the runtime process that this one replaces; 0 if there was none.
    """
    control = socket.socket(fileno=CHILD_DESCRIPTOR)
    entrypoint.start_keys_after(highest_key)
    try:
        while True:
            data, descriptors, _, _ = socket.recv_fds(control, 1, 4)
            for descriptor in descriptors:
                connection = socket.socket(fileno=descriptor)
                threading.Thread(target=_thread, args=(connection,), daemon=True).start()
            if not data:
                break
    except BaseException:
        log(1, f"runtime process: {traceback.format_exc()}")
    # Whoever holds a connection held the control socket: nobody is left to be answered. Threads that still
    # work for somebody who died, and their objects, go with the process.
    os._exit(0)
