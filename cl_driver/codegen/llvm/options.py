"""What code generation may depend on besides the plan: hashable, part of the cache key."""

from __future__ import annotations

from ...records import record


@record(frozen=True, slots=True)
class CodegenOptions:
    """features: LLVM's names of the CPU features that may be used ("fma", "f16c", "avx512f", ...)."""

    features: frozenset[str] = frozenset({"fma", "f16c", "sse4.1"})
    vector_bits: int = 256  # widest SIMD register to use
    mad_enable: bool = False  # -cl-mad-enable
    no_signed_zeros: bool = False  # -cl-no-signed-zeros
    unsafe_math: bool = False  # -cl-unsafe-math-optimizations
    finite_math_only: bool = False  # -cl-finite-math-only
    fast_relaxed_math: bool = False  # -cl-fast-relaxed-math
    aarch64: bool = False
    exact_division: bool = False  # -cl-fp32-correctly-rounded-divide-sqrt
    slow_division: bool = False  # of the widest vectors: estimates are faster (expand/reciprocals.py)
    far_ahead: bool = False  # what the next group reads is fetched into the second cache (access/prefetch.py)
    terminable: bool = False  # loops look whether the context was terminated (cl_khr_terminate_context)
    slow_masked_stores: bool = False  # of AVX2, as AMD makes them: see passes/cost/cpu_models.py

    @property
    def has_fma(self) -> bool:
        """A fused multiply-add instruction for float and double."""
        return self.aarch64 or "fma" in self.features

    @property
    def has_half_conversion(self) -> bool:
        """Instructions that convert between half and float."""
        return self.aarch64 or "f16c" in self.features

    @property
    def has_directed_half(self) -> bool:
        """Such an instruction that has a rounding mode of its own, from float to half."""
        return not self.aarch64 and "f16c" in self.features

    @property
    def has_wide_half(self) -> bool:
        """The same for 16 numbers."""
        return self.has_directed_half and "avx512f" in self.features and self.vector_bits >= 512

    @property
    def has_native_half(self) -> bool:
        """Arithmetic instructions for half."""
        return ("fullfp16" if self.aarch64 else "avx512fp16") in self.features

    @property
    def fast_math_flags(self) -> str:
        """LLVM's flags for every floating-point operation of the program, each followed by a space.

        OpenCL C 3.0 unified specification, section 5.8.4.3 (optimisation options).
        """
        if self.fast_relaxed_math:
            return "fast "
        flags = []
        if self.finite_math_only:
            flags += ["nnan", "ninf"]
        if self.no_signed_zeros or self.unsafe_math:
            flags.append("nsz")
        if self.unsafe_math:
            flags += ["arcp", "afn", "reassoc"]
        if self.mad_enable or self.unsafe_math:
            flags.append("contract")
        return "".join(f"{flag} " for flag in flags)
