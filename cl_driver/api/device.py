"""Chapters 4.2 and 4.3: device queries and sub-devices.

The C side knows the devices themselves and their CPUs; peers hold what Python alone needs. Answers never
change, so the C side keeps them: each query of a device comes through the door once. CL_DEVICE_PLATFORM,
CL_DEVICE_PARENT_DEVICE and CL_DEVICE_REFERENCE_COUNT are about handles and never come here.
"""

from __future__ import annotations

from ..device import limits, topology
from ..door import answers
from .entrypoint import adopt, entrypoint, set_root_device
from .errors import CLError, require
from .generated import enums as cl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, TypeAlias

    Cpus: TypeAlias = tuple[int, ...]

DOMAINS = {
    cl.CL_DEVICE_AFFINITY_DOMAIN_NUMA: "numa",
    cl.CL_DEVICE_AFFINITY_DOMAIN_L4_CACHE: "l4",
    cl.CL_DEVICE_AFFINITY_DOMAIN_L3_CACHE: "l3",
    cl.CL_DEVICE_AFFINITY_DOMAIN_L2_CACHE: "l2",
    cl.CL_DEVICE_AFFINITY_DOMAIN_L1_CACHE: "l1",
}


class Device:
    """A device or sub-device. cpus: of its compute units; partition: the properties that made it, with 0;
    is_remote: it is a worker of a cluster."""

    invalid: ClassVar[int] = cl.CL_INVALID_DEVICE

    def __init__(
        self, cpus: Cpus = (), partition: tuple[int, ...] = (), parent: Device | None = None
    ) -> None:
        self.cpus = cpus
        self.partition = partition
        self.parent = parent
        self.is_remote = False
        self.limits = limits.host_limits()

    @property
    def root(self) -> Device:
        """The device that it is a part of, or itself."""
        return self.parent.root if self.parent else self


set_root_device(Device())


@entrypoint("device_limits", Device)
def device_limits(device: Device, cpus: list[int]) -> list[Any]:
    """LIMITS: what the data plane checks against. cpus comes with every operation on devices: a runtime
    process that replaces another (after fork) has not heard of the root device's."""
    device.cpus = tuple(cpus)
    most = limits.max_work_group_size()
    return answers.LIMITS(
        max_group_size=most,
        max_item_sizes=[most] * 3,
        local_memory_size=device.limits.local_memory,
        max_alloc_size=device.limits.global_memory,
        base_align=limits.MEM_BASE_ADDR_ALIGN,
    )


@entrypoint("cluster_device", Device)
def cluster_device(root: Device) -> tuple[int]:
    """The key of a peer for a worker of a cluster (4.2). To the control plane it is a part of the root:
    what is built for it here tells what its kernels are; the worker builds its own code."""
    device = Device(root.cpus, (), root)
    device.is_remote = True
    return (adopt(device),)


@entrypoint("clCreateSubDevices", Device)
def create_sub_devices(
    device: Device, cpus: list[int], properties: list[int], num_devices: int | None
) -> tuple[list[list[Any]]]:
    """Sub-devices (4.3): [[key, cpus of the sub-device], ...]. Raises CL_INVALID_VALUE and
    CL_DEVICE_PARTITION_FAILED as the section says.

    properties: the whole list, with its final 0. num_devices: None if only their number is asked for; the
    keys are then 0.
    """
    device.cpus = tuple(cpus)
    # "Only one of the listed partitioning schemes can be specified in properties."
    # "CL_INVALID_VALUE if values specified in properties are not valid or if values specified in properties
    # are valid but not supported by the device."
    require(len(properties) >= 2, cl.CL_INVALID_VALUE, "properties is empty")
    scheme, values = properties[0], properties[1:]
    if scheme == cl.CL_DEVICE_PARTITION_EQUALLY:
        parts, partition = _equally(device, values), properties
    elif scheme == cl.CL_DEVICE_PARTITION_BY_COUNTS:
        parts, partition = _by_counts(device, values), [*properties, 0]
    elif scheme == cl.CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN:
        parts, domain = _by_affinity_domain(device, values)
        partition = [scheme, domain, 0]
    else:
        raise CLError(cl.CL_INVALID_VALUE, f"properties begin with {scheme:#x}, no partition scheme")
    if num_devices is None:
        return ([[0, list(cpus)] for cpus in parts],)
    # "CL_INVALID_VALUE if out_devices is not NULL and num_devices is less than the number of sub-devices
    # created by the partition scheme."
    require(
        num_devices >= len(parts),
        cl.CL_INVALID_VALUE,
        f"num_devices is {num_devices}, there are {len(parts)} sub-devices",
    )
    return ([[adopt(Device(cpus, tuple(partition), device)), list(cpus)] for cpus in parts],)


