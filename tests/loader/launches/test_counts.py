"""Histograms in global memory: threads with copies of the bins.

native_shim/src/launch/privatised_histogram.c gives them out.
"""

import pytest


@pytest.mark.sanitize
@pytest.mark.parametrize(
    "width, parts, threads",
    [("", "", ""), ("16", "", "1"), ("8", "2x", "3"), ("16", "4y", ""), ("4", "", "5"), ("1", "", "")],
)
def test_histograms(run_client, width, parts, threads):
    run_client(
        "counts", env={"CL_DRIVER_WIDTH": width, "CL_DRIVER_PARTS": parts, "CL_DRIVER_THREADS": threads}
    )
