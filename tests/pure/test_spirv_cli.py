"""cl-driver spirv: what it shows of a module, and its exit status."""

from __future__ import annotations

import pytest

from cl_driver.cli import main

from .spirv_assembler import kernel


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
