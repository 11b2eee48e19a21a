"""Executables as bytes: round trips, and an error of one kind for all else."""

import random

import pytest

from cl_driver import wire
from cl_driver.jit.executable import (
    ArgInfo,
    Executable,
    ExecutableError,
    Globals,
    KernelInfo,
    is_executable,
)


def make_globals(size=0, align=1, image=b"", fixups=(), variables=()) -> Globals:
    return Globals(size=size, align=align, image=image, fixups=list(fixups), variables=list(variables))


def make_arg(**changes) -> ArgInfo:
    values = {
        "kind": 1,
        "size": 8,
        "align": 8,
        "offset": 0,
        "constant": False,
        "known": True,
        "name": "a",
        "type_name": "float*",
        "address_qualifier": 0x119B,
        "access_qualifier": 0x11A3,
        "type_qualifier": 0,
        "image_type": 0,
        "depth": False,
        "written": False,
        "only_read": False,
    }
    return ArgInfo(**(values | changes))


def make_kernel(**changes) -> KernelInfo:
    values = {
        "name": "k",
        "has_entry": True,
        "symbol": "cld_kernel_k",
        "object_index": 0,
        "args": [make_arg()],
        "block_size": 16,
        "local_static": 0,
        "scratch_fixed": 0,
        "scratch_per_item": 0,
        "required_local_size": [0, 0, 0],
        "max_local_size": [0, 0, 0],
        "max_group_size": 4096,
        "width": 1,
        "uses_printf": False,
        "zeroes_local": False,
        "terminable": False,
        "uniform_groups": True,
        "is_wide": False,
        "has_narrow": True,
        "has_rest": True,
        "has_tiled": False,
        "tiles_first": False,
        "has_more": False,
        "has_linear": False,
        "reads_ahead": False,
        "tries_items": False,
        "uses_pipes": False,
        "enqueues": False,
        "is_block": False,
        "takes_turns": False,
        "blocks": [],
        "private_size": 0,
        "attributes": "",
        "sub_group_size": 0,
        "sub_groups_per_group": 0,
        "sub_group_width": 16,
        "uses_sub_groups": False,
        "tile_width": 16,
        "tile_height": 4,
        "free_groups": True,
        "exchanged": False,
        "once_along": [1, 2],
        "aligned_groups": False,
        "repeated_dimensions": 0,
        "most_group_items": 512,
        "counted": 0,
        "counted_size": 0,
        "apart_args": [],
        "specialisable_args": [],
        "account": [],
        "extents": [],
        "remark": "",
    }
    return KernelInfo(**(values | changes))


def make_executable(**changes) -> Executable:
    values = {
        "target": "x86_64",
        "options": "-w",
        "names": ["k", "second"],
        "block_count": 0,
        "weights": [100, 70],
        "kernels": [make_kernel()],
        "objects": [b"\x7fELF"],
        "globals": make_globals(),
        "il": b"spirv",
        "functions": [],
    }
    return Executable(**(values | changes))


def test_an_executable_survives():
    executable = make_executable()
    executable.add(make_kernel(name="second"), [b"object 2"])
    executable.globals = make_globals(8, 8, b"12345", [[0, 8]], [["v", 4, 4, 3], ["w", 0, 8, 0]])
    executable.functions = [["f", 16]]
    data = executable.to_bytes()
    again = Executable.from_bytes(data)
    assert again == executable and is_executable(data)
    assert again.kernel("second").object_index == 1 and again.kernel("third") is None
    assert again.kernels[0].args[0].type_name == "float*"


def test_kernels_may_be_missing():
    """Those that are compiled when they are asked for."""
    executable = make_executable(names=["k", "l", "second"], weights=[3, 2, 1])
    assert executable.missing() == {"l": 2, "second": 1}
    executable.add(make_kernel(name="second"), [b"object 2"])
    assert executable.missing() == {"l": 2} and executable.kernel("l") is None
    assert Executable.from_bytes(executable.to_bytes()) == executable
    executable.add(make_kernel(name="l"), [b"object 3"])
    assert executable.missing() == {}


def test_kernels_may_have_no_object():
    """They have their code made by launches, and no other that stands for an entry."""
    plain = dict.fromkeys(("has_narrow", "has_rest"), False) | {"has_entry": False, "most_group_items": 0}
    executable = make_executable(kernels=[make_kernel(**plain)], objects=[])
    assert Executable.from_bytes(executable.to_bytes()) == executable
    for name in ("has_narrow", "has_rest", "has_tiled", "has_more", "has_linear"):
        with pytest.raises(ExecutableError):
            Executable.from_bytes(
                make_executable(kernels=[make_kernel(**plain | {name: True})], objects=[]).to_bytes()
            )


