"""The folders of native_shim/src: includes and symbols lead downwards only, in the order of build.FOLDERS."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pure.test_imports import cycles

sys.path.insert(0, str(ROOT / "native_shim"))
import build as shim  # noqa: E402

SOURCES = ROOT / "native_shim" / "src"
MOST_FILES = 20
GENERATED = {
    "answers.h",
    "platform_table.h",
    "quirks_table.h",
    "settings_table.h",
    "shared.h",
}  # native_shim/gen, of no folder
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def leads_up(user: str, used: str) -> bool:
    """Whether a use by one folder of another is against the order."""
    return shim.FOLDERS.index(used) > shim.FOLDERS.index(user)


def wrong_includes(folder: Path) -> list[str]:
    """Includes of the files below a folder that lead upwards, to no folder, or to no file."""
    wrong = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".c", ".h", ".def")):
        user = path.parent.name
        for name in INCLUDE.findall(path.read_text()):
            used, _, _ = name.partition("/")
            if name in GENERATED:
                continue
            if used not in shim.FOLDERS or not (folder / name).is_file() or leads_up(user, used):
                wrong.append(f"{user}/{path.name} includes {name}")
    return wrong


def uses_of(objects: Iterable[tuple[str, Path]]) -> dict[tuple[str, str], list[str]]:
    """(file, file whose functions or variables it uses): these. Of objects that are each of a folder."""
    owners: dict[str, str] = {}
    uses: dict[tuple[str, str], None] = {}
    for folder, path in objects:
        command = ["nm", "--extern-only", "--format=posix", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            symbol, kind = line.split()[:2]
            if kind in "Uw":
                uses[f"{folder}/{path.stem}", symbol] = None
            else:
                owners[symbol] = f"{folder}/{path.stem}"
    found: dict[tuple[str, str], list[str]] = {}
    for user, symbol in uses:
        if symbol in owners:
            found.setdefault((user, owners[symbol]), []).append(symbol)
    return found


def wrong_symbols(uses: dict[tuple[str, str], list[str]]) -> list[str]:
    """Uses of functions and variables of folders further up."""
    return [
        f"{user} uses {symbol} of {owner}"
        for (user, owner), symbols in uses.items()
        if leads_up(user.partition("/")[0], owner.partition("/")[0])
        for symbol in symbols
    ]


def test_every_file_is_in_a_folder_of_the_order():
    shim.sources()
    for path in SOURCES.rglob("*"):
        if path.is_file():
            assert path.parent.parent == SOURCES, path
            assert path.parent.name in shim.FOLDERS, path


@pytest.mark.parametrize("folder", shim.FOLDERS)
def test_no_folder_is_large(folder):
    files = list((SOURCES / folder).iterdir())
    assert files
    assert len(files) <= MOST_FILES


def test_includes_lead_downwards():
    assert wrong_includes(SOURCES) == []


@pytest.fixture(scope="module")
def uses():
    """Of the objects as they are linked: a prototype in the wrong place helps nobody."""
    if not shutil.which(os.environ.get("CC", "cc")):
        pytest.skip("no C compiler")
    shim.build(ROOT / "build" / "lib")
    builder = shim.Builder(ROOT / "build" / "lib", ROOT / "build")
    objects = [(path.parent.name, builder.object_of(path)) for path in shim.sources()]
    objects += [("base", builder.objects / name) for name in ("answers.o", "error_names.o")]
    objects.append(("icd", builder.objects / "dispatch.o"))
    return uses_of(objects)


def test_symbols_lead_downwards(uses):
    assert wrong_symbols(uses) == []


# Files that need one another, with the reason.
CYCLES = [
    # Threads of the host's count as such from their first use of the driver to their end, which is said.
    {"base/log", "base/own_thread", "base/thread"},
    # What is sent to other machines, which memory is there, and what comes back: lists under one lock.
    {
        "cluster/choice",
        "cluster/connection",
        "cluster/copies",
        "cluster/cut",
        "cluster/images",
        "cluster/launch",
        "cluster/sending",
        "cluster/start",
        "cluster/sums",
        "cluster/transfers",
        "cluster/uses",
        "cluster/whole",
    },
    # A command that is done sets off those that waited for it, which threads execute and others wait for.
    # It may be the last one that a kernel enqueued, which is done then, too.
    {
        "runtime/callback",
        "runtime/command",
        "runtime/execute",
        "runtime/family",
        "runtime/pool",
        "runtime/wait",
        "runtime/worker",
    },
]


def test_files_do_not_need_one_another_but_where_they_must(uses):
    edges: dict[str, set[str]] = {}
    for user, owner in uses:
        if user != "icd/dispatch":  # generated: has the address of every entry point
            edges.setdefault(user, set()).add(owner)
    assert sorted(cycles(edges)) == [sorted(cycle) for cycle in CYCLES]


def test_the_readme_has_the_order():
    text = (ROOT / "native_shim" / "README.md").read_text()
    assert tuple(re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)) == shim.FOLDERS


def test_include_guards_are_named_as_their_headers():
    for path in sorted(SOURCES.glob("*/*.h")):
        guard = re.search(r"^#ifndef (\w+)$", path.read_text(), re.MULTILINE)[1]
        assert guard == f"CLD_{path.stem.upper()}_H", path


def test_what_leads_upwards_is_found(tmp_path):
    low, high = tmp_path / shim.FOLDERS[1], tmp_path / shim.FOLDERS[2]
    low.mkdir()
    high.mkdir()
    (low / "low.h").write_text("int low(void);\n")
    (low / "low.c").write_text(f'#include "{high.name}/high.h"\nint low(void) {{ return high(); }}\n')
    (high / "high.h").write_text(f'#include "{low.name}/low.h"\nint high(void);\n')
    (high / "high.c").write_text('#include "elsewhere.h"\nint high(void) { return low(); }\n')
    assert wrong_includes(tmp_path) == [
        f"{low.name}/low.c includes {high.name}/high.h",
        f"{high.name}/high.c includes elsewhere.h",
    ]
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    (high / "high.c").write_text("int low(void);\nint high(void) { return low(); }\n")
    objects = []
    for path in (low / "low.c", high / "high.c"):
        target = path.with_suffix(".o")
        subprocess.run(["cc", f"-I{tmp_path}", "-c", str(path), "-o", str(target)], check=True)
        objects.append((path.parent.name, target))
    assert wrong_symbols(uses_of(objects)) == [f"{low.name}/low uses high of {high.name}/high"]
