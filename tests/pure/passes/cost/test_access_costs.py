"""What ways for lanes to reach memory cost: what is obviously more costs more, on all CPUs."""

import pytest

from cl_driver.passes.cost import access_costs as costs
from cl_driver.passes.cost.cpu_models import SCALAR, SHUFFLE, find_model
from cl_driver.records import replace
from cl_driver.spirv.module import Kind, Type

V4 = frozenset(("avx2", "avx512f", "avx512bw"))
MODELS = [
    find_model(V4, 512, False, False, False), find_model(V4, 512, False, True, False),
    find_model(V4 | {"avx512fp16"}, 512, False, False, False),
    find_model(frozenset(), 256, False, False, False),
    find_model(frozenset(("avxvnni",)), 256, False, False, False),
    find_model(frozenset(("fast-gather",)), 256, False, False, False),
    find_model(frozenset(), 256, False, True, False), find_model(frozenset(), 128, False, False, False),
    find_model(frozenset(), 128, True, False, False),
]  # fmt: skip
FLOAT, BYTE, LONG = Type(Kind.FLOAT, width=32), Type(Kind.INT, width=8), Type(Kind.INT, width=64)
TYPES = {
    "float": FLOAT, "byte": BYTE, "long": LONG, "float2": Type(Kind.VECTOR, element=FLOAT, count=2),
    "byte4": Type(Kind.VECTOR, element=BYTE, count=4), "byte8": Type(Kind.VECTOR, element=BYTE, count=8),
    "float3": Type(Kind.VECTOR, element=FLOAT, count=3), "float4": Type(Kind.VECTOR, element=FLOAT, count=4),
    "float16": Type(Kind.VECTOR, element=FLOAT, count=16),
    "pair": Type(Kind.STRUCT, members=(FLOAT, BYTE)),
}  # fmt: skip


def price(way, model, type_, width=8, step=None, is_store=False, is_masked=False, **more):
    reach = costs.reach(TYPES[type_], width, model, step, is_store, is_masked)
    return costs.price(way(replace(reach, **more), model), model)


@pytest.mark.parametrize("width", [2, 4, 8, 16])
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_order(model, type_, width):
    """One place, neighbours, a question that is mostly answered with yes, anywhere."""
    for is_store in (False, True):
        given = {"width": width, "is_store": is_store}
        uniform, contiguous, anywhere = (
            price(way, model, type_, **given)
            for way in (costs.uniform, costs.contiguous_and_unmasked, costs.anywhere)
        )
        assert uniform <= contiguous <= anywhere
        asked = price(lambda r, m: costs.asked(r, m, False), model, type_, **given)
        assert asked <= anywhere + 0.5 and contiguous <= asked + 0.5


def test_gathers_of_avx2():
    """Only CPUs take them whose gathers are fast, and none scatters without registers for masks."""
    found = {model.name: costs.has_instruction(model, False) for model in MODELS if not model.has_masks}
    assert len(found) == 6
    assert [name for name, has in found.items() if has] == ["golden-cove (256 bits, gathers)"]
    assert not any(costs.has_instruction(model, True) for model in MODELS if not model.has_masks)
    gather, lanes = (price(way, MODELS[5], "float") for way in (costs.gather, costs.lanes))
    assert gather < lanes


