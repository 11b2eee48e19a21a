"""Operations that the passes add to SPIR-V's own.

They are the `op` of ordinary Instructions; their numbers lie above every SPIR-V opcode (16 bits). Operands:

ContextLoad slot                 the value of a Slot for this work-item (of a uniform slot: for the group)
ContextStore slot, value         sets it; a uniform slot gets equal values from all work-items
ContextVariable variable         a Function pointer to this work-item's memory of a PrivateVariable
RegionExit next                  terminator: the index of the region that the group runs next, or REGION_END

Only in regions that run once per group (Region.once):
ContextLoadItem slot, item       the value of a slot for the work-item with that linear local id; a uniform
                                 slot ignores the item
ContextStoreItem slot, item, value
GroupItems                       how many work-items this group has (an integer of the address width)

Only after linearise.py, that is at widths above 1 (see Instruction.mask there):
EntryMask                        bool, varying: the lanes that hold a work-item at all (false in a tail)
AnyLane mask                     bool, uniform: true if any lane's mask is true
"""

from __future__ import annotations

from enum import IntEnum

REGION_END = -1


class PassOp(IntEnum):
    """Opcodes of the pseudo-instructions."""

    ContextLoad = 0x10000
    ContextStore = 0x10001
    ContextVariable = 0x10002
    RegionExit = 0x10003
    ContextLoadItem = 0x10004
    ContextStoreItem = 0x10005
    GroupItems = 0x10006
    EntryMask = 0x10007
    AnyLane = 0x10008
