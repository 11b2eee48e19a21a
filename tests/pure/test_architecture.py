"""cl_driver/ARCHITECTURE.md is true: what the compiler makes, what it names, its recipes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

import numpy as np
import pytest

from cl_driver.interp.run import Local, run
from cl_driver.spirv.reading import reader
from tests.conftest import ROOT
from tests.pages import stages
from tests.pages.page import PAGE, blocks_of, differing, section, with_blocks

TEXT = PAGE.read_text()
RECIPES = re.findall(r"^### (An? .*)$", section(TEXT, "## How to add ..."), re.MULTILINE)
ROWS = re.findall(r"^\| (\w[^|]*\?) \|([^|]*)\|([^|]*)\|$", section(TEXT, "## Where is ...?"), re.MULTILINE)
HAS_X86 = os.uname().machine == "x86_64"
DEFINED = r"(?:\bdef |\bclass |[\w*)] ?\*?){name}\(|\b{name}(?:\[\])? = "  # in Python, and in C


@pytest.fixture(scope="module")
def compiled() -> stages.Stages:
    return stages.Stages()


@pytest.fixture(scope="module")
def made(compiled) -> dict[str, str]:
    """All blocks; what LLVM makes only where it has the version of the page, else as the page has it."""
    blocks, there = compiled.blocks(), blocks_of(TEXT)
    is_same = HAS_X86 and stages.llvm_version() in there["assembly"]
    return blocks | (compiled.machine_blocks() if is_same else {"assembly": there["assembly"]})


def test_blocks_are_what_the_compiler_makes(made):
    """After a change that is meant: make pages."""
    assert differing(TEXT, made) == []


@pytest.mark.parametrize("name", sorted(blocks_of(TEXT)))
def test_a_block_that_differs_is_found(made, name):
    block = blocks_of(TEXT)[name]
    assert differing(with_blocks(TEXT, made | {name: block.replace("4", "5", 1) + " "}), made) == [name]


def test_a_block_that_is_missing_is_found(made):
    without = re.sub(r"<!-- made: llvm -->.*?<!-- end -->", "", TEXT, flags=re.DOTALL)
    assert differing(without, made) == ["llvm"]


@pytest.mark.skipif(not HAS_X86, reason="LLVM may lack the back end")
def test_machine_code_of_any_llvm(compiled):
    """Whatever its version: three operands of memory, two of them in fused additions, whole vectors."""
    text = compiled.assembly(compiled.entry)
    assert len(re.findall(r"vfmadd\d+ps\s.*%ymm", text)) == 2
    assert "vmovntps" in text


def test_spirv_is_what_clang_makes():
    """The same text by the same clang; by another one a kernel with the same instructions that matter."""
    here, kept = stages.spirv_text(stages.compile_kernel()), stages.spirv_text(stages.MODULE.read_bytes())
    if stages.clang_version() == stages.MADE_BY.read_text().strip():
        assert here == kept
    for word in ("OpControlBarrier", "OpBranchConditional", " fma ", "OpIEqual"):
        assert (word in here) == (word in kept)


def test_spirv_is_of_the_source():
    """Whatever clang there is: the module computes what the source says."""
    n, groups = 8, 3
    source = np.random.default_rng(1).random(n * groups + 2, np.float32)
    out = np.zeros(n * groups, np.float32)
    arguments = [source, out, Local(4 * (n + 2))]
    module = reader.read(stages.MODULE.read_bytes())
    run(module, stages.NAME, arguments, global_size=(n * groups,), local_size=(n,))
    wanted = 0.25 * source[:-2] + 0.5 * source[1:-1] + 0.25 * source[2:]
    assert np.allclose(out, wanted, rtol=1e-6)


def test_twelve_questions():
    """Each has an answer in two files at most, or in a recipe; what is to be found there is defined there."""
    assert len(ROWS) == 12
    for question, *cells in ROWS:
        for cell in filter(None, (cell.strip() for cell in cells)):
            link = re.fullmatch(r"this page: \[.+\]\(#(.+)\)", cell)
            if link is not None:
                assert link[1] in {_anchor(recipe) for recipe in RECIPES}, question
                continue
            file, name = re.fullmatch(r"`([\w./]+)`(?:: `(\w+)(?:\(\))?`)?", cell).groups()
            text = (PAGE.parent / file).read_text()
            assert name is None or re.search(DEFINED.format(name=name), text, re.MULTILINE), (question, cell)


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_contents_lead_to_sections():
    anchors = {_anchor(heading) for heading in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)}
    links = re.findall(r"\]\(#([^)]+)\)", TEXT)
    assert len(links) > 10
    assert [link for link in links if link not in anchors] == []


def test_functions_that_are_named_exist():
    sources = "\n".join(path.read_text() for path in _sources())
    names = set(re.findall(r"`(\w+)\(\)`", TEXT))
    assert len(names) > 15
    defined = re.findall(DEFINED.format(name=f"({'|'.join(names)})"), sources, re.MULTILINE)
    assert names - {name for pair in defined for name in pair} == set()


def _sources():
    files = subprocess.run(["git", "ls-files", "cl_driver", "native_shim"], cwd=ROOT, text=True,
                           capture_output=True, check=True)  # fmt: skip
    return [ROOT / path for path in files.stdout.split() if path.endswith((".py", ".c", ".cl"))]


def test_there_are_recipes():
    wanted = "entry point, extension, built-in function, SPIR-V instruction, pass, image format, CPU feature"
    assert [recipe.split(" ", 1)[1] for recipe in RECIPES] == wanted.split(", ")


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_are_whole(recipe):
    """What the recipe's command prints is what its table lists. A file that mentions the example and is not
    listed is one that a reader would forget."""
    text = section(TEXT, f"### {recipe}")
    (command,) = re.findall(r"^    (git grep .*)$", text, re.MULTILINE)
    listed = re.findall(r"^\| `([\w./-]+)` \| \S.* \|$", text, re.MULTILINE)
    printed = subprocess.run(shlex.split(command), cwd=ROOT, text=True, capture_output=True, check=True)
    assert sorted(listed) == sorted(printed.stdout.split())
