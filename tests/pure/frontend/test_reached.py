"""Functions that no kernel reaches: left out where nothing is linked, but not what is wrong with them."""

import pytest

from cl_driver.frontend import resident
from cl_driver.spirv import link
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from tests.pure.frontend.test_clang import compiled

KERNEL = "kernel void k(global int *o) { o[0] = used(o[0]); }\n"


def program(functions: int, more: str = "") -> str:
    """Functions, of which the kernel reaches two."""
    many = "".join(f"int f{n}(int x) {{ return x * {n % 7 + 2} + {n}; }}\n" for n in range(functions))
    return f"{many}{more}__attribute__((noinline)) int used(int x) {{ return f7(x) + 1; }}\n{KERNEL}"


def functions_of(spirv: bytes) -> set[str]:
    return {function.name for function in reader.read(spirv).functions}


def test_a_whole_program_has_what_its_kernel_reaches():
    whole = compiled(program(1000), is_whole=True)
    names = functions_of(whole.spirv)
    assert {"k", "used"} <= names and not names & {"f0", "f8", "f999"}
    assert whole.log == ""


def test_the_module_does_not_grow_with_what_is_not_reached():
    small, large = (compiled(program(n), is_whole=True) for n in (1000, 2000))
    assert len(small.spirv) == len(large.spirv)


def test_what_is_inlined_everywhere_is_compiled_once():
    """clang 22 has the body of a kernel in a function that the kernel calls."""
    source = program(1000) + "kernel void again(global int *o) { k(o); k(o + 1); }\n"
    whole, part = (functions_of(compiled(source, is_whole=is_whole).spirv) for is_whole in (True, False))
    assert whole == {"k", "again", "used"}
    assert whole < part


@pytest.mark.parametrize("options", ["", "-g", "-cl-opt-disable"])
def test_large_functions_that_are_plainly_inline_are_there(options):
    """C99 has no definition of them here; every other driver inlines them, on which programs rely."""
    loops = "".join(
        f"for (int i = 0; i < x + {n}; i++) {{ s = s * 3 + i * {n}; switch (s & 7) {{ case 0: s += 9; break; "
        f"case 1: s *= 7; break; case 3: s -= {n}; break; case 5: s /= 3; }} }}\n"
        for n in range(1, 9)
    )
    source = f"inline int big(int x) {{ int s = 0;\n{loops}return s; }}\n" + program(1000)
    seldom = "".join(f"if (r % {n} == 1) {{ r = r * {n} ^ x; " for n in range(2, 12))
    seldom += "r += big(x + 2); " + "}" * 10 + " return r"
    source = source.replace("return f7(x) + 1", f"int r = big(x) + big(x + 1); {seldom}")
    module = reader.read(compiled(source, options, is_whole=True).spirv)
    link.link([module], lambda name: False)


def test_what_may_be_linked_has_everything():
    assert {"f0", "f999", "used"} <= functions_of(compiled(program(1000)).spirv)


def test_a_program_without_kernels_has_everything():
    source = program(1000).removesuffix(KERNEL)
    assert {"f0", "f999", "used"} <= functions_of(compiled(source, is_whole=True).spirv)


def test_a_function_that_is_missing_is_missed():
    source = program(1000, "int lost(int);\nint dead(int x) { return lost(x); }\n")
    module = reader.read(compiled(source, is_whole=True).spirv)
    with pytest.raises(SpirvError, match="undefined function 'lost'"):
        link.link([module], lambda name: False)


@pytest.mark.parametrize("source", [program(1000, "int dead(int x) { return y; }\n"), program(1000, "}\n")])
def test_errors_are_those_of_any_program(source):
    whole, other = (compiled(source, is_whole=is_whole) for is_whole in (True, False))
    assert whole.spirv is None and whole.log == other.log


def test_warnings_are_those_of_any_program():
    source = program(1000, "int dead(int x) { int unused; return x; }\n")
    whole, other = (compiled(source, "-Wall", is_whole=is_whole) for is_whole in (True, False))
    assert "unused variable" in whole.log and whole.log == other.log


