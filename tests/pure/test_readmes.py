"""Files that documents, comments and docstrings name are there, and nobody refers to what is elsewhere."""

from __future__ import annotations

import ast
import functools
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

QUOTED = re.compile(r"`([\w./*-]+\.(?:py|c|h|cl|inc|def|md|toml))`")
NAMED = re.compile(
    r"(?<![\w./<*-])((?:\.\.?/)*[\w-]+(?:/[\w.-]+)*\.(?:py|c|h|cl|inc|def|md|toml))\b(?![\w*(/-])"
)
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

# Files that are made, belong to others, or stand for any.
MADE = (
    "answers.c",
    "answers.h",
    "dispatch.c",
    "error_names.c",
    "quirks_table.h",
    "settings_table.h",
    "shared.h",
    "platform_table.h",
    "embed_bindings.c",
    "embed_start.h",
    "accuracy.md",
    "NAME.cl",
    "KERNEL.cl",
    "FILE.cl",
    "FILE.toml",
)
BUILT = ("build/", "tests/cl/program/build/")
SYSTEM = ("Python.h", "cl.h")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Tracked text files, by path."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True, check=True)
    found = {}
    for path in files.stdout.splitlines():
        data = (ROOT / path).read_bytes() if (ROOT / path).is_file() else b"\0"
        if b"\0" not in data:
            found[path] = data.decode("utf-8", "replace")
    return found


@functools.cache
def comments_of(path: str, text: str) -> list[str]:
    """What a source says to its readers."""
    return list(_comments(path, text))


def _comments(path: str, text: str) -> Iterator[str]:
    if path.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.string
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
                yield ast.get_docstring(node) or ""
    elif path.endswith((".c", ".h", ".cl", ".inc", ".def", ".cpp")):
        yield from (match[0] for match in C_COMMENT.finditer(text))


def is_there(name: str, paths) -> bool:
    """Whether a name, with or without its folders, is that of a tracked file, or need not be."""
    clean = re.sub(r"^(\.\.?/)+", "", name)
    if "*" in name or clean.endswith(MADE) or clean.startswith(BUILT) or clean in SYSTEM:
        return True
    return any(path == clean or path.endswith("/" + clean) for path in paths)


def test_documents_name_files_that_exist(texts):
    named = [(path, name) for path in texts if path.endswith(".md") for name in QUOTED.findall(texts[path])]
    assert len(named) > 100
    assert [f"{path}: {name}" for path, name in named if not is_there(name, texts)] == []


def test_comments_name_files_that_exist(texts):
    named = [
        (path, name)
        for path, text in texts.items()
        for comment in comments_of(path, text)
        for name in NAMED.findall(comment)
    ]
    assert len(named) > 300
    assert [f"{path}: {name}" for path, name in named if not is_there(name, texts)] == []


def test_no_file_refers_to_a_document_elsewhere(texts):
    """No notes that others do not have: other documents, folders beside the repository, numbers of issues."""
    documents = re.compile(r"(?<![\w./*-])[A-Z]+\.md\b")
    others = re.compile(r"\.\./+shared\b|\bissue #?\d{1,3}\b(?! of the CTS)", re.IGNORECASE)
    found = []
    for path, text in texts.items():
        found += [f"{path}: {name}" for name in documents.findall(text) if not is_there(name, texts)]
        found += [f"{path}: {name}" for name in others.findall(text)]
    assert found == []


# Times, rates and ratios that somebody measured.
FIGURE = re.compile(
    r"\b\d[\d.,]*\s?(?:ms|µs|us|ns|GB/s|MB/s|GFLOPS|ulp)\b|\b\d+(?:\.\d+)? times (?:as|the|its)\b"
    r"|\b\d+(?:\.\d+)? ?(?:%|percent) (?:of|less|more)|(?<![\d.])\d+\.\d+ (?:to|and|of) \d+\.\d+(?![\d.])"
    r"|\b0\.\d+ of\b|\b\d+(?:\.\d+)? cycles\b"
)


def test_figures_are_on_pages_of_the_benchmarks(texts):
    """Elsewhere stands the claim, and the command that measures it."""
    pages = [path for path in texts if path.endswith(".md") and path != "CHANGELOG.md"]
    found = {path: FIGURE.findall(_prose(texts[path])) for path in pages}
    assert [path for path in pages if found[path] and path.startswith("tests/bench/results/")]
    elsewhere = {path: figures for path, figures in found.items() if figures and "/results/" not in path}
    assert elsewhere == {}


MEASURED = re.compile(
    r"\b\d[\d.,]*\s?(?:ms|us|µs|ns|GB/s|MB/s|GFLOPS)\b(?! per)|\b\w+ times as (?:long|fast|much)\b"
    r"|\b(?:third|quarter|fifth|sixth|eighth|tenth|half) (?:less|more|faster|slower|of the time|the time)\b"
)


def test_comments_of_the_product_have_no_figures(texts):
    found = {
        path: figures
        for path, text in texts.items()
        if path.startswith(("cl_driver/", "native_shim/src/"))
        for figures in [MEASURED.findall("\n".join(comments_of(path, text)))]
        if figures
    }
    assert found == {}


def _prose(text: str) -> str:
    """Without code and commands."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^    .*$|`[^`]*`", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", ["docs/nothing.md", "passes/vectorize/nothing.py", "src/kernel_launch.c"])
def test_a_name_of_nothing_is_found(texts, name):
    (found,) = NAMED.findall(f"see {name}, which says why")
    assert found == name
    assert not is_there(found, texts)
