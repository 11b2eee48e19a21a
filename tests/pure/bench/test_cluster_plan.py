"""The simulation of a cluster against sums that one can do by hand, and costs that are got back from runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.cluster_plan import costs as measured_costs
from tests.bench.cluster_plan import plan, simulation
from tests.bench.cluster_plan.costs import Run, Threads
from tests.bench.cluster_plan.measured import Local, Measured, StandIn
from tests.bench.cluster_plan.simulation import Costs, Layout, Machine, Outbox, Simulation, Thread

NOTHING = Costs(**dict.fromkeys(Costs.__dataclass_fields__, 0.0))
SOME = Costs(
    enqueue=1e-6,
    cut=2e-6,
    ready=3e-6,
    ready_part=4e-6,
    send_frame=10e-6,
    send=1e-6,
    receive_frame=20e-6,
    receive=2e-6,
    link_frame=200e-6,
    worker_frame=300e-6,
    execute_frame=30e-6,
    execute=0.5e-6,
    run=0.5e-6,
)
PATH = 1 + 3 + 10 + 1 + 200 + 300 + 30 + 0.5 + 0.5 + 300 + 200 + 20 + 2  # µs of a command that is alone
HOPS = 10  # threads that are woken for it


def us(seconds):
    return pytest.approx(1e6 * seconds)


def test_a_command_alone_takes_what_its_parts_take():
    layout = Layout(1, host_cores=8)
    assert us(simulation.run(SOME, layout, 1).seconds) == PATH
    assert us(simulation.run(SOME, layout, 5, at_once=1).seconds) == 5 * PATH
    slow = replace(SOME, wake=7e-6, latency=50e-6)
    assert us(simulation.run(slow, layout, 1).seconds) == PATH + HOPS * 7 + 2 * 50


@pytest.mark.parametrize("load, slower", [(0.0, 1.0), (1.0, 2.0), (0.25, 4 / 3), (3.0, 4.0)])
def test_others_take_their_share_of_the_cores(load, slower):
    """Of one core, for work that lasts: others have turns, or all where they want little."""
    costs = replace(NOTHING, run=0.1e-3)
    taken = simulation.run(costs, Layout(1, 1, load=load), 10000).seconds
    assert taken == pytest.approx(slower, rel=0.2)
    assert simulation.run(costs, Layout(1, 5, load=load), 10000).seconds == pytest.approx(1.0)


@pytest.mark.parametrize("cores, expected", [(1, 12), (2, 6), (4, 3), (8, 3)])
def test_threads_share_the_cores(cores, expected):
    clock = Simulation()
    machine = Machine(clock, cores)
    for _ in range(4):
        Thread(machine, 0.0).put(lambda: (3e-6, lambda: None))
    assert us(clock.run()) == expected


def test_a_thread_keeps_its_core_for_a_slice():
    """Long enough for all of the short work of one, and no longer where others wait."""
    clock, order = Simulation(), []
    machine = Machine(clock, 1)
    for name in "ab":
        thread = Thread(machine, 0.0)
        for _ in range(4):
            thread.put(lambda name=name: (simulation.SLICE / 2, lambda: order.append(name)))
    clock.run()
    assert "".join(order) == "aabbaabb"


def test_an_outbox_gathers_while_a_frame_is_on_its_way():
    clock, sent = Simulation(), []
    thread = Thread(Machine(clock, 1), 0.0)
    box = Outbox(thread, 10e-6, 1e-6, sent.append, most=1)
    box.put([0])
    clock.after(5e-6, lambda: box.put([1, 2]))
    clock.after(100e-6, lambda: box.put([3]))
    clock.after(200e-6, box.left)
    clock.after(205e-6, lambda: box.put(range(4, 3 + simulation.MOST_COMMANDS)))
    clock.after(900e-6, box.left)
    clock.run()
    assert sent[:2] == [[0], [1, 2, 3]] and box.frames == 3
    assert sent[2] == list(range(4, 3 + simulation.MOST_COMMANDS))
    full = Outbox(thread, 0.0, 0.0, sent.append)
    full.put(range(simulation.MOST_COMMANDS + 1))
    clock.run()
    assert [len(commands) for commands in sent[3:]] == [simulation.MOST_COMMANDS, 1]


@pytest.mark.parametrize("options", [{}, {"links": 3}, {"fan_out": 2}, {"links": 2, "fan_out": 3}])
@pytest.mark.parametrize("parts, at_once", [(1, 0), (1, 13), (13, 26)])
def test_every_command_is_executed_once(options, parts, at_once):
    count = 13
    costs = replace(NOTHING, run=1.0, link_frame=1e-3)
    cluster = simulation.Cluster(costs, Layout(count, 64, 4, **options), lambda command: command % count)
    outcome = cluster.run(52, parts, at_once)
    assert [round(worker.device.busy) for worker in cluster.workers] == [4] * count
    assert outcome.seconds >= 4
    assert cluster._left == 0


def test_many_workers_wait_for_the_link():
    """A frame of its own for each worker, and back: nothing else is as slow."""
    count = 200
    flat = simulation.run(SOME, Layout(count, 16, 4), count)
    assert flat.frames == flat.answers == count
    assert flat.seconds == pytest.approx(count * 2 * SOME.link_frame, rel=0.03)
    assert us(flat.link) == count * 2 * 200
    shared = simulation.run(SOME, Layout(count, 16, 4, links=4), count)
    assert shared.seconds == pytest.approx(flat.seconds / 4, rel=0.1)
    # With 10 tops the link has 10 frames out, and those that come back are as many at the least.
    tree = simulation.run(SOME, Layout(count, 16, 4, fan_out=10), count)
    assert tree.frames < count / 2 and tree.seconds < flat.seconds / 2


def test_a_launch_on_all_is_enqueued_once():
    costs = replace(NOTHING, enqueue=5e-6, cut=1e-6, ready_part=2e-6)
    assert us(simulation.run(costs, Layout(10, 4, 4), 20, parts=10, at_once=10).seconds) == 2 * (15 + 20)
    assert us(simulation.run(costs, Layout(10, 4, 4), 20, at_once=10).seconds) == 20 * 5


def test_a_tree_has_each_worker_below_one():
    cluster = simulation.Cluster(NOTHING, Layout(14, 1, 1, fan_out=3), lambda command: command)
    assert [worker.number for worker in cluster.workers if worker.parent is None] == [0, 1, 2]
    children = [[child.number for child in worker.children] for worker in cluster.workers]
    assert children[:5] == [[3, 6, 9], [4, 7, 10], [5, 8, 11], [12], [13]]
    assert [worker.top.number for worker in cluster.workers] == [0, 1, 2] * 4 + [0, 1]


def test_contents_for_all():
    """Flat: the host's link and line one after the other; a tree: level by level."""
    costs = replace(NOTHING, link_frame=1.0, worker_frame=2.0, latency=0.5)
    flat = simulation.broadcast(costs, Layout(8, 4, 4), 100, byte=0.01, network=10.0)
    assert flat == pytest.approx(1 + 1 + 8 * 10 + 0.5 + 2)  # the line of 10 seconds each is the slowest
    tree = simulation.broadcast(costs, Layout(6, 4, 4, fan_out=2), 100, byte=0.01, network=10.0)
    top = 1 + 1 + 2 * 10 + 0.5 + 2  # the second one has it
    assert tree == pytest.approx(top + 2 + 1 + 2 * 10 + 0.5 + 2)
    two = simulation.broadcast(replace(costs, link_frame=100.0), Layout(8, 4, 4, links=2), 100, 0.01, 10.0)
    assert two == pytest.approx(4 * 101 + 2 * 10 + 0.5 + 2)


