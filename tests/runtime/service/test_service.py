"""The compile service: sources go in, kernels that run come out."""

import pytest

from cl_driver.compiler import variants
from cl_driver.jit.executable import Executable
from tests.runtime.service_harness import EXPECTED, SOURCE, scaled


def test_source_to_a_kernel_that_runs(make_service):
    executable, log = make_service().build_source(SOURCE, "", {})
    assert executable, log
    assert scaled(executable) == EXPECTED


def test_spirv_to_a_kernel_that_runs(make_service):
    service = make_service()
    compiled = service.compile_source(SOURCE, "", {})
    assert compiled.il, compiled.log
    executable, log = service.build([compiled.il], "", {})
    assert executable, log
    assert scaled(executable) == EXPECTED
    assert executable.il == compiled.il


def test_modules_are_linked(make_service):
    service = make_service()
    library = service.compile_source(b"float twice(float x) { return 2 * x; }", "", {}).il
    main = service.compile_source(
        b"float twice(float); kernel void scale(global float *a, float f) {"
        b" a[get_global_id(0)] = twice(a[get_global_id(0)]) * f / 2; }",
        "",
        {},
    ).il
    executable, log = service.build([main], "", {})
    assert executable is None and "twice" in log
    executable, log = service.build([main, library], "", {})
    assert executable, log
    assert scaled(executable) == EXPECTED
    joined, log = service.link([library, main], "-create-library")
    assert joined, log
    executable, log = service.build([joined], "", {})
    assert executable, log
    assert scaled(executable) == EXPECTED
    again, log = service.build([executable.il], executable.options, {})
    assert scaled(again) == EXPECTED


def test_a_library_with_two_definitions_is_an_error(make_service):
    service = make_service()
    one = service.compile_source(b"float f(float x) { return x; }", "", {}).il
    two = service.compile_source(b"float f(float x) { return -x; }", "", {}).il
    joined, log = service.link([one, two], "-create-library")
    assert joined is None and "'f'" in log


def test_errors_of_the_source_are_in_the_log(make_service):
    service = make_service()
    for _ in range(2):  # a failure is not cached, and the process lives on
        executable, log = service.build_source(b"kernel void k(global float *a) { a[0] = b; }", "", {})
        assert executable is None and "'b'" in log and "1:" in log
    assert len(service._pool().processes()) == 1


def test_warnings_are_in_the_log_of_a_cached_build_too(make_service):
    source = b"#warning look out\n" + SOURCE
    logs = [make_service().build_source(source, "", {})[1] for _ in range(2)]
    assert logs[0] == logs[1] and "look out" in logs[0]


LOOP = b"""kernel void scale(global float *a, float f) {
    int at = get_global_id(0);
    float x = a[at], y = 0;
    for (int i = 0; i < (int)x; i++) y += f;
    a[at] = y;
}"""


@pytest.mark.parametrize("width", [0, 1, 2, 8, 16])
def test_both_entries_of_a_kernel_run_at_every_width(make_service, width):
    service = make_service(WIDTH=width)
    executable, log = service.build_source(LOOP, "", {})
    assert executable, log
    assert scaled(executable) == EXPECTED
    info = executable.kernel("scale")
    assert info.is_wide == (info.width > 1) and info.width == (width or executable_width(executable))
    assert info.has_narrow == info.is_wide and len(executable.objects) == 1
    if info.is_wide:
        for key in (NARROW, ITEMS):
            code = service.kernel_variant(executable.options, executable.il, "scale", key, [0] * 3, [], [])
            executable.objects[0], info.symbol = code.object, code.symbol
            assert scaled(executable) == EXPECTED


NARROW, TILED = [0, variants.SHAPES.index("items"), 0, 0], [1, variants.SHAPES.index("tiles"), 1, 0]
ITEMS = [1, variants.SHAPES.index("items"), 1, 0]


def executable_width(executable: Executable) -> int:
    """Lanes of 32 bits in a register of the target that it was made for."""
    return int(executable.target.split()[1]) // 32


