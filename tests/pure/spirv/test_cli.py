"""cl-driver spirv: what it shows of a module, and its exit status."""

from __future__ import annotations

import re

import pytest

from cl_driver.cli import main

from .assembler import PREAMBLE, TYPES, assemble, kernel


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "module.spv"
    path.write_bytes(kernel("%x = OpIAdd %i32 %c1 %c2\nOpStore %p %x Aligned 4"))
    return path


def test_dis(module, capsys):
    assert main(["spirv", "dis", str(module)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("; SPIR-V 1.4")
    assert " = OpIAdd %" in text and "Aligned 4" in text and "OpEntryPoint Kernel %" in text


def test_val(module, capsys):
    assert main(["spirv", "val", str(module)]) == 0
    module.write_bytes(kernel("%x = OpFAdd %i32 %c1 %c2"))
    assert main(["spirv", "val", str(module)]) == 1
    assert "OpFAdd: the result has type int32" in capsys.readouterr().err
    module.write_bytes(b"no module at all, is it")
    assert main(["spirv", "val", str(module)]) == 1


def test_stats(module, capsys):
    assert main(["spirv", "stats", str(module)]) == 0
    text = capsys.readouterr().out
    assert "kernels: k" in text and "1 blocks, 3 instructions" in text and "OpStore" in text


def test_compile(tmp_path, capsys):
    source = tmp_path / "a.cl"
    source.write_text("kernel void k(global int *p) { *p = N; }")
    assert main(["spirv", "compile", str(source), "--options=-DN=3"]) == 0
    assert main(["spirv", "val", str(tmp_path / "a.spv")]) == 0
    assert main(["spirv", "compile", str(source)]) == 1
    assert "undeclared identifier 'N'" in capsys.readouterr().err
    assert main(["spirv", "compile", str(source), "--options=-nonsense"]) == 1


def test_val_knows_the_device(tmp_path, capsys):
    path = tmp_path / "shader.spv"
    path.write_bytes(assemble("OpCapability Tessellation" + PREAMBLE + TYPES))
    assert main(["spirv", "val", str(path)]) == 1
    assert "OpCapability: Tessellation is not supported" in capsys.readouterr().err
    assert main(["spirv", "val", "--any-device", str(path)]) == 0


def test_run_pass(tmp_path, capsys):
    path = tmp_path / "module.spv"
    text = "%v = OpVariable %pi32 Function\nOpStore %v %c7\n%x = OpLoad %i32 %v\n%y = OpIAdd %i32 %x %c1"
    path.write_bytes(kernel(f"{text}\nOpStore %p %y Aligned 4"))
    assert main(["spirv", "run-pass", str(path)]) == 0
    assert "Variable" in capsys.readouterr().out
    assert main(["spirv", "run-pass", str(path), "--pass=sroa", "--pass=simplify", "--kernel=k"]) == 0
    out = capsys.readouterr().out
    assert "; kernel k" in out and "Variable" not in out and "Store %v.0, i32 8" in out
    assert main(["spirv", "run-pass", str(path), "--pass=polish"]) == 1
    assert "no pass polish; there are simplify, sroa" in capsys.readouterr().err
    assert main(["spirv", "run-pass", str(path), "--kernel=other"]) == 1
    assert "no kernel other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"BC\xc0\xde" + bytes(40), "LLVM bitcode"),
        (b"\x7fELF" + bytes(40), "an ELF file"),
        (b"OpCapability Kernel\nOpCapability", "spirv-as"),
        (b"", "0 bytes are not a whole number of words"),
        (b"\x03\x02#\x07" + bytes(18), "22 bytes are not a whole number of words"),
        (kernel("")[:-4], "no OpFunctionEnd|reach past the end"),
    ],
)
@pytest.mark.parametrize("action", ["dis", "val", "run-pass", "stats"])
def test_bad_files(tmp_path, capsys, action, data, message):
    path = tmp_path / "bad.spv"
    path.write_bytes(data)
    status = main(["spirv", action, str(path)])
    if action == "dis" and "no OpFunctionEnd" in message:
        assert status == 0  # a module without its end can still be shown
        return
    error = capsys.readouterr().err
    assert status == 1 and re.search(message, error) and str(path) in error
