"""Writes features.md, what the device has and which test shows it: python -m conformance.features

What it has comes from the driver's own tables; where the tests are, and why something is absent, from
tests/features.toml.
"""

from __future__ import annotations

import re
import struct
import tomllib
from pathlib import Path

from cl_driver.api import device_info, device_info_extensions
from cl_driver.api.device import Device
from cl_driver.api.generated import enums as cl
from cl_driver.device import capabilities, platform
from cl_driver.device.capabilities import CAPABILITIES, Capability
from cl_driver.device.limits import Limits

HERE = Path(__file__).parent
PAGE = HERE / "features.md"
TABLE = tomllib.loads((HERE.parent / "tests" / "features.toml").read_text())
# Whose kernels are in that test's own table have no row in tests/features.toml.
EACH = "loader/programs/test_capabilities.py"
QUERIES_TEST = "loader/errors/test_device.py"
_FEW = 4  # words of a text; those that have more are lists, which are elsewhere on the page
_WORDS = (16, 24, 32, 40)  # bytes of a short list of numbers
_BITS = re.compile("_CONFIG$|CAPABILITIES|PROPERTIES|HANDLE_TYPES|_DOMAIN$")


def test_of(capability: Capability) -> str:
    """Where the test of a capability is, below tests/."""
    return TABLE["tests"].get(capability.name, EACH)


def query_names() -> dict[int, str]:
    """{number: name} of the queries of a device that have an answer; of several names the shortest."""
    names: dict[int, str] = {}
    for module in (device_info_extensions, device_info, cl):
        for name, number in sorted(vars(module).items(), key=lambda item: (len(item[0]), item[0])):
            if re.match("CL_(DEVICE|DRIVER)_", name) and number in device_info.DEVICE_INFO:
                names.setdefault(number, name)
    return names


def device_like(limits: Limits, cpus: tuple[int, ...]) -> Device:
    """A device of another machine."""
    device = Device(cpus)
    device.limits = limits
    return device


def answers(device: Device) -> dict[str, bytes]:
    """{query: answer}, but for those that depend on the machine or on settings."""
    return {
        name: device_info.DEVICE_INFO[number](device)
        for number, name in sorted(query_names().items())
        if name not in TABLE["queries"]["of the machine"]
    }


def page(device: Device) -> str:
    """The page."""
    listed = [(capability, f"`tests/{test_of(capability)}`") for capability in CAPABILITIES]
    extensions = {
        name: (".".join(map(str, version)), where)
        for capability, where in listed
        for name, version in capability.extensions.items()
    }
    extensions["cl_khr_icd"] = ("1.0.0", f"`tests/{TABLE['tests']['icd']}`")
    macros = {name: where for capability, where in listed for name in capability.features}
    spirv = {name: where for capability, where in listed for name in capability.spirv}
    declared = {name: where for capability, where in listed for name in capability.spirv_extensions}
    sections = [
        "# What the device has",
        "Each line names the test that shows it. Made by `make pages`; why something is absent is in "
        "`tests/features.toml`.",
        "## Versions",
        _versions(device),
        "## Extensions",
        _table("Extension | Version | Test", [(f"`{n}`", *extensions[n]) for n in sorted(extensions)]),
        "## Optional features of OpenCL C",
        _table("Macro | Test", [(f"`{n}`", macros[n]) for n in sorted(macros)]),
        "## SPIR-V: capabilities",
        _table("Capability | Test", [(f"`{n}`", spirv[n]) for n in sorted(spirv)]),
        "## SPIR-V: extensions",
        _table("Extension | Test", [(f"`{n}`", declared[n]) for n in sorted(declared)]),
        "## Queries",
        f"`tests/{QUERIES_TEST}` asks all of them, and each again. Bit-fields are hexadecimal.",
        _table("clGetDeviceInfo | Answer", [(f"`{n}`", _shown(n, a)) for n, a in answers(device).items()]),
        "These depend on the machine or on settings: "
        + ", ".join(f"`{name}`" for name in sorted(TABLE["queries"]["of the machine"]))
        + ".",
        "## What is absent",
        "### Not yet",
        _table("What | Why", [(f"`{n}`", why) for n, why in TABLE["not yet"].items()]),
        "### Not on a CPU under Linux",
        _table("What | Why", [(f"`{n}`", why) for n, why in TABLE["never"].items()]),
    ]
    return "\n\n".join(sections) + "\n"


def _versions(device: Device) -> str:
    def joined(versions: tuple[tuple[int, int], ...]) -> str:
        return ", ".join(f"{major}.{minor}" for major, minor in versions)

    return _table(
        "What | Versions",
        [
            ("OpenCL", joined((capabilities.OPENCL_VERSION,)) + f", {platform.PROFILE}"),
            ("OpenCL C", joined(capabilities.opencl_c_versions(capabilities.features(device.limits.cpu)))),
            ("SPIR-V", joined(capabilities.SPIRV_VERSIONS)),
            ("Extended instruction sets", ", ".join(capabilities.SPIRV_INSTRUCTION_SETS)),
        ],
    )


def _table(heads: str, rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {heads} |", "|" + "---|" * (heads.count("|") + 1)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _shown(name: str, answer: bytes) -> str:
    if answer.endswith(b"\0") and answer[:-1].isascii() and answer[:-1].decode().isprintable():
        text = answer[:-1].decode()
        return "above" if text.count(" ") > _FEW else f"`{text}`" if text else "empty"
    if not answer:
        return "empty"
    if len(answer) in (4, 8):
        number = int.from_bytes(answer, "little")
        if "_NUMERIC_VERSION" in name:
            return f"{number >> 22}.{number >> 12 & 1023}"
        return hex(number) if _BITS.search(name) else str(number)
    if not any(answer):
        return "zeros"
    words = struct.unpack(f"<{len(answer) // 8}Q", answer) if len(answer) in _WORDS else ()
    # Others are lists of names, or structures with names.
    return ", ".join(map(str, words)) if words and max(words) < 1 << 48 else "above"


def main() -> None:
    """Rewrites the page."""
    PAGE.write_text(page(Device((0, 1))))


if __name__ == "__main__":
    main()