def test_the_width_follows_the_kernel(make_service):
    loop = "for (int i = 0; i < n; i++)"
    source = f"""
kernel void plain(global float *a, int n) {{ a[get_global_id(0)] += n; }}
kernel void loop(global float *a, int n) {{ {loop} a[get_global_id(0)] += a[i]; }}
kernel void wide_values(global double16 *a, int n) {{ {loop} a[get_global_id(0)] += a[i]; }}
kernel __attribute__((reqd_work_group_size(2, 1, 1)))
void pairs(global float *a, int n) {{ {loop} a[i] += 1; }}
"""
    executable, log = make_service(WIDTH=0).build_source(source.encode(), "", {})
    assert executable, log
    widths = {kernel.name: kernel.width for kernel in executable.kernels}
    lanes = executable_width(executable)
    assert widths == {"plain": lanes, "loop": lanes, "wide_values": lanes // 2, "pairs": 1}


def test_what_is_not_spirv_is_an_error(make_service):
    for data in (b"", b"junk", b"CLDIL\x00\x00\x01junk", (0x07230203).to_bytes(4, "little") * 20):
        executable, log = make_service().build([data], "", {})
        assert executable is None and log


def test_kernels_compile_in_several_processes(make_service):
    service = make_service()
    if service._pool().limit < 2:
        pytest.skip("one CPU")
    body = "".join(f"x = sin(x) * {i}.5f + cos(x + {i}); " for i in range(40))
    kernels = [
        f"kernel void k{i}(global float *a) {{ float x = a[0]; {body} a[{i}] = x; }}" for i in range(6)
    ]
    executable, log = service.build_source("\n".join(kernels).encode(), "", {})
    assert executable, log
    assert [kernel.name for kernel in executable.kernels] == [f"k{i}" for i in range(6)]
    assert len(executable.objects) == 6
    assert len(service._pool().processes()) >= 2


def test_processes_get_a_program_not_once_for_each_kernel(make_service, monkeypatch):
    service = make_service(COMPILE_KERNELS="build")
    pool, asked = service._pool(), []
    if pool.limit < 2:
        pytest.skip("one CPU")
    run = pool.run

    def count_requests(requests, budget):
        asked.append(len(requests))
        return run(requests, budget)

    monkeypatch.setattr(pool, "run", count_requests)
    counts = []
    for count in (400, 800):
        lines = [f"kernel void k{i}(global int *a) {{ a[{i}] = {i}; }}\n" for i in range(count)]
        executable, log = service.build_source("".join(lines).encode(), "", {})
        assert executable, log
        assert [kernel.name for kernel in executable.kernels] == [f"k{i}" for i in range(count)]
        counts.append(asked[-1])
    assert max(counts) <= 16 * pool.limit


def test_in_process(make_service):
    service = make_service(COMPILE="inprocess")
    assert scaled(service.build_source(SOURCE, "", {})[0]) == EXPECTED
    executable, log = service.build_source(b"kernel void k() { x; }", "", {})
    assert executable is None and "'x'" in log
    assert not service._pools


def test_every_stage_can_be_looked_at(make_service, tmp_path):
    service = make_service(DUMP=tmp_path / "dump")
    for _ in range(2):  # not from the cache: there would be nothing to see
        assert service.build_source(SOURCE, "", {})[0]
        names = {path.name for path in (tmp_path / "dump").iterdir()}
        assert {"source.cl", "source.spv", "scale.ll", "scale.o"} <= names
        for path in (tmp_path / "dump").iterdir():
            path.unlink()


def test_groups_that_consist_of_tiles_have_code_of_their_own(make_service):
    """Where rows between barriers share values; if the source says the size of groups, that alone is made."""
    source = """kernel {attribute} void tile(global float *a, int n) {{
        local float all[256];
        int x = get_local_id(0), y = get_local_id(1);
        float sum = 0;
        for (int k = 0; k < n; k++) {{
            all[y * get_local_size(0) + x] = a[k];
            barrier(CLK_LOCAL_MEM_FENCE);
            sum += all[k];
            {barrier}
        }}
        a[y] = sum;
    }}"""
    barrier = "barrier(CLK_LOCAL_MEM_FENCE);"
    lanes = None
    for attribute, expected in (
        ("", True),
        ("__attribute__((reqd_work_group_size({lanes}, 8, 1)))", False),
        ("__attribute__((reqd_work_group_size({lanes}, 3, 1)))", False),
    ):
        text = source.format(attribute=attribute.format(lanes=lanes), barrier=barrier)
        service = make_service()
        executable, log = service.build_source(text.encode(), "", {})
        assert executable, log
        info = executable.kernel("tile")
        assert info.has_tiled == expected and info.has_narrow
        lanes = info.width
        rows = 1 if "3, 1" in attribute else 4
        assert (info.tile_width, info.tile_height) == (lanes, rows)
        assert len(executable.objects) == 1
        if expected:
            made_of = executable.options, executable.il
            code = service.kernel_variant(*made_of, "tile", TILED, [lanes, lanes, rows], [], [])
            assert code.object, code.symbol
    trees = """kernel void tree(local int *a) { for (int k = 8; k; k /= 2) { barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < k) a[get_local_id(0)] += a[k + get_local_id(0)]; } }"""
    executable, log = make_service().build_source(trees.encode(), "", {})
    assert executable, log
    assert not executable.kernel("tree").has_tiled
