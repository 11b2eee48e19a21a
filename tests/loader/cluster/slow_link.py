"""A network namespace behind a link that delays and loses packets, made of two tun devices: kernels without
`netem` have these, too. Prints this end's address and the namespace's when it is there; goes with its
standard input. Needs root.

Usage: slow_link.py NAMESPACE MILLISECONDS PERCENT
MILLISECONDS: one way. PERCENT: packets that are lost, one way.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 1, 0x1000
_HERE, _THERE = "10.231.77.1", "10.231.77.2"


def device(name: str) -> int:
    """A new tun device: a descriptor of whole packets."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return descriptor


def configure(namespace: str) -> dict[int, int]:
    """Both ends, each with the other."""
    ends = [device(f"{namespace}{i}") for i in range(2)]
    inside = f"ip netns exec {namespace}"
    for command in (
        f"ip netns add {namespace}",
        f"ip link set {namespace}1 netns {namespace}",
        f"ip addr add {_HERE} peer {_THERE} dev {namespace}0",
        f"ip link set {namespace}0 up",
        f"{inside} ip addr add {_THERE} peer {_HERE} dev {namespace}1",
        f"{inside} ip link set {namespace}1 up",
        f"{inside} ip link set lo up",
    ):
        subprocess.run(command.split(), check=True)
    return {ends[0]: ends[1], ends[1]: ends[0]}


def forward(ends: dict[int, int], delay: float, loss: float) -> None:
    """Hands on packets until the standard input ends. delay: seconds; loss: a probability."""
    waiting: list[tuple[float, int, int, bytes]] = []
    count, chance = 0, random.Random(3)
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([0, *ends], [], [], pause)
        if 0 in readable:
            return
        for end in readable:
            packet = os.read(end, 1 << 16)
            count += 1
            if chance.random() >= loss:
                heapq.heappush(waiting, (time.monotonic() + delay, count, ends[end], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(waiting)
            try:
                os.write(end, packet)
            except OSError:  # its queue is full: lost as well
                continue


def main() -> None:
    """The program."""
    namespace, delay, loss = sys.argv[1], float(sys.argv[2]) / 1000, float(sys.argv[3]) / 100
    try:
        ends = configure(namespace)
        print(_HERE, _THERE, flush=True)
        forward(ends, delay, loss)
    finally:
        subprocess.run(["ip", "netns", "del", namespace], check=False)


if __name__ == "__main__":
    main()
