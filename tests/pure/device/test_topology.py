"""Caches and nodes from folders that look like /sys."""

import pytest

from cl_driver.device import topology
from tests.topologies import make_machine


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


@pytest.fixture
def machine(tmp_path):
    """Two nodes of two cores with two threads each: CPUs 0 and 4 share a core, 0 1 4 5 a node."""
    cores = [(0, 4), (1, 5), (2, 6), (3, 7)]
    nodes = [(0, 1, 4, 5), (2, 3, 6, 7)]
    for cpu in range(8):
        core = next(core for core in cores if cpu in core)
        node = next(node for node in nodes if cpu in node)
        caches = [(1, "Data", "32K", core), (1, "Instruction", "32K", core), (2, "Unified", "1M", core)]
        caches.append((3, "Unified", "16384K", node))
        for index, (level, kind, size, sharers) in enumerate(caches):
            folder = tmp_path / "cpu" / f"cpu{cpu}" / "cache" / f"index{index}"
            write(folder / "level", str(level))
            write(folder / "type", kind)
            write(folder / "size", size)
            write(folder / "coherency_line_size", "64")
            write(folder / "shared_cpu_list", ",".join(map(str, sharers)))
    for number, node in enumerate(nodes):
        write(tmp_path / "node" / f"node{number}" / "cpulist", ",".join(map(str, node)))
    write(tmp_path / "node" / "node2" / "cpulist", "")  # memory without CPUs
    return str(tmp_path)


def test_caches_are_data_caches_innermost_first(machine):
    found = topology.caches(5, machine)
    assert [(c.level, c.size, c.line) for c in found] == [
        (1, 32 << 10, 64),
        (2, 1 << 20, 64),
        (3, 16 << 20, 64),
    ]
    assert found[1].cpus == {1, 5}


def test_groups_by_each_domain(machine):
    cpus = tuple(range(8))
    assert topology.groups(cpus, "numa", machine) == [(0, 1, 4, 5), (2, 3, 6, 7)]
    assert topology.groups(cpus, "l3", machine) == [(0, 1, 4, 5), (2, 3, 6, 7)]
    assert topology.groups(cpus, "l2", machine) == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert topology.groups((1, 2, 5), "l1", machine) == [(1, 5), (2,)]


@pytest.fixture
def large_machine(tmp_path):
    """Two nodes of 96 CPUs, of which 16 share an L3 cache; a third one has memory only."""
    make_machine(tmp_path, nodes=[range(96), range(96, 192)], sharers=16)
    write(tmp_path / "node" / "node2" / "cpulist", "")
    return str(tmp_path)


def test_a_large_machine(large_machine):
    cpus = tuple(range(192))
    assert topology.groups(cpus, "numa", large_machine) == [cpus[:96], cpus[96:]]
    assert topology.groups(cpus, "l3", large_machine) == [cpus[at : at + 16] for at in range(0, 192, 16)]
    assert topology.groups(cpus, "l2", large_machine) == [(cpu,) for cpu in cpus]


def test_a_mask_of_part_of_a_node(large_machine):
    assert topology.groups((90, 91, 95), "numa", large_machine) == [(90, 91, 95)]
    assert topology.groups((95, 96, 100), "numa", large_machine) == [(95,), (96, 100)]
    assert topology.groups((14, 15, 16), "l3", large_machine) == [(14, 15), (16,)]


def test_one_look_for_all_that_share_a_cache(large_machine, monkeypatch):
    looks = []
    monkeypatch.setattr(topology, "cache", lambda *of, cache=topology.cache: looks.append(of) or cache(*of))
    topology.groups(tuple(range(192)), "l3", large_machine)
    assert [cpu for cpu, _, _ in looks] == list(range(0, 192, 16))


def test_a_setting_names_the_folder(monkeypatch):
    monkeypatch.delenv("CL_DRIVER_TOPOLOGY", raising=False)
    assert topology.system() == topology.SYSTEM
    monkeypatch.setenv("CL_DRIVER_TOPOLOGY", "/some/machine")
    assert topology.system() == "/some/machine"


def test_a_level_that_is_not_there_gives_no_groups(machine):
    assert topology.groups((0, 1), "l4", machine) == []


def test_a_machine_that_tells_nothing(tmp_path):
    assert topology.caches(0, str(tmp_path)) == ()
    assert topology.nodes(str(tmp_path)) == ()
    assert topology.groups((0, 1), "numa", str(tmp_path)) == []


@pytest.mark.parametrize(
    "text, cpus",
    [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("0-1,4-5\n", {0, 1, 4, 5})],
)
def test_cpu_lists(text, cpus):
    assert topology.parse_cpu_list(text) == cpus


def test_a_malformed_list_is_refused():
    with pytest.raises(ValueError):
        topology.parse_cpu_list("0-x")
