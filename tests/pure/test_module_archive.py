"""The archive of modules: it gives what Python's own finder would, and only what is as it was."""

from __future__ import annotations

import _sre
import marshal
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from cl_driver import late_patterns, module_archive, native, records
from cl_driver.jit.printed_ir import wide_masks
from cl_driver.module_archive import Archive, _compiled
from cl_driver.passes.ir.dominance import Loop
from tests.conftest import ROOT

MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
from cl_driver import module_archive
module_archive.make(sys.argv[2])
assert module_archive.is_current(sys.argv[2])
"""

# Prints which of the modules that a compiler process loads did not come from an archive.
LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
from cl_driver import module_archive
module_archive.use()
from cl_driver.compiler import pipeline
from cl_driver.service import forks, worker
print(*(name for name, module in sys.modules.items() if name.startswith("cl_driver.")
        and not isinstance(module.__spec__.loader, module_archive.Archive)))
"""


# Prints how many modules a compiler process loads, and of which it has read the code in vain.
EXPECTED = """
module_archive.expect(0)
from cl_driver.service import forks, worker
module_archive.expect(1)
from cl_driver.jit import emit
module_archive.expect(2)
from cl_driver.compiler import pipeline
module_archive.expect(2)
print(len(sys.modules), *module_archive._used[0]._read)
"""


