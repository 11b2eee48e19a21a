"""Option strings: what each option sets, how strings are quoted, what is refused."""

from __future__ import annotations

import pytest

from cl_driver.frontend.options import BUILD, COMPILE, LINK, BuildOptions, OptionError, parse, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  -w\t-g\n", ["-w", "-g"]),
        ('-D "A=b c"', ["-D", "A=b c"]),
        ('-DA="b c"', ["-DA=b c"]),
        ('-DS=\\"abc\\"', ['-DS="abc"']),
        ("-DSEP=','", ["-DSEP=','"]),
        ("'-D A' -I'x y'", ["-D A", "-Ix y"]),
        ('-I "/a b/c"', ["-I", "/a b/c"]),
        ("-I C:\\path", ["-I", "C:\\path"]),
        ("-I /a\\ b", ["-I", "/a b"]),
        ('-DE=""', ["-DE="]),
        ("-w\0", ["-w"]),
    ],
)
def test_tokens(text, expected):
    assert tokens(text) == expected


def test_defaults():
    assert parse(None) == parse("") == BuildOptions()
    assert parse("").standard == (1, 2)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("-D A -DB=2 -D C=x=y", "definitions", (("A", "1"), ("B", "2"), ("C", "x=y"))),
        ("-D F(x)=x", "definitions", (("F(x)", "x"),)),
        ("-DA=1 -U A", "definitions", (("A", "1"), ("A", None))),
        ("-I a -Ib", "include_folders", ("a", "b")),
        ("-w", "warnings_off", True),
        ("-Werror", "warnings", ("-Werror",)),
        ("-cl-std=CL1.1", "standard", (1, 1)),
        ("-cl-std=CL3.0", "standard", (3, 0)),
        ("-cl-std=CL3.1", "standard", (3, 1)),
        ("-cl-single-precision-constant", "single_precision_constant", True),
        ("-cl-denorms-are-zero", "denorms_are_zero", True),
        ("-cl-opt-disable", "opt_disable", True),
        ("-cl-fp32-correctly-rounded-divide-sqrt", "fp32_correctly_rounded_divide_sqrt", True),
        ("-cl-mad-enable", "mad_enable", True),
        ("-cl-no-signed-zeros", "no_signed_zeros", True),
        ("-cl-unsafe-math-optimizations", "mad_enable", True),
        ("-cl-finite-math-only", "finite_math_only", True),
        ("-cl-fast-relaxed-math", "unsafe_math_optimizations", True),
        ("-cl-fast-relaxed-math", "finite_math_only", True),
        ("-cl-uniform-work-group-size", "uniform_work_group_size", True),
        ("-cl-no-subgroup-ifp", "no_subgroup_ifp", True),
        ("-cl-kernel-arg-info", "kernel_arg_info", True),
        ("-g", "debug", True),
        ("-x spir", "spir", True),
        ("-cl-strict-aliasing", "opt_disable", False),
    ],
)
def test_compile_options(text, name, value):
    for stage in (BUILD, COMPILE):
        assert getattr(parse(text, stage), name) == value


@pytest.mark.parametrize(
    "text",
    [
        "-invalid",
        "-cl-std=CL3.2",
        "-cl-std=CL9.9",
        "-cl-std=",
        "-D",
        "-D 3x",
        "-D =1",
        "-I",
        "-x c",
        '-D "A',
        "file.cl",
        "-cl-bogus",
        "-spir-std=3",
        "-create-library",
    ],
)
def test_refused(text):
    with pytest.raises(OptionError):
        parse(text)


def test_link_options():
    assert parse("-create-library -enable-link-options", LINK).create_library
    assert parse("-cl-fast-relaxed-math", LINK).finite_math_only
    for text in ("-D A", "-I x", "-cl-std=CL1.2", "-Werror"):
        with pytest.raises(OptionError):
            parse(text, LINK)


def test_options_that_a_link_has_to_know():
    assert parse("-DA -g -cl-std=CL1.2").code_options() == frozenset()
    assert parse("-cl-no-signed-zeros", LINK).code_options() == {"-cl-no-signed-zeros"}
    assert parse("-cl-unsafe-math-optimizations").code_options() == {
        "-cl-unsafe-math-optimizations",
        "-cl-no-signed-zeros",
        "-cl-mad-enable",
    }


def test_options_are_values():
    assert parse("-w  -g") == parse("-g -w")
    assert len({parse("-w"), parse("-w "), parse("")}) == 2
    assert "warnings_off" in repr(parse("-w"))


def test_a_definition_ends_at_a_newline():
    assert parse('-D "A=1\n2"').definitions == (("A", "1"),)
