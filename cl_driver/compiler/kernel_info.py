"""What the data plane and the queries know of a kernel that is compiled."""

from __future__ import annotations

import math

from ..builtins.library import library_for
from ..codegen.kernel import emit as codegen
from ..codegen.layout.arguments import LOCAL, BlockEntry
from ..device.limits import MAX_WORK_GROUP_SIZE
from ..jit.executable import ArgInfo, KernelInfo
from ..log import log
from ..passes.analysis.read_arguments import read_arguments
from ..passes.analysis.written_arguments import written_arguments
from ..passes.cost import width
from ..spirv import reflect
from .prepared import Prepared


def kernel_info(program: Prepared, code: codegen.KernelCode) -> KernelInfo:
    """What the data plane and the queries know of a kernel."""
    reflection = program.reflections[code.name]
    uses_sub_groups = program.uses_sub_groups(code.name)
    function = program.entry_points[code.name].function
    written, read = written_arguments(function), read_arguments(function)
    tile = code.tile if code.tiles is None else code.tile_of_tiles
    return KernelInfo(
        name=code.name,
        has_entry=not code.is_for_any_image,
        symbol=code.symbol,
        object_index=0,
        args=[
            _argument(arg, entry, number in written, number in read)
            for number, (arg, entry) in enumerate(zip(reflection.args, code.block, strict=True))
        ],
        block_size=code.block_size,
        local_static=code.local_static,
        scratch_fixed=code.scratch_fixed,
        scratch_per_item=code.scratch_per_item,
        required_local_size=list(reflection.required_local_size),
        max_local_size=list(reflection.max_local_size),
        max_group_size=min(MAX_WORK_GROUP_SIZE, math.prod(reflection.max_local_size) or MAX_WORK_GROUP_SIZE),
        width=code.width,
        uses_printf=code.uses_printf,
        uses_pipes=code.uses_pipes,
        enqueues=code.enqueues,
        takes_turns=code.takes_turns,
        is_block=code.name in program.blocks,
        blocks=program.blocks_of(code.name),
        zeroes_local=program.context.options.zero_local,
        terminable=program.context.options.terminate,
        uniform_groups=program.uniform_groups,
        is_wide=code.width > 1,
        has_narrow=code.has_narrow,
        has_rest=code.has_rest,
        has_tiled=code.tiles is not None,
        has_more=code.has_more,
        has_linear=code.has_linear,
        reads_ahead=code.reads_ahead,
        tries_items=code.tries_items,
        tiles_first=code.tiles is not None and code.tiles_first,
        private_size=code.private_size,
        attributes=reflection.attributes,
        sub_group_size=reflection.sub_group_size,
        sub_groups_per_group=reflection.sub_groups_per_group,
        sub_group_width=code.width if uses_sub_groups else program.sub_group_size(code.name),
        uses_sub_groups=uses_sub_groups,
        tile_width=tile[0],
        tile_height=tile[1],
        free_groups=code.has_free_groups,
        exchanged=program.exchange_ids(code.name),
        once_along=sorted(code.once_along),
        aligned_groups=program.has_aligned_groups(code.name, code.width) and not uses_sub_groups,
        repeated_dimensions=code.repeated_dimensions,
        most_group_items=code.width * width.MOST_GROUP_PARTS if code.may_run_in_lockstep else 0,
        counted=code.counted,
        counted_size=code.counted_size,
        apart_args=code.apart_args,
        account=_account(program, code.name),
        extents=_extents(program, code.name),
        specialisable_args=code.specialisable_args,
        remark=code.remark,
    )


def _argument(
    reflection: reflect.ArgReflection, entry: BlockEntry, written: bool, only_read: bool
) -> ArgInfo:
    return ArgInfo(
        kind=reflection.kind,
        size=reflection.size,
        align=entry.alignment if entry.kind != LOCAL else reflection.align,
        offset=entry.offset,
        constant=reflection.constant,
        known=reflection.known,
        name=reflection.name,
        type_name=reflection.type_name,
        address_qualifier=reflection.address_qualifier,
        access_qualifier=reflection.access_qualifier,
        type_qualifier=reflection.type_qualifier,
        image_type=reflection.image_type,
        depth=reflection.depth,
        written=written,
        only_read=only_read,
    )


def _account(program: Prepared, name: str) -> list[int]:
    """What is known of the bytes and operations of launches, where a profile is wanted."""
    if not program.context.settings.get("CL_DRIVER_PROFILE") or program.is_too_large(name, expanded=True):
        return []
    from ..passes.traffic.prepare import account_of

    point = program.plain_points.get(name) or program.entry_points[name]
    try:
        account = account_of(program.module, point)
        for number in account:
            number.to_bytes(8, "little", signed=True)  # as launches have them: OverflowError
        return account
    except Exception as error:  # a profile is not worth a build that fails
        log(1, f"kernel {name} has no account of its bytes and operations: {type(error).__name__}: {error}")
        return []


def _extents(program: Prepared, name: str) -> list[int]:
    """What work-groups read and write, where launches may be cut among machines; [] if they may not be."""
    if not program.context.settings.get("CL_DRIVER_CLUSTER") or program.is_too_large(name, expanded=True):
        return []
    from ..passes.extents.extents import Refusal
    from ..passes.extents.prepare import extents_of

    point = program.plain_points.get(name) or program.entry_points[name]
    try:
        return extents_of(program.module, point, library_for(program.context.target))
    except Refusal as refusal:
        log(2, f"kernel {name} is executed by one worker: {refusal}")
    except Exception as error:  # cut launches are not worth a build that fails
        log(1, f"kernel {name} is executed by one worker: {type(error).__name__}: {error}")
    return []