def make(root, path) -> None:
    """By a process that has imported nothing else."""
    subprocess.run([sys.executable, "-I", "-S", "-c", MAKE, root, path], check=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """An archive of this package."""
    path = tmp_path_factory.mktemp("archive") / "modules"
    make(ROOT, path)
    return path


def test_what_it_finds_is_what_python_finds(whole):
    archive = Archive(str(whole))
    names = [name for name in archive.index if name.startswith("cl_driver.")]
    assert len(names) > 300 and "cl_driver.service.worker" in names and "cl_driver.cli" not in names
    for name in names:
        parent = name.rpartition(".")[0]
        path = archive.find_spec(parent).submodule_search_locations
        ours, theirs = archive.find_spec(name), PathFinder.find_spec(name, path)
        assert (ours.origin, ours.submodule_search_locations) == (
            theirs.origin,
            theirs.submodule_search_locations,
        )
        start, size = archive.index[name][4:]
        text = Path(ours.origin).read_bytes()
        assert marshal.loads(archive._code[start : start + size]) == _compiled(text, ours.origin, True)


def test_groups_have_the_code_of_their_modules(whole):
    archive = Archive(str(whole))
    for number, roots in enumerate(module_archive.GROUPS):
        archive._read.clear()
        archive.read_group(number)
        assert {f"cl_driver.{root}" for root in roots} <= set(archive._read)
        for name, code in archive._read.items():
            start, size = archive.index[name][4:]
            assert marshal.loads(archive._code[start : start + size]) == code


def test_what_it_has_of_texts_is_what_python_makes_of_them(whole):
    archive = Archive(str(whole))
    assert wide_masks._MASK._text in late_patterns.texts and len(late_patterns.texts) > 10
    for text in late_patterns.texts:
        made, expected = _sre.compile(*archive.of_text(text)), re.compile(text)
        assert made == expected and made.groupindex == expected.groupindex
    text = records.text_of(Loop)
    expected = compile(text, "<string>", "exec", dont_inherit=True)
    assert archive.of_text(text) == expected and "header" in text
    assert records.text_of(Archive) is None and archive.of_text("?") is None


def test_an_archive_with_other_groups_is_of_use(whole, monkeypatch):
    archive = Archive(str(whole))
    monkeypatch.setattr(module_archive, "GROUPS", (*module_archive.GROUPS, ("service.client",)))
    for number, _ in enumerate(module_archive.GROUPS):
        archive._read.clear()
        archive.read_group(number)
        assert bool(archive._read) == (number + 1 < len(module_archive.GROUPS))


TEXT = b'''"""Of a module."""
from __future__ import annotations
class A:
    """Of a class."""
    field: int = 1
    def method(self, a: int, *b: str, c: float = 2, **d: "A") -> "A":
        """Of a method."""
        raise ValueError(a, b, c, d)
def only() -> None:
    """All there is."""
class B(Exception):
    """All there is."""
def text():
    return """A value."""
'''


def test_what_nobody_asks_for_is_left_out():
    left: dict = {}
    exec(_compiled(TEXT, "f.py", True), left)
    a, method = left["A"], left["A"].method
    assert (a.__doc__, method.__doc__, left["only"].__doc__, left.get("__doc__")) == (None,) * 4
    assert method.__annotations__ == {} and a.__annotations__ == {"field": "int"}
    assert left["only"]() is None and left["text"]() == "A value."
    with pytest.raises(left["B"]):
        raise left["B"]
    with pytest.raises(ValueError) as raised:
        a().method(1, "x", c=3, e=4)
    assert raised.value.args == (1, ("x",), 3, {"e": 4}) and raised.traceback[-1].lineno == 7
    whole: dict = {}
    exec(_compiled(TEXT, "f.py", False), whole)
    assert whole["A"].__doc__ == "Of a class." and len(whole["A"].method.__annotations__) == 5


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A package of this file's own, with an archive."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "cl_driver", folder / "cl_driver", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(native.directory(), folder / "build" / "lib")
    make(folder, folder / "build" / "lib" / module_archive.NAME)
    return folder


@pytest.fixture
def copy(package):
    """That package, as it was made: what a test has changed is put back."""
    path = package / "build" / "lib" / module_archive.NAME
    data = path.read_bytes()
    yield package
    path.write_bytes(data)
    for file in (package / "cl_driver").rglob("*.py"):
        original = ROOT / file.relative_to(package)
        if not original.exists():
            file.unlink()
            continue
        now, then = file.stat(), original.stat()
        if (now.st_mtime_ns, now.st_size) != (then.st_mtime_ns, then.st_size):
            shutil.copy2(original, file)


def not_archived(root) -> list[str]:
    command = [sys.executable, "-I", "-S", "-c", LOADED, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_processes_import_all_of_a_group(copy):
    """Else what they have read is in vain."""
    text = LOADED.partition("from cl_driver.compiler")[0] + EXPECTED
    command = [sys.executable, "-I", "-S", "-c", text, str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, *left = done.stdout.split()
    assert int(count) > 300 and left == []


# Prints which modules Python itself has looked for.
LOOKED_FOR = """
looked_for = []
def find_spec(self, name, *where, real=module_archive.Archive.find_spec):
    looked_for.extend([name] if where and name.startswith("cl_driver.") else [])
    return real(self, name)
module_archive.Archive.find_spec = find_spec
for number, _ in enumerate(module_archive.GROUPS):
    module_archive.expect(number)
print(*looked_for)
"""


def test_groups_are_in_an_order_in_which_each_module_finds_what_it_imports(copy):
    """Else they are imported one inside the other, which takes longer."""
    text = LOADED.partition("from cl_driver.compiler")[0] + LOOKED_FOR
    command = [sys.executable, "-I", "-S", "-c", text, str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


BEFORE = ["cl_driver.archived_texts", "cl_driver.native", "cl_driver.module_archive"]


def test_processes_have_their_modules_from_it(copy):
    assert not_archived(copy) == BEFORE


def test_a_module_that_has_changed_is_read(copy):
    changed = copy / "cl_driver" / "passes" / "cost" / "width.py"
    changed.write_text(changed.read_text() + "\n")
    assert not_archived(copy) == [*BEFORE, "cl_driver.passes.cost.width"]
    touched = copy / "cl_driver" / "wire.py"
    os.utime(touched, (1, 1))
    assert set(not_archived(copy)) == {*BEFORE, "cl_driver.passes.cost.width", "cl_driver.wire"}


def test_what_is_no_archive_is_left_alone(copy, whole):
    data = whole.read_bytes()
    path = copy / "build" / "lib" / module_archive.NAME
    for content in (b"", b"\xff" * 8, data[:100], data[:8] + b"\0" * 64):
        path.write_bytes(content)
        assert len(not_archived(copy)) > 200
        assert not module_archive.is_current(str(path))


def test_one_for_another_python_is_left_alone(copy, whole):
    path = copy / "build" / "lib" / module_archive.NAME
    head = marshal.dumps((b"\0\0\r\n", Archive(str(whole)).index))
    path.write_bytes(len(head).to_bytes(8, "little") + head)
    assert len(not_archived(copy)) > 200


def test_a_new_module_makes_it_old(copy):
    path = copy / "build" / "lib" / module_archive.NAME
    check = "import sys; sys.path.insert(0, sys.argv[1]); from cl_driver import module_archive; "
    check += "print(module_archive.is_current(sys.argv[2]))"
    command = [sys.executable, "-I", "-S", "-c", check, copy, path]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"
    (copy / "cl_driver" / "passes" / "new.py").write_text('"""New."""\n')
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_it_is_made_for_an_installed_package(copy):
    """In the place of an empty file that is there."""
    path = copy / "build" / "lib" / module_archive.NAME
    path.write_bytes(b"")
    update = "import sys; sys.path.insert(0, sys.argv[1]); from cl_driver import module_archive; "
    update += "print(module_archive.update(sys.argv[2], sys.path))"
    command = [sys.executable, "-I", "-c", update, copy, path]
    for made in ("True", "False"):
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == made
    assert not_archived(copy) == BEFORE


def test_what_cannot_be_made_is_told(tmp_path):
    with pytest.raises(OSError, match="no/such"):
        module_archive.update(str(tmp_path / "no" / "such"), ())


def test_who_has_few_descriptors_keeps_them(copy):
    few = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (63, 63)){LOADED}"
    command = [sys.executable, "-I", "-S", "-c", few, str(copy)]
    assert len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()) > 200
