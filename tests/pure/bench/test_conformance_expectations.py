"""tests/conformance.toml: what may be skipped and fail, and what a run says of the rest."""

import re

import pytest

from cl_driver.device.capabilities import CAPABILITIES
from conformance import expectations, features, sets
from conformance.results import Result
from tests.conftest import ROOT

KINDS = ("is absent", "is there", "other", "skipped by the CTS", "wrong in the CTS", expectations.SOMETIMES)
SKIPPED = "computeinfo/pci_bus_info"
WRONG = "extensions/cl_khr_semaphore/semaphores_negative_wait_invalid_command_queue"
SOMETIMES = "c11_atomics/svm_atomic_fetch_add"


def result(key: str, outcome: str) -> Result:
    suite, _, test = key.rpartition("/")
    return Result(suite, test, outcome, 0.1)


def test_the_table_is_well_formed():
    assert tuple(expectations.TABLE) == KINDS and expectations.OUTCOMES.keys() <= set(KINDS)
    for reasons in expectations.TABLE.values():
        for patterns in reasons.values():
            assert patterns and all(re.fullmatch(r"[\w/*]+/[\w*]+", pattern) for pattern in patterns)


def test_what_is_absent_has_its_reason_on_the_page():
    absent = features.TABLE["never"] | features.TABLE["not yet"]
    assert all(absent[name] for name in expectations.TABLE["is absent"])


def test_the_device_has_what_sub_tests_want_absent():
    claimed = {name for capability in CAPABILITIES for name in capability.extensions}
    named = {name for name in expectations.TABLE["is there"] if name.startswith("cl_")}
    assert named and named <= claimed


def test_faults_of_the_cts_are_told():
    told = (ROOT / "conformance" / "README.md").read_text()
    for kind in KINDS[3:]:
        for patterns in expectations.TABLE[kind].values():
            assert [p for p in patterns if f"`{p.rpartition('/')[2]}`" not in told] == []


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (SKIPPED, {"skip"}),
        (WRONG, {"skip", "fail"}),
        (SOMETIMES, {"pass", "fail"}),
        ("computeinfo/another", {"pass"}),
    ],
)
def test_outcomes(key, expected):
    outcomes = ("pass", "fail", "crash", "timeout", "skip")
    assert {o for o in outcomes if expectations.is_expected(result(key, o))} == expected


def test_what_is_not_expected_is_listed():
    rows = [
        result(SKIPPED, "pass"),
        result(SKIPPED, "skip"),
        result("api/a", "skip"),
        result("api/b", "pass"),
    ]
    assert expectations.unexpected(rows) == [
        f"unexpected: pass of {SKIPPED} (is absent: cl_khr_pci_bus_info)",
        "unexpected: skip of api/a (not in tests/conformance.toml)",
    ]


def test_the_suites_are_named_as_sets_name_them():
    patterns = [p for reasons in expectations.TABLE.values() for group in reasons.values() for p in group]
    suites = {p.rpartition("/")[0] for p in patterns if not p.startswith(("extensions/", "images/"))}
    assert suites <= set(sets.read_set("wimpy")["suites"])
