"""What a module gets between LLVM's passes and its code generator."""

import pytest

from cl_driver.device.target import Target
from cl_driver.jit.printed_ir import byte_rotates, change, kept_order, long_blocks, register_order, wide_masks

TARGET = Target("x86_64-unknown-linux-gnu", ("+avx2",), 256)


def forbidden():
    raise AssertionError("nothing may help, so nothing is printed")


@pytest.fixture
def steps(monkeypatch):
    """The changes that are made, each of which leaves its name."""
    made = []

    def stand_in(module, name):
        monkeypatch.setattr(module, name, lambda text, *_: made.append(name) or f"{text} {name}")
        if hasattr(module, "may_help"):
            monkeypatch.setattr(module, "may_help", lambda *_: True)

    stand_in(wide_masks, "widen")
    stand_in(byte_rotates, "fence")
    stand_in(register_order, "reorder")
    stand_in(kept_order, "keep")
    stand_in(long_blocks, "cut")
    return made


def test_each_change_has_what_the_one_before_it_made(steps, monkeypatch):
    monkeypatch.setattr(long_blocks, "LEAST_TEXT", 10)
    printed = []
    made = change.changed("x" * 10, lambda: printed.append(1) or "now", TARGET, "ordered")
    assert made == "now widen reorder fence keep cut" and len(printed) == 1
    steps.clear()
    assert change.changed("x" * 10, lambda: "now", TARGET, "short") == "now widen fence keep cut"
    assert change.changed("x" * 10, lambda: "now", TARGET, "O2") == "now widen fence cut", "LLVM's own order"
    assert change.changed("x" * 9, lambda: "now", TARGET, "ordered") == "now widen fence", "short text"


def test_nothing_is_printed_for_nothing(monkeypatch):
    for module in (wide_masks, byte_rotates):
        monkeypatch.setattr(module, "may_help", lambda *_: False)
    assert change.changed("define void @f()", forbidden, TARGET, "ordered") is None


def test_a_change_that_finds_nothing_leaves_the_text(steps, monkeypatch):
    monkeypatch.setattr(wide_masks, "widen", lambda *_: None)
    assert change.changed("", lambda: "now", TARGET, "short") == "now fence"
    monkeypatch.setattr(byte_rotates, "fence", lambda *_: None)
    assert change.changed("", lambda: "now", TARGET, "short") is None
