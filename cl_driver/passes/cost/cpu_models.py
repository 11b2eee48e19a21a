"""CPUs as tables: what a core starts in a cycle, how long results take, what accesses to memory cost. And
costs, which are what is kept busy of a core.

The figures are rounded, and none was copied: they are what is generally known of these cores, as public
tables have it in detail (uops.info, Agner Fog's instruction tables, LLVM's scheduling models, the makers'
optimisation guides), and have not been compared with those figure by figure. They are for ranking plans and
kernels, which the zoo checks (tests/zoo/README.md); a prediction of times needs better ones.
Families differ less within a vendor than registers differ in width, so there is a row for each
generation that made a difference.
"""

from __future__ import annotations

import functools
from collections.abc import Set as AbstractSet

from ...device.target import Target
from ...records import field, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ISSUE, SCALAR, VECTOR, MULTIPLY, ADD, SHUFFLE, LOAD, STORE, DIVIDE = range(9)
NAMES = (
    "instructions of all kinds", "scalar arithmetic", "vector arithmetic", "products", "sums", "shuffles",
    "loads", "stores", "divisions and roots",
)  # fmt: skip
RESOURCES = len(NAMES)
OF_VECTORS = (VECTOR, MULTIPLY, ADD, SHUFFLE)
_IN_CODE = slice(SCALAR, DIVIDE)  # micro-operations that are instructions, too, however long some take


@record(eq=False)
class Cost:
    """slots: of each resource; latency: cycles until the result is there; temporaries: registers that are
    needed besides those of operands and result. Of what was finished: used: (resource, slots) of what it
    takes; code: micro-operations by which code is longer."""

    slots: list[float] = field(default_factory=lambda: [0.0] * RESOURCES)
    latency: float = 0.0
    temporaries: int = 0
    used: list[tuple[int, float]] = field(default_factory=list)
    code: float = 0.0

    def add(self, resource: int, slots: float) -> Cost:
        """Uses so many slots more, each of which is a micro-operation, but for divisions."""
        self.slots[resource] += slots
        if resource != DIVIDE:
            self.slots[ISSUE] += slots
        return self

    def finish(self) -> Cost:
        """Notes what is used."""
        self.used = [(resource, slots) for resource, slots in enumerate(self.slots) if slots]
        self.code = sum(self.slots[_IN_CODE])
        return self


def on_vectors(slots: list[float]) -> float:
    """Micro-operations on vector registers."""
    return sum(slots[k] for k in OF_VECTORS)


@record(frozen=True)
class CpuModel:
    """A core.

    Started in a cycle: issue: micro-operations of any kind; scalar: integer operations; vector: operations on
    registers of vector_bits; multiply: of those, floating-point ones, products and fused ones; add:
    floating-point sums; shuffle: those across lanes; load, store: accesses of a whole register.
    *_latency: cycles until a result is there. *_cycles: how long something keeps its unit busy: divisions and
    roots of a register of floats and doubles; a lane of gathers and scatters; masked accesses; atomics.
    caches: bytes of the first and second cache, and of the last one, which cores share, as they share a
    launch; line_cycles: of a line from the second and the last cache and from memory, as streams; window:
    micro-operations that wait for others while a core looks for work behind them: its schedulers hold them,
    which are smaller than what it reorders; registers: of vectors; narrow: slots that an operation or an
    access takes which fills half of a register or less; code_cache: bytes of the innermost cache for
    instructions, code_bytes: of one, fetch_cycles: of one from the next cache, about 14 bytes a cycle, of
    which half is hidden; clock: GHz.
    """

    name: str
    vector_bits: int
    registers: int
    has_masks: bool  # registers for them, and so masked accesses of all element sizes
    has_gathers: bool = False  # of AVX2, as fast as loads; with registers for masks every core has them
    issue: float = 4
    scalar: float = 4
    vector: float = 3
    multiply: float = 2
    add: float = 2
    shuffle: float = 1
    load: float = 2
    store: float = 1
    add_latency: int = 4
    multiply_latency: int = 4
    product_latency: int = 10  # of 32-bit integers
    products: float = 2  # operations of one of these
    shuffle_latency: int = 3
    load_latency: int = 7
    divide_latency: tuple[int, int] = (11, 14)  # floats, doubles
    divide_cycles: tuple[float, float] = (5, 8)
    root_cycles: tuple[float, float] = (6, 10)
    integer_divide_cycles: tuple[float, float] = (6, 14)  # of 32 and 64 bits, scalars
    gather_cycles: float = 0.7
    gather_operations: float = 1.5
    scatter_cycles: float = 1.5
    masked_store_cycles: float = 1
    atomic_cycles: float = 18
    mispredicted: float = 16
    window: int = 97
    narrow: float = 1
    code_cache: int = 32 << 10
    code_bytes: int = 8
    fetch_cycles: float = 0.3
    caches: tuple[int, int, int] = (32 << 10, 1 << 20, 8 << 20)
    line_cycles: tuple[float, float, float] = (2, 8, 20)
    clock: float = 3.0


