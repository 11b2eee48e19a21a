"""Targets: CPU features from settings, never more than the CPU has."""

import struct

import pytest

from cl_driver.device import arm_cores
from cl_driver.device import cpu as cpu_module
from cl_driver.device.cpu import Cpu, identity_of
from cl_driver.device.target import Target, host_target, make_target, parse_cpu
from cl_driver.jit.symbols import loader_symbols
from tests.cpus import SKYLAKE


def cpu(architecture: str, flags: str, vendor: str = "vendor") -> Cpu:
    return Cpu(architecture, "name", vendor, frozenset(flags.split()), 2000)


OLD = cpu("x86_64", "cmov cx8 fxsr mmx sse sse2 pni")
ARM = cpu("aarch64", "fp asimd atomics asimdhp")


def test_the_cpu_as_it_is():
    target = make_target(SKYLAKE)
    assert target.triple == "x86_64-unknown-linux-gnu" and target.architecture == "x86_64"
    assert target.vector_bits == 512 and {"avx512f", "sse3", "lzcnt"} <= set(target.features)
    assert make_target(OLD).vector_bits == 128
    assert make_target(ARM).features == ("fp-armv8", "fullfp16", "lse", "neon")


@pytest.mark.parametrize("setting, bits, has, has_not", [
    ("x86-64", 128, {"sse2"}, {"sse3", "avx"}),
    ("x86-64-v2", 128, {"sse4.2", "popcnt"}, {"avx", "fma"}),
    ("x86-64-v3", 256, {"avx2", "fma", "f16c"}, {"avx512f", "vaes"}),
    ("x86-64-v4", 512, {"avx512f", "avx2"}, {"avx512vnni"}),
    ("native,-avx512f", 256, {"avx2", "fma"}, {"avx512f", "avx512bw", "avx512vnni"}),
    ("-avx", 128, {"sse4.2"}, {"avx", "avx2", "avx512f", "fma", "f16c"}),
    ("x86-64-v2,+fma", 128, {"fma"}, {"avx"}),
    ("-sse2", 512, {"sse2"}, set()),
    ("-fma", 256, {"avx2"}, {"fma", "avx512f", "avx512bw"}),
    ("-ssse3", 128, {"sse3"}, {"sse4.1", "sse4.2", "avx", "avx512f", "fma"}),
])  # fmt: skip
def test_settings(setting, bits, has, has_not):
    target = make_target(SKYLAKE, setting)
    assert target.vector_bits == bits
    assert has <= set(target.features) and not has_not & set(target.features)


def test_vector_widths():
    """Integers and floats have registers of one width; types have 16 elements at most."""
    for setting, widths in {
        "": [16, 16, 16, 8],
        "x86-64-v3": [16, 16, 8, 4],
        "x86-64-v2": [16, 8, 4, 2],
    }.items():
        target = make_target(SKYLAKE, setting)
        assert [target.vector_width(size) for size in (1, 2, 4, 8)] == widths
    assert make_target(ARM).vector_width(4) == 4


def test_never_more_than_the_cpu_has():
    features, complaints = parse_cpu("x86-64-v3", OLD)
    assert "avx2" not in features and "avx2" in complaints[0]
    features, complaints = parse_cpu("+avx2,znver4", OLD)
    assert "avx2" not in features and len(complaints) == 2


def test_keys_tell_targets_apart():
    keys = {make_target(SKYLAKE, s, w).key for s in ("", "x86-64-v2", "-fma") for w in (0, 1, 8)}
    assert len(keys) == 9
    target = make_target(SKYLAKE, "-fma", 4)
    again = Target.from_values(target.to_values())
    assert again == target and hash(again) == hash(target)


def test_sub_groups_of_single_kernels_are_in_the_key():
    """So program binaries of other sizes are not taken."""
    plain, other = make_target(SKYLAKE), make_target(SKYLAKE, kernel_sub_groups="a=16,b=4")
    assert plain.key != other.key == Target.from_values(other.to_values()).key


def test_slow_division_is_intels():
    """Of 512-bit vectors only, and part of the key."""
    flags = " ".join(SKYLAKE.flags)
    intel, amd = (cpu("x86_64", flags, vendor) for vendor in ("GenuineIntel", "AuthenticAMD"))
    assert make_target(intel).slow_division and not make_target(amd).slow_division
    assert not make_target(intel, "x86-64-v3").slow_division
    assert make_target(intel).key != make_target(amd).key
    assert Target.from_values(make_target(intel).to_values()).slow_division


def test_slow_division_of_aarch64_is_arms():
    """Of the cores that Arm has designed: others' dividers are faster."""
    arm, apple = (cpu("aarch64", " ".join(ARM.flags), vendor) for vendor in ("Arm", "Apple"))
    assert make_target(arm).slow_division and not make_target(apple).slow_division


