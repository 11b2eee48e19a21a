"""Functions that order memory: the list of names is what the builtin library's bodies say."""

from cl_driver.builtins.library import library
from cl_driver.passes.analysis.memory_order import ORDERING_FUNCTIONS, orders_memory, source_name
from cl_driver.spirv.enums import Op


def called(function):
    for block in function.blocks:
        for i in block.instructions:
            if i.op is Op.FunctionCall and i.operands[0].blocks:
                yield i.operands[0]


def orders(function) -> bool:
    return orders_memory(function) or any(orders(callee) for callee in called(function))


def is_ordering(name: str) -> bool:
    function = library().function(name)  # None of what the library declares only
    return function is not None and orders(function)


def test_source_names():
    assert source_name("_Z9mem_fencej") == "mem_fence"
    assert source_name("_Z17sub_group_barrierj12memory_scope") == "sub_group_barrier"
    assert source_name("__cld_image_fetch_f32") == "__cld_image_fetch_f32"


def test_the_names_are_those_of_the_library():
    names = library()._reader._linked
    assert len(names) > 400
    found = {source_name(name) for name in names if is_ordering(name)}
    assert found == ORDERING_FUNCTIONS
