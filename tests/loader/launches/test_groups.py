"""Launches of many shapes at several widths, with vectors of work-items executed together."""

import pytest

from cl_driver.device.target import host_target
from tests.marks import few, few_rows


@pytest.mark.parametrize(
    "width, parts",
    few_rows([("", ""), ("8", "4x"), ("8", "3y"), ("16", ""), ("16", "4y"), ("4", "2x"), ("64", "2x")], 3),
)
def test_launches_of_many_shapes(run_client, width, parts):
    run_client("groups", env={"CL_DRIVER_WIDTH": width, "CL_DRIVER_PARTS": parts})


def test_groups_that_are_held_whole(run_client):
    run_client("groups", env={"CL_DRIVER_GROUP_CODE": "now"})


@pytest.mark.parametrize("width", few(["", "8", "16", "64"], 2))
def test_rows_that_leave_lanes_idle(run_client, environment, tmp_path, width):
    """What has enough to do gets code whose lanes go on in the next row, for groups of one size."""
    variables = {"CL_DRIVER_GROUP_CODE": "now", "CL_DRIVER_WIDTH": width, "CL_DRIVER_DUMP": str(tmp_path)}
    run_client("groups", env=variables)
    made = {path.name.removesuffix(".linear.o") for path in tmp_path.glob("*.linear.o")}
    assert "mixing" in made and "plain" not in made
    # Rows of four fill the vectors of a CPU that has no longer ones.
    assert ("required" in made) == (host_target(environment.get("CL_DRIVER_CPU", "")).vector_bits > 128)


def test_values_of_arguments(run_client):
    run_client("groups", env={"CL_DRIVER_GROUP_CODE": "now", "CL_DRIVER_VALUE_CODE": "now"})
