"""Chapter 4.1: what the platform says of itself; nothing here depends on the machine.

native_shim/gen/platform.py writes C from this table: ICD loaders ask before anything else and must not have
to start Python for it.
"""

from ..version import VERSION as DRIVER_VERSION
from .capabilities import CAPABILITIES, OPENCL_VERSION

PROFILE = "FULL_PROFILE"
NAME = "cl_driver"
VENDOR = "cl_driver"
ICD_SUFFIX = "CLDRV"
VERSION = f"OpenCL {OPENCL_VERSION[0]}.{OPENCL_VERSION[1]} cl_driver {DRIVER_VERSION}"
NUMERIC_VERSION = (*OPENCL_VERSION, 0)

# "Each extension that is supported by all devices associated with this platform must be reported here":
# the unconditional rows, and what concerns the platform alone.
EXTENSIONS = tuple(
    sorted(
        [
            (name, version)
            for capability in CAPABILITIES
            if capability.unconditional
            for name, version in capability.extensions.items()
        ]
        + [("cl_khr_icd", (1, 0, 0))]
    )
)
