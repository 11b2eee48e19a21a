"""What was measured, what the simulation says of the same clusters, and of those that are not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from . import simulation
from .costs import Run
from .measured import Measured
from .simulation import Layout, Outcome

BEGIN, END = "<!-- cluster_plan: begin -->", "<!-- cluster_plan: end -->"

# Of a cluster that is not there: cores of the host and of each worker, the network's delay one way in seconds
# and the bytes in a second of each machine's connection.
HOST_CORES, WORKER_CORES, LATENCY, NETWORK = 16, 4, 50e-6, 1.25e9

WORKERS = (16, 64, 256, 1000)
PROGRAM_BYTES = 256 << 10
LAYOUTS = {
    "one link": {},
    "4 links": {"links": 4},
    "8 links": {"links": 8},
    "tree, 8": {"fan_out": 8},
    "tree, 32": {"fan_out": 32},
    "4 links, tree, 32": {"links": 4, "fan_out": 32},
}


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:.1f}" if seconds < 100e-6 else f"{1e6 * seconds:.0f}"


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def predict(measured: Measured, workers: int, what: str, run: Run) -> Outcome:
    """The same run, simulated: all processes share the cores of one machine, of which others take a part, as
    does what Dask does without being asked."""
    costs = measured.costs(workers)
    idle = workers * sum(measured.idle())
    layout = Layout(workers, measured.cores, load=idle + run.others * measured.cores)
    if what == "alone":
        return simulation.Cluster(costs, layout, lambda command: 0).run(run.commands, at_once=1)
    if what == "round":
        return simulation.run(costs, layout, run.commands, at_once=workers)
    if what == "whole":
        return simulation.run(costs, layout, run.commands, parts=workers)
    return simulation.run(costs, layout, run.commands)


def check(measured: Measured) -> list[tuple[int, str, float, float, Run, Outcome]]:
    """(workers, what, predicted commands a second, measured ones, the run, the prediction); what the costs
    were taken from is not there, nor launches on all of one worker, which are cut into nothing."""
    found = []
    for local in measured.local:
        for what in ("alone", "round", "stream", "whole"):
            if local.workers == 1 and what != "stream":
                continue
            run = local.runs[what]
            outcome = predict(measured, local.workers, what, run)
            predicted = run.commands / outcome.seconds
            found.append((local.workers, what, predicted, run.commands / run.seconds, run, outcome))
    return found


def _costs(measured: Measured) -> Iterator[str]:
    costs, small = measured.costs(WORKERS[-1]), measured.costs(measured.local[-1].workers)
    yield "### What things cost"
    yield ""
    names = {
        f"the program's thread: a launch; with {WORKERS[-1]} queues": (small.enqueue, costs.enqueue),
        f"the program's, for each part of a launch on all of {measured.local[-1].workers}; {WORKERS[-1]}": (
            small.cut,
            costs.cut,
        ),
        f"what makes a launch ready; with {WORKERS[-1]} queues": (small.ready, costs.ready),
        f"the same, for each part of a launch on all of {measured.local[-1].workers}; {WORKERS[-1]}": (
            small.ready_part,
            costs.ready_part,
        ),
        "the thread that sends: a frame; a command in it": (costs.send_frame, costs.send),
        "the thread that receives: a frame; a command in it": (costs.receive_frame, costs.receive),
        "the link (one thread of Python): a frame, either way": costs.link_frame,
        "a worker's event loop: a frame, either way": costs.worker_frame,
        "a worker's executor: a frame; a command in it": (costs.execute_frame, costs.execute),
        "a worker's device: an empty launch": costs.run,
        "a thread wakes up": costs.wake,
    }
    rows = []
    for name, value in names.items():
        values = value if isinstance(value, tuple) else (value,)
        rows.append([name, "; ".join(_us(one) for one in values)])
    yield from _table(["what", "µs of CPU time"], rows)


def _per_worker(measured: Measured, value: Callable[[int], float]) -> float:
    """How much more there is for each worker more. value: of the cluster of that place in the list."""
    first, last = measured.local[0], measured.local[-1]
    return (value(len(measured.local) - 1) - value(0)) / (last.workers - first.workers)


def _other_costs(measured: Measured) -> Iterator[str]:
    local = measured.local
    connect = [_per_worker(measured, lambda i, part=part: local[i].connect[part]) for part in range(3)]
    idle = measured.idle()
    memory = [_per_worker(measured, lambda i, part=part: local[i].memory[part]) for part in range(2)]
    descriptors = _per_worker(measured, lambda i: local[i].connections[0])
    rows = [
        [
            "a connection with a worker, for each worker more: link, scheduler, worker",
            ", ".join(_ms(one) for one in connect),
        ],
        ["a second in which nothing is done, for each worker: the same", ", ".join(_ms(one) for one in idle)],
        ["a program: until a worker has built it and ended its first launch", _ms(measured.compile())],
        ["a MiB of contents: the link", _ms(measured.byte() * (1 << 20))],
    ]
    yield from _table(["what", "ms (CPU time, but for the program)"], rows)
    rows = [
        ["link, for each worker", _kib(memory[0])],
        ["scheduler, for each worker", _kib(memory[1])],
        ["a worker, for a host", ", ".join(_kib(one.memory[2]) for one in local)],
        [
            "host, for each worker",
            _kib(
                (measured.stand_in[-1].memory[0] - measured.stand_in[0].memory[0])
                / (measured.stand_in[-1].workers - measured.stand_in[0].workers)
            ),
        ],
    ]
    yield from _table(["memory", "KiB"], rows)
    yield (
        f"Descriptors: {descriptors:.1f} of the link for each worker, {local[-1].connections[1]} of a worker "
        "for each host."
    )
    yield ""


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f}"


def _kib(size: float) -> str:
    return f"{size / 1024:.0f}"


def _check(measured: Measured) -> Iterator[str]:
    yield "### Predicted and measured"
    yield ""
    rows = []
    for workers, what, predicted, rate, run, outcome in check(measured):
        rows.append(
            [
                str(workers),
                what,
                f"{predicted:.0f}",
                f"{rate:.0f}",
                f"{predicted / rate:.2f}",
                f"{outcome.frames}, {outcome.answers}",
                f"{run.frames}, {run.answers}",
                f"{100 * run.others:.0f} %",
            ]
        )
    head = ["workers", "launches", "predicted a second", "measured", "predicted / measured"]
    head += ["frames there and back, predicted", "measured", "CPUs of others"]
    yield from _table(head, rows)


def _stand_in(measured: Measured) -> Iterator[str]:
    yield "### A host of workers that stand in"
    yield ""
    rows = []
    for one in measured.stand_in:
        row = [str(one.workers), f"{one.start:.2f}", _kib(one.memory[0]), _kib(one.memory[1])]
        for what in ("round", "whole"):
            threads, commands = one.runs[what].threads, one.runs[what].commands
            host = threads.program + threads.sender + threads.receiver + threads.rest
            row += [_us(host / commands), _us(threads.link / commands)]
        rows.append(row)
    head = ["workers", "start, s", "host, KiB", "link, KiB", "a launch on each: host, µs", "link, µs"]
    head += ["a launch on all: host, µs for each worker", "link, µs"]
    yield from _table(head, rows)


def _large(measured: Measured) -> Iterator[str]:
    yield "### Clusters that are not there, simulated"
    yield ""
    rows = []
    for count in WORKERS:
        costs = replace(measured.costs(count), latency=LATENCY)
        for name, options in LAYOUTS.items():
            if options.get("fan_out", 0) >= count:
                continue
            layout = Layout(count, HOST_CORES, WORKER_CORES, **options)
            stream = simulation.run(costs, layout, 40 * count)
            whole = simulation.run(costs, layout, 2 * count, parts=count, at_once=count)
            program = simulation.broadcast(costs, layout, PROGRAM_BYTES, measured.byte(), NETWORK)
            rows.append(
                [
                    str(count),
                    name,
                    f"{40 * count / stream.seconds:.0f}",
                    f"{40 * count / stream.frames:.1f}",
                    f"{100 * stream.link / stream.seconds:.0f} %",
                    _ms(whole.seconds / 2),
                    _ms(program),
                ]
            )
    head = ["workers", "layout", "launches a second, 40 on each", "of them in a frame", "link is busy"]
    head += ["a launch on all, ms", f"a program of {PROGRAM_BYTES >> 10} KiB is everywhere, ms"]
    yield from _table(head, rows)
    link = measured.idle()[0]
    yield (
        f"Connections with {WORKERS[-1]} workers: "
        f"{WORKERS[-1] * _per_worker(measured, lambda i: measured.local[i].connect[0]):.1f} s of the link. "
        f"Signs of life, one a second of each: {100 * WORKERS[-1] * link:.0f} % of the link; at most 100 a "
        f"second: {100 * 100 * link:.0f} %."
    )
    yield ""


def report(measured: Measured) -> Iterator[str]:
    """Lines of Markdown."""
    yield (
        f"{measured.cores} CPUs, the best of {measured.turns} turns. Of clusters that are not there: "
        f"{HOST_CORES} cores of the host, {WORKER_CORES} of each worker, {1e6 * LATENCY:.0f} µs one way, "
        f"{NETWORK / 1e9:.2f} GB/s for each machine."
    )
    yield ""
    for part in (_costs, _other_costs, _check, _stand_in, _large):
        yield from part(measured)


def put_on_page(path: Path, text: str) -> None:
    """Replaces what is between the marks of a page."""
    page = path.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n{text}{END}{after}")
