"""The executor of a worker as a worker's Python has it, without Dask.

Usage: python -m tests.loader.cluster.executing SCENE. Scenes end with an exception where
something is not as it should be."""

from __future__ import annotations

import random
import select
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cl_driver.api.generated import enums as cl
from cl_driver.cluster import messages
from cl_driver.cluster.executor import Executor
from cl_driver.cluster.opencl import OpenCL
from cl_driver.door import codec
from cl_driver.jit import bundle
from tests.pure.passes.support import CLANG

SOURCE = """
kernel void add(global int *x, int by) { x[get_global_id(0)] += by; }
kernel void dim(read_only image2d_t a, write_only image2d_t b, sampler_t s) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(b, at, read_imagef(a, s, at + (int2)(100, 0)));
}
kernel void say(global int *x) { printf("%d;", x[0]); }
"""
SIZE = 1 << 20


class Worker:
    """An executor, and what it has told."""

    def __init__(self) -> None:
        self.api = OpenCL(2)
        self.executor = Executor(self.api)
        self.told: list[Any] = []
        self.payloads: list[memoryview] = []
        self.departures: list[tuple[int, int, memoryview]] = []

    def put(self, *commands: list[Any], payloads: tuple[bytes, ...] = ()) -> None:
        self.executor.put(codec.encode(list(commands)), list(payloads))

    def wait(self, count: int, leaving: int = 0) -> list[Any]:
        """So many answers, in their order; until there are so many departures, too."""
        end = time.monotonic() + 60
        while (len(self.told) < count or len(self.departures) < leaving) and time.monotonic() < end:
            if select.select([self.executor.descriptor], [], [], 1)[0]:
                self.executor.calm()
                batch, payloads, departures = self.executor.take()
                assert len(payloads) <= 1  # the process that connects has few places for them
                self.departures += departures
                self.told += codec.decode(batch)
                self.payloads += payloads
        found, self.told = self.told[:count], self.told[count:]
        assert len(found) == count, found
        return found


def spirv() -> bytes:
    """The program as a host sends it."""
    return subprocess.run(CLANG, input=SOURCE.encode(), capture_output=True, check=True).stdout


