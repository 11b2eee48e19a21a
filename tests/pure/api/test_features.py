"""conformance/features.md: it is what the driver's tables say, and every line has a test."""

import re
from pathlib import Path

import pytest

from cl_driver.api import device_info
from cl_driver.api.device import Device
from cl_driver.device.capabilities import CAPABILITIES, Capability
from cl_driver.device.cpu import Cpu
from cl_driver.device.limits import Limits
from conformance import features
from tests.conftest import ROOT

ABSENT = {**features.TABLE["not yet"], **features.TABLE["never"]}


@pytest.fixture(scope="module")
def device():
    """Of another machine than any that is likely to run this."""
    cpu = Cpu("aarch64", "a name", "a vendor", frozenset(), 123, 45)
    return features.device_like(Limits(cpu, (), 6789 << 20), (0, 1, 2, 3, 4))


def test_the_page_is_up_to_date(device):
    """After a change that is meant: make pages. It is the same whatever the machine."""
    assert features.PAGE.read_text() == features.page(device) == features.page(Device((0, 1)))


def test_every_test_is_there():
    missing = {where for where in features.TABLE["tests"].values() if not (ROOT / "tests" / where).is_file()}
    assert not missing
    assert (ROOT / "tests" / features.EACH).is_file() and (ROOT / "tests" / features.QUERIES_TEST).is_file()


def test_no_test_is_of_a_capability_that_is_not():
    names = {capability.name for capability in CAPABILITIES} | {"icd"}
    assert features.TABLE["tests"].keys() <= names


def test_nothing_that_is_absent_is_claimed():
    claimed = {n for c in CAPABILITIES for n in (*c.extensions, *c.features, *c.spirv, *c.spirv_extensions)}
    assert not claimed & ABSENT.keys()


def test_every_query_has_a_name_and_a_line():
    names = features.query_names()
    assert names.keys() == device_info.DEVICE_INFO.keys()
    page = features.PAGE.read_text()
    assert not [name for name in names.values() if f"`{name}`" not in page]
    assert set(features.TABLE["queries"]["of the machine"]) <= set(names.values())


def test_a_claim_changes_the_page(device, monkeypatch):
    new = Capability("new", extensions={"cl_khr_new": (1, 2, 3)}, features=("__opencl_c_new",))
    monkeypatch.setattr(features, "CAPABILITIES", (*CAPABILITIES, new))
    monkeypatch.setitem(features.TABLE["tests"], "new", "some/test.py")
    page = features.page(device)
    assert "| `cl_khr_new` | 1.2.3 | `tests/some/test.py` |" in page
    assert "| `__opencl_c_new` | `tests/some/test.py` |" in page


def test_answers_are_written_as_what_they_are(device):
    answers = features.answers(device)
    assert answers["CL_DEVICE_ADDRESS_BITS"] == (64).to_bytes(4, "little")
    page = features.page(device)
    assert "| `CL_DEVICE_ADDRESS_BITS` | 64 |" in page
    assert "| `CL_DEVICE_PROFILE` | `FULL_PROFILE` |" in page
    assert re.search(r"\| `CL_DEVICE_SVM_CAPABILITIES` \| 0x[0-9a-f]+ \|", page)
    assert "| `CL_DEVICE_BUILT_IN_KERNELS` | empty |" in page


def test_the_paths_of_the_page_are_in_the_repository():
    paths = set(re.findall(r"`(tests/[\w/.]+)`", features.PAGE.read_text()))
    assert paths and all((ROOT / Path(path)).is_file() for path in paths)