def test_who_fetches_far_ahead():
    """AMD's, at any features, and it is part of the key."""
    flags = " ".join(SKYLAKE.flags)
    intel, amd = (cpu("x86_64", flags, vendor) for vendor in ("GenuineIntel", "AuthenticAMD"))
    for setting in ("", "x86-64-v2"):
        near, far = make_target(intel, setting), make_target(amd, setting)
        assert far.far_ahead and not near.far_ahead and near.key != far.key
        assert Target.from_values(far.to_values()).far_ahead


def test_who_has_slow_masked_stores():
    """AMD's cores, at any setting: code with AVX-512 does not ask."""
    for vendor, slow in (("AuthenticAMD", True), ("HygonGenuine", True), ("GenuineIntel", False)):
        cpu = Cpu("x86_64", "a CPU", vendor, frozenset({"avx", "avx2", "fma"}), 0)
        target = make_target(cpu)
        assert target.slow_masked_stores == slow == Target.from_values(target.to_values()).slow_masked_stores
        assert slow == ("slow-masked-stores" in target.key)


def test_whose_gathers_are_fast():
    """Golden Cove's in servers, held to AVX2: with AVX-512 nobody asks, and clients have small cores, too."""
    flags = "avx avx2 fma"
    for vendor, more, fast in (
        ("GenuineIntel", "avx512f avx512vl avx512bw avx512dq avx_vnni", True),
        ("GenuineIntel", "avx512f avx512vl avx512bw avx512dq", False), ("GenuineIntel", "avx_vnni", False),
        ("AuthenticAMD", "avx512f avx512vl avx512bw avx512dq avx_vnni", False),
    ):  # fmt: skip
        found = cpu("x86_64", f"{flags} {more}", vendor)
        assert ("fast-gather" in make_target(found, "x86-64-v3").features) == fast
        assert "fast-gather" not in make_target(found, "x86-64-v2").features
        if "avx512f" in more:
            assert "fast-gather" not in make_target(found).features


def test_this_cpu():
    assert host_target().features == tuple(sorted(host_target().features))


def test_the_loaders_symbols():
    assert {"memcpy", "memmove", "memset", "cld_printf", "cld_assert_fail", "cld_yield"} <= loader_symbols()


@pytest.mark.parametrize("cpuinfo, identity, version", [
    ({"cpu family": "25", "model": "17", "stepping": "1"}, 0x00A10F11, (25, 17, 1)),
    ({"cpu family": "6", "model": "143", "stepping": "8"}, 0x000806F8, (6, 143, 8)),
    ({"cpu family": "5", "model": "2", "stepping": "12"}, 0x0000052C, (5, 2, 12)),
    ({"CPU implementer": "0x41", "CPU architecture": "8", "CPU variant": "0x1", "CPU part": "0xd4f",
      "CPU revision": "0"}, 0x411FD4F0, (15, 0xD4F, 0x10)),
    ({"cpu family": "unknown"}, 0, (0, 0, 0)),
    ({}, 0, (0, 0, 0)),
])  # fmt: skip
def test_what_the_cpu_tells_of_itself(cpuinfo, identity, version):
    assert identity_of(cpuinfo) == identity
    architecture = "aarch64" if "CPU part" in cpuinfo else "x86_64"
    assert Cpu(architecture, "name", "vendor", frozenset(), 0, identity).version == version


@pytest.mark.parametrize("fields, name, vendor, flags", [
    ({"Features": "fp asimd atomics", "CPU implementer": "0x41", "CPU part": "0xd4f"},
     "Arm Neoverse V2", "Arm", {"fp", "asimd", "atomics"}),
    ({"Features": "fp asimd", "CPU implementer": "0x61", "CPU part": "0x022"},
     "Apple M1", "Apple", {"fp", "asimd"}),
    ({"Features": "fp asimd", "CPU implementer": "0x61", "CPU part": "0xfff"},
     "aarch64", "Apple", {"fp", "asimd"}),
    ({"Features": "fp asimd", "Hardware": "a  board"}, "a board", "", {"fp", "asimd"}),
    # An emulator's host.
    ({"flags": "sse2", "model name": "an x86", "vendor_id": "AuthenticAMD"}, "aarch64", "",
     {"asimd", "asimddp", "i8mm"}),
    ({}, "aarch64", "", {"asimd", "asimddp", "i8mm"}),
])  # fmt: skip
def test_names_of_arms_cores(fields, name, vendor, flags, monkeypatch):
    vector = struct.pack("6Q", 16, 1 << 1 | 1 << 20, 26, 1 << 13, 0, 0)
    monkeypatch.setattr(cpu_module, "read_bytes", lambda path: vector)
    found = cpu_module._arm(fields)
    assert (found.name, found.vendor, found.flags) == (name, vendor, flags)
    assert not found.reads_far_ahead and not found.has_slow_masked_stores


def test_an_auxiliary_vector_that_is_cut_short():
    assert arm_cores.flags_of(b"") == frozenset()
    assert arm_cores.flags_of(struct.pack("2Q", 16, 1) + b"1234") == {"fp"}
