"""CPUs that tests can count on, whichever they find."""

from cl_driver.device.cpu import Cpu

# Of no vendor: without what the driver knows of Intel's dividers.
SKYLAKE = Cpu(
    "x86_64",
    "Skylake",
    "vendor",
    frozenset(
        "cmov cx8 cx16 fxsr mmx sse sse2 pni ssse3 sse4_1 sse4_2 popcnt lahf_lm avx avx2 bmi1 bmi2 f16c fma "
        "abm movbe xsave avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni vaes".split()
    ),
    2000,
)
_AVX512 = frozenset("avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq gfni vpclmulqdq".split())
_AVX2 = frozenset(flag for flag in SKYLAKE.flags if "avx512" not in flag)
ZEN3 = Cpu("x86_64", "Zen 3", "AuthenticAMD", _AVX2, 3000)
ZEN4 = Cpu("x86_64", "Zen 4", "AuthenticAMD", SKYLAKE.flags | _AVX512, 3000)
SAPPHIRE_RAPIDS = Cpu(
    "x86_64", "Sapphire Rapids", "GenuineIntel", SKYLAKE.flags | _AVX512 | {"avx512_fp16", "avx_vnni"}, 3000
)
