"""codegen/layout/check_abi.py and native_shim/src/abi/check_abi.h say the same."""

from __future__ import annotations

import re
import struct

import pytest

from cl_driver.codegen.layout import check_abi
from cl_driver.passes.check import sites
from tests.conftest import ROOT

HEADER = (ROOT / "native_shim" / "src" / "abi" / "check_abi.h").read_text()
SIZES = {"uint32_t": "I", "uint16_t": "H"}


def enumerators(name: str) -> dict[str, int]:
    """The values of an enum, without the prefix."""
    body = re.search(rf"enum {name} \{{(.*?)\}}", HEADER, re.DOTALL)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    found, following = {}, 0
    for row in filter(None, (row.strip() for row in body.split(","))):
        key, _, value = row.partition("=")
        following = eval(value) if value else following
        found[key.strip().removeprefix("CLD_CHECK_")] = following
        following += 1
    return found


@pytest.mark.parametrize(
    ("enum", "module"),
    [
        ("cld_kcheck_kind", sites),
        ("cld_kcheck_flags", check_abi),
        ("cld_kcheck_space", check_abi),
        ("cld_kcheck_pixel", sites),
    ],
)
def test_numbers(enum, module):
    values = enumerators(enum)
    values.pop("SPACE", None)  # a mask, of the numbers of the spaces
    assert len(values) >= 5
    assert values == {name: getattr(module, name) for name in values}


def test_site():
    body = re.search(r"struct cld_kcheck_site \{(.*?)\}", HEADER, re.DOTALL)[1]
    fields = re.findall(r"^\s*(uint\d+_t) ([^;]+);", body, re.MULTILINE)
    form = "".join(SIZES[type_] * len(names.split(",")) for type_, names in fields)
    plain = re.sub(r"(\d)(\w)", lambda match: match[2] * int(match[1]), check_abi.SITE.lstrip("<"))
    assert form == plain
    assert struct.calcsize(check_abi.SITE) == check_abi.SITE_SIZE
    assert struct.calcsize(check_abi.SITES_HEADER) == check_abi.SITES_HEADER_SIZE
