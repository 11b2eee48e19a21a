"""Limits of the system for compiler processes, and what they start."""

from __future__ import annotations

import resource

# Limits that are raised as far as may be. The stack's is clang's.
_WANTED = {
    resource.RLIMIT_NOFILE: 1024,
    resource.RLIMIT_STACK: 8 << 20,
    resource.RLIMIT_DATA: 1 << 62,
    resource.RLIMIT_FSIZE: 1 << 62,
}


def limit_memory(size: int) -> None:
    """Bytes of address space that this process may have, 0 for no limit; and it leaves no core."""
    if size:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def raise_limits() -> None:
    """What a host has taken from itself and may take back is no business of the compiler's."""
    for kind, wanted in _WANTED.items():
        soft, hard = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            limit = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
            resource.setrlimit(kind, (limit, hard))