def test_files_that_it_reads_are_known(tmp_path):
    header = tmp_path / "many.h"
    header.write_text(program(1000).removesuffix(KERNEL))
    result = compiled(f'#include "many.h"\n{KERNEL}', f"-I {tmp_path}", is_whole=True)
    assert str(header) in result.files.read
    assert "f8" not in functions_of(result.spirv)


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("more", ["", "// include\n"])
def test_clang_runs_once_whatever_the_text_says(monkeypatch, more, stays):
    """Of programs of any size; by a clang of its own and by one that stays."""
    monkeypatch.setattr(resident, "_tries", 3 if stays else 0)
    runs = []
    real = resident.run
    monkeypatch.setattr(resident, "run", lambda *given: runs.append(given) or real(*given))
    try:
        for functions in (10, 1000):
            for _ in range(3):  # the second time a clang holds
                runs.clear()
                result = compiled(program(functions, more), is_whole=True)
                assert len(runs) == 1 and {"f0", "f9"}.isdisjoint(functions_of(result.spirv))
    finally:
        resident.end()


def test_a_clang_that_stays_tells_whole_programs_from_others(monkeypatch):
    monkeypatch.setattr(resident, "_tries", 3)
    try:
        for is_whole in (True, False) * 3:
            names = functions_of(compiled(program(10), is_whole=is_whole).spirv)
            assert ("f0" in names) is not is_whole
    finally:
        resident.end()


def test_functions_that_name_one_another_are_left_out():
    both = "int odd(int x); int even(int x) { return x ? odd(x - 1) : 1; }\n"
    both += "int odd(int x) { return x ? even(x - 1) : 0; }\n"
    assert functions_of(compiled(program(10, both), is_whole=True).spirv).isdisjoint({"odd", "even"})


def large(functions: int) -> str:
    """Functions of many instructions, which nobody reaches but by a link."""
    body = "".join(f"x = x * {n} + (x >> {n % 31});\n" for n in range(40))
    return "".join(f"int f{n}(int x) {{ {body} return x; }}\n" for n in range(functions)) + (
        f"__attribute__((noinline)) int used(int x) {{ return f7(x) + 1; }}\n{KERNEL}"
    )


@pytest.fixture
def loaded():
    """A clang that is loaded; it can say that it has left something out."""
    before = resident._tries
    resident.allow()
    yield
    resident.end()
    resident._tries = before


def test_what_perhaps_is_whole_is_cut_if_there_is_much_to_cut(loaded):
    source = large(200)
    result = compiled(source, is_whole=None)
    assert result.files.is_cut and result.log == ""
    assert {"k", "used"} <= functions_of(result.spirv) and "f0" not in functions_of(result.spirv)
    assert result.spirv == compiled(source, is_whole=True).spirv
    assert "f0" in functions_of(compiled(source).spirv)


@pytest.mark.parametrize(
    "source", [program(1000), large(200).removesuffix(KERNEL)], ids=["little", "kernels"]
)
def test_what_perhaps_is_whole_has_everything(loaded, source):
    """Where there is little to cut, and where there is no kernel."""
    result = compiled(source, is_whole=None)
    assert not result.files.is_cut and {"f0", "used"} <= functions_of(result.spirv)


def test_a_clang_that_cannot_say_so_cuts_nothing():
    result = compiled(large(200), is_whole=None)
    assert not result.files.is_cut and "f0" in functions_of(result.spirv)


def test_files_are_read_as_they_were(tmp_path, loaded):
    """What is written in their place, or that they are gone."""
    from cl_driver.frontend import opencl_c
    from cl_driver.frontend.options import parse

    one, two = tmp_path / "one.h", tmp_path / "folder" / "two.h"
    two.parent.mkdir()
    one.write_text('#include "folder/two.h"\n#define WRONG\n')
    source = b'#include "one.h"\nkernel void k(global int *a) { a[0] = THE_NUMBER; }'
    before = {str(one): b'#include "folder/two.h"\n', str(two): b"#define THE_NUMBER 77\n"}
    options = parse(f"-I {tmp_path}")
    result = opencl_c.compile(source, options, as_before=before)
    assert result.spirv and (77).to_bytes(4, "little") in result.spirv, result.log
    assert {str(one), str(two)} <= set(result.files.read)
    assert opencl_c.compile(source, options).spirv is None
