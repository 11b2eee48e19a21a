"""Type rules of images and samplers (OpenCL SPIR-V environment, 4 and 5; SPIR-V, 3.49.10).

IMAGE_RULES: as RULES of rules.py.
"""

from __future__ import annotations

from ..enums import AccessQualifier, Dim, Op
from ..module import Instruction, Kind, Operand, Type, Value
from .rules import FLOAT, INT, Rule, RuleError, count, need, scalar

_LOD, _GRAD = 0x2, 0x4
_NO_CHANGE = 0x1000 | 0x2000 | 0x4000  # SignExtend, ZeroExtend, Nontemporal
_DIMENSIONS = {Dim.Dim1D: 1, Dim.Buffer: 1, Dim.Dim2D: 2, Dim.Dim3D: 3}


class _Image:
    """The operands of OpTypeImage that rules are about."""

    def __init__(self, type_: Type | None) -> None:
        if type_ is None or type_.kind is not Kind.OPAQUE or type_.op is not Op.TypeImage:
            raise RuleError(f"an image of type {type_!r}")
        _, self.dim, depth, arrayed, _, _, _, self.access = type_.operands
        self.dimensions = _DIMENSIONS.get(self.dim, 0)
        self.coordinates = self.dimensions + arrayed
        self.is_depth = depth != 0


def _image(value: Operand) -> _Image:
    return _Image(value.type)


def _sampler(value: Operand, of: _Image) -> None:
    type_ = value.type
    need(
        type_ is not None and type_.kind is Kind.OPAQUE and type_.op is Op.TypeSampler,
        "a sampler of type {!r}",
        type_,
    )
    need(of.dim != Dim.Buffer, "samplers are not for image buffers")
    need(of.access == AccessQualifier.ReadOnly, "samplers are for images that are read only")


def _sampled_image(i: Instruction) -> None:
    image, sampler = i.operands
    _sampler(sampler, _image(image))
    need(
        i.type.kind is Kind.OPAQUE and i.type.op is Op.TypeSampledImage and i.type.operands[0] is image.type,
        "{!r} of {!r}",
        i.type,
        image.type,
    )


def _sampled(value: Operand) -> list[Operand]:
    """The image and the sampler of an operand that is a sampled image: these "must not appear as operands" of
    anything but what looks images up, so it is an OpSampledImage itself."""
    need(getattr(value, "op", None) is Op.SampledImage, "its sampled image is not an OpSampledImage")
    operands: list[Operand] = value.operands
    return operands


def _image_of(i: Instruction) -> None:
    image, _ = _sampled(i.operands[0])
    need(i.type is image.type, "the result has type {!r}", i.type)


def _coordinate(image: _Image, value: Operand, kinds: tuple[Kind, ...]) -> None:
    """OpenCL C's have more components than needed for arrays and three dimensions."""
    type_ = value.type
    need(
        type_ is not None
        and scalar(type_).kind in kinds
        and scalar(type_).width == 32
        and count(type_) >= image.coordinates,
        "a coordinate of type {!r}",
        type_,
    )


def _texel(image: _Image, type_: Type | None) -> None:
    """Four components, or the depth alone."""
    if type_ is None:
        raise RuleError("a texel without a type")
    number = scalar(type_)
    need(
        number.kind in (INT, FLOAT)
        and number.width in ((32,) if number.kind is INT else (16, 32))
        and (count(type_) == 4 or (count(type_) == 1 and image.is_depth)),
        "a texel of type {!r}",
        type_,
    )


def _level(value: Operand, kinds: tuple[Kind, ...] = (INT, FLOAT)) -> None:
    type_ = value.type
    need(
        type_ is not None and type_.kind in kinds and type_.width == 32,
        "a level of detail of type {!r}",
        type_,
    )


def _gradient(image: _Image, value: Operand) -> None:
    type_ = value.type
    need(
        type_ is not None
        and scalar(type_).kind is FLOAT
        and scalar(type_).width == 32
        and count(type_) >= image.dimensions,
        "a gradient of type {!r}",
        type_,
    )