def test_fields_must_be_named_and_complete():
    with pytest.raises(TypeError):
        make_kernel(unknown=1)
    with pytest.raises(KeyError):
        ArgInfo(kind=1)


@pytest.mark.parametrize("changes", [
    {"objects": []},
    {"kernels": [make_kernel(), make_kernel()]},
    {"kernels": [make_kernel(args=[make_arg(offset=12)])]},
    {"kernels": [make_kernel(args=[make_arg(kind=0, size=17)])]},
    {"kernels": [make_kernel(args=[make_arg(kind=9)])]},
    {"kernels": [make_kernel(args=[make_arg(align=3)])]},
    {"kernels": [make_kernel(args=[make_arg(offset=-8)])]},
    {"kernels": [make_kernel(symbol="a\0b")]},
    {"kernels": [make_kernel(required_local_size=[1, 2])]},
    {"kernels": [make_kernel(local_static=1 << 50)]},
    {"kernels": [make_kernel(uses_printf=1)]},
    {"kernels": [make_kernel(repeated_dimensions=4)]},
    {"kernels": [make_kernel(name="")]},
    {"names": ["second"], "weights": [1]},
    {"names": ["k", "k"]},
    {"names": ["k", "a\0b"]},
    {"names": ["k"]},
    {"weights": [1, -1]},
    {"objects": ["text"]},
    {"il": "text"},
    {"globals": make_globals(4, 4, b"12345")},
    {"globals": make_globals(8, 3)},
    {"globals": make_globals(8, 8, fixups=[[1, 0]])},
    {"globals": make_globals(8, 8, fixups=[[0, 9]])},
    {"globals": make_globals(8, 8, fixups=[[0]])},
    {"globals": make_globals(8, 8, variables=[["v", 4, 5, 3]])},
    {"globals": make_globals(8, 8, variables=[["v", 9, 0, 3]])},
    {"globals": make_globals(8, 8, variables=[["v", 0, -1, 3]])},
    {"globals": make_globals(8, 8, variables=[["v", 0, 8, 4]])},
    {"globals": make_globals(8, 8, variables=[["a\0b", 0, 8, 3]])},
    {"globals": make_globals(8, 8, variables=[["v", 0, 8]])},
    {"functions": [["f"]]},
    {"functions": [["f", -16]]},
    {"functions": [[5, 16]]},
    {"functions": ["f"]},
    {"target": 5},
    {"kernels": [make_kernel(once_along=[3])]},
    {"kernels": [make_kernel(once_along=["x"])]},
    {"kernels": [make_kernel(apart_args=[1])]},
    {"kernels": [make_kernel(apart_args=["a"])]},
    {"kernels": [make_kernel(account=["a"])]},
    {"kernels": [make_kernel(account=[1 << 63])]},
    {"kernels": [make_kernel(extents=[0.5])]},
    {"kernels": [make_kernel(extents=[-1 << 64])]},
    {"kernels": [make_kernel(args=[make_arg(kind=0)], apart_args=[0])]},
], ids=repr)  # fmt: skip
def test_what_the_data_plane_could_not_trust_is_refused(changes):
    with pytest.raises(ExecutableError):
        Executable.from_bytes(make_executable(**changes).to_bytes())


def test_any_damage_is_an_error():
    data = make_executable().to_bytes()
    for i in range(len(data)):
        with pytest.raises(ExecutableError):
            Executable.from_bytes(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :])
        with pytest.raises(ExecutableError):
            Executable.from_bytes(data[:i])


def test_damage_under_a_right_digest_is_an_error_or_a_valid_executable():
    """A binary of CL_PROGRAM_BINARIES may come from anybody."""
    from cl_driver.jit import executable as module

    generate, body = random.Random(7), wire.encode(make_executable().to_values())
    outcomes = set()
    for _ in range(5000):
        damaged = bytearray(body)
        damaged[generate.randrange(len(damaged))] = generate.randrange(256)
        digest = module.blake2b(bytes(damaged), digest_size=16).digest()
        try:
            Executable.from_bytes(module.MAGIC + digest + bytes(damaged))
            outcomes.add("valid")
        except ExecutableError:
            outcomes.add("refused")
    assert outcomes == {"valid", "refused"}
