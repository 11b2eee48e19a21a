"""What kernels with checks hand to the data plane; native_shim/src/abi/check_abi.h is the same in C."""

from __future__ import annotations

# enum cld_kcheck_flags
OF_ARGUMENT = 1 << 3
OF_VARIABLE = 1 << 4
ACQUIRE = 1 << 5
RELEASE = 1 << 6
HAS_VALUE = 1 << 7
ANY_CONTENT = 1 << 8
ORDERS_LOCAL = 1 << 9
ORDERS_GLOBAL = 1 << 10
NO_READ = 1 << 11
NO_WRITE = 1 << 12
SIGNED = 1 << 13

# enum cld_kcheck_space
GLOBAL, LOCAL, PRIVATE, CONSTANT, GENERIC = range(5)

# struct cld_kcheck_site: index, line, column, size; kind, flags, argument, alignment; offset, bytes, file,
# name
SITE = "<4I4H4I"
SITE_SIZE = 40
SITES_HEADER = "<2I"
SITES_HEADER_SIZE = 8
