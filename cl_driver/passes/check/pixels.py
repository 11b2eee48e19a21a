"""Pixels in the check mode: CheckImage before each access to one.

What OpenCL C (Image Read and Write Functions, Samplers) and the SPIR-V environment (7.1, 7.2) leave
undefined, and native_shim/src/check/images.c tells of:

- coordinates outside of the image or of its layers, without a sampler, or with CLK_ADDRESS_NONE (of linear
  filtering, those of each pixel that counts); coordinates that are infinite or no numbers;
- integer coordinates with a sampler of normalized coordinates, of linear filtering or of a repeating address
  mode; these modes without normalized coordinates; linear filtering of integers;
- pixels as numbers of an image of integers, and the other way round;
- levels that the image does not have, without a sampler. With one they are clamped.
"""

from __future__ import annotations

from ...spirv.enums import Dim, Op
from ...spirv.module import Block, Constant, Instruction, Kind, Type, Value
from ..ir.ops import PassOp
from ..lower.images import GRAD, LOD, image_call, image_operands
from .sites import LAYERS, LEVEL, LOAD, NUMBERS, PLACES, SAMPLED, STORE, Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # Image, coordinates, type of the pixel, whether it is written, sampler, what says which level.
    _Access: TypeAlias = tuple[Value, Value, Type, bool, Value | None, list[Value]]

_ACCESSES = (Op.ImageRead, Op.ImageFetch, Op.ImageWrite, Op.ImageSampleExplicitLod)


def watch_pixels(block: Block, i: Instruction) -> None:
    """Puts a check into the block if the instruction, which is to follow, accesses a pixel."""
    access = _of_instruction(i) if i.op in _ACCESSES else _of_call(i) if i.op is Op.FunctionCall else None
    if access is None:
        return
    image, at, pixel, is_write, sampler, levels = access
    _, dim, _, is_arrayed, *_ = image.type.operands
    bits = {Dim.Dim2D: 2, Dim.Dim3D: 3}.get(dim, 1)
    # Without a sampler the level is an integer; of others it is of no matter which one it is.
    level = [] if sampler is not None else levels
    for is_set, bit in (
        (is_arrayed, LAYERS), (sampler is not None, SAMPLED), (levels, LEVEL),
        (_element(at.type).kind is Kind.FLOAT, PLACES), (_element(pixel).kind is Kind.FLOAT, NUMBERS),
    ):  # fmt: skip
        bits |= bit if is_set else 0
    site = Site(STORE if is_write else LOAD, i.line, bytes=bits)
    operands = [image, at, *([] if sampler is None else [sampler]), *level, site]
    check = Instruction(PassOp.CheckImage, None, operands, block)
    check.line = i.line
    block.instructions.append(check)


def _of_instruction(i: Instruction) -> _Access | None:
    image, at, *_ = i.operands
    found = image_operands(i)
    levels = found.get(GRAD) or [level for level in found.get(LOD, ()) if not _is_zero(level)]
    if i.op is not Op.ImageSampleExplicitLod:
        is_write = i.op is Op.ImageWrite
        return image, at, i.operands[2].type if is_write else i.type, is_write, None, levels[:1]
    if not isinstance(image, Instruction) or image.op is not Op.SampledImage:
        return None
    image, sampler, *_ = image.operands
    return image, at, i.type, False, sampler, levels


def _of_call(i: Instruction) -> _Access | None:
    """A call of a function that clang leaves as one."""
    callee, *rest = i.operands
    found = image_call(callee.linkage[0]) if callee.linkage else None
    if found is None or found[5]:
        return None
    is_write = "write" in (found[1], found[3])
    level_count = {"lod": 1, "gradient": 2}.get(found[4], 0)
    has_sampler = len(rest) - 2 - is_write - level_count == 1
    if len(rest) != 2 + is_write + level_count + has_sampler:
        return None  # lowering says what is wrong with it
    image, *rest = rest
    sampler = rest.pop(0) if has_sampler else None
    pixel = rest.pop().type if is_write else i.type
    return image, rest[0], pixel, is_write, sampler, rest[1:]


def _is_zero(value: Value) -> bool:
    return type(value) is Constant and not value.value


def _element(type_: Type) -> Type:
    return type_.element if type_.kind is Kind.VECTOR else type_