def test_what_a_reach_is():
    model = MODELS[0]
    for type_, pieces, bits, is_row in (
        ("float", 1, 32, False), ("float2", 1, 64, False), ("byte4", 1, 32, False), ("float3", 3, 32, False),
        ("float4", 4, 32, True), ("pair", 2, 32, False),
    ):  # fmt: skip
        reach = costs.reach(TYPES[type_], 16, model, None, False, False)
        assert (reach.pieces, reach.bits, reach.is_row) == (pieces, bits, is_row), type_


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_ways_at_any_place(model):
    def names(type_, is_store):
        reach = costs.reach(TYPES[type_], 8, model, None, is_store, False)
        return [name for name, _ in costs.at_any_place(reach, model)]

    for is_store in (False, True):
        has = model.has_masks or (model.name == "golden-cove (256 bits, gathers)" and not is_store)
        anywhere = [costs.GATHER, costs.LANES] if has else [costs.LANES]
        assert names("float", is_store) == names("byte4", is_store) == anywhere
        assert names("byte", is_store) == [costs.LANES] and names("float4", is_store) == [costs.ROWS]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_fields(model):
    """Fields of small structures are whole vectors; one of many in a large structure is not."""

    def reach(type_, step, **more):
        return replace(costs.reach(TYPES[type_], 8, model, step, False, False), **more)

    for one in (reach("float", 8), reach("long", 64), reach("byte", 3), reach("byte", 8)):
        assert costs.may_be_fields(one)
    for other in (
        reach("float", 4), reach("float", 36), reach("float", 6), reach("float", None), reach("byte", 9),
        reach("float2", 16), reach("float", 8, is_masked=True), reach("float", -8),
    ):  # fmt: skip
        assert not costs.may_be_fields(other)
    assert price(costs.fields, model, "float", step=8) < price(costs.anywhere, model, "float")
    together = [price(lambda r, m, n=n: costs.fields(r, m, n), model, "float", step=16) for n in (1, 2, 4)]
    assert together == sorted(together, reverse=True)
    assert price(costs.fields, model, "byte", step=4) < price(costs.anywhere, model, "byte")
    assert price(costs.fields, model, "long", 2, step=64) > price(costs.anywhere, model, "long", 2)


def test_masked_stores_follow_the_cpu():
    for model in MODELS:
        once, versions = (
            price(way, model, "float", is_store=True, is_masked=True)
            for way in (costs.masked_store, costs.versions_by_mask)
        )
        assert (once > versions) == (model.masked_store_cycles > 4), model.name


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_rows_that_are_transposed(model):
    for type_ in ("float", "byte", "long"):
        for width in (4, 8, 16):
            assert price(costs.transposed, model, type_, width) < price(costs.anywhere, model, type_, width)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_neighbours_under_a_mask(model, type_, is_packed):
    """They are stored together, in one way or the other: a masked store of all, or versions by the mask."""
    given = {"is_store": True, "is_masked": True, "is_packed": is_packed}
    for width in (4, 8, 16):
        if width * costs.reach(TYPES[type_], width, model, None, True, True).size >= 16:
            together, anywhere = (
                price(way, model, type_, width, **given) for way in (costs.contiguous, costs.anywhere)
            )
            assert together <= anywhere, width


@pytest.mark.parametrize("type_", ["byte4", "float2", "float4", "float16"])
def test_what_is_packed_is_not_taken_apart(type_):
    for model in MODELS:
        apart = costs.reach(TYPES[type_], 8, model, None, True, False)
        packed = replace(apart, is_packed=True)
        together = [costs.contiguous_and_unmasked(r, model).slots[SHUFFLE] for r in (packed, apart)]
        assert 0 == together[0] < together[1], model.name
        anywhere = [costs.anywhere(r, model).slots[SHUFFLE] for r in (packed, apart)]
        assert anywhere[0] > anywhere[1], model.name


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_updates(model):
    """Scalars are changed lane by lane where they are loaded so. OpenCL vectors are rows, and less work."""
    width = model.vector_bits // 32

    def updated(type_, is_masked=False, taken=0, is_private=True):
        return costs.updated(TYPES[type_], width, model, is_private, is_masked, taken)

    plain, masked, with_operand = updated("float"), updated("float", True), updated("float", taken=1)
    assert masked.slots[SCALAR] > plain.slots[SCALAR]
    assert with_operand is None or with_operand.slots[SHUFFLE] > plain.slots[SHUFFLE]
    assert updated("float4", taken=1) is None
    assert (updated("float", is_private=False) is None) == model.has_masks
