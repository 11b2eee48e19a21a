"""Clang's LLVM and llvmlite's: the same answers, and any number of threads at once."""

from __future__ import annotations

import re
import threading

import pytest

from cl_driver.device.target import make_target
from cl_driver.jit import emit, identity
from cl_driver.jit.elf import symbols
from cl_driver.jit.errors import CompileError
from tests.runtime.jit.test_emit import AARCH64, EVERYTHING, LOOP

TARGET = make_target(EVERYTHING)


@pytest.fixture
def library():
    """Clang's LLVM."""
    path = identity.llvm()
    if not path:
        pytest.skip(f"no {identity.LLVM}")
    from cl_driver.jit.llvm_library import Library

    return Library(path, (), emit.SHORT_LIST)


@pytest.mark.parametrize("passes", ["O0", "O2", "scalar", "short"])
def test_both_make_the_same_function(library, passes):
    for llvm in (library, emit.lite()):
        data, _ = llvm.generate(LOOP, TARGET, passes, 2)
        assert [s.name for s in symbols(data) if s.is_global and s.section] == ["kernel"]
        text = llvm.generate(LOOP, TARGET, passes, 2, "assembly")[0].decode()
        assert bool(re.search(r"vfmadd[0-9]+ps.*%zmm", text)) == (passes == "O2")
        comments, module = llvm.generate(LOOP, TARGET, passes, 2, "comments")
        assert b"Loop" in comments and "define void @kernel" in module


def test_threads_do_not_disturb_one_another(library):
    expected = {target: library.generate(LOOP, target, "O2", 2)[0] for target in (TARGET, AARCH64)}
    found = []

    def work(target):
        found.extend((target, library.generate(LOOP, target, "O2", 2)[0]) for _ in range(20))

    threads = [threading.Thread(target=work, args=(target,)) for target in [TARGET, AARCH64] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and all(data == expected[target] for target, data in found)


@pytest.mark.parametrize("path", ["/nowhere/libLLVM.so", "libc.so.6"])
def test_a_library_that_is_none_is_named(monkeypatch, path):
    monkeypatch.setenv("CL_DRIVER_LLVM", path)
    with pytest.raises(CompileError, match="CL_DRIVER_LLVM"):
        emit._llvm.__wrapped__()


def test_the_setting_chooses(monkeypatch):
    monkeypatch.setenv("CL_DRIVER_LLVM", "llvmlite")
    assert emit._llvm.__wrapped__() is emit.lite()
    assert identity.llvm("llvmlite") == "" and identity.llvm("/a/b.so") == "/a/b.so"
    assert identity.tools("", "llvmlite") != identity.tools("") or not identity.llvm()
