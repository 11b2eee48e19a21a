"""The zoo's table of sources, what programs it finds, and which kernels are held back."""

import pytest

from tests.zoo import table

GOOD = """
[[source]]
name = "one"
folder = "/nowhere"
[[source.programs]]
files = ["*.cl"]
exclude = ["no*.cl"]
prefix = ["common.h"]
options = ["-D A=1", "-D B=2"]
includes = ["include"]
local = [[64], [8, 8]]
"""


def _written(tmp_path, text):
    path = tmp_path / "table.toml"
    path.write_text(text)
    return path


def test_the_committed_table_is_sound():
    sources = table.read(table.HERE / "sources.toml")
    assert len(sources) >= 25
    assert all(source.kind != "folder" for source in sources)
    assert all(source.where.startswith("https://") for source in sources if source.kind == "git")


def test_a_group_makes_programs(tmp_path):
    (source,) = table.read(_written(tmp_path, GOOD))
    (tmp_path / "a.cl").write_text("__kernel void k() {}\r\n")
    (tmp_path / "b.cl").write_text("void not_one() {}")
    (tmp_path / "no.cl").write_text("kernel void k() {}")
    (tmp_path / "common.h").write_text("// common\n")
    found = table.programs(source, tmp_path)
    assert [program.title for program in found] == ["one:a.cl", "one:a.cl#1"]
    assert [program.options.split(" -I")[0] for program in found] == ["-D A=1", "-D B=2"]
    assert all(program.text == "// common\n__kernel void k() {}\n" for program in found)
    assert all(program.options.endswith(f"-I {tmp_path} -I {tmp_path / 'include'}") for program in found)
    assert found[0].local == {1: [64], 2: [8, 8]}


@pytest.mark.parametrize(
    "change, why",
    [
        (('folder = "/nowhere"', ""), "needs a name and one of"),
        (('folder = "/nowhere"', 'folder = "/a"\npypi = "b"'), "needs a name and one of"),
        (('folder = "/nowhere"', 'git = "a"\ncommit = "main"'), "commit of 40 digits"),
        (('folder = "/nowhere"', 'folder = "/a"\nfolders = 1'), "unknown folders"),
        (('files = ["*.cl"]', 'file = ["*.cl"]'), "unknown file"),
        (('name = "one"', 'name = "one"\nfolder = "x"\n[[source]]\nname = "one"'), "a name stands twice"),
    ],
)
def test_a_wrong_table_says_what_is_wrong(tmp_path, change, why):
    with pytest.raises(ValueError, match=why):
        table.read(_written(tmp_path, GOOD.replace(*change)))


def test_a_tenth_is_held_back_and_always_the_same():
    names = [f"kernel_{number}" for number in range(5000)]
    chosen = [name for name in names if table.held_back("source:file.cl", name)]
    assert 400 < len(chosen) < 600
    assert chosen == [name for name in names if table.held_back("source:file.cl", name)]
    assert chosen != [name for name in names if table.held_back("source:other.cl", name)]
    assert [number for number in range(30) if table.held_back("a:b", f"kernel_{number}")] == [6, 26, 27]
