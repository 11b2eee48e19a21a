"""What the cache keeps of programs: under which keys, and whether it still holds (the files: jit/cache.py).

An entry is a result with its log, the tools that made it, and digests of the files that it was made of; it
holds while these are what they were.
"""

from __future__ import annotations

import os

from .. import settings, wire
from ..device.target import Target
from ..jit import identity
from ..jit.cache import Cache, default_folder, digest
from .files import changed_since, cwd, digest_of, would_come_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocol import Files

# Files that a program looks for, of one that is cached.
_MOST_FILES = 4096

# What a build without a source depends on: no file, none that is missing, and not the time. It is not cut.
NO_FILES: Files = [[], [], True, False]


class Entries:
    """Of one service, for a target, under settings by name. is_used: whether anything is kept."""

    def __init__(self, target: Target, known: dict[str, str], is_used: bool) -> None:
        folder = default_folder(settings.text("CL_DRIVER_CACHE_DIR"))
        self.cache = Cache(folder, settings.integer("CL_DRIVER_CACHE_SIZE") or 0)
        self.is_used = is_used and bool(identity.compiler())
        self._target = target
        self._tools = known["CL_DRIVER_CLANG"], known["CL_DRIVER_LLVM"]
        self._key = "\0".join(f"{name}={value}" for name, value in known.items())

    def key(self, what: str, options: str, *parts: bytes) -> str:
        """The digest of a request of that kind: of these options and this content."""
        common = (what, identity.compiler(), self._target.key, self._key, options)
        return digest(*(text.encode("utf-8", "surrogateescape") for text in common), *parts)

    def keys(self, digest: str) -> list[str]:
        """That key for load() and store(); none where the cache is not used."""
        return [digest] if self.is_used else []

    def source_keys(self, what: str, source: bytes, options: str, headers: dict[str, bytes]) -> list[str]:
        """Of a program that looks for no files, and of one that does: relative paths start in the working
        folder. Which it is, clang tells."""
        if not self.is_used:
            return []
        parts = [source]
        for name in sorted(headers):
            parts += [name.encode("utf-8", "surrogateescape"), headers[name]]
        plain = self.key(what, options, *parts)
        return [plain, digest(plain.encode(), os.fsencode(cwd()))]

    def load(self, keys: list[str]) -> tuple[str, bytes] | None:
        """Log and result of the first entry that is there, if its files and tools are what they were."""
        entry = next((found for key in keys if (found := self.cache.load(key)) is not None), None)
        if entry is None:
            return None
        try:
            tools, files, log, result = wire.decode(entry)
        except ValueError:
            return None
        if not identity.unchanged(tools):
            return None
        for path, content in files:
            if os.path.lexists(path) if content is None else digest_of(path) != content:
                return None
        return log, result

    def store(
        self,
        keys: list[str],
        options: str,
        start: float,
        result: bytes,
        files: Files = NO_FILES,
        log: str = "",
    ) -> None:
        """start: time.time() before the source was read. files: those of frontend/includes.Files."""
        read, absent, is_timeless = files[:3]
        if not keys or not is_timeless or any(changed_since(path, start) for path in read):
            return
        known = [[path, digest_of(path)] for path in read]
        if any(content is None for _, content in known):
            return
        known += [[path, None] for path in would_come_first(read, absent, options)]
        if len(known) > _MOST_FILES or any(
            content is None and os.path.lexists(path) for path, content in known
        ):
            return  # it has come into being meanwhile
        tools = identity.tools(*self._tools)
        self.cache.store(keys[-1 if known else 0], wire.encode([tools, known, log, result]))

    def source_copy(self, source: bytes, options: str) -> str:
        """Where a debugger finds the source of a program built with -g; "" without."""
        return self.cache.keep_source(source) if self._target.checks or "-g" in options.split() else ""
