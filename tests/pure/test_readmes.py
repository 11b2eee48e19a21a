"""What READMEs name is there."""

import re
import subprocess

from tests.conftest import ROOT

NAMED = re.compile(r"`([\w./*-]+\.(?:py|c|h|cl|inc|def|md|toml))`")

# Files that are made, belong to others, or stand for any.
MADE = (
    "answers.c",
    "answers.h",
    "dispatch.c",
    "error_names.c",
    "settings_table.h",
    "platform_table.h",
    "embed_bindings.c",
    "embed_start.h",
    "NAME.cl",
)
BUILT = ("build/", "tests/cl/program/build/")


def test_files_that_are_named_exist():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True, check=True)
    paths = [f"/{path}" for path in files.stdout.splitlines()]
    named, missing = 0, []
    for document in (path for path in paths if path.endswith(".md")):
        for name in NAMED.findall((ROOT / document[1:]).read_text()):
            if "*" in name or name.endswith(MADE) or name.startswith(BUILT):
                continue
            named += 1
            if not any(path.endswith("/" + name.lstrip("./")) for path in paths):
                missing.append(f"{document[1:]}: {name}")
    assert named > 100
    assert missing == []