def launch(number: int, name: bytes, *arguments: Any, size: int = SIZE // 4, needed: tuple[int, ...] = ()):
    return [messages.LAUNCH, number, 1, name, [0], [size], None, list(needed), None, list(arguments)]


def part(number: int, name: bytes, groups: list[int], *arguments: Any, local: list[int] | None):
    """Some groups of a launch: the dimension, the first one, the one behind the last one."""
    return [messages.LAUNCH, number, 1, name, [0], [SIZE // 4], local, [], groups, list(arguments)]


def parts() -> None:
    """Some groups of a launch, on what was filled before; groups that it does not have."""
    worker, buffer, count = Worker(), [7, 0, SIZE], SIZE // 4 // 8
    by = struct.pack("<i", 2)
    worker.put([messages.PROGRAM, 1, b"", spirv()], [messages.BUFFER, 7, SIZE])
    worker.put(
        [messages.FILL, 7, 0, SIZE, struct.pack("<i", 5)],
        part(10, b"add", [0, 3, 7], buffer, by, local=[8]),
        [messages.READ, 11, 7, 0, SIZE],
    )
    assert [message[2] for message in worker.wait(2)] == [0, 0]
    expected = [7 if 3 <= i // 8 < 7 else 5 for i in range(SIZE // 4)]
    assert list(struct.unpack(f"<{SIZE // 4}i", worker.payloads.pop())) == expected
    for number, groups in enumerate(
        [[0, 3, count + 1], [0, 7, 7], [0, 7, 3], [0, -1, 3], [0, 0, 1 << 40]], 20
    ):
        worker.put(part(number, b"add", groups, buffer, by, local=[8]))
        (done,) = worker.wait(1)
        assert done[:3] == [messages.DONE, number, cl.CL_INVALID_WORK_GROUP_SIZE]
    worker.put([messages.FILL, 7, 0, SIZE, b"123"], [messages.FILL, 99, 0, 4, b"1234"])
    worker.put([messages.READ, 30, 7, 0, 4])
    assert worker.wait(1) == [[messages.DATA, 30, 0, struct.pack("<i", 5)]]
    worker.put(part(31, b"add", [0, 0, 1], buffer, by, local=None))  # no message
    end = time.monotonic() + 20
    while not worker.executor.failed:
        assert time.monotonic() < end
    worker.executor.close()


def commands() -> None:
    """Buffers, contents in a batch and as payloads, launches, what they print."""
    worker, buffer = Worker(), [7, 0, SIZE]
    worker.put([messages.PROGRAM, 1, b"", spirv()], [messages.BUFFER, 7, SIZE])
    data = struct.pack("<i", 5) * (SIZE // 4)
    worker.put(
        [messages.WRITE, 7, 0, SIZE], launch(10, b"add", buffer, struct.pack("<i", 2)), payloads=(data,)
    )
    worker.put(
        launch(11, b"say", buffer, size=1), [messages.READ, 12, 7, 0, SIZE], [messages.READ, 13, 7, 4, 8]
    )
    told = worker.wait(5)
    assert told.index([messages.PRINTED, 0, 0, b"7;"]) < [message[1] for message in told].index(11)
    done, said, read, short = (message for message in told if message[0] != messages.PRINTED)
    assert done[:3] == [messages.DONE, 10, 0] and 0 < done[3] <= done[4]
    assert said[:3] == [messages.DONE, 11, 0] and done[4] <= said[3]
    assert read == [messages.DATA, 12, 0, SIZE]
    assert bytes(worker.payloads.pop()) == struct.pack("<i", 7) * (SIZE // 4)
    assert short == [messages.DATA, 13, 0, struct.pack("<ii", 7, 7)]
    worker.put(*([messages.READ, 100 + i, 7, 0, SIZE] for i in range(40)))
    time.sleep(0.3)  # for several to be there at once
    assert [message[1] for message in worker.wait(40)] == list(range(100, 140))
    assert len(worker.payloads) == 40
    part = [7, 4096, 4096]
    worker.put(
        [messages.WRITE, 7, 0, struct.pack("<i", 100)],
        launch(14, b"add", part, struct.pack("<i", 1), size=1024),
        launch(15, b"add", buffer, struct.pack("<i", 0), needed=(14, 999)),
        [messages.READ, 16, 7, 0, 4],
        [messages.READ, 17, 7, 4096, 4],
        [messages.READ, 18, 7, 8192, 4],
    )
    values = [message[3] for message in worker.wait(5) if message[0] == messages.DATA]
    assert values == [struct.pack("<i", value) for value in (100, 8, 7)]
    worker.put([messages.FORGET_BUFFER, 7], [messages.FORGET_PROGRAM, 1])
    for _ in range(500):  # what was put is not kept
        worker.put([messages.BUFFER, 8, SIZE], [messages.WRITE, 8, 0, SIZE], [messages.READ, 1, 8, 0, 1],
                   [messages.FORGET_BUFFER, 8], payloads=(data,))  # fmt: skip
        worker.wait(1)
    end = time.monotonic() + 20
    while worker.executor.kept and time.monotonic() < end:
        worker.executor.take()
        time.sleep(0.01)
    assert not worker.executor.kept
    assert not worker.executor.failed
    worker.executor.close()


def image(number: int, memory: list[int], *dimensions: int, pitch: int, kind: int = cl.CL_MEM_OBJECT_IMAGE2D):
    """dimensions: width, height, depth, array size."""
    return [messages.IMAGE, number, memory, cl.CL_MEM_READ_WRITE, cl.CL_RGBA, cl.CL_UNORM_INT8, kind,
            list(dimensions), pitch, 0]  # fmt: skip


def sampler(addressing: int = cl.CL_ADDRESS_CLAMP_TO_EDGE) -> list[int]:
    return [0, addressing, cl.CL_FILTER_NEAREST, cl.CL_FILTER_NEAREST]


def dim(number: int, *arguments: Any):
    return [messages.LAUNCH, number, 1, b"dim", [0, 0], [4, 2], None, [], None, list(arguments)]


def images() -> None:
    """Images on buffers and parts of them, with pitches; samplers; what cannot be made or used."""
    worker = Worker()
    pixels = bytes(range(1, 129))
    worker.put(
        [messages.PROGRAM, 1, b"", spirv()],
        [messages.BUFFER, 7, 128],
        [messages.BUFFER, 8, SIZE],
        [messages.WRITE, 7, 0, pixels],
        [messages.WRITE, 8, 0, bytes(8192)],
        image(20, [7, 0, 128], 6, 4, 1, 1, pitch=32),
        image(21, [8, 4096, 128], 4, 2, 1, 1, pitch=48),
        dim(10, [20], [21], sampler()),
        [messages.READ, 11, 8, 4096, 80],
        [messages.READ, 12, 8, 0, 4096],
        dim(13, [20], [21], sampler(cl.CL_ADDRESS_NONE - 1)),  # such a sampler there is not
        dim(14, [20], [99], sampler()),
        dim(15, [20], [8, 0, SIZE], sampler()),
        dim(16, [20], sampler(), sampler()),
        image(22, [7, 0, 128], 6, 5, 1, 1, pitch=32),  # larger than its buffer
        image(23, [99, 0, 128], 6, 4, 1, 1, pitch=32),
        image(24, [7, 0, 128], 6, 4, 1, 1, pitch=20),  # rows that overlap
        image(25, [7, 0, 128], 4, 4, 2, 1, pitch=16, kind=cl.CL_MEM_OBJECT_IMAGE3D),
        dim(17, [22], [21], sampler()),
        dim(18, [23], [21], sampler()),
        dim(19, [24], [21], sampler()),
        dim(20, [25], [21], sampler()),
        [messages.FORGET_BUFFER, 7],  # the image has it still
        dim(21, [20], [21], sampler()),
        [messages.FORGET_IMAGE, 20],
        dim(22, [20], [21], sampler()),
    )
    told = worker.wait(13)
    contents = {message[1]: message[3] for message in told if message[0] == messages.DATA}
    rows = [pixels[at + 20 : at + 24] * 4 for at in (0, 32)]
    assert contents[11] == rows[0] + bytes(32) + rows[1] + bytes(16)
    assert contents[12] == bytes(4096)
    status = {message[1]: message[2] for message in told if message[0] == messages.DONE}
    absent = cl.CL_MEM_OBJECT_ALLOCATION_FAILURE
    assert status == {
        10: 0, 13: cl.CL_INVALID_VALUE, 14: absent, 15: cl.CL_INVALID_MEM_OBJECT,
        16: cl.CL_INVALID_MEM_OBJECT, 17: cl.CL_INVALID_IMAGE_SIZE, 18: absent,
        19: cl.CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, 20: cl.CL_INVALID_MEM_OBJECT, 21: 0, 22: absent,
    }, status  # fmt: skip
    assert not worker.executor.failed
    worker.executor.close()


def errors() -> None:
    """What cannot be done is an answer with an error; what follows is done."""
    worker, il = Worker(), spirv()
    by = struct.pack("<i", 1)
    worker.put(
        [messages.PROGRAM, 1, b"", il],
        [messages.BUFFER, 7, SIZE],
        launch(10, b"none", [7, 0, SIZE], by),
        launch(11, b"add", [99, 0, SIZE], by),
        launch(12, b"add", [7, 0, SIZE], by, needed=(11,)),
        launch(13, b"add", [7, 0, SIZE], b"\0"),
        [messages.READ, 14, 99, 0, 4],
        [messages.READ, 15, 7, SIZE, 4],
        [messages.WRITE, 99, 0, b"1234"],
        launch(16, b"add", [7, 0, SIZE], by),
        [messages.PROGRAM, 2, b"", b"no program"],
        [messages.LAUNCH, 17, 2, b"add", [0], [1], None, [], None, []],
        [messages.BUFFER, 8, 1 << 62],
        launch(18, b"add", [8, 0, SIZE], by),
    )
    found = worker.wait(10)
    status = {message[1]: message[2] for message in found if message[0] in (messages.DONE, messages.DATA)}
    assert status == {
        10: cl.CL_INVALID_KERNEL_NAME,
        11: cl.CL_MEM_OBJECT_ALLOCATION_FAILURE,
        12: cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        13: cl.CL_INVALID_ARG_SIZE,
        14: cl.CL_MEM_OBJECT_ALLOCATION_FAILURE,
        15: cl.CL_INVALID_VALUE,
        16: 0,
        17: cl.CL_INVALID_VALUE,
        18: cl.CL_MEM_OBJECT_ALLOCATION_FAILURE,
    }
    assert [message[1:3] for message in found if message[0] == messages.BUILT] == [[2, cl.CL_INVALID_VALUE]]
    assert not worker.executor.failed
    worker.executor.close()


def transfers() -> None:
    """Contents for another worker, and from one: before they are announced, after, never."""
    worker, buffer, other = Worker(), [7, 0, SIZE], [8, 0, SIZE]
    zero, one = struct.pack("<i", 0), struct.pack("<i", 1)
    data, more = struct.pack("<i", 5) * (SIZE // 4), struct.pack("<i", 50) * (SIZE // 4)

    def arrive(transfer: int, contents: bytes) -> None:
        batch = codec.encode([[messages.ARRIVE, transfer, len(contents)]])
        worker.executor.put(batch, [contents], is_peer=True)

    worker.put(
        [messages.PROGRAM, 1, b"", spirv()],
        [messages.BUFFER, 7, SIZE],
        [messages.BUFFER, 8, SIZE],
        [messages.WRITE, 7, 0, SIZE],
        [messages.SEND, 20, 7, 0, SIZE, 3],
        launch(21, b"add", buffer, one),
        [messages.SEND, 22, 7, 4, 4, 2],
        payloads=(data,),
    )
    assert worker.wait(1, leaving=2)[0][:3] == [messages.DONE, 21, 0]
    # What is written later is behind the departure.
    assert [one[:2] for one in worker.departures] == [(3, 20), (2, 22)]
    assert [bytes(one[2]) for one in worker.departures] == [data, struct.pack("<i", 6)]
    # It comes late: what needs it waits, and what was there before is used before.
    worker.put(
        launch(30, b"add", buffer, one),
        [messages.READ, 31, 7, 0, 4],
        [messages.RECEIVE, 32, 7, 0, SIZE],
        launch(33, b"add", buffer, one),
        [messages.READ, 34, 7, 0, 4],
    )
    told = worker.wait(2)
    assert [message[:2] for message in told] == [[messages.DONE, 30], [messages.DATA, 31]]
    assert told[1][3] == struct.pack("<i", 7)
    arrive(32, more)
    told = worker.wait(3)
    assert [message[1:3] for message in told] == [[32, 0], [33, 0], [34, 0]]
    assert told[2][3] == struct.pack("<i", 51)
    # It comes early.
    arrive(40, data)
    worker.put([messages.RECEIVE, 40, 7, 0, SIZE], [messages.READ, 41, 7, 0, 4])
    assert worker.wait(2)[1] == [messages.DATA, 41, 0, struct.pack("<i", 5)]
    # It never comes: what needs it fails, until all of it is written.
    half = SIZE // 2
    worker.put(
        [messages.RECEIVE, 50, 7, half, half],
        launch(51, b"add", [7, 0, half], one, size=half // 4),
        launch(52, b"add", buffer, one),
        launch(53, b"add", other, one, needed=(52,)),
        [messages.READ, 54, 7, half - 4, 8],
        [messages.SEND, 55, 7, 0, SIZE, 3],
        launch(56, b"add", other, one),
        [messages.MISS, 50],
        [messages.MISS, 999],
    )
    told = {message[1]: message for message in worker.wait(7)}
    gone, failed = cl.CL_DEVICE_NOT_AVAILABLE, cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    assert told[55] == [messages.LOST, 55]
    status = {number: message[2] for number, message in told.items() if number != 55}
    assert status == {50: gone, 51: 0, 52: gone, 53: failed, 54: gone, 56: 0}
    worker.put(
        launch(60, b"add", buffer, one),
        [messages.WRITE, 7, half + 4096, zero * 1024],
        [messages.READ, 61, 7, half + 4096, 4096],
        [messages.READ, 62, 7, half, 4],
        [messages.READ, 63, 7, half + 8192, 4],
        [messages.SEND, 64, 7, half + 8192, 4, 3],
    )
    told = {message[1]: message for message in worker.wait(5)}
    assert [told[number][2] for number in (60, 61, 62, 63)] == [gone, 0, gone, gone]
    assert told[64] == [messages.LOST, 64]
    arrive(50, data[:half])  # too late
    arrive(70, more)
    worker.put(
        [messages.WRITE, 7, half, SIZE - half], [messages.READ, 71, 7, half, 4], payloads=(data[half:],)
    )
    assert worker.wait(1) == [[messages.DATA, 71, 0, struct.pack("<i", 5)]]
    # Of another size, and for no memory.
    worker.put(
        [messages.RECEIVE, 80, 7, 0, 8], [messages.RECEIVE, 81, 99, 0, 8], [messages.READ, 82, 7, 8, 4]
    )
    arrive(80, b"1234")
    arrive(81, b"12345678")
    told = {message[1]: message[2] for message in worker.wait(3)}
    assert told == {80: gone, 81: cl.CL_MEM_OBJECT_ALLOCATION_FAILURE, 82: 0}
    # What has not come when the host goes holds nothing up.
    worker.put([messages.RECEIVE, 90, 7, 0, SIZE], launch(91, b"add", buffer, one))
    worker.executor.close()
    worker = Worker()
    worker.executor.put(codec.encode([[messages.BUFFER, 7, SIZE]]), [], is_peer=True)
    end = time.monotonic() + 10
    while not worker.executor.failed:  # another worker gives no commands
        assert time.monotonic() < end
    worker.executor.close()


def resident() -> int:
    """MiB of memory that this process has."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) >> 10


def much() -> None:
    """Messages that ask for more than there is, or than anybody takes: errors, and no memory."""
    worker, most = Worker(), messages.MOST_BYTES
    by = struct.pack("<i", 1)
    worker.put(
        [messages.PROGRAM, 1, b"", spirv()], [messages.BUFFER, 7, most], [messages.FILL, 7, 0, most, b"7"]
    )
    worker.put(launch(10, b"add", [7, 0, most], by, size=1))
    worker.wait(1)
    before = resident()
    worker.put(
        *([messages.READ, 100 + i, 7, 0, most] for i in range(2000)), launch(11, b"say", [7, 0, most], size=1)
    )
    worker.put(*([messages.SEND, 10000 + i, 7, 0, most, 3] for i in range(200)))
    time.sleep(1)
    assert resident() < before + 256, (before, resident())
    others: list[Any] = []  # of the launch, which need not wait until what was read has gone
    for i in range(2000):
        while (message := worker.wait(1)[0])[0] != messages.DATA:
            others.append(message)
        assert message == [messages.DATA, 100 + i, 0, most]
        assert worker.payloads.pop()[4:8] == b"7777"
    while [messages.DONE, 11] not in [message[:2] for message in others]:
        others += worker.wait(1)
    for i in range(200):
        worker.wait(0, leaving=1)
        assert worker.departures.pop(0)[:2] == (3, 10000 + i)
    assert resident() < before + 256, (before, resident())
    # Buffers that together are larger than memory; others in their place.
    size = 1 << 34
    numbers = range(200, 200 + (1 << 42 >> 34))
    worker.put(*([messages.BUFFER, number, size] for number in numbers))
    worker.put(*(launch(number, b"add", [number, 0, size], by, size=1) for number in numbers))
    status = [message[2] for message in worker.wait(len(numbers))]
    assert set(status) <= {0, cl.CL_MEM_OBJECT_ALLOCATION_FAILURE} and sum(status) < 0, status
    worker.put(*([messages.FORGET_BUFFER, number] for number in numbers if number < 200 + status.count(0)))
    worker.put([messages.BUFFER, 300, most], launch(20, b"add", [300, 0, most], by, size=1))
    assert worker.wait(1)[0][:3] == [messages.DONE, 20, 0]
    # Very many parts of a buffer.
    worker.put(*(launch(1000 + i, b"add", [7, 128 * i, 128], by, size=32) for i in range(most // 128)))
    assert not any(message[2] for message in worker.wait(most // 128))
    assert resident() < before + 256, (before, resident())
    # More work-items than can be counted, more of a group, more local memory.
    buffer = [7, 0, most]
    sizes = {
        30: ([1 << 62] * 3, [1] * 3),
        31: ([1 << 62], [1 << 61]),
        32: ([-1], [-1]),
        33: ([1 << 40], [0]),
        35: ([1 << 50], [16]),
        36: ([1 << 40, 1 << 20], None),
    }
    for number, (items, local) in sizes.items():
        start = [0] * len(items)
        worker.put([messages.LAUNCH, number, 1, b"add", start, items, local, [], None, [buffer, by]])
    worker.put([messages.LAUNCH, 34, 1, b"add", [-1], [2], [1], [], None, [buffer, by]])
    status = {message[1]: message[2] for message in worker.wait(7)}
    assert status == {
        30: cl.CL_OUT_OF_RESOURCES, 31: cl.CL_INVALID_WORK_ITEM_SIZE, 32: cl.CL_INVALID_WORK_ITEM_SIZE,
        33: cl.CL_INVALID_WORK_GROUP_SIZE, 34: cl.CL_INVALID_GLOBAL_OFFSET,
        35: cl.CL_OUT_OF_RESOURCES, 36: cl.CL_OUT_OF_RESOURCES,
    }, status  # fmt: skip
    assert not worker.executor.failed
    # Nobody takes any of it.
    worker.put(*([messages.READ, 100 + i, 7, 0, most] for i in range(2000)))
    worker.executor.close()
    assert resident() < before + 256, (before, resident())


def bundles() -> None:
    """Programs of several modules, and of one with constants."""
    worker, il = Worker(), spirv()
    worker.put(
        [messages.PROGRAM, 1, b"", bundle.pack([(il, {}), (il, {})])],
        [messages.BUFFER, 7, SIZE],
        launch(10, b"add", [7, 0, SIZE], struct.pack("<i", 1)),
    )
    found = worker.wait(2)  # the same kernel twice does not link
    assert found[0][:2] == [messages.BUILT, 1] and found[1][2] == found[0][2] < 0
    worker.put(
        [messages.PROGRAM, 2, b"", bundle.pack([(il, {3: b"1234"})])],
        [messages.LAUNCH, 11, 2, b"add", [0], [1], None, [], None, [[7, 0, SIZE], b"1234"]],
    )
    assert worker.wait(2)[1][2] == cl.CL_INVALID_SPEC_ID
    worker.executor.close()


def nonsense() -> None:
    """Batches that are cut off or changed: some are refused, and none does harm."""
    batch = codec.encode([
        [messages.BUFFER, 7, 4096],
        [messages.WRITE, 7, 0, b"1234" * 16],
        [messages.READ, 12, 7, 0, 64],
        [messages.LAUNCH, 10, 1, b"add", [0], [16], [16], [1, 2], [0, 0, 1], [[7, 0, 64], b"1234", 16, None]],
        [messages.PROGRAM, 3, b"", bundle.MAGIC + b"l\2\0\0\0l\2\0\0\0b\3"],
        [messages.LAUNCH, 11, 3, b"add", [0, 0], [16, 1], None, [], None, []],
        image(20, [7, 0, 4096], 16, 16, 1, 1, pitch=64),
        image(21, [7, 1024, 1024], 4, 4, 4, 1, pitch=16, kind=cl.CL_MEM_OBJECT_IMAGE3D),
        dim(12, [20], [21], sampler()),
        [messages.FORGET_IMAGE, 20],
        [messages.FORGET_BUFFER, 7],
    ])  # fmt: skip
    worker, refused = Worker(), 0
    chance = random.Random(5)
    changed = [batch[:size] for size in range(1, len(batch), 3)]
    for _ in range(300):
        one = bytearray(batch)
        for _ in range(chance.randint(1, 4)):
            one[chance.randrange(len(one))] = chance.randrange(256)
        changed.append(bytes(one))
    for one in changed:
        executor = Executor(worker.api)
        executor.put(one, [])
        end = time.monotonic() + 10
        while executor.kept and time.monotonic() < end:  # until it has been looked at
            executor.take()
        refused += executor.failed
        executor.close()
    assert refused > 100


if __name__ == "__main__":
    globals()[sys.argv[1]]()
