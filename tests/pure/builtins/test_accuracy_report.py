"""cl-driver accuracy: errors are found and reported as over their bounds, as numpy sees them."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.accuracy import reference, report
from cl_driver.accuracy.functions import FUNCTIONS, TYPES, arguments
from cl_driver.accuracy.measure import judge
from cl_driver.cli import main


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """{type: Reference}"""
    folder = tmp_path_factory.mktemp("references")
    return {name: reference.Reference(type_, folder) for name, type_ in TYPES.items()}


def rounded(function, x, type_):
    """numpy's results; by way of long double those of functions that it does not round right."""
    with np.errstate(all="ignore"):
        wide = x if function is np.sqrt else x.astype(np.longdouble)
        return function(wide).astype(type_.float)


CASES = {"exp": np.exp, "sqrt": np.sqrt, "log2": np.log2, "trunc": np.trunc}


@pytest.mark.parametrize("type_", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("name", CASES)
def test_rounded_results_are_within_half_a_unit(references, name, type_):
    inputs = arguments(name, type_, 4000, np.random.default_rng(5))
    row = judge(references[type_.name], name, inputs, rounded(CASES[name], inputs[0], type_), None)
    assert row.error <= 0.5005 and not row.is_over and row.count == len(inputs[0])


@pytest.mark.parametrize("type_", TYPES.values(), ids=TYPES)
def test_a_result_that_is_off_is_over_the_bound(references, type_):
    """By four units in one place; its argument is the worst one."""
    x = np.linspace(1, 2, 1000).astype(type_.float)
    out = rounded(np.exp, x, type_)
    out[77] += 4 * np.spacing(out[77])
    row = judge(references[type_.name], "exp", [x], out, None)
    assert row.is_over and 3.5 <= row.error <= 4.5 and row.worst == (x[77].item(),)
    assert f"Over the bound: exp of {type_.name}" in report.markdown([row], "a device")
    assert '<tr class="over">' in report.html([row], "a device", [])


@pytest.mark.parametrize("got", [np.inf, 0.0, 1e30, -np.inf])
def test_special_results_must_be_exact(references, got):
    x, out = np.array([-np.inf, np.nan], np.float32), np.array([0.0, np.nan], np.float32)
    assert judge(references["float"], "exp", [x], out, None).error == 0
    row = judge(references["float"], "exp", [x], np.array([-0.0, np.nan], np.float32), None)
    assert row.error == np.inf
    row = judge(references["float"], "exp", [x], np.array([0.0, got], np.float32), None)
    assert row.error == np.inf and row.is_over


def test_second_results_count(references):
    x = np.array([3.0, 0.75, 1e-40, -8.0], np.float32)
    fraction, exponent = np.frexp(x)
    assert judge(references["float"], "frexp", [x], fraction, exponent.astype(np.int32)).error == 0
    wrong = (exponent + np.array([0, 0, 1, 0])).astype(np.int32)
    row = judge(references["float"], "frexp", [x], fraction, wrong)
    assert row.is_over and row.worst == (x[2].item(),)


def test_functions_without_a_bound_are_never_over_it(references):
    x = np.array([5.0], np.float64)
    assert not judge(references["double"], "lgamma", [x], np.array([1.0]), None).is_over


def test_every_function_has_a_reference(references):
    for name in FUNCTIONS:
        for type_ in TYPES.values():
            assert hasattr(references[type_.name]._library, f"errors_{name}_{type_.suffix}")


def test_without_a_compiler_there_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(reference.NoReference, match="no C compiler"):
        reference.compile_reference(TYPES["float"], tmp_path)


@pytest.mark.parametrize(
    "option, value, said",
    [
        ("--functions", "sine", "unknown: sine"),
        ("--types", "quad", "unknown: quad"),
        ("--count", "0", "positive"),
    ],
)
def test_what_is_unknown_is_said(option, value, said, capsys):
    assert main(["accuracy", option, value]) == 1
    assert said in capsys.readouterr().err


def test_the_overview_goes_between_its_marks(references, tmp_path):
    x = np.array([1.0, 2.0], np.float32)
    row = judge(references["float"], "exp", [x], np.exp(x), None, 1.25)
    file = tmp_path / "README.md"
    file.write_text("before\n<!-- table -->\nold\n<!-- end of table -->\nafter\n")
    report.put_between(file, "table", report.overview([row]))
    text = file.read_text()
    assert text.startswith("before\n<!-- table -->\n| function | float: ulp") and text.endswith(
        "table -->\nafter\n"
    )
    assert "| exp | 0." in text and "| 3 | 1.25 |" in text and "old" not in text
    with pytest.raises(OSError, match="no marks"):
        report.put_between(file, "other", "")
