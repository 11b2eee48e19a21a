"""Tests of kernels of k(global int *a, global int *b, local int *t, int n), as runner.py runs them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

HEAD = "kernel void k(global int *a, global int *b, local int *t, int n) {\n"
IDS = "  int i = get_global_id(0), l = get_local_id(0);\n"
ITEMS, GROUP = 64, 16


def kernel_tests(
    wrong: dict[str, tuple[str, str]], right: dict[str, str]
) -> tuple[Callable, Callable, Callable]:
    """The fixture `found`, test_report and test_no_report of a module.

    wrong: {name: (the kernel's body behind IDS, what is told of it)}; right: {name: a body that is right}.
    """

    @pytest.fixture(scope="module")
    def found(reports):
        bodies = {("wrong", name): body for name, (body, _) in wrong.items()}
        bodies |= {("right", name): body for name, body in right.items()}
        kernels = [(" ".join(key), f"{HEAD}{IDS}{body}\n}}\n", ITEMS, GROUP) for key, body in bodies.items()]
        return reports(kernels)

    @pytest.mark.parametrize("name", wrong)
    def test_report(found, name):
        assert found["wrong " + name] == "cl_driver check: kernel 'k': " + wrong[name][1]

    @pytest.mark.parametrize("name", right)
    def test_no_report(found, name):
        assert found["right " + name] == ""

    return found, test_report, test_no_report
