"""What the device reports follows from the CPU, its caches and its memory."""

import pytest

from cl_driver.device import capabilities, limits
from cl_driver.device.cpu import Cpu
from cl_driver.device.memory import global_memory_size
from cl_driver.device.topology import Cache

AVX512 = frozenset(
    ["avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd", "avx2", "avx", "fma", "f16c", "sse4_2", "pni"]
)


def cpu(architecture="x86_64", flags=AVX512):
    return Cpu(architecture, "name", "vendor", frozenset(flags), 3000)


def machine(tmp_path, total_kib, groups=(), **limits_by_path):
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal:       {total_kib} kB\nMemFree: 1 kB\n")
    (proc / "self" / "cgroup").write_text("".join(line + "\n" for line in groups))
    for path, text in limits_by_path.items():
        file = cgroups / path.replace("__", "/").replace("max", "memory.max")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(proc), str(cgroups)


def test_memory_is_the_machines(tmp_path):
    assert global_memory_size(*machine(tmp_path, 1000)) == 1000 * 1024 // 4096 * 4096


def test_a_setting_leaves_less(tmp_path, monkeypatch):
    where = machine(tmp_path, 1 << 20)
    for value, expected in (("100M", 100 << 20), ("8G", 1 << 30), ("1", 32 << 20)):
        monkeypatch.setenv("CL_DRIVER_MEMORY", value)
        assert global_memory_size(*where) == expected


def test_the_tightest_group_of_the_hierarchy_counts(tmp_path):
    where = machine(tmp_path, 1 << 20, ["0::/a/b"], a__b__max="max\n", a__max="8192000\n", max="99999999\n")
    assert global_memory_size(*where) == 8192000


def test_version_1_groups(tmp_path):
    proc, cgroups = machine(tmp_path, 1 << 20, ["4:memory:/x", "1:cpu:/y"])
    folder = tmp_path / "cgroup" / "memory" / "x"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("4096000\n")
    (folder.parent / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert global_memory_size(proc, cgroups) == 4096000


@pytest.mark.parametrize(
    "second_level, local", [(0, 64 << 10), (256 << 10, 128 << 10), (1 << 20, 512 << 10), (4 << 20, 512 << 10)]
)
def test_local_memory_fits_a_core_and_never_less_than_promised(second_level, local):
    data = [Cache(2, second_level, 64, frozenset({0}))] if second_level else []
    assert limits.Limits(cpu(), data, 1).local_memory == local


def test_features_are_llvms_names():
    features = cpu().features
    assert {"avx512f", "sse3", "sse4.2", "fma"} <= set(features)
    assert "pni" not in features and features == tuple(sorted(features))


def test_half_an_avx512_is_none():
    assert not any(feature.startswith("avx512") for feature in cpu(flags=AVX512 - {"avx512bw"}).features)


def test_numbers_of_spirv_capabilities_are_the_grammars():
    from cl_driver.spirv.enums import Capability

    names = {name for row in capabilities.CAPABILITIES for name in row.spirv}
    assert names == set(capabilities.SPIRV_NUMBERS)
    assert {name: int(getattr(Capability, name)) for name in names} == capabilities.SPIRV_NUMBERS


def test_every_extension_is_claimed_once_and_has_a_version():
    names = [name for row in capabilities.CAPABILITIES for name in row.extensions]
    assert len(names) == len(set(names))
    assert all(len(version) == 3 for version in capabilities.extensions(cpu()).values())


def test_what_the_specification_wants_of_every_device():
    found = capabilities.extensions(cpu("aarch64", ()))
    # "The following Khronos extension names must be returned by all devices that support OpenCL 1.1".
    assert {
        "cl_khr_byte_addressable_store",
        "cl_khr_global_int32_base_atomics",
        "cl_khr_global_int32_extended_atomics",
        "cl_khr_local_int32_base_atomics",
        "cl_khr_local_int32_extended_atomics",
    } <= set(found)
    # "[...] by all devices that support OpenCL 3.1 or newer".
    assert {
        "cl_khr_device_uuid",
        "cl_khr_extended_bit_ops",
        "cl_khr_integer_dot_product",
        "cl_khr_spirv_queries",
        "cl_khr_subgroup_extended_types",
        "cl_khr_subgroup_rotate",
        "cl_khr_subgroup_shuffle",
        "cl_khr_subgroup_shuffle_relative",
        "cl_khr_suggested_local_work_size",
    } <= set(found)
    assert set(capabilities.SPIRV_VERSIONS) >= {(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)}


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_versions_of_the_language(architecture, monkeypatch):
    """2.0 only where kernels may enqueue kernels, for it has no optional features."""
    all_ = ((1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (3, 1))
    found = capabilities.opencl_c_versions(capabilities.features(cpu(architecture, ())))
    assert found == all_
    monkeypatch.setenv("CL_DRIVER_DEVICE_ENQUEUE", "0")
    found = capabilities.opencl_c_versions(capabilities.features(cpu(architecture, ())))
    assert found == tuple(version for version in all_ if version != (2, 0))


def test_sizes_that_the_specification_wants():
    assert limits.MAX_PARAMETER_SIZE >= 1024
    assert limits.MEM_BASE_ADDR_ALIGN >= 128  # sizeof(cl_long16)
    assert limits.PRINTF_BUFFER_SIZE >= 1 << 20
    assert limits.MAX_GLOBAL_VARIABLE_SIZE >= 64 << 10
