"""Pipes of a program (SPIR-V: OpConstantPipeStorage), as program-scope variables that hold their rings."""

from __future__ import annotations

from ...device.limits import MAX_GLOBAL_VARIABLE_SIZE
from ...spirv.enums import Decoration, Op, StorageClass
from ...spirv.errors import SpirvError
from ...spirv.module import Constant, ConstantExpr, Kind, Module, Operand, Variable

# Where struct ring of builtins/cl/pipe.cl has its fields, and what native_shim/src/memory/pipe.h says, too.
PACKET_SIZE, MAX_PACKETS, DATA, STATES = 0, 4, 8, 256
ALIGNMENT = 128  # of the ring and of its packets


def data_offset(max_packets: int) -> int:
    """Bytes from the beginning of a ring to its first packet."""
    return -(-(STATES + 4 * max_packets) // ALIGNMENT) * ALIGNMENT


class PipeStorages:
    """The variables of a module's pipe storage. Initialisers are rewritten at once."""

    def __init__(self, module: Module) -> None:
        self._module, self._types = module, module.types
        self._made: dict[Constant, ConstantExpr] = {}
        for variable in list(module.variables):
            if variable.initializer is not None:
                variable.initializer = self.found(variable.initializer)

    def found(self, value: Operand) -> Operand:
        """A value, in which addresses stand for pipe storage."""
        if type(value) is not Constant or type(value.value) is not tuple:
            return value
        if value.type.kind is Kind.OPAQUE:
            return self._storage(value) if value.type.op is Op.TypePipeStorage else value
        if value.type.kind not in (Kind.ARRAY, Kind.STRUCT):
            return value
        inside = tuple(map(self.found, value.value))
        changed = any(a is not b for a, b in zip(inside, value.value, strict=True))
        return Constant(value.type, inside) if changed else value

    def _storage(self, value: Constant) -> ConstantExpr:
        """SpirvError for more than variables may have."""
        made = self._made.get(value)
        if made is not None:
            return made
        size, _, packets = value.value
        begin = data_offset(packets)
        if begin + size * packets > MAX_GLOBAL_VARIABLE_SIZE:
            raise SpirvError(
                0, "OpConstantPipeStorage", f"a pipe of {packets} packets of {size} bytes is too large"
            )
        types = self._types
        word, long = types.int(32), types.int(64)
        rest = types.array(types.int(8), begin + size * packets - 16)
        type_ = types.struct((word, word, long, rest))
        fields = (types.integer(32, size), types.integer(32, packets), types.integer(64, begin))
        pointer = types.pointer(StorageClass.CrossWorkgroup, type_)
        variable = Variable(pointer, types.constant(type_, (*fields, types.null(rest))), "pipe")
        variable.decorations = {Decoration.Alignment: (ALIGNMENT,)}
        self._module.variables.append(variable)
        made = self._made[value] = ConstantExpr(value.type, Op.Bitcast, (variable,))
        return made
