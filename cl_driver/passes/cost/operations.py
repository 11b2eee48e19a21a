"""What one instruction of a kernel's plan keeps busy of a core, and how long its result takes.

A value that varies between lanes takes as many registers as its bits of all lanes fill; what is the same in
all lanes, or differs by the same step, is scalar code. This follows what codegen/ does with each.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import Op, StorageClass
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Constant, Function, Instruction, Kind, Type, Value, Variable
from ..analysis.updates import find_updates
from ..ir.instructions import ADDRESS, ATOMICS, int_value, is_constant_int
from ..ir.layout import size_of
from ..ir.ops import PassOp
from ..ir.shapes import ShapeInfo
from . import access_costs
from .access_costs import Reach
from .cpu_models import (
    ADD,
    DIVIDE,
    ISSUE,
    LOAD,
    MULTIPLY,
    OF_VECTORS,
    SCALAR,
    SHUFFLE,
    STORE,
    VECTOR,
    Cost,
    CpuModel,
)

# How lanes reach memory.
UNIFORM, CONTIGUOUS, STRIDED, SCATTERED, PRIVATE = "uniform", "contiguous", "strided", "scattered", "private"


_FREE = frozenset((
    Op.Bitcast, Op.CopyObject, Op.Phi, Op.Undef, Op.CompositeExtract, Op.CompositeConstruct,
    Op.CompositeInsert, Op.Branch, Op.Return, Op.Unreachable, PassOp.RegionExit, PassOp.EntryMask,
    PassOp.FirstItem, PassOp.PrivatePointer, Op.Variable, Op.PtrCastToGeneric, Op.GenericCastToPtr,
    Op.LifetimeStart, Op.LifetimeStop, Op.ExpectKHR, Op.MemoryBarrier, PassOp.Active, PassOp.GroupItems,
    PassOp.Yield,
))  # fmt: skip
_SUMS = frozenset((Op.FAdd, Op.FSub))
_PRODUCTS = frozenset((Op.FMul, Op.VectorTimesScalar, Op.Dot))
_DIVISIONS = frozenset((Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod))
_SHIFTS = frozenset((Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic))
_CONVERSIONS = frozenset((Op.ConvertSToF, Op.ConvertUToF, Op.ConvertFToS, Op.ConvertFToU, Op.FConvert))
_LOGIC = frozenset((Op.LogicalAnd, Op.LogicalOr, Op.LogicalNot, Op.LogicalEqual, Op.LogicalNotEqual))

# What functions of the builtin library are made of (codegen/library/names.py): instructions of AVX-512, of
# which two are quotients and roots.
_OF_LIBRARY = 0x10000
_LIBRARY_QUOTIENT, _LIBRARY_ROOT = _OF_LIBRARY + 4, _OF_LIBRARY + 5

# OpenCL.std: what is one instruction or a few, by what they are made of; and cycles of functions of the
# library for one work-item, which are made of some ten to a hundred: those of the same functions in glibc
# and SLEEF.
_FUSED = frozenset((Std.fma, Std.mad))
_ROOTS = frozenset(
    (_LIBRARY_ROOT, Std.sqrt, Std.native_sqrt, Std.half_sqrt, Std.rsqrt, Std.native_rsqrt, Std.half_rsqrt)
)
_QUOTIENTS = frozenset(
    (_LIBRARY_QUOTIENT, Std.native_divide, Std.half_divide, Std.native_recip, Std.half_recip)
)
_FEW = {
    Std.fclamp: 2, Std.mix: 2, Std.step: 2, Std.sign: 3, Std.smoothstep: 6, Std.fract: 3, Std.copysign: 2,
    Std.bitselect: 2, Std.s_clamp: 2, Std.u_clamp: 2, Std.s_abs_diff: 3, Std.u_abs_diff: 3, Std.rotate: 3,
    Std.clz: 6, Std.ctz: 6, Std.popcount: 8, Std.s_mul_hi: 6, Std.u_mul_hi: 6, Std.s_add_sat: 4,
    Std.u_add_sat: 2, Std.s_sub_sat: 4, Std.u_sub_sat: 2, Std.s_mad_hi: 7, Std.u_mad_hi: 7, Std.s_hadd: 4,
    Std.u_hadd: 4, Std.s_mad24: 3, Std.u_mad24: 3, Std.s_mul24: 2, Std.u_mul24: 2, Std.ldexp: 8,
    Std.length: 12, Std.fast_length: 8, Std.distance: 14, Std.normalize: 18, Std.cross: 6,
}  # fmt: skip
_ONE = frozenset((
    Std.fabs, Std.fmax, Std.fmin, Std.fmax_common, Std.fmin_common, Std.floor, Std.ceil, Std.rint, Std.trunc,
    Std.round, Std.s_max, Std.s_min, Std.u_max, Std.u_min, Std.s_abs, Std.u_abs, Std.select, Std.degrees,
    Std.radians, Std.s_upsample, Std.u_upsample, Std.nan, Std.shuffle, Std.shuffle2,
))  # fmt: skip
_FUNCTIONS = {
    Std.exp: 15, Std.exp2: 12, Std.exp10: 16, Std.expm1: 25, Std.log: 18, Std.log2: 18, Std.log10: 20,
    Std.log1p: 25, Std.pow: 45, Std.powr: 40, Std.pown: 45, Std.rootn: 50, Std.sin: 25, Std.cos: 25,
    Std.sincos: 35, Std.tan: 35, Std.sinpi: 20, Std.cospi: 20, Std.asin: 25, Std.acos: 25, Std.atan: 25,
    Std.atan2: 40, Std.sinh: 40, Std.cosh: 35, Std.tanh: 35, Std.asinh: 40, Std.acosh: 40, Std.atanh: 40,
    Std.cbrt: 30, Std.hypot: 25, Std.erf: 24, Std.erfc: 60, Std.tgamma: 90, Std.lgamma: 90, Std.fmod: 30,
    Std.remainder: 30, Std.frexp: 8, Std.modf: 6, Std.ilogb: 8, Std.logb: 8, Std.nextafter: 10,
    Std.native_exp: 12, Std.native_log: 15, Std.native_sin: 20, Std.native_cos: 20, Std.native_powr: 30,
    Std.native_exp2: 10, Std.native_log2: 15, Std.native_tan: 30, Std.half_exp: 12, Std.half_log: 15,
    Std.half_sin: 20, Std.half_cos: 20, Std.half_powr: 30,
}  # fmt: skip
LOADS = frozenset((Std.vloadn, Std.vload_half, Std.vload_halfn, Std.vloada_halfn))
STORES = frozenset((
    Std.vstoren, Std.vstore_half, Std.vstore_half_r, Std.vstore_halfn, Std.vstore_halfn_r, Std.vstorea_halfn,
    Std.vstorea_halfn_r,
))  # fmt: skip
_OTHER_FUNCTION = 40  # of any other
_CALL = 5  # cycles of a call itself
_MIXED = 0.25  # the share of vectors that are partly in a mask of which nothing is known
_NOTHING = Cost()


_DIVISION = 4  # operations of a division by a constant that is no power of two: multiplication and shifts


def _steps_of_division(i: Instruction) -> int:
    """Operations that LLVM makes of a division by a constant, or by the same one in all components: shifts
    and masks for powers of two. 0 for any other divisor."""
    divisor = i.operands[1]
    if isinstance(divisor, Constant) and isinstance(divisor.value, tuple):
        first = divisor.value[0]
        if any(constituent is not first for constituent in divisor.value):
            return _DIVISION
        divisor = first
    if not is_constant_int(divisor):
        return 0
    value = int_value(divisor)
    if value & (value - 1):
        return _DIVISION
    return 1 if i.op in (Op.UDiv, Op.UMod) else 3


class Operations:
    """Costs of instructions of a region at a width."""

    def __init__(
        self, model: CpuModel, shapes: ShapeInfo, width: int, calls: Callable[[Function], float] | None = None
    ) -> None:
        self.model, self.shapes, self.width = model, shapes, width
        self._calls = calls  # cycles of a function
        # Loads and stores that are updates (note_updates()): whether of private memory, and how many operands
        # differ between lanes.
        self._updates: dict[Instruction, tuple[bool, int]] = {}
        self._made: dict[tuple[object, ...], Cost] = {}

    def note_updates(self, function: Function) -> None:
        """From now on, loads and stores by which lanes change memory cost what both do together."""
        if self.width == 1:
            return
        for block in function.blocks:
            if any(i.op is Op.Store and self.is_varying(i.operands[0]) for i in block.instructions):
                for update in find_updates(block.instructions, function):
                    taken = update.taken(lambda o: self.shapes.strides.get(o, 0) != 0)
                    is_private = update.store.operands[0].type.storage is StorageClass.Function
                    self._updates[update.load] = self._updates[update.store] = is_private, taken

    def is_varying(self, value: Value) -> bool:
        """Whether lanes of a value are told apart by more than a step."""
        stride = self.shapes.strides.get(value, 0)
        return stride is None or (type(stride) is tuple and None in stride)

    def registers(self, type_: Type) -> float:
        """That a varying value takes; at width 1 of an OpenCL vector, or of a scalar."""
        bits = self.model.vector_bits
        match type_.kind:
            case Kind.VECTOR if self.width == 1:
                return max(1.0, type_.count * _bits(type_.element) / bits)
            case Kind.VECTOR | Kind.ARRAY:
                return type_.count * self.registers(type_.element)
            case Kind.STRUCT:
                return sum(self.registers(member) for member in type_.members)
        return max(1.0, self.width * _bits(type_) / bits)

    def cost(self, i: Instruction) -> Cost:
        """Of what is not memory (see access). Instructions that are alike have the same."""
        op = i.op
        if op in _FREE:
            return _NOTHING
        extra: object = None
        if op is Op.ExtInst:
            extra = i.operands[1]
        elif op in _DIVISIONS:
            extra = _steps_of_division(i)
        elif op in ADDRESS:
            extra = i in self.shapes.private
        elif op is Op.FunctionCall:
            extra = i.operands[0]
        of_first = getattr(i.operands[0], "type", None) if i.operands else None
        key = op, id(i.type), id(of_first), self.is_varying(i), extra
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._narrowed(self._cost(i), i.type).finish()
        return found

    def _narrowed(self, cost: Cost, type_: Type | None) -> Cost:
        """The same for one work-item, whose values leave most of a register empty."""
        if self.width == 1 and type_ is not None and 2 * 8 * size_of_value(type_) <= self.model.vector_bits:
            for resource in (*OF_VECTORS, LOAD, STORE):
                cost.slots[resource] *= self.model.narrow
        return cost

    def _cost(self, i: Instruction) -> Cost:
        op, cost = i.op, Cost()
        if op is Op.Load:  # of ids, which are there already: others are accesses
            return cost
        if op is Op.VectorShuffle:
            if self.width == 1:
                cost.add(SHUFFLE, self.registers(i.type)).latency = self.model.shuffle_latency
            return cost
        if op in (PassOp.AnyLane, PassOp.AnyLaneOfPart):
            cost.add(VECTOR, 1).add(SCALAR, 1).latency = 4
            return cost
        if op in (Op.BranchConditional, Op.Switch):
            return cost.add(SCALAR, 1)
        if op is Op.FunctionCall or op is Op.ControlBarrier:
            inside = self._calls(i.operands[0]) if self._calls is not None and op is Op.FunctionCall else 0
            cost.slots[ISSUE] += (_CALL + inside) * self.model.issue
            return cost
        if i.type is None or i.type.kind is Kind.VOID:
            return cost
        if op in ADDRESS:
            if self.is_varying(i) and i not in self.shapes.private:
                cost.add(VECTOR, 2 * max(1.0, self.width * 32 / self.model.vector_bits)).latency = 2
            else:
                cost.add(SCALAR, 0.5)
            return cost
        is_float = i.type.kind is Kind.FLOAT or (i.type.kind is Kind.VECTOR and _is_float(i.type.element))
        of_vectors = self.is_varying(i) or (self.width == 1 and (is_float or i.type.kind is Kind.VECTOR))
        if op is Op.ExtInst:
            return self._extended(i, of_vectors)
        if not of_vectors and not is_float:
            return self._scalar(i)
        return self._vector(i, self.registers(i.type))

    def _scalar(self, i: Instruction) -> Cost:
        op, cost = i.op, Cost()
        if op in _DIVISIONS:
            if steps := _steps_of_division(i):
                cost.add(SCALAR, steps).latency = 1.5 * steps
            else:
                cost.add(SCALAR, 2).add(DIVIDE, self.model.integer_divide_cycles[i.type.width > 32])
                cost.latency = 18
            return cost
        cost.add(SCALAR, 1).latency = 3 if op is Op.IMul else 1
        return cost

    def _vector(self, i: Instruction, count: float) -> Cost:
        op, cost, model = i.op, Cost(), self.model
        element = _element(i.type)
        if op in _SUMS:
            cost.add(ADD, count).latency = model.add_latency
        elif op in _PRODUCTS:
            if op is Op.Dot:
                count = self.registers(i.operands[0].type)
            cost.add(MULTIPLY, count).latency = model.multiply_latency
        elif op is Op.FDiv:
            self._divide(cost, element, count)
        elif op in (Op.FRem, Op.FMod):
            self._divide(cost, element, count)
            cost.add(VECTOR, 10 * count).latency += 30
            cost.temporaries = 3
        elif op in _DIVISIONS:
            self._divide_integers(cost, i, element, count)
        elif op is Op.IMul:
            self._multiply_integers(cost, element.width, count)
        elif op in _CONVERSIONS:
            each = max(_bits(element), _bits(_element(i.operands[0].type)))
            of_longs = _is_long(element) or _is_long(_element(i.operands[0].type))
            steps = 6 if of_longs and not model.has_masks and self.width > 1 else 1
            cost.add(ADD, steps * max(count, self.width * each / model.vector_bits)).latency = 4 + steps
            cost.temporaries = 3 if steps > 1 else 0
        elif op in (Op.SConvert, Op.UConvert):
            wider = max(_bits(element), _bits(_element(i.operands[0].type)))
            registers = max(1.0, self.width * wider / model.vector_bits)
            cost.add(SHUFFLE, 0.5 * registers).latency = model.shuffle_latency
        elif element.kind is Kind.BOOL:
            operands = [o.type for o in i.operands if isinstance(o, Value) and o.type is not None]
            compared = max((self.registers(type_) for type_ in operands), default=1.0)
            if op in _LOGIC:
                compared = 1.0 if model.has_masks else max(1.0, self.width * 32 / model.vector_bits)
            cost.add(VECTOR, compared).latency = 3 if model.has_masks and op not in _LOGIC else 1
        elif op in _SHIFTS and element.width < 32:
            cost.add(VECTOR, 3 * count).latency = 3
        elif op in (PassOp.Permute, PassOp.LaneShuffle, PassOp.ReadLane, PassOp.Ballot):
            cost.add(SHUFFLE, 2 * count).latency = 2 * model.shuffle_latency
        else:
            cost.add(VECTOR, count).latency = 1
        return cost

    def _divide(self, cost: Cost, element: Type, count: float, is_root: bool = False) -> None:
        model, is_double = self.model, _bits(element) > 32
        busy = (model.root_cycles if is_root else model.divide_cycles)[is_double]
        share = 0.5 if self.width == 1 and count <= 1 else 1.0  # scalars take half as long
        cost.add(MULTIPLY, count).add(DIVIDE, busy * count * share)
        cost.latency = model.divide_latency[is_double] + (6 if is_root else 0)

    def _divide_integers(self, cost: Cost, i: Instruction, element: Type, count: float) -> None:
        steps = _steps_of_division(i)
        if 0 < steps < _DIVISION:
            cost.add(VECTOR, steps * count).latency = steps
        elif steps:
            self._multiply_integers(cost, element.width, 2 * count)
            cost.add(VECTOR, 3 * count).latency += 3
            cost.temporaries += 1
        elif element.width <= 16:
            cost.add(VECTOR, 6 * count).add(DIVIDE, self.model.divide_cycles[0] * count).latency = 26
            cost.temporaries = 2
        elif element.width == 32 and self.width > 1:  # as doubles
            cost.add(VECTOR, 12 * count).add(DIVIDE, self.model.divide_cycles[1] * 2 * count).latency = 30
            cost.temporaries = 4
        else:
            busy = self.model.integer_divide_cycles[element.width > 32]
            divisions = self.width * (i.type.count if i.type.kind is Kind.VECTOR else 1)
            cost.add(DIVIDE, busy * divisions).add(SHUFFLE, 2 * divisions).latency = 30

    def _multiply_integers(self, cost: Cost, width: int, count: float) -> None:
        model = self.model
        if width > 32 and self.width > 1:
            cost.add(MULTIPLY, 3 * count).add(VECTOR, (0 if model.has_masks else 5) * count).latency = 12
            cost.temporaries = 0 if model.has_masks else 3  # of halves: their sums, and products across
        elif width == 8:
            cost.add(MULTIPLY, 2 * count).add(SHUFFLE, 2 * count).latency = 10
            cost.temporaries = 2
        else:
            products = model.products if width == 32 else 1
            cost.add(MULTIPLY, products * count).latency = model.product_latency

    def _extended(self, i: Instruction, of_vectors: bool) -> Cost:
        function, cost, model = i.operands[1], Cost(), self.model
        count = self.registers(i.type) if of_vectors else 1.0
        if function in _FUSED and _is_float(_element(i.type)):
            cost.add(MULTIPLY, count).latency = model.multiply_latency
        elif function >= _OF_LIBRARY and function not in _QUOTIENTS | _ROOTS:
            cost.add(VECTOR, count).latency = model.multiply_latency
        elif function in _ROOTS or function in _QUOTIENTS:
            self._divide(cost, _element(i.type), count, is_root=function in _ROOTS)
            if function in (Std.rsqrt, Std.native_rsqrt, Std.half_rsqrt):
                self._divide(cost, _element(i.type), count)
        elif function in _ONE or function in _FEW:
            steps = _FEW.get(function, 1)
            resource = VECTOR if of_vectors or _is_float(_element(i.type)) else SCALAR
            cost.add(resource, steps * count).latency = 1 + steps
        else:
            cycles_ = _FUNCTIONS.get(function, _OTHER_FUNCTION) * (1.5 if _bits(_element(i.type)) > 32 else 1)
            calls = (i.type.count if i.type.kind is Kind.VECTOR else 1) * self.width
            cost.slots[ISSUE] += cycles_ * calls * model.issue / 2
            cost.latency = 2 * cycles_
        return cost

    def reach(self, i: Instruction, lane_stride: int | None, mixed: float = 0.0) -> Reach:
        """An access to memory, as all lanes of it; lane_stride, mixed: as of access()."""
        is_masked = i.mask is not None and not _is_entry(i.mask)  # there is code for full vectors
        return access_costs.reach(
            accessed_type(i), self.width, self.model, lane_stride, is_write(i), is_masked, mixed
        )

    def in_registers(self, i: Instruction) -> Cost:
        """Of an access to local memory at places that are known when code is made, of groups in lockstep."""
        return access_costs.in_registers(self.reach(i, None), self.model)

    def slot(self, i: Instruction) -> Cost:
        """Of an access to what is kept from one region to the next."""
        slot, is_load, cost = i.operands[0], i.op is PassOp.SlotLoad, Cost()
        count = 0.1 if slot.uniform else 1.0 if slot.stride is not None else self.registers(slot.type)
        cost.add(LOAD if is_load else STORE, count).latency = self.model.load_latency if is_load else 0
        return cost

    def usual_access(self, i: Instruction, kind: str, lane_stride: int | None) -> Cost:
        """Of an access to memory of which no more is known. Accesses that are alike have the same."""
        is_masked = i.mask is not None and not _is_entry(i.mask)
        key = i.op, id(accessed_type(i)), is_write(i), kind, lane_stride, is_masked, self._updates.get(i)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self.access(i, kind, lane_stride, _MIXED).finish()
        return found

    def how_reached(self, i: Instruction, ask: Callable[[Instruction], int | None]) -> tuple[str, int | None]:
        """How lanes reach memory, and how many bytes apart they are. ask: for that of places that shapes do
        not tell apart."""
        if self.width == 1:
            return CONTIGUOUS, None
        pointer, index, step = place_of(i)
        stride = self.shapes.strides.get(pointer, 0)
        size = size_in_memory(i)
        if index is not None:
            more = self.shapes.strides.get(index, 0)
            known = isinstance(stride, int) and isinstance(more, int)
            stride = stride + more * step if known else None  # type: ignore[operator]
        if pointer in self.shapes.private:
            return (PRIVATE, size) if stride == 0 else (SCATTERED, None)
        if not isinstance(stride, int):
            stride = ask(i)
            if stride is None:
                return SCATTERED, None
        if stride == 0:
            return UNIFORM, 0
        return (CONTIGUOUS, stride) if abs(stride) == size else (STRIDED, stride)

    def access(self, i: Instruction, kind: str, lane_stride: int | None, mixed: float) -> Cost:
        """Of an access to memory. kind: how lanes reach it; lane_stride: bytes between them, if it is known;
        mixed: how often its mask is neither empty nor full."""
        reach, model = self.reach(i, lane_stride, mixed), self.model
        if self.width == 1 or kind == UNIFORM:
            return self._narrowed(access_costs.uniform(reach, model), accessed_type(i))
        if kind == PRIVATE:
            return access_costs.pieces(reach, model)
        if kind == CONTIGUOUS:
            return access_costs.contiguous(reach, model)
        if kind == SCATTERED and i in self._updates:
            is_private, taken = self._updates[i]
            type_ = accessed_type(i)
            cost = access_costs.updated(type_, self.width, model, is_private, reach.is_masked, taken)
            if cost is not None:
                cost.slots = [slots / 2 for slots in cost.slots]
                return cost
        return self._way(reach, kind)[1](reach, model)

    def is_lane_by_lane(self, i: Instruction, kind: str, lane_stride: int | None) -> bool:
        """Whether each lane is best done by itself, by scalar code. kind, lane_stride: as of access()."""
        if kind not in (STRIDED, SCATTERED):
            return False
        return self._way(self.reach(i, lane_stride, _MIXED), kind)[0] == access_costs.LANES

    def _way(self, reach: Reach, kind: str) -> tuple[str, access_costs.CostOf]:
        """The cheapest way to places that do not follow one another."""
        ways = access_costs.at_any_place(reach, self.model)
        if kind == STRIDED and access_costs.may_be_fields(reach):
            ways.append((STRIDED, access_costs.fields))
        return access_costs.cheapest(ways, reach, self.model)

    def atomic(self, i: Instruction, is_local: bool, kind: str) -> Cost:
        """Of an atomic: lane by lane, in local memory without a lock; what lanes share is reduced first."""
        cost = Cost()
        lanes = 1 if kind == UNIFORM else self.width
        each = 6.0 if is_local else self.model.atomic_cycles
        cost.slots[ISSUE] += each * lanes * self.model.issue
        cost.add(SHUFFLE, 1.5 * (self.width if self.width > 1 else 0)).latency = each
        return cost


def _is_entry(mask: Value) -> bool:
    """Whether a mask is that of the lanes that hold a work-item."""
    return isinstance(mask, Instruction) and mask.op is PassOp.EntryMask


def place_of(i: Instruction) -> tuple[Value, Value | None, int]:
    """The pointer of an access, and an index that counts from it, in so many bytes."""
    if i.op is not Op.ExtInst:
        return i.operands[0], None, 0
    is_store = i.operands[1] in STORES
    type_ = accessed_type(i)
    return i.operands[3 + is_store], i.operands[2 + is_store], _packed_size(type_)


def accessed_type(i: Instruction) -> Type:
    """The type of what an access reads or writes."""
    if i.op is Op.Store:
        type_: Type = i.operands[1].type
        return type_
    return i.operands[2].type if i.op is Op.ExtInst and i.operands[1] in STORES else i.type


def is_write(i: Instruction) -> bool:
    """Whether an access writes."""
    return i.op is Op.Store or (i.op is Op.ExtInst and i.operands[1] in STORES)


def size_in_memory(i: Instruction) -> int:
    """Bytes that an access of one work-item reaches."""
    type_ = accessed_type(i)
    if i.op is not Op.ExtInst:
        return max(1, size_of(type_))
    halves = i.operands[1] not in (Std.vloadn, Std.vstoren)
    return max(1, _packed_size(type_) // (_bits(_element(type_)) // 16 if halves else 1))


def _packed_size(type_: Type) -> int:
    """Bytes of the components of a vector, of which three are not as many as four here."""
    return (type_.count if type_.kind is Kind.VECTOR else 1) * max(1, _bits(_element(type_)) // 8)


def is_access(i: Instruction) -> bool:
    """Whether an instruction reads or writes memory that has to be reached."""
    if i.op is Op.ExtInst:
        return i.operands[1] in LOADS or i.operands[1] in STORES
    if i.op is Op.Load:
        source = i.operands[0]
        if isinstance(source, Instruction) and source.op in ADDRESS:
            source = source.operands[0]
        return not (isinstance(source, Variable) and source.builtin is not None)
    return i.op is Op.Store or i.op in ATOMICS


def is_local(pointer: Value) -> bool:
    """Whether a pointer is to memory of the group."""
    return pointer.type.kind is Kind.POINTER and pointer.type.storage is StorageClass.Workgroup


def _element(type_: Type) -> Type:
    while type_.kind in (Kind.VECTOR, Kind.ARRAY):
        type_ = type_.element
    return type_


def size_of_value(type_: Type) -> int:
    """Bytes of a value in registers."""
    return (type_.count if type_.kind is Kind.VECTOR else 1) * _bits(_element(type_)) // 8


def _is_float(type_: Type) -> bool:
    return type_.kind is Kind.FLOAT


def _is_long(type_: Type) -> bool:
    return type_.kind is Kind.INT and type_.width == 64


def _bits(type_: Type) -> int:
    match type_.kind:
        case Kind.INT | Kind.FLOAT:
            return type_.width
        case Kind.BOOL:
            return 8
        case Kind.POINTER:
            return 64
        case Kind.STRUCT:
            return 8 * size_of(type_)
    return 32
