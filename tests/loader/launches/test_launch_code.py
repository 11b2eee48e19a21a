"""Code that is made for some launches only, when there is one (native_shim/src/kernel/variant_choice.c)."""

import pytest

from tests.marks import IS_EMULATED, few, needs_kernel

# kind of launch: what must have been made besides the kernel itself
LAUNCHES = {
    "whole": set(),
    "odd": {"loose.rest"},
    "short": {"tied.narrow"},
    "ragged": {"tied.any"},
    "tiles": {"chained.tiled", "chained.any"},
    "threads": {"loose.rest"},
    "devices": {"loose.rest"},
}


@pytest.mark.parametrize("width", few(["", "4", "8", "16"], 1))
@pytest.mark.parametrize("launches", LAUNCHES)
def test_code_is_made_when_it_is_needed(run_client, tmp_path, launches, width):
    dump = tmp_path / "dump"
    variables = {"CL_DRIVER_WIDTH": width, "CL_DRIVER_DUMP": str(dump)}
    if IS_EMULATED and launches != "tiles":  # no code for what takes long, as all does there
        variables["CL_DRIVER_GROUP_CODE"] = "off"
    run_client("launch_code", launches, env=variables)
    made = {path.name.removesuffix(".o") for path in dump.glob("*.o")}
    assert made - {"loose", "tied", "chained"} == LAUNCHES[launches]


@pytest.mark.parametrize("width", ["8", "16"])
def test_rows_that_fill_no_vector_have_code_of_their_own(run_client, tmp_path, width):
    """Not for full vectors, too, which would be twice as much to compile."""
    run_client("launch_code", "below", env={"CL_DRIVER_WIDTH": width, "CL_DRIVER_DUMP": str(tmp_path)})
    assert {path.name for path in tmp_path.glob("tied.*.o")} == {"tied.short.o"}
    run_client("launch_code", "ragged", env={"CL_DRIVER_WIDTH": width, "CL_DRIVER_DUMP": str(tmp_path)})
    short, any_ = ((tmp_path / f"tied.{code}.ll").stat().st_size for code in ("short", "any"))
    assert short < 0.9 * any_


def test_one_work_item_at_a_time_needs_no_more(run_client, tmp_path):
    for launches in LAUNCHES:
        run_client("launch_code", launches, env={"CL_DRIVER_WIDTH": "1", "CL_DRIVER_DUMP": str(tmp_path)})
    assert {path.name for path in tmp_path.glob("*.o")} == {"loose.o", "tied.o", "chained.o"}


def test_no_code_for_tiles_where_a_setting_says_so(run_client, tmp_path):
    environment = {"CL_DRIVER_GROUP_CODE": "off", "CL_DRIVER_DUMP": str(tmp_path)}
    run_client("launch_code", "tiles", env=environment)
    assert not list(tmp_path.glob("*.tiled.o"))


@needs_kernel
@pytest.mark.parametrize("runtime", ["embedded", "process"])
def test_code_for_launches_is_kept(run_client, tmp_path, runtime):
    """The second process finds all in the cache; what is not there, its compiler could not make."""
    environment = {"CL_DRIVER_RUNTIME": runtime, "CL_DRIVER_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        for launches in ("odd", "short", "ragged"):
            run_client("launch_code", launches, env=environment)
        environment["CL_DRIVER_COMPILE_MEMORY"] = "1M"
    assert run_client("launch_code", "devices", env=environment, check=False).returncode


@needs_kernel
def test_a_launch_whose_code_cannot_be_made_fails(run_client, tmp_path):
    environment = {"CL_DRIVER_CACHE_DIR": str(tmp_path / "cache"), "CL_DRIVER_WIDTH": "8"}
    run_client("launch_code", "whole", env=environment)
    environment |= {"CL_DRIVER_COMPILE_MEMORY": "1M", "CL_DRIVER_LOG": "errors"}
    run_client("launch_code", "whole", env=environment)
    failed = run_client("launch_code", "odd", env=environment, check=False)
    assert "is -5, not CL_SUCCESS" in failed.stderr and "cl_driver[" in failed.stderr
