"""CPUs that tests can count on, whichever they find."""

from cl_driver.device.cpu import Cpu

SKYLAKE = Cpu(
    "x86_64",
    "name",
    "vendor",
    frozenset(
        "cmov cx8 cx16 fxsr mmx sse sse2 pni ssse3 sse4_1 sse4_2 popcnt lahf_lm avx avx2 bmi1 bmi2 f16c fma "
        "abm movbe xsave avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni vaes".split()
    ),
    2000,
)
