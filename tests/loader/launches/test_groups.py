"""Launches of many shapes at several widths, with vectors of work-items executed together."""

import pytest

from tests.marks import few_rows


@pytest.mark.parametrize(
    "width, parts",
    few_rows([("", ""), ("8", "4x"), ("8", "3y"), ("16", ""), ("16", "4y"), ("4", "2x"), ("64", "2x")], 3),
)
def test_launches_of_many_shapes(run_client, width, parts):
    run_client("groups", env={"CL_DRIVER_WIDTH": width, "CL_DRIVER_PARTS": parts})


def test_groups_that_are_held_whole(run_client):
    run_client("groups", env={"CL_DRIVER_GROUP_CODE": "now"})


def test_values_of_arguments(run_client):
    run_client("groups", env={"CL_DRIVER_GROUP_CODE": "now", "CL_DRIVER_VALUE_CODE": "now"})
