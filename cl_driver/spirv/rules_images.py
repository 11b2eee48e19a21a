"""Type rules of images and samplers (OpenCL SPIR-V environment, 4 and 5; SPIR-V, 3.49.10).

IMAGE_RULES: as RULES of rules.py.
"""

from __future__ import annotations

from .enums import AccessQualifier, Dim, Op
from .module import Kind, Type
from .rules import FLOAT, INT, count, need, scalar

_LOD, _GRAD = 0x2, 0x4
_NO_CHANGE = 0x1000 | 0x2000 | 0x4000  # SignExtend, ZeroExtend, Nontemporal
_DIMENSIONS = {Dim.Dim1D: 1, Dim.Buffer: 1, Dim.Dim2D: 2, Dim.Dim3D: 3}


class _Image:
    """The operands of OpTypeImage that rules are about."""

    def __init__(self, type_: Type | None):
        need(
            type_ is not None and type_.kind is Kind.OPAQUE and type_.op is Op.TypeImage,
            "an image of type {!r}",
            type_,
        )
        _, self.dim, depth, arrayed, _, _, _, self.access = type_.operands
        self.dimensions = _DIMENSIONS.get(self.dim, 0)
        self.coordinates = self.dimensions + arrayed
        self.is_depth = depth != 0


def _image(value) -> _Image:
    return _Image(value.type)


def _sampled_image(i):
    image, sampler = i.operands
    of = _image(image)
    need(of.dim != Dim.Buffer, "samplers are not for image buffers")
    need(of.access == AccessQualifier.ReadOnly, "samplers are for images that are read only")
    need(
        i.type.kind is Kind.OPAQUE and i.type.op is Op.TypeSampledImage and i.type.operands[0] is image.type,
        "{!r} of {!r}",
        i.type,
        image.type,
    )
    type_ = sampler.type
    need(
        type_ is not None and type_.kind is Kind.OPAQUE and type_.op is Op.TypeSampler,
        "a sampler of type {!r}",
        type_,
    )


def _sampled(value) -> _Image:
    """An operand that is a sampled image: "must not appear as operands to any other instructions" but those
    that look images up, so it is an OpSampledImage itself."""
    need(getattr(value, "op", None) is Op.SampledImage, "its sampled image is not an OpSampledImage")
    return _image(value.operands[0])


def _image_of(i):
    _sampled(i.operands[0])
    need(i.type is i.operands[0].operands[0].type, "the result has type {!r}", i.type)


def _coordinate(image: _Image, value, floats: bool) -> None:
    """For the work that is left components may be more than needed."""
    type_ = value.type
    need(
        type_ is not None
        and scalar(type_).kind in ((INT, FLOAT) if floats else (INT,))
        and scalar(type_).width == 32
        and count(type_) >= image.coordinates,
        "a coordinate of type {!r}",
        type_,
    )


def _texel(image: _Image, type_: Type | None) -> None:
    """Four components, or the depth alone."""
    number = scalar(type_) if type_ is not None else None
    need(
        number is not None
        and number.kind in (INT, FLOAT)
        and number.width in ((32,) if number.kind is INT else (16, 32))
        and (count(type_) == 4 or (count(type_) == 1 and image.is_depth)),
        "a texel of type {!r}",
        type_,
    )


def _image_operands(operands: list, image: _Image, allowed: int) -> int:
    """Checks what stands behind a mask, if there is one. Its bits."""
    if not operands:
        return 0
    mask, *values = operands
    need(not mask & ~(allowed | _NO_CHANGE), "image operands {:#x}", mask)
    need(mask & (_LOD | _GRAD) != (_LOD | _GRAD), "both a level of detail and gradients")
    need(len(values) == (2 if mask & _GRAD else 1 if mask & _LOD else 0), "{} image operands", len(values))
    for value in values:
        type_ = value.type
        components = image.dimensions if mask & _GRAD else 1
        kinds = (FLOAT,) if mask & _GRAD else (INT, FLOAT)
        need(
            type_ is not None
            and scalar(type_).kind in kinds
            and scalar(type_).width == 32
            and (count(type_) >= components if mask & _GRAD else count(type_) == 1),
            "{} of type {!r}",
            "a gradient" if mask & _GRAD else "a level of detail",
            type_,
        )
    return mask


def _sample(i):
    sampled, at, *operands = i.operands
    image = _sampled(sampled)
    _texel(image, i.type)
    _coordinate(image, at, floats=True)
    mask = _image_operands(operands, image, _LOD | _GRAD)
    need(mask & (_LOD | _GRAD), "neither a level of detail nor gradients")


def _read(i):
    value, at, *operands = i.operands
    image = _image(value)
    need(image.access != AccessQualifier.WriteOnly, "reads an image that is write only")
    _texel(image, i.type)
    _coordinate(image, at, floats=False)
    _image_operands(operands, image, _LOD)


def _write(i):
    value, at, texel, *operands = i.operands
    image = _image(value)
    need(image.access != AccessQualifier.ReadOnly, "writes an image that is read only")
    _texel(image, texel.type)
    _coordinate(image, at, floats=False)
    _image_operands(operands, image, _LOD)


def _query_size(i):
    value, *level = i.operands
    image = _image(value)
    need(scalar(i.type).kind is INT and count(i.type) == image.coordinates, "a size of type {!r}", i.type)
    for number in level:
        need(
            number.type is not None and number.type.kind is INT and number.type.width == 32,
            "a level of detail of type {!r}",
            number.type,
        )


def _query(i):
    _image(i.operands[0])
    need(i.type.kind is INT and i.type.width == 32, "the result has type {!r}", i.type)


IMAGE_RULES = {
    Op.SampledImage: _sampled_image,
    Op.Image: _image_of,
    Op.ImageSampleExplicitLod: _sample,
    Op.ImageFetch: _read,
    Op.ImageRead: _read,
    Op.ImageWrite: _write,
    Op.ImageQuerySize: _query_size,
    Op.ImageQuerySizeLod: _query_size,
    Op.ImageQueryFormat: _query,
    Op.ImageQueryOrder: _query,
    Op.ImageQueryLevels: _query,
}