def _ended(values: list[int], used: int) -> None:
    """The list ends after its values: "Only one of the listed partitioning schemes can be specified"."""
    require(
        len(values) == used + 1 and values[used] == 0,
        cl.CL_INVALID_VALUE,
        "properties has more than one scheme",
    )


def _equally(device: Device, values: list[int]) -> list[Cpus]:
    count = values[0]
    _ended(values, 1)
    # "The value n is passed as the value accompanying this property."
    require(count > 0, cl.CL_INVALID_VALUE, f"sub-devices of {count} compute units, at least 1")
    # "CL_INVALID_DEVICE_PARTITION_COUNT if [...] the total number of compute units requested exceeds
    # CL_DEVICE_MAX_COMPUTE_UNITS for in_device".
    units = len(device.cpus)
    many = f"sub-devices of {count} compute units, the device has {units}"
    require(count <= units, cl.CL_INVALID_DEVICE_PARTITION_COUNT, many)
    # "CL_DEVICE_PARTITION_FAILED if the partition name is supported by the implementation but in_device could
    # not be further partitioned." One sub-device that is all of the device is no partition.
    require(count < units, cl.CL_DEVICE_PARTITION_FAILED, f"{many}: it would be the only one")
    # "If n does not divide evenly into CL_DEVICE_MAX_COMPUTE_UNITS, then the remaining compute units are not
    # used."
    return [device.cpus[at : at + count] for at in range(0, len(device.cpus) - count + 1, count)]


def _by_counts(device: Device, values: list[int]) -> list[Cpus]:
    end = values.index(cl.CL_DEVICE_PARTITION_BY_COUNTS_LIST_END)
    counts = values[:end]
    # The list has an end of its own before the properties' end; both are 0, and hosts leave out the second.
    require(len(values) <= end + 2, cl.CL_INVALID_VALUE, "properties has more than one scheme")
    require(counts, cl.CL_INVALID_VALUE, "the list of counts is empty")
    units = len(device.cpus)
    require(units > 1, cl.CL_DEVICE_PARTITION_FAILED, "the device has one compute unit")
    # "CL_INVALID_DEVICE_PARTITION_COUNT if [...] the number of sub-devices requested exceeds
    # CL_DEVICE_PARTITION_MAX_SUB_DEVICES or the total number of compute units requested exceeds
    # CL_DEVICE_MAX_COMPUTE_UNITS for in_device, or the number of compute units requested for one or more
    # sub-devices is less than zero or the number of sub-devices requested exceeds
    # CL_DEVICE_MAX_COMPUTE_UNITS for in_device."
    wrong = len(counts) > units or any(count < 0 for count in counts) or sum(counts) > units
    many = f"sub-devices of {counts} compute units, the device has {units}"
    require(not wrong, cl.CL_INVALID_DEVICE_PARTITION_COUNT, many)
    parts, at = [], 0
    for count in counts:
        parts.append(device.cpus[at : at + count])
        at += count
    return parts


def _by_affinity_domain(device: Device, values: list[int]) -> tuple[list[Cpus], int]:
    domain = values[0]
    _ended(values, 1)
    machine = topology.system()
    if domain == cl.CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE:
        # "The implementation shall find the first level along which the device or sub-device may be further
        # subdivided in the order NUMA, L4, L3, L2, L1".
        candidates, shared = list(DOMAINS), "every cache"
    else:
        require(domain in DOMAINS, cl.CL_INVALID_VALUE, f"{domain:#x} is not an affinity domain")
        candidates, shared = [domain], f"the {DOMAINS[domain]}, or have none"
    for candidate in candidates:
        parts = topology.groups(device.cpus, DOMAINS[candidate], machine)
        if len(parts) > 1:
            return parts, candidate
    # "valid but not supported by the device": it does not tell apart the root device's compute units either.
    supported = any(len(topology.groups(device.root.cpus, DOMAINS[one], machine)) > 1 for one in candidates)
    code = cl.CL_DEVICE_PARTITION_FAILED if supported else cl.CL_INVALID_VALUE
    raise CLError(code, f"all compute units share {shared}")
