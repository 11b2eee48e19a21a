"""The numbers of messages are the same in C and Python."""

from __future__ import annotations

import re

from cl_driver.cluster import messages
from tests.conftest import ROOT


def test_c_has_the_same_numbers():
    text = (ROOT / "native_shim" / "src" / "cluster" / "messages.h").read_text()
    found = {name: int(number) for name, number in re.findall(r"CLD_(\w+)_MESSAGE = (\d+)", text)}
    assert len(found) == 24
    assert found == {name: getattr(messages, name) for name in found}
    assert f"CLD_MOST_MESSAGE_BYTES = {messages.MOST_BYTES >> 20} << 20" in text
    assert f"CLD_MOST_INLINE_BYTES = {messages.MOST_INLINE_BYTES >> 10} << 10" in text
    assert f"CLD_PLACES = {messages.PLACES} " in text
    sets = (ROOT / "native_shim" / "src" / "base" / "worker_set.h").read_text()
    assert f"CLD_MOST_WORKERS = {messages.MOST_WORKERS}," in sets
    frames = [messages.BATCH_FRAME, messages.TAKEN_FRAME, messages.FREE_FRAME, messages.WORKER_FRAME]
    names = re.findall(r"CLD_(\w+)_FRAME,", text)
    assert names == ["BATCH", "TAKEN", "FREE", "WORKER"] and frames == [0, 1, 2, 3]
    assert messages.NOBODY == 2**32 - 1 and "#define CLD_NOBODY UINT32_MAX" in text