def check_access(
    value: Operand,
    at: Value,
    texel: Type | None,
    lod: list[Operand],
    sampler: Operand | None = None,
    writes: bool = False,
) -> None:
    """Raises RuleError if an image cannot be read or written so. lod: [], [level] or [gradient, gradient]."""
    image = _image(value)
    if writes:
        need(image.access != AccessQualifier.ReadOnly, "writes an image that is read only")
    else:
        need(image.access != AccessQualifier.WriteOnly, "reads an image that is write only")
    if sampler is not None:
        _sampler(sampler, image)
    _texel(image, texel)
    _coordinate(image, at, (INT,) if sampler is None else (INT, FLOAT))
    if len(lod) == 1:
        _level(lod[0])
    for gradient in lod if len(lod) > 1 else ():
        _gradient(image, gradient)


def _levels(operands: list[Operand], allowed: int) -> list[Operand]:
    """What stands behind a mask of image operands, if there is one."""
    mask, *values = operands or (0,)
    need(not mask & ~(allowed | _NO_CHANGE), "image operands {:#x}", mask)
    need(mask & (_LOD | _GRAD) != (_LOD | _GRAD), "both a level of detail and gradients")
    need(len(values) == (2 if mask & _GRAD else 1 if mask & _LOD else 0), "{} image operands", len(values))
    return values


def _sample(i: Instruction) -> None:
    sampled, at, *operands = i.operands
    lod = _levels(operands, _LOD | _GRAD)
    need(lod, "neither a level of detail nor gradients")
    image, sampler = _sampled(sampled)
    check_access(image, at, i.type, lod, sampler)


def _read(i: Instruction) -> None:
    image, at, *operands = i.operands
    check_access(image, at, i.type, _levels(operands, _LOD))


def _write(i: Instruction) -> None:
    image, at, texel, *operands = i.operands
    check_access(image, at, texel.type, _levels(operands, _LOD), writes=True)


def _query_size(i: Instruction) -> None:
    value, *level = i.operands
    image = _image(value)
    need(scalar(i.type).kind is INT and count(i.type) == image.coordinates, "a size of type {!r}", i.type)
    for number in level:
        _level(number, (INT,))


def check_query(i: Instruction) -> None:
    """Raises RuleError if this does not ask for a number of an image, its last operand."""
    _image(i.operands[-1])
    need(i.type.kind is INT and i.type.width == 32, "the result has type {!r}", i.type)


def _block(i: Instruction) -> None:
    """SPV_INTEL_subgroups: "Image must be an image with Dim of 2D", a coordinate of two integers, and data of
    1, 2, 4, 8 or 16 integers."""
    value, at = i.operands[:2]
    image = _image(value)
    writes = i.op is Op.SubgroupImageBlockWriteINTEL
    refused = AccessQualifier.ReadOnly if writes else AccessQualifier.WriteOnly
    need(image.dim == Dim.Dim2D and image.coordinates == 2, "blocks are of images of two dimensions")
    need(image.access != refused, "the image is {}", "read only" if writes else "write only")
    need(
        at.type is not None
        and scalar(at.type).kind is INT
        and scalar(at.type).width == 32
        and count(at.type) == 2,
        "a coordinate of type {!r}",
        at.type,
    )
    data = i.operands[2].type if writes else i.type
    need(data is not None and scalar(data).kind is INT, "a block of {!r}", data)
    need(count(data) in (1, 2, 4, 8, 16), "a block of {!r}", data)


IMAGE_RULES: dict[Op, Rule] = {
    Op.SampledImage: _sampled_image,
    Op.Image: _image_of,
    Op.ImageSampleExplicitLod: _sample,
    Op.ImageFetch: _read,
    Op.ImageRead: _read,
    Op.ImageWrite: _write,
    Op.ImageQuerySize: _query_size,
    Op.ImageQuerySizeLod: _query_size,
    Op.ImageQueryFormat: check_query,
    Op.ImageQueryOrder: check_query,
    Op.ImageQueryLevels: check_query,
    Op.SubgroupImageBlockReadINTEL: _block,
    Op.SubgroupImageBlockWriteINTEL: _block,
}
