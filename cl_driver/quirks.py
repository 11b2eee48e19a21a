"""Programs that want settings of their own: the table is device/quirks.toml.

C knows the program (native_shim/src/base/quirks.c, from a table that native_shim/gen makes of the file) and
tells Python what its row says. So this is for the build, and for those who want to see the table.
"""

from __future__ import annotations

import os
import tomllib
from typing import NamedTuple

# What a row may set: what programs select by and take for granted, and nothing that makes kernels slower or
# less exact.
SETTINGS = (
    "CL_DRIVER_PLATFORM_NAME",
    "CL_DRIVER_PLATFORM_VENDOR",
    "CL_DRIVER_DEVICE_NAME",
    "CL_DRIVER_DEVICE_VENDOR",
    "CL_DRIVER_DEVICE_VERSION",
    "CL_DRIVER_DEVICE_TYPE",
    "CL_DRIVER_SUB_GROUP_SIZE",
    "CL_DRIVER_KERNEL_SUB_GROUP_SIZES",
    "CL_DRIVER_MAX_WORK_GROUP_SIZE",
)
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "device", "quirks.toml")


class Quirk(NamedTuple):
    """A row. programs, libraries: patterns of file names; without any, the settings are the user's to make.
    settings: by name."""

    name: str
    why: str
    programs: tuple[str, ...]
    libraries: tuple[str, ...]
    settings: dict[str, str]


def read(path: str = PATH) -> list[Quirk]:
    """The rows of the file, in its order. ValueError for one that says what no row may."""
    with open(path, "rb") as file:
        rows = tomllib.load(file)["quirk"]
    quirks = [
        Quirk(
            row["name"],
            row["why"],
            tuple(row.get("programs", ())),
            tuple(row.get("libraries", ())),
            row["settings"],
        )
        for row in rows
    ]
    for quirk in quirks:
        if others := set(quirk.settings) - set(SETTINGS):
            raise ValueError(f"quirk {quirk.name} may not set {', '.join(sorted(others))}")
        if not quirk.settings:
            raise ValueError(f"quirk {quirk.name} sets nothing")
        if any(pattern.count("*") > 1 for pattern in (*quirk.programs, *quirk.libraries)):
            raise ValueError(f"quirk {quirk.name} has a pattern of two stars")
    return quirks