# Models by name: the one that each is like, and how it differs. Few are ever made in one process.
_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    # Intel: Haswell to Skylake of clients; Skylake of servers, Ice Lake, Golden Cove with 512 bits.
    "skylake": ("", {
        "vector_bits": 256, "registers": 16, "has_masks": False, "caches": (32 << 10, 256 << 10, 8 << 20),
        "line_cycles": (2, 6, 14),
    }),
    "skylake-avx512": ("", {
        "vector_bits": 512, "registers": 32, "has_masks": True, "vector": 2, "scatter_cycles": 1.2,
        "gather_cycles": 0.65, "divide_cycles": (10, 16), "root_cycles": (12, 24), "line_cycles": (2, 12, 18),
        "caches": (32 << 10, 1 << 20, 24 << 20),
    }),
    "icelake": ("skylake-avx512", {
        "issue": 5, "window": 125, "caches": (48 << 10, 1280 << 10, 36 << 20), "atomic_cycles": 18,
    }),
    "golden-cove": ("icelake", {
        "issue": 6, "scalar": 5, "store": 1, "window": 150, "add_latency": 3, "gather_cycles": 0.6,
        "caches": (48 << 10, 2 << 20, 60 << 20), "integer_divide_cycles": (6, 10),
    }),
    "golden-cove (256 bits)": ("golden-cove", {
        "vector_bits": 256, "registers": 16, "has_masks": False, "vector": 3, "shuffle": 2, "load": 3,
        "store": 2, "divide_cycles": (5, 8), "root_cycles": (6, 9),
    }),
    "golden-cove (256 bits, gathers)": ("golden-cove (256 bits)", {"has_gathers": True}),
    # AMD: Zen 2 and 3 with 256 bits, Zen 4, whose units have 256 bits and take registers of 512 in two steps.
    "zen3": ("", {
        "vector_bits": 256, "registers": 16, "has_masks": False, "issue": 6, "vector": 4, "shuffle": 2,
        "load": 2, "store": 1, "add_latency": 3, "multiply_latency": 4, "product_latency": 3, "products": 1,
        "shuffle_latency": 2, "divide_latency": (10, 13), "divide_cycles": (3.5, 5), "root_cycles": (5, 9),
        "integer_divide_cycles": (6, 10), "gather_cycles": 1.2, "gather_operations": 5, "scatter_cycles": 2,
        "masked_store_cycles": 12, "atomic_cycles": 8, "mispredicted": 13, "window": 96,
        "caches": (32 << 10, 512 << 10, 32 << 20), "line_cycles": (2, 4, 12), "clock": 3.3,
    }),
    "zen4 (256 bits)": ("zen3", {
        "window": 128, "caches": (32 << 10, 1 << 20, 32 << 20), "gather_cycles": 1.0,
    }),
    "zen4": ("zen4 (256 bits)", {
        "vector_bits": 512, "registers": 32, "has_masks": True, "vector": 2, "multiply": 1, "add": 1,
        "shuffle": 1, "load": 1, "store": 0.5, "divide_cycles": (7, 10), "root_cycles": (10, 18),
        "gather_cycles": 1.0, "scatter_cycles": 2, "masked_store_cycles": 1, "narrow": 0.5,
    }),
    # 128 bits: x86-64-v2, whose cores start three vector operations; Arm's Neoverse N1.
    "x86-64": ("skylake", {"vector_bits": 128}),
    "x86-64 of AMD": ("zen3", {"vector_bits": 128}),
    "neoverse": ("", {
        "vector_bits": 128, "registers": 32, "has_masks": False, "scalar": 3, "vector": 2, "add_latency": 2,
        "product_latency": 4, "products": 1, "shuffle_latency": 2, "load_latency": 5,
        "divide_cycles": (5, 10), "root_cycles": (7, 14), "gather_cycles": 1.5, "gather_operations": 3,
        "atomic_cycles": 10, "mispredicted": 11, "window": 80, "caches": (64 << 10, 1 << 20, 32 << 20),
        "line_cycles": (3, 8, 16),
        "code_cache": 64 << 10, "clock": 2.6,
    }),
}  # fmt: skip


@functools.cache
def _model(name: str) -> CpuModel:
    fields: dict[str, Any] = {}
    like = name
    while like:
        like, changes = _MODELS[like]
        fields = {**changes, **fields}
    return CpuModel(name, **fields)


def cycles(slots: list[float], model: CpuModel) -> tuple[float, int]:
    """Cycles that the busiest resource needs, and which that is."""
    started = (
        model.issue, model.scalar, model.vector, model.multiply, model.add, model.shuffle, model.load,
        model.store, 1.0,
    )  # fmt: skip
    taken = list(slots)
    taken[VECTOR] = on_vectors(slots)
    times = [count / per_cycle for count, per_cycle in zip(taken, started, strict=True)]
    most = max(range(len(times)), key=times.__getitem__)
    return times[most], most


def model_of(target: Target) -> CpuModel:
    """The CPU that code for a target runs on, as far as the target tells."""
    is_arm = target.architecture == "aarch64"
    features = frozenset(target.features)
    return find_model(features, target.vector_bits, is_arm, target.slow_masked_stores, target.far_ahead)


def find_model(
    features: AbstractSet[str], vector_bits: int, is_arm: bool, is_amd: bool, far_ahead: bool
) -> CpuModel:
    """The CPU with these features; is_amd: its masked stores are slow; far_ahead: it reads far ahead."""
    return _model(_name_of(features, vector_bits, is_arm, is_amd, far_ahead))


def _name_of(
    features: AbstractSet[str], vector_bits: int, is_arm: bool, is_amd: bool, far_ahead: bool
) -> str:
    if is_arm:
        return "neoverse"
    if vector_bits < 256:
        return "x86-64 of AMD" if is_amd else "x86-64"
    if is_amd:
        if vector_bits == 512:
            return "zen4"
        return "zen4 (256 bits)" if far_ahead and "gfni" in features else "zen3"
    if vector_bits == 512:
        if "avx512fp16" in features:
            return "golden-cove"
        return "icelake" if "avx512vbmi" in features else "skylake-avx512"
    if "fast-gather" in features:
        return "golden-cove (256 bits, gathers)"
    return "golden-cove (256 bits)" if "avxvnni" in features else "skylake"
