"""What hosts and workers tell one another: lists of the door's plain data, which begin with these numbers.

native_shim/src/cluster/messages.h has the same ones. A batch is a sequence of such lists (door/codec.py).

To a worker, in the order in which it executes them:

    PROGRAM          program, options, the program (jit/bundle.py)
    FORGET_PROGRAM   program
    BUFFER           memory, bytes
    FORGET_BUFFER    memory
    WRITE            memory, offset, bytes
    READ             request, memory, offset, size
    LAUNCH           command, program, name of the kernel, offsets, global sizes, local sizes or None,
                     commands that it fails with, arguments

An argument is the bytes of a value, [memory, offset, size], the size of local memory, or None, a null
pointer.

From a worker:

    DONE             command, status, start, end     in ns of the worker's clock; 0 if it never began
    DATA             request, status, bytes
    BUILT            program, status, log            of a build that failed

From the process that connects a host with the cluster (link.py), about a worker:

    CLOCK            ns to be added to its times for the host's
    GONE             why
"""

from __future__ import annotations

PROGRAM = 1
FORGET_PROGRAM = 2
BUFFER = 3
FORGET_BUFFER = 4
WRITE = 5
READ = 6
LAUNCH = 7

DONE = 1
DATA = 2
BUILT = 3
CLOCK = 4
GONE = 5

# Bytes of one WRITE or READ at most: others get their turn between them.
MOST_BYTES = 8 << 20

# In the place of a worker's number: what is about none, the list of devices and the signs of life.
NOBODY = 0xFFFFFFFF
