"""Accounts of bytes and operations (passes/traffic) that cannot be made: the kernel is built all the same."""

from __future__ import annotations

import pytest

from cl_driver import log
from cl_driver.compiler import pipeline
from cl_driver.compiler.source import Context, compile_source
from cl_driver.device.target import host_target
from cl_driver.passes.traffic import prepare

PLAIN = "kernel void k(global int *a) { a[get_global_id(0)] += 1; }"
# Factors of bytes that a signed number of 64 bits does not have.
FAR = """kernel void k(global int *a, ulong n) {
    a[get_global_id(0) * 0x3000000000000001UL * n + n * 0x7000000000000001UL * get_global_id(1)] += 1;
}"""


@pytest.fixture
def built():
    def build(source: str):
        context = Context(host_target(), "", {"CL_DRIVER_PROFILE": "1"})
        program = pipeline.prepare(compile_source(source.encode(), {}, context).spirv, context)
        return pipeline.kernel(program, "k")

    return build


@pytest.fixture
def lines(monkeypatch):
    """What is logged."""
    found: list[str] = []
    monkeypatch.setattr(log, "level", 1)
    monkeypatch.setattr(log, "_others", [lambda _, text: found.append(text)])
    return found


def test_an_account_that_is_made(built, lines):
    info, _ = built(PLAIN)
    assert info.account and not lines


@pytest.mark.parametrize("error", [KeyError("v.1"), RecursionError("too deep"), AssertionError()])
def test_an_unexpected_error(built, lines, monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(prepare, "account_of", fails)
    info, objects = built(PLAIN)
    assert info.account == [] and objects
    (line,) = lines
    assert line.startswith("kernel k has no account of its bytes and operations: ")
    assert type(error).__name__ in line


def test_numbers_that_launches_cannot_have(built, lines):
    info, objects = built(FAR)
    assert info.account == [] and objects
    assert len(lines) == 1 and "OverflowError" in lines[0]
