"""Compiled objects that have only what their kernels reach, until they are linked with others."""

import os
import time

import pytest

from cl_driver.api import on_demand
from cl_driver.api.errors import CLError
from cl_driver.api.program import DeviceBuild
from cl_driver.service import client
from cl_driver.service.files import contents_of
from tests.pure.frontend.test_reached import functions_of
from tests.runtime.service_harness import EXPECTED, SOURCE, scaled

BODY = "".join(f"x = x * {n} + (x >> {n % 31});\n" for n in range(40))
MANY = "".join(f"int f{n}(int x) {{ {BODY} return x; }}\n" for n in range(200)).encode()


@pytest.fixture
def include(tmp_path):
    """A header, and the options with which it is found."""
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "factor.h").write_text("#define FACTOR f\n")
    os.utime(folder / "factor.h", (time.time() - 10,) * 2)
    return folder, f"-I {folder}"


WITH_HEADER = (
    b"""
#ifdef __has_include
#if __has_include("other.h")
#include "other.h"
#endif
#endif
#include "factor.h"
"""
    + MANY
    + SOURCE.replace(b"*= f", b"*= FACTOR")
)


def test_what_no_kernel_reaches_is_compiled_when_it_is_asked_for(make_service):
    service = make_service()
    result = service.compile_source(MANY + SOURCE, "", {})
    assert result.cut and "f0" not in functions_of(result.il)
    executable, log = service.build([result.il], "", {})
    assert executable, log
    assert scaled(executable) == EXPECTED
    il, log = service.complete(result.cut)
    assert {"f0", "f199", "scale"} <= functions_of(il), log
    service = make_service()
    again = service.compile_source(MANY + SOURCE, "", {})
    assert again.il == result.il and again.cut
    assert service.complete(again.cut)[0] == il and not service._pools


@pytest.mark.parametrize(
    "source", [SOURCE, MANY[:500] + b"return x; }" + SOURCE, MANY], ids=["no", "few", "kernels"]
)
def test_what_is_little_and_what_has_no_kernels_is_all_there(make_service, source):
    if source.startswith(MANY[:500]) and source != MANY:
        source = MANY[: MANY.index(b"int f3")] + SOURCE
    result = make_service().compile_source(source, "", {})
    assert result.il and result.cut is None


def test_a_program_that_asks_for_the_time_is_all_there(make_service):
    source = MANY + b"constant char at[] = __TIME__;" + SOURCE
    result = make_service().compile_source(source, "", {})
    assert result.cut is None and "f0" in functions_of(result.il)


def test_headers_of_the_call(make_service):
    service = make_service()
    result = service.compile_source(WITH_HEADER, "", {"factor.h": b"#define FACTOR f\n"})
    assert result.cut, result.log
    il, log = service.complete(result.cut)
    assert il and "f0" in functions_of(il), log


@pytest.mark.parametrize("change", ["nothing", "another", "gone", "folder"])
@pytest.mark.parametrize("warm", [False, pytest.param(True, marks=pytest.mark.long)])
def test_files_are_those_of_the_compilation(make_service, include, monkeypatch, change, warm):
    folder, options = include
    if change == "folder":
        monkeypatch.chdir(folder.parent)
        options = f"-I {folder.name}"
    service = make_service()
    result = service.compile_source(WITH_HEADER, options, {})
    assert result.cut, result.log
    if warm:
        service = make_service()
        result = service.compile_source(WITH_HEADER, options, {})
        assert result.cut and not service._pools
    if change == "another":
        (folder / "factor.h").write_text("#error not this one\n")
    elif change == "gone":
        (folder / "factor.h").unlink()
        folder.rmdir()
    elif change == "folder":
        monkeypatch.chdir("/")
    il, log = service.complete(result.cut)
    assert il and {"f0", "scale"} <= functions_of(il), log
    executable, log = service.build([il], "", {})
    assert executable, log
    assert scaled(executable) == EXPECTED


def test_a_file_that_was_not_there_is_an_error(make_service, include, monkeypatch):
    folder, options = include
    service = make_service()
    result = service.compile_source(WITH_HEADER, options, {})
    (folder / "other.h").write_text("#define FACTOR 1\n")
    il, log = service.complete(result.cut)
    assert il is None and "other.h" in log
    build = DeviceBuild()
    build.cut = result.cut
    monkeypatch.setattr(client, "service", lambda: service)
    with pytest.raises(CLError, match="other.h"):
        on_demand.complete(build)
    assert "other.h" in build.log


def test_what_is_kept_of_files(tmp_path):
    """Regular files that are not too large. One that became a pipe is not waited for."""
    header, pipe, large = tmp_path / "a.h", tmp_path / "pipe.h", tmp_path / "large.h"
    header.write_bytes(b"int f(int);\n")
    os.mkfifo(pipe)
    with open(large, "wb") as file:
        file.truncate((16 << 20) + 1)
    assert contents_of([str(header)]) == {str(header): b"int f(int);\n"}
    for other in (pipe, large, tmp_path / "none.h", tmp_path):
        assert contents_of([str(header), str(other)]) is None
