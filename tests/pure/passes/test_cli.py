"""cl-driver passes: what it prints, and its exit status."""

from __future__ import annotations

import ast
from pathlib import Path

from cl_driver.cli import main
from cl_driver.passes import pipeline

SOURCE = """kernel void first(global float *a, local float *t) { int i = get_global_id(0);
    t[i] = a[i]; barrier(CLK_LOCAL_MEM_FENCE); if (t[0] > 1) a[i] = sin(t[i ^ 1]); }
kernel void second(global int *a) { a[0] = NUMBER; }
"""


def test_plans_are_printed(tmp_path, capsys):
    source = tmp_path / "a.cl"
    source.write_text(SOURCE)
    assert main(["passes", str(source), "--options=-DNUMBER=77"]) == 0
    out = capsys.readouterr().out
    assert "kernel first: 2 regions" in out
    assert "i32 77" in out
    arguments = ["passes", str(source), "first", "--width=8", "--options=-DNUMBER=1", "--after=linearise"]
    assert main([*arguments, "--times"]) == 0
    out, err = capsys.readouterr()
    assert "second" not in out
    assert "; stride 4" in out
    assert " mask " in out
    assert "; after linearise" in err
    assert "ms with verifier" in err


def test_what_is_wrong_is_said(tmp_path, capsys):
    source = tmp_path / "a.cl"
    source.write_text(SOURCE)
    assert main(["passes", str(source)]) == 1
    assert "NUMBER" in capsys.readouterr().err
    assert main(["passes", str(source), "third", "--options=-DNUMBER=1"]) == 1
    assert "no kernel third" in capsys.readouterr().err
    assert main(["passes", str(source), "--width=6"]) == 1
    for parts in ("", "4", "y", "4z", "x4", "0x", "10x", "-1x"):
        assert main(["passes", str(source), f"--parts={parts}", "--options=-DNUMBER=1"]) == 1
        assert f"'{parts}' for --parts must be a number" in capsys.readouterr().err
    (tmp_path / "b.spv").write_bytes(b"nonsense")
    assert main(["passes", str(tmp_path / "b.spv")]) == 1
    assert main(["passes", str(tmp_path / "none.spv")]) == 1


def test_passes_are_named_as_their_files():
    """What --after takes, and what a dump says, is the file to open."""
    tree = ast.parse(Path(pipeline.__file__).read_text())
    calls = [c for c in ast.walk(tree) if isinstance(c, ast.Call) and getattr(c.func, "id", "") == "run_pass"]
    names = {c.args[0].value for c in calls}
    assert len(calls) > 25
    assert names <= {path.stem for path in Path(pipeline.__file__).parent.glob("*/*.py")}
    assert set(pipeline.OPTIONAL) <= names
