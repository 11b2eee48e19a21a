"""Queries of extensions whose names the headers of Debian 12 lack: rows of device_info.py's table."""

from __future__ import annotations

from ..device import capabilities
from .device import Device
from .info import ulong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .info import Row

# cl_ext_float_atomics
CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4231
CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT = 0x4232
CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT = 0x4233

# cl_device_fp_atomic_capabilities_ext: bits for global memory; those for local memory are 16 places up.
_FP_ATOMICS = {"load_store": 1 << 0, "add": 1 << 1, "min_max": 1 << 2}
_LOCAL = 16


def fp_atomics(width: int) -> Row[Device]:
    """What the feature macros of that type say; load, store and exchange of float and double need none."""

    def get(device: Device) -> int:
        features = set(capabilities.features(device.limits.cpu))
        found = 0
        for place, shift in (("global", 0), ("local", _LOCAL)):
            for operation, bit in _FP_ATOMICS.items():
                if f"__opencl_c_ext_fp{width}_{place}_atomic_{operation}" in features:
                    found |= bit << shift
        if found and width > 16:
            found |= _FP_ATOMICS["load_store"] * (1 | 1 << _LOCAL)
        return found

    return ulong(get)


# cl_khr_kernel_clock
CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR = 0x1076
_CLOCK_SCOPES = {"device": 1 << 0, "work_group": 1 << 1, "sub_group": 1 << 2}


def _clock_scopes(device: Device) -> int:
    features, prefix = capabilities.features(device.limits.cpu), "__opencl_c_kernel_clock_scope_"
    return sum(bit for name, bit in _CLOCK_SCOPES.items() if prefix + name in features)


EXTENSION_INFO: dict[int, Row[Device]] = {
    CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR: ulong(_clock_scopes),
    CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT: fp_atomics(32),
    CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT: fp_atomics(64),
    CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT: fp_atomics(16),
}
