"""The table of environment variables."""

import re
import subprocess

import pytest

from cl_driver import settings
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("12", 12), ("1K", 1024), ("3m", 3 << 20), ("2G", 2 << 30), ("1T", 1 << 40)],
)
def test_integers(text, value):
    assert settings.parse_integer(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "K", "-1", "1.5", "0x10", "1KB", "\u0663", "1 2", " 7", "9" * 19, "9223372036854775807K"],
)
def test_what_is_no_integer(text):
    assert settings.parse_integer(text) is None


def test_malformed_values_count_as_unset():
    environment = {"CL_DRIVER_RUNTIME": "nowhere", "CL_DRIVER_CACHE_SIZE": "much", "CL_DRIVER_ICD2": "yes"}
    assert settings.text("CL_DRIVER_RUNTIME", environment) == "auto"
    assert settings.integer("CL_DRIVER_CACHE_SIZE", environment) == 1 << 30
    assert not settings.flag("CL_DRIVER_ICD2", environment)
    assert len(settings.malformed(environment)) == 3


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("CL_DRIVER_PARTS", ["4x", "1y", "9x"], ["4", "x4", "10x", "4z", "0y", "4x ", "4X"]),
        ("CL_DRIVER_WIDTH", ["0", "1", "16", "64"], ["3", "128", "-1", "wide"]),
        (
            "CL_DRIVER_JIT_DEBUG",
            ["gdb", "perf", "gdb,perf"],
            ["lldb", "gdb perf", "gdb,", ",gdb", "gdb,,perf", ","],
        ),
        (
            "CL_DRIVER_KERNEL_SUB_GROUP_SIZES",
            ["a=16", "a=4,b_2=64"],
            ["a", "a=", "=4", "a=5", "a=4,", ",a=4", "a=4;b=4", "a=4=8", "4"],
        ),
    ],
)
def test_values_without_a_meaning_are_complained_of(name, good, bad):
    for value in good:
        assert settings.malformed({name: value}) == [] and settings.text(name, {name: value}) == value
    for value in bad:
        (sentence,) = settings.malformed({name: value})
        assert sentence == f"{name}={value} is ignored: it must be {settings.SETTINGS[name].wanted}"
        assert settings.text(name, {name: value}) == ""


def test_defaults_are_of_their_types():
    for setting in settings.SETTINGS.values():
        assert settings.malformed({setting.name: setting.default} if setting.default else {}) == []
        assert setting.sentence.endswith(".")
        assert (setting.type in ("choice", "list", "table")) == bool(setting.choices)


def test_unknown_variables_are_named():
    assert settings.malformed({"CL_DRIVER_NONSENSE": "1", "OTHER": "2"}) == [
        "CL_DRIVER_NONSENSE is not a setting of cl_driver"
    ]


def test_what_enters_the_key():
    changed = {"CL_DRIVER_WIDTH": "8", "CL_DRIVER_LOG": "calls"}
    different = set(settings.key_values(changed)) ^ set(settings.key_values({}))
    assert {name for name, _ in different} == {"CL_DRIVER_WIDTH"}


def test_nothing_else_reads_the_environment():
    """Every CL_DRIVER_ name in the sources is a setting."""
    listed = subprocess.run(
        ["git", "grep", "-ohE", r'"CL_DRIVER_[A-Z0-9_]+"', "--", "cl_driver/*.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    names = set(re.findall(r"CL_DRIVER_\w+", listed))
    # Queries of the OpenCL specification happen to begin alike.
    assert {n for n in names if n not in settings.SETTINGS} <= {"CL_DRIVER_VERSION", "CL_DRIVER_UUID_KHR"} | {
        n for n in names if n.endswith("_")
    }
