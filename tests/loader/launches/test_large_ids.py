"""Launches whose global ids do not fit what vectorised code assumes of them."""

import pytest


@pytest.mark.parametrize("width", ["", "1", "4", "16"])
def test_ids_around_powers_of_two(run_client, width):
    run_client("large_ids", env={"CL_DRIVER_WIDTH": width})
