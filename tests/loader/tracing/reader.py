"""Reads traces, by Perfetto's published messages and nothing of the driver's."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def message(data: bytes) -> dict[int, list]:
    """A message's fields: numbers, or the bytes of strings and messages."""
    fields: dict[int, list] = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        match tag & 7:
            case 0:
                value, at = varint(data, at)
            case 1:
                value, at = struct.unpack_from("<Q", data, at)[0], at + 8
            case 2:
                size, at = varint(data, at)
                assert at + size <= len(data), "a message is cut"
                value, at = data[at : at + size], at + size
            case kind:
                raise AssertionError(f"wire type {kind}")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


@dataclass
class Slice:
    name: str
    track: str
    process: int
    begin: int
    end: int = 0  # 0: it has none
    arguments: dict[str, object] = field(default_factory=dict)
    parent: Slice | None = None


@dataclass
class Trace:
    """A trace; flows: kind of arrow, from, to. thread_of: thread of a track's name."""

    slices: list[Slice] = field(default_factory=list)
    flows: list[tuple[str, Slice, Slice]] = field(default_factory=list)
    counters: dict[str, list[float]] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)

    def named(self, name: str, track: str = "") -> list[Slice]:
        return [s for s in self.slices if s.name == name and s.track.startswith(track)]

    def commands(self) -> list[Slice]:
        return [s for s in self.slices if s.track.startswith("Queue")]


def _arguments(event: dict[int, list], names: dict, texts: dict) -> dict[str, object]:
    found: dict[str, object] = {}
    for raw in event.get(4, []):
        argument = message(raw)
        name = names[argument[1][0]] if 1 in argument else argument[10][0].decode()
        if 17 in argument:
            found[name] = texts[argument[17][0]]
        elif 6 in argument:
            found[name] = argument[6][0].decode()
        else:
            found[name] = argument.get(4, argument.get(7))[0]
    return found


def read(path: Path) -> Trace:
    """Of packets in the order of time. AssertionError for what Perfetto would complain of: a sequence that
    refers to what it has not defined, an event of no track, ends without begins."""
    trace = Trace()
    packets = [message(packet) for packet in message(path.read_bytes())[1]]
    interned: dict[int, tuple[dict, dict, dict]] = {}
    tracks: dict[int, tuple[str, int]] = {}
    events = []
    for packet in packets:
        sequence = packet[10][0]
        if packet.get(13, [0])[0] & 1:
            interned[sequence] = ({}, {}, {})
            assert message(packet[59][0])[58] == [3]  # CLOCK_MONOTONIC
        for data in packet.get(12, []):
            for number, table in zip((2, 3, 29), interned[sequence], strict=True):
                for entry in map(message, message(data).get(number, [])):
                    table[entry[1][0]] = entry[2][0].decode()
        for descriptor in map(message, packet.get(60, [])):
            process = thread = None
            if 3 in descriptor:
                process = message(descriptor[3][0])
                trace.processes[process[1][0]] = process[6][0].decode()
                tracks[descriptor[1][0]] = "", process[1][0]
                continue
            thread = message(descriptor[4][0]) if 4 in descriptor else None
            name = thread[5][0] if thread else descriptor[2][0]
            tracks[descriptor[1][0]] = name.decode(), tracks[descriptor[5][0]][1]
        if 11 in packet:
            events.append((packet[8][0], len(events), message(packet[11][0]), interned[sequence]))
    open_slices: dict[int, list[Slice]] = {}
    sources: dict[tuple, Slice] = {}
    for time, _, event, (names, arguments, texts) in sorted(events, key=lambda e: e[:2]):
        uuid = event[11][0]
        track, process = tracks[uuid]
        stack = open_slices.setdefault(uuid, [])
        kind = event.get(9, [0])[0]
        name = names[event[10][0]] if 10 in event else event.get(23, [b""])[0].decode()
        if kind == BEGIN:
            parent = stack[-1] if stack else None
            made = Slice(name, track, process, time, 0, _arguments(event, arguments, texts), parent)
            stack.append(made)
            trace.slices.append(made)
        elif kind == END:
            ended = stack.pop()
            ended.end = time
            ended.arguments |= _arguments(event, arguments, texts)
        elif kind == COUNTER:
            (value,) = struct.unpack("<d", struct.pack("<Q", event[44][0]))
            trace.counters.setdefault(track, []).append(value)
        else:
            legacy = message(event[6][0])
            key = name, legacy[6][0]
            if legacy[2] == [ord("s")]:
                assert key not in sources
                sources[key] = stack[-1]
            else:
                assert legacy[2] == [ord("f")] and legacy[12] == [1]
                if key in sources:
                    trace.flows.append((name, sources[key], stack[-1]))
    return trace