def runs(costs: Costs, frames: int = 400) -> tuple[Run, Run]:
    """What costs.measure() would have found: a command alone, and a stream."""

    def threads(commands: int, frames: int) -> Threads:
        return Threads(
            program=commands * costs.enqueue,
            sender=frames * costs.send_frame + commands * costs.send,
            receiver=frames * costs.receive_frame + commands * costs.receive,
            rest=commands * costs.ready,
            link=2 * frames * costs.link_frame,
            loops=2 * frames * costs.worker_frame,
            executors=frames * costs.execute_frame + commands * (costs.execute + costs.run),
        )

    alone = 100 * (PATH + HOPS * 7) / 1e6
    return (
        Run(100, alone, threads(100, 100), 0.0, 100, 100),
        Run(10000, 0.2, threads(10000, frames), 0.0, frames, frames),
    )


@pytest.mark.parametrize("frames", [20, 400, 5000])
def test_costs_are_got_back(frames):
    found = measured_costs.solve(*runs(SOME, frames))
    expected = replace(SOME, cut=0.0, ready_part=SOME.ready, wake=7e-6)
    for name in Costs.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6, abs=1e-12), name


def test_costs_are_never_less_than_nothing():
    assert measured_costs.per_command(alone=10.0, stream=0.5, frames=0.2) == (10.0, 0.0)
    assert measured_costs.per_command(alone=1.0, stream=5.0, frames=0.1) == (0.0, 1.0)
    assert measured_costs.per_command(alone=1.0, stream=5.0, frames=1.0) == (1.0, 0.0)


