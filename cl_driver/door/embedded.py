"""The door of a Python that lives in the host's process: native_shim/embed/embed.c calls `serve`."""

from __future__ import annotations

import os
from _frozen_importlib import _module_locks  # type: ignore[attr-defined]  # private, and so not in typeshed
from _socket import SOCK_STREAM
from _thread import get_ident

from .. import spawn
from ..log import log
from .dispatch import serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any, TypeAlias

    CData: TypeAlias = Any  # cffi has no types for what C calls and is called with

_callback: CData = None


def imports_elsewhere() -> bool:
    """Whether another thread is importing a module. (Called with the GIL, before a fork.)"""
    locks = [reference() for reference in list(_module_locks.values())]
    return any(getattr(lock, "owner", None) not in (None, get_ident()) for lock in locks)


def register(ffi: CData, lib: CData) -> None:
    """Binds the C side. Runs once. ffi, lib: of the cffi module. Programs that the C side cannot
    start are an OSError to whoever wanted them."""
    global _callback

    def failed(kind: type[BaseException], value: BaseException, trace: TracebackType) -> int:
        log(1, f"door: {kind.__name__}: {value}")
        return -1

    @ffi.def_extern(error=-1, onerror=failed)  # type: ignore[untyped-decorator]  # cffi has no types
    def cld_embed_call(request: CData, size: int, reply: CData) -> CData:
        answer = serve(ffi.buffer(request, size)[:])
        return lib.cld_embed_answer(reply, ffi.from_buffer(answer), len(answer))

    def native_spawn(argv: list[str], environment: dict[str, str]) -> int:
        def strings(texts: Iterable[str]) -> tuple[CData, list[CData]]:
            kept = [ffi.new("char[]", os.fsencode(text)) for text in texts]
            return ffi.new("char *[]", [*kept, ffi.NULL]), kept

        arguments, kept_arguments = strings(argv)
        variables, kept_variables = strings(f"{key}={value}" for key, value in environment.items())
        descriptor: int = lib.cld_embed_spawn(arguments, variables, SOCK_STREAM)
        del kept_arguments, kept_variables
        if descriptor < 0:
            raise OSError(-descriptor, os.strerror(-descriptor), argv[0])
        return descriptor

    _callback = cld_embed_call
    spawn.use(
        native_spawn,
        lambda: bool(lib.cld_embed_has_own_descriptors()),
        lambda: bool(lib.cld_embed_may_change_root()),
    )
