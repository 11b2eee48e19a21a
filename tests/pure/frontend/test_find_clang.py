"""Which clang is taken: what has its name and is none is passed over, and nobody runs it twice."""

from __future__ import annotations

import os

import pytest

from cl_driver import log, native
from cl_driver.frontend import clang, effort, find_clang, opencl_c, resident
from cl_driver.frontend.options import parse
from cl_driver.jit import clang_paths, identity

SOURCE = b"kernel void k(global int *p) { *p = 1; }"


def compiled(source: bytes = SOURCE, setting: str = "", **more) -> clang.FrontendResult:
    return opencl_c.compile(source, parse(""), language=clang.Language(), clang=setting, **more)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(native, "packages", list)  # no ziglang
    find_clang.forget()
    yield
    find_clang.forget()


@pytest.fixture
def said(monkeypatch) -> list[str]:
    """The lines of the log."""
    lines: list[str] = []
    monkeypatch.setattr(log, "level", 1)
    monkeypatch.setattr(log, "_others", [lambda level, text: lines.append(text)])
    return lines


@pytest.fixture
def impostor(tmp_path, monkeypatch):
    """impostor(script): a clang-22 that comes before all others and writes a line to `runs` when it runs."""
    folder = tmp_path / "first"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(script: str, name: str = "clang-22", interpreter: str = "/bin/sh"):
        path = folder / name
        path.write_text(f'#!{interpreter}\necho "$1" >> {tmp_path}/runs\n{script}\n')
        path.chmod(0o755)
        return path

    make.runs = lambda: (tmp_path / "runs").read_text().splitlines()
    return make


@pytest.mark.parametrize("way", ["alone", "loaded"])
@pytest.mark.parametrize(
    "script", ["exit 1", "exit 0", "echo no SPIR-V", "echo no such file >&2; exit 127", "kill -SEGV $$"]
)
def test_what_is_no_clang_is_passed_over(impostor, said, monkeypatch, way, script):
    monkeypatch.setattr(resident, "_tries", 3 * (way == "loaded"))
    path = impostor(script)
    try:
        assert compiled().spirv is not None
        runs = impostor.runs()
        assert runs and len([line for line in said if line.startswith(f"{path} is not a clang: it ")]) == 1
        assert compiled(SOURCE + b"//").spirv is not None
        assert impostor.runs() == runs
        assert str(path) not in find_clang.find().path
        assert f"but for {path}" in find_clang.explain(find_clang.find())
    finally:
        resident.end()


def test_one_that_cannot_be_started(impostor, said):
    impostor("", interpreter="/no/such/shell")
    assert compiled().spirv is not None and "could not be run" in said[0]


def test_one_that_hangs(impostor, said, monkeypatch):
    monkeypatch.setattr(find_clang, "_STALLED_STRANGER", 1)
    monkeypatch.setattr(find_clang, "_ANSWERS", 1)
    impostor("exec sleep 60")
    assert compiled().spirv is not None
    assert "did nothing for 1 s" in said[0]


@pytest.mark.long
def test_a_clang_that_is_slow_has_its_time(impostor, said, monkeypatch):
    monkeypatch.setattr(find_clang, "_STALLED_STRANGER", 1)
    path = impostor('[ "$1" = --version ] || sleep 3; exec /usr/bin/clang-22 "$@"')
    assert compiled().spirv is not None
    assert find_clang.find().path == str(path) and said == []


def test_the_next_may_be_of_another_name(impostor, monkeypatch, tmp_path):
    monkeypatch.setattr(clang_paths, "FIXED_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path / "first"))
    impostor("exit 1")
    real = impostor('exec /usr/bin/clang-22 "$@"', "clang-23")
    assert compiled().spirv is not None and find_clang.find().path == str(real)


def test_when_none_is_left_the_log_says_what_was_wrong_with_each(impostor, monkeypatch, tmp_path):
    monkeypatch.setattr(clang_paths, "FIXED_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path / "first"))
    first, second = impostor("exit 1"), impostor("exit 2", "clang-21")
    done = compiled()
    assert done.spirv is None and "apt install clang" in done.log
    assert f"{first}: not a clang: it ended with status 1" in done.log
    assert f"{second}: not a clang" in done.log


def test_the_one_that_the_setting_names_has_no_substitute(impostor):
    path = impostor("exit 1")
    for _ in range(2):
        done = compiled(setting=str(path))
        assert done.spirv is None and str(path) in done.log and "not a clang" in done.log
    assert "CL_DRIVER_CLANG names" in compiled(setting="/no/clang").log


def test_a_wrong_program_makes_no_clang_suspect(impostor):
    path = impostor('exec /usr/bin/clang-22 "$@"')
    assert "undeclared" in compiled(b"kernel void k() { x = 1; }").log
    assert "--version" not in impostor.runs()
    assert find_clang.find().path == str(path)


def test_a_crash_of_clang_is_no_reason_to_take_another(impostor, said):
    path = impostor('[ "$1" = --version ] || kill -SEGV $$; exec /usr/bin/clang-22 "$@"')
    assert "clang crashed (signal 11)" in compiled().log
    assert find_clang.find().path == str(path) and said == []


def test_all_folders_are_looked_through_but_those_of_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(clang_paths, "FIXED_FOLDERS", (str(tmp_path / "c"),))
    paths = [tmp_path / folder / "clang-22" for folder in "abc"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("")
        path.chmod(0o755)
    monkeypatch.chdir(tmp_path / "a")
    monkeypatch.setenv("PATH", f":.:../b:{tmp_path}/b:{tmp_path}/no:{tmp_path}/a")
    assert clang_paths.candidates() == [str(paths[1]), str(paths[0]), str(paths[2])]
    assert clang_paths.candidates("clang-22") == [str(paths[1])]
    monkeypatch.delenv("PATH")
    assert clang_paths.candidates() == [str(paths[2])]


def test_an_entry_of_the_cache_names_all_that_may_be_in_use(impostor):
    path = impostor("exit 1")
    names = [line.rsplit(" ", 2)[0] for line in identity.tools("")]
    assert names[:2] == [str(path), "/usr/bin/clang-22"]
    made_with = identity.tools("")
    assert identity.unchanged(made_with)
    impostor('exec /usr/bin/clang-22 "$@"')
    assert not identity.unchanged(made_with)
    assert effort.STALLED >= find_clang._STALLED_STRANGER
