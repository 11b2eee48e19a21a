"""Operations that the passes add to SPIR-V's own.

They are the `op` of ordinary Instructions; their numbers lie above every SPIR-V opcode (16 bits). Operands:

SlotLoad slot                    the value of a Slot for this work-item; of a uniform slot: for the group, as
                                 it was when the group came to the region, whatever has been stored since
SlotStore slot, value            sets it; a uniform slot gets equal values from all work-items
PrivatePointer variable          a Function pointer to this work-item's memory of a PrivateVariable
RegionExit next [, left]         terminator: the index of the region that the group runs next, or REGION_END;
                                 left, a bool (groups/row_early_exit.py, groups/item_early_exit.py): false if
                                 nothing that follows in the row has anything to do

Only in regions that run once per group (Region.once):
SlotLoadItem slot, item          the value of a slot for the work-item with that linear local id; a uniform
                                 slot ignores the item
SlotStoreItem slot, item, value
GroupItems                       how many work-items this group has (an integer of the address width)

Operations on the lanes of a sub-group, at widths above 1 (lower/subgroups.py makes them):
Active                           bool, varying: the lane takes part, that is its mask is true
Ballot predicate                 an integer with a bit for each lane that takes part and has a true predicate
ReadLane value, lane             uniform: the value of one lane; modulo the width
Permute value, lane              the value of the lane that each lane names; modulo the width
LaneShuffle a, b, k...           lane l gets lane k[l] of a, or of b for numbers from the width on

Yield                            the group's other sub-groups go on (groups/sub_group_turns.py)

Only in functions that stay calls (vectorize/vector_functions.py):
Parameter k                      the argument number k
Result value                     what the function returns, in the block of its RegionExit

FlushDenormals value             the number, or zero of its sign if it is subnormal (lower/flush_denormals.py)

In the check mode (check/instrument.py, whose Sites they have):
CheckAccess pointer, site [, value]   the address to be accessed, of memory that work-items share
CheckObject pointer, base, site       the same of what has a size that is known
CheckChosen pointer, number, (base, number, site)...   the same of one of several such objects
CheckPrivate pointer, base, written, site   the same of a private variable; written: of which bytes are
CheckBarrier site                     a work-item has come to a barrier
CheckFence site
CheckUnknown pointer                  what nobody looks at may write there
CheckIndex index, site                of an array of site.bytes elements
CheckCopy target, source, count, stride, event, has_event, sites   a work-item has come to a copy of the
                                      group, of two sites, with an event that somebody asks for (CheckEvent)
                                      or not; gives the count, or 0 where it is not to be
CheckEvent                            behind that: the event of the copy
CheckWait count, events, site         a work-item waits for copies of the group
CheckFault pointer, site              what is never right: atomics on memory that may have none, writes to
                                      constant memory; gives an address of no consequence
CheckImage image, coordinates [, sampler or level], site   a pixel is read or written: check/pixels.py
CheckOperation a, b, site             b, of an operation on a and b that may have no result
CheckOperation a, site                a, likewise of a conversion
CheckOperation a, b, condition, site  the same before the OpSelect that alone takes the operation's result

Only after vectorize/linearise.py, that is at widths above 1 (see Instruction.mask there):
EntryMask                        bool, varying: the lanes that hold a work-item at all (false in a tail)
AnyLane mask                     bool, uniform: true if any lane's mask is true, in any part
AnyLaneOfPart mask               bool, uniform: the same for each part (vectorize/coarsening.py)

At widths above 1, where groups are in lockstep (loops/loop_versioning.py):
FirstItem value                  uniform, also between parts: the value of the first lane of the first part
"""

from __future__ import annotations

from ...spirv.enumerant import fill
from ...spirv.enums import BuiltIn, Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

REGION_END = -1

# A named barrier is the number of its OpNamedBarrierInitialize in so many bits, and above it how many
# sub-groups wait there.
BARRIER_BITS = 8


class PassOp(Op):
    """The operations above."""

    SlotLoad: ClassVar[PassOp]
    SlotStore: ClassVar[PassOp]
    PrivatePointer: ClassVar[PassOp]
    RegionExit: ClassVar[PassOp]
    SlotLoadItem: ClassVar[PassOp]
    SlotStoreItem: ClassVar[PassOp]
    GroupItems: ClassVar[PassOp]
    EntryMask: ClassVar[PassOp]
    AnyLane: ClassVar[PassOp]
    Active: ClassVar[PassOp]
    Ballot: ClassVar[PassOp]
    ReadLane: ClassVar[PassOp]
    Permute: ClassVar[PassOp]
    LaneShuffle: ClassVar[PassOp]
    FlushDenormals: ClassVar[PassOp]
    AnyLaneOfPart: ClassVar[PassOp]
    FirstItem: ClassVar[PassOp]
    Parameter: ClassVar[PassOp]
    Result: ClassVar[PassOp]
    Yield: ClassVar[PassOp]
    CheckAccess: ClassVar[PassOp]
    CheckObject: ClassVar[PassOp]
    CheckChosen: ClassVar[PassOp]
    CheckPrivate: ClassVar[PassOp]
    CheckBarrier: ClassVar[PassOp]
    CheckFence: ClassVar[PassOp]
    CheckUnknown: ClassVar[PassOp]
    CheckIndex: ClassVar[PassOp]
    CheckCopy: ClassVar[PassOp]
    CheckEvent: ClassVar[PassOp]
    CheckWait: ClassVar[PassOp]
    CheckFault: ClassVar[PassOp]
    CheckImage: ClassVar[PassOp]
    CheckOperation: ClassVar[PassOp]


fill(PassOp, ((name, (1 << 16) + k) for k, name in enumerate(PassOp.__annotations__)))


class PassBuiltIn(BuiltIn):
    """Built-in variables that the passes add: GroupOrigin, the global id of a group's first work-item; Lane,
    the number of the lane."""

    GroupOrigin: ClassVar[PassBuiltIn]
    Lane: ClassVar[PassBuiltIn]


fill(PassBuiltIn, [("GroupOrigin", 1 << 16), ("Lane", (1 << 16) + 1)])