def test_the_best_run_is_that_with_the_least_of_the_machine():
    slow, disturbed = (Run(100, seconds, Threads(), others) for seconds, others in ((2.0, 0.0), (3.0, 0.5)))
    assert measured_costs.best([slow, disturbed]) is disturbed


@pytest.fixture
def measured() -> Measured:
    alone, stream = runs(SOME)
    found = []
    for workers in (1, 4):
        more = {
            "nothing": Run(1, 1.0, Threads(link=1e-4 * workers, scheduler=0.01, loops=0.02 * workers), 0.0),
            "program": Run(4, 0.4, Threads(), 0.0),
            "contents": Run(10, 0.4, Threads(link=10 * (400e-6 + 4096e-6)), 0.0),
        }
        of_all = {"alone": alone, "round": alone, "stream": stream, "whole": stream}
        found.append(Local(workers, of_all | more, 1.0, (0.1 * workers, 0.0, 0.0), (1024, 0, 0), (9, 2)))
    threads = Threads(program=1e-6 + 1000 * SOME.cut, rest=1000 * SOME.ready_part)
    stands = [
        StandIn(
            1000,
            {"round": alone, "stream": stream, "whole": Run(1000, 0.1, threads, 0.0)},
            1.0,
            (1 << 20, 1 << 20),
        )
    ]
    small = Run(1, 1e-6, Threads(program=1e-6, rest=3e-6), 0.0)
    stands.insert(0, replace(stands[0], workers=1, runs=stands[0].runs | {"whole": small}))
    return Measured(2, 1, found, stands)


def test_what_is_measured_is_put_together(measured):
    costs = measured.costs(1000)
    assert (us(costs.cut), us(costs.ready_part)) == (2, 4)
    assert measured.costs(1) != costs == measured.costs(2) == measured.costs(5000)
    assert measured.idle() == pytest.approx((2 * SOME.link_frame, 0.0, 0.02))
    assert measured.byte() * (4 << 20) == pytest.approx(4096e-6)
    assert measured.compile() == pytest.approx(0.1)


def test_the_same_clusters_are_predicted(measured):
    found = {(workers, what): predicted for workers, what, predicted, *_ in plan.check(measured)}
    assert set(found) == {(1, "stream"), (4, "alone"), (4, "round"), (4, "stream"), (4, "whole")}
    assert found[4, "alone"] == pytest.approx(1e6 / (PATH + HOPS * 7), rel=0.05)  # a core is free


def test_a_page_is_written(measured, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "WORKERS", (20,))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{plan.BEGIN}\nold\n{plan.END}\nafter\n")
    text = "\n".join(plan.report(measured)) + "\n"
    plan.put_on_page(page, text)
    plan.put_on_page(page, text)
    assert page.read_text() == f"before\n{plan.BEGIN}\n{text}{plan.END}\nafter\n"
    rows = [line for line in text.splitlines() if line.startswith("| 20 |")]
    assert [row.split("|")[2].strip() for row in rows] == [
        name for name, options in plan.LAYOUTS.items() if options.get("fan_out", 0) < 20
    ]
