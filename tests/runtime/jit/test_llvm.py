"""Clang's LLVM and llvmlite's: the same answers, and any number of threads at once."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor

import pytest

from cl_driver import log, settings
from cl_driver.device.target import make_target, target_of
from cl_driver.jit import emit, identity, llvm_paths, self_test
from cl_driver.jit.elf import symbols
from cl_driver.jit.errors import CompileError
from tests.conftest import ROOT
from tests.runtime.jit.test_emit import AARCH64, EVERYTHING, LOOP

TARGET = make_target(EVERYTHING)


@pytest.fixture
def library():
    """Clang's LLVM."""
    path = identity.llvm()
    if not path:
        pytest.skip(f"no {llvm_paths.LIBRARY}")
    from cl_driver.jit.llvm_library import Library

    return Library(path, (), emit.SHORT_LIST)


@pytest.mark.parametrize("passes", ["O0", "O2", "scalar", "short", "ordered"])
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
        emit.choice.__wrapped__()


def test_the_setting_chooses(monkeypatch):
    monkeypatch.setenv("CL_DRIVER_LLVM", "llvmlite")
    assert emit.choice.__wrapped__().llvm is emit.lite()
    assert identity.llvm("llvmlite") == "" and identity.llvm("/a/b.so") == "/a/b.so"
    assert identity.tools("", "llvmlite") != identity.tools("") or not identity.llvm()


class Spoiled:
    """An LLVM that makes something else of the text."""

    def __init__(self, llvm, old: str, new: str):
        self.run_here = llvm.run_here
        self.generate = lambda text, *more: llvm.generate(text.replace(old, new), *more)


HERE = target_of(settings)


SPOILED = (
    ("splat (i32 7)", "splat (i32 9)"),
    ("icmp ugt", "icmp uge"),
    ("float 0.5", "float 2.5e-1"),
    ("atomicrmw add", "atomicrmw sub"),
    ("[ 0, %entry ]", "[ 1, %entry ]"),
    ("llvm.fshl", "llvm.no_such"),
)


def failures(path: str) -> list[str]:
    """What the self-test says of an LLVM, a library or llvmlite's, and of each that spoils its code."""
    from cl_driver.jit.llvm_library import Library

    llvm = Library(path, (), emit.SHORT_LIST) if path else emit.lite()
    every = [llvm, *(Spoiled(llvm, old, new) for old, new in SPOILED)]
    return [self_test.failure(each, HERE) for each in every]


@pytest.mark.parametrize("kind", ["library", "llvmlite"])
def test_the_self_test_tells_right_code_from_wrong(kind):
    """In a process of its own, as the driver runs it: llvmlite's linker takes a mapping for each section, and
    ends the process if those do not lie within 2 GB of one another, as in one with large reservations."""
    path = identity.llvm() if kind == "library" else ""
    if kind == "library" and not path:
        pytest.skip(f"no {llvm_paths.LIBRARY}")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        right, *wrong, invalid = pool.submit(failures, path).result(timeout=100)
    assert right == ""
    for (old, _), why in zip(SPOILED, wrong, strict=False):
        assert "wrong results" in why, old
    assert "not valid" in invalid


@pytest.fixture
def said(monkeypatch) -> list[str]:
    """The lines of the log."""
    lines: list[str] = []
    monkeypatch.setattr(log, "level", 2)
    monkeypatch.setattr(log, "_others", [lambda level, text: lines.append(text)])
    return lines


def test_another_version_that_passes_is_used_and_the_log_says_so(library, monkeypatch, said, tmp_path):
    """This one counts as another: it has another name, and none is known."""
    other = tmp_path / "libLLVM.so.23.1"
    other.symlink_to(identity.llvm())
    monkeypatch.delenv("CL_DRIVER_LLVM", raising=False)
    monkeypatch.setattr(llvm_paths, "folders", lambda: [str(tmp_path)])
    monkeypatch.setattr(llvm_paths, "TESTED", 21)
    assert llvm_paths.candidates() == [str(other)]
    choice = emit.choice.__wrapped__()
    assert choice.name == str(other) and "it is not version 21, which is tested" in choice.why
    assert "has passed the self-test" in choice.why and said == [f"LLVM: {choice}"]
    lines = [line.rsplit(" ", 2)[0] for line in identity.tools("")]
    assert str(other) in lines and any("llvmlite" in line for line in lines)  # whichever of them it was


def test_another_version_that_fails_is_named_and_llvmlite_used(monkeypatch, said, tmp_path):
    broken, old = tmp_path / "libLLVM.so.24.1", tmp_path / "libLLVM-20.so"
    source = tmp_path / "broken.c"
    source.write_text(
        "void LLVMGetVersion(unsigned *a, unsigned *b, unsigned *c) { *a = 24; *b = 1; *c = 0; }"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", broken, source], check=True)
    old.write_text("no library")
    (tmp_path / "libLLVM-14.so").write_text("too old to be tried")
    monkeypatch.delenv("CL_DRIVER_LLVM", raising=False)
    monkeypatch.setattr(llvm_paths, "folders", lambda: [str(tmp_path), "/nonexistent"])
    assert llvm_paths.candidates() == [str(broken), str(old)]
    choice = emit.choice.__wrapped__()
    assert (
        choice.llvm is emit.lite() and f"there is no {llvm_paths.LIBRARY}; not used: {broken}" in choice.why
    )
    assert said[0].startswith(f"LLVM: not used: {broken} (version 24.1.0): ")
    assert said[1].startswith(f"LLVM: not used: {old}: ") and said[2] == f"LLVM: {choice}"


def test_an_llvm_that_ends_the_process_is_named(monkeypatch, tmp_path):
    deadly, source = tmp_path / "libLLVM.so.24.1", tmp_path / "deadly.c"
    source.write_text("#include <stdlib.h>\nvoid LLVMGetVersion(unsigned *a) { abort(); }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", deadly, source], check=True)
    monkeypatch.setenv("CL_DRIVER_LLVM", str(deadly))
    with pytest.raises(CompileError, match=f"CL_DRIVER_LLVM: {deadly}: .*ended with status -6"):
        emit.choice.__wrapped__()


def test_an_llvmlite_of_another_version_must_pass_too(monkeypatch):
    monkeypatch.setenv("CL_DRIVER_LLVM", "llvmlite")
    monkeypatch.setattr(llvm_paths, "TESTED", 21)
    assert "has passed the self-test" in emit.choice.__wrapped__().why
    monkeypatch.setattr(self_test, "ask", lambda name: ((22, 1, 0), "O2: wrong results"))
    with pytest.raises(CompileError, match="there is no LLVM.*llvmlite .version 22.*wrong results"):
        emit.choice.__wrapped__()


PRELOAD = """
import sys, time
sys.path.insert(0, sys.argv[1])
from cl_driver.jit import emit, llvm_paths
emit.preload()
end = time.monotonic() + 60 * bool(llvm_paths.certain(sys.argv[2]))
while not (found := "libLLVM" in open("/proc/self/maps").read()) and time.monotonic() < end:
    time.sleep(0.01)
emit.warm_up()
print(found, emit.choice().name)
"""


@pytest.mark.parametrize("setting", ["", "llvmlite"])
def test_a_library_that_will_be_used_is_loaded_before(setting):
    command = [sys.executable, "-c", PRELOAD, str(ROOT), setting]
    environment = {**os.environ, "CL_DRIVER_LLVM": setting}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    path = llvm_paths.certain(setting)
    assert done.stdout.split() == (["True", path] if path else ["False", "llvmlite"])
