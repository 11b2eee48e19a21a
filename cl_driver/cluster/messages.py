"""What hosts and workers tell one another: lists of the door's plain data, which begin with these numbers.

native_shim/src/cluster/messages.h has the same ones. A batch is a sequence of such lists (door/codec.py).
Contents of memory objects are bytes in it, or where they are large their size: then they are the payload that
comes with the batch.

To a worker, in the order in which it executes them:

    PROGRAM          program, options, the program (jit/bundle.py)
    FORGET_PROGRAM   program
    BUFFER           memory, bytes
    FORGET_BUFFER    memory
    IMAGE            image, [memory, offset, size], flags, channel order, channel data type, type,
                     [width, height, depth, array size], row pitch, slice pitch
    FORGET_IMAGE     image
    WRITE            memory, offset, contents
    READ             request, memory, offset, size
    FILL             memory, offset, size, pattern
    LAUNCH           command, program, name of the kernel, offsets, global sizes, local sizes or None,
                     commands that it fails with, [dimension, first group, the one behind the last] of a part
                     or None, arguments
    SEND             transfer, memory, offset, size, number of the worker that is to have it
    RECEIVE          transfer, memory, offset, size
    MISS             transfer                        that will not come
    CONNECT          number of a worker              that it is to be able to send to

An argument is the bytes of a value, [memory, offset, size], [image], the size of local memory, None, a null
pointer, or a sampler: [is normalized, addressing mode, filter mode, filter mode of mipmaps].

From a worker:

    DONE             command, status, start, end     in ns of the worker's clock; 0 if it never began
    DATA             request, status, contents
    BUILT            program, status, log            of a build that failed
    PRINTED          0, 0, text                      of kernels, for stdout; before the DONE of the launch
    DONE             transfer, status, 0, 0          what was to come is there, or never will be
    LOST             transfer                        that it cannot send
    UNREACHABLE      number of a worker              whatever was sent there may be lost
    REACHABLE        number of a worker              it is connected

From one worker to another:

    ARRIVE           transfer, contents

From the process that connects a host with the cluster (link.py), about a worker:

    CLOCK            ns to be added to its times for the host's, ns of a message to it and back
    GONE             why

A frame of its own tells of a worker that has come later, whose number is the next one: [address, [[query,
value], ...], whether it is one of those that one device is all of].
"""

from __future__ import annotations

PROGRAM = 1
FORGET_PROGRAM = 2
BUFFER = 3
FORGET_BUFFER = 4
WRITE = 5
READ = 6
LAUNCH = 7
SEND = 8
RECEIVE = 9
MISS = 10
CONNECT = 11
IMAGE = 12
FORGET_IMAGE = 13
FILL = 14

DONE = 1
DATA = 2
BUILT = 3
CLOCK = 4
GONE = 5
PRINTED = 6
LOST = 7
UNREACHABLE = 8
REACHABLE = 9

ARRIVE = 1

# Bytes of one WRITE or READ at most: others get their turn between them. And of contents in a batch.
MOST_BYTES = 4 << 20
MOST_INLINE_BYTES = 32 << 10

# Frames of the socket between a host and its link (link.py).
BATCH_FRAME = 0
TAKEN_FRAME = 1
FREE_FRAME = 2
WORKER_FRAME = 3

# Workers that one host has as devices, at most; native_shim/src/base/worker_set.h has the same.
MOST_WORKERS = 1024

# Places for payloads in the memory that both share, of MOST_BYTES each: the first half is for workers.
PLACES = 6

# In the place of a worker's number: what is about none, the list of devices and the signs of life.
NOBODY = 0xFFFFFFFF
