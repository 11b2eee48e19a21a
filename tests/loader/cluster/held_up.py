"""Launches that never end, on the device that is all workers: python -m tests.loader.cluster.held_up SCENE.
What needs neither them nor their worker goes on. Scenes end with an exception where something is not as it
should be."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from cl_driver.api.generated import enums as cl

from .whole import Whole

SOURCE = """
kernel void add(global volatile int *x, ulong turns) {
    size_t i = get_global_id(0);
    for (ulong k = i ? 1 : turns; k; k--) x[i]++;
}
kernel void scatter(global const int *where, global volatile int *out, ulong turns) {
    size_t i = get_global_id(0);
    for (ulong k = i ? 1 : turns; k; k--) out[where[i]]++;
}
"""
NEVER = np.uint64(1 << 60)
COUNT, LOCAL, SOME = 256, 64, 6
SENT = 2  # s: no status tells when a launch has been sent, and others could come to its worker before it


class HeldUp(Whole):
    """With another queue for what never ends."""

    def __init__(self) -> None:
        super().__init__(SOURCE)
        self.other = self.cl.make("clCreateCommandQueueWithProperties", self.context, self.devices[0], None)
        self.zeros = np.zeros(COUNT, np.int32)

    def begin(self, name: str, *before: int) -> int:
        """Enqueues a launch that never ends. Its event."""
        self.queue, self.other = self.other, self.queue
        event = self.run(name, (COUNT,), *before, self.array(self.zeros), NEVER, local=(LOCAL,))
        self.launched.clear()
        self.cl.ok("clFlush", self.queue)
        self.queue, self.other = self.other, self.queue
        time.sleep(SENT)
        return event

    def check(self, name: str, *before: int) -> None:
        """Some launches with memory of their own end."""
        buffers = [self.array(self.zeros) for _ in range(SOME)]
        for buffer in buffers:
            self.run(name, (COUNT,), *before, buffer, np.uint64(1), local=(LOCAL,))
        self.cl.ok("clFlush", self.queue)
        self.cl.ok("clWaitForEvents", SOME, self.launched)
        for buffer in buffers:
            assert (self.values(buffer, self.zeros) == 1).all()


def trial() -> None:
    """The first launch of a kernel, for which the others wait: not for ever, and then they avoid its worker.
    All are in one queue, out of order."""
    host = HeldUp()
    properties = [cl.CL_QUEUE_PROPERTIES, cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0]
    host.queue = host.other = host.cl.make(
        "clCreateCommandQueueWithProperties", host.context, host.devices[0], properties
    )
    stuck = host.begin("add")
    host.check("add")
    host.check("add")
    host.check("scatter", host.array(np.arange(COUNT, dtype=np.int32)))
    assert host.status(stuck) > 0


def alone() -> None:
    """One that cannot be cut: once it has taken long nothing else goes to its worker."""
    host = HeldUp()
    where = host.array(np.arange(COUNT, dtype=np.int32))
    host.check("scatter", where)
    stuck = host.begin("scatter", where)
    time.sleep(6)  # longer than anything that is usual
    host.check("scatter", where)
    host.check("add")
    assert host.status(stuck) > 0


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    os._exit(0)  # what never ends is waited for otherwise
