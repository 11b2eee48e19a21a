"""Private names that cl_driver/GLOSSARY.md has replaced do not come back."""

from __future__ import annotations

import io
import tokenize

import pytest

from tests.conftest import ROOT

# By the word that took their place.
RETIRED = {
    "slot": "context_load context_store context_array ContextLoad ContextStore ContextLoadItem",
    "lane constant": "KnownItems KnownLanes",
    "stride": "Steps",
    "influence region": "Detours detours in_lines",
    "contiguous": "Regularity regularity _is_regular",
    "interleaved access": "find_records load_record store_record lower_record",
    "merged stores": "find_columns store_column",
    "packed vector": "find_flat ask_flat flat_type is_flat _load_flat _late_flat _may_be_flat",
    "linear lanes": "flat_lanes FLAT_STRIDES FLAT_IDS",
    "nontemporal store": "Streams",
    "atomic reduction": "Totals",
    "privatised histogram": "OwnCounts own_counts",
    "guard": "split_inner split_inner_tiles inner_tiles",
    "unroll": "unroll_decided_loops has_decided_loops unroll_array_loops has_array_loops unroll_known",
    "linearisation": "make_live_loops",
    "lockstep": "hold_group may_hold_groups",
    "coarsening": "with_parts",
    "argument specialisation": "put_values find_value_args",
    "interleaved fields": "_put_together _take_apart",
    "shuffles": "_bring_together",
    "register": "is_held",
    "uniform branch": "Kept find_kept place_kept",
    "ABI fields": "KernelFields",
    "specialisable argument": "value_args value_arguments",
    "trial": "contest cld_contest_state",
    "tier": "launch_code",
}  # fmt: skip
OLD = {name: word for word, names in RETIRED.items() for name in names.split()}


# A part is one of several vectors of work-items that are executed together. What SPIR-V's vectors consist of
# is components, what its other composites consist of is constituents or members; any other cut makes pieces.
PARTS = frozenset((
    "codegen/access/interleaved_access.py", "codegen/access/masked_access.py", "codegen/access/prefetch.py",
    "codegen/access/store_merging.py",
    "codegen/access/stores.py", "codegen/kernel/emit.py", "codegen/kernel/wide_kernel.py",
    "codegen/layout/abi_fields.py", "codegen/layout/lanes.py", "codegen/simd/operands.py",
    "codegen/simd/vector_data.py", "passes/cost/width.py",
    "passes/groups/lockstep.py", "passes/ir/plan.py", "passes/loops/loop_versioning.py",
    "passes/cost/estimate.py", "passes/cost/launch.py", "passes/cost/locality.py",
    "passes/cost/region_visits.py", "passes/pipeline.py", "passes/analysis/shape.py",
    "passes/vectorize/coarsening.py", "passes/vectorize/lane_loops.py",
))  # fmt: skip


def names_in(source: str) -> set[str]:
    """All names of a Python source, without those in its f-strings."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.string for t in tokens if t.type == tokenize.NAME}


def found_in(source: str) -> dict[str, str]:
    """Old names in a Python source, with the words to be used instead."""
    return {name: OLD[name] for name in names_in(source) if name in OLD}


def test_old_names_are_gone():
    files = [p for name in ("cl_driver", "native_shim", "tests") for p in (ROOT / name).rglob("*.py")]
    assert len(files) > 300
    found = {path: found_in(path.read_text()) for path in files}
    assert {path: old for path, old in found.items() if old} == {}


def test_parts_are_vectors_of_work_items():
    package = ROOT / "cl_driver"
    files = [*(package / "codegen").rglob("*.py"), *(package / "passes").rglob("*.py")]
    found = {f.relative_to(package).as_posix() for f in files if names_in(f.read_text()) & {"part", "parts"}}
    assert found == PARTS


@pytest.mark.parametrize("name", ["flat_lanes", "KnownItems"])
def test_an_old_name_is_found(name):
    assert found_in(f"def f(options):\n    return options.{name}  # {name}\n") == {name: OLD[name]}
