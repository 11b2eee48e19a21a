"""The compile cache: entries on disk, named by the digest of what they were made from.

    <folder>/v1/<first two digits>/<digest>      "CLDC" version, digest of the rest, kind-specific bytes
    <folder>/v1/sources/<digest>/program.cl      the source of a program built with -g, for debuggers
    <folder>/v1/.size                            its length tells about how large all of this is

Any number of processes share it without locks. An entry is written to a file of its own and renamed, so a
reader sees all of it or none. Nothing is synced: after a loss of power a renamed file may hold anything, the
digest shows it, and an entry that fails its digest is a miss and is removed. What was not read for the
longest time goes first when the folder outgrows its bound. To look at all entries takes a third of a second
where there are 60,000: so each writer lengthens a file by as much as it has written, which says when to look,
and who has looked gives it the length that is right. A folder that cannot be used (no HOME, read-only,
full disk, quota, another user's) is no error: what could not be stored is kept in memory.

Imported by the host's process: os and a hash are all it needs.
"""

from __future__ import annotations

import os
import time

try:
    from _blake2 import blake2b  # hashlib would load OpenSSL, ten times as long
except ImportError:
    from hashlib import blake2b

_MAGIC = b"CLDC\x01\x00\x00\x00"
_DIGEST = 16
_HEADER = len(_MAGIC) + _DIGEST
_MEMORY_BOUND = 64 << 20
_TEMPORARY = ".tmp-"
_SOURCES = "sources"
SOURCE_NAME = "program.cl"  # as in frontend/clang.py, which the host's process does not import
_ABANDONED = 3600  # seconds after which a temporary file belongs to a process that was killed
_TOUCH = 600  # seconds: an entry's time stamp is renewed at most so often
_SIZE = ".size"
_UNIT = 1024  # bytes that a byte of that file stands for


def digest(*parts: bytes) -> str:
    """A key: the hash of byte strings, each with its length, so that no two lists of parts run together."""
    state = blake2b(digest_size=24)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def default_folder(setting: str, environment=os.environ) -> str:
    """Where the cache lives: the setting CL_DRIVER_CACHE_DIR, else XDG_CACHE_HOME, else HOME; "" for nowhere.

    XDG base directory specification: a relative XDG_CACHE_HOME is to be ignored.
    """
    if setting:
        return os.path.abspath(setting)
    xdg = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):
        return os.path.join(xdg, "cl_driver")
    home = environment.get("HOME", "")
    return os.path.join(home, ".cache", "cl_driver") if os.path.isabs(home) else ""


class Cache:
    """folder: "" keeps everything in memory; bound: bytes on disk, 0 stores nothing there.

    Thread-safe as far as the files go; the memory part relies on single dict operations being atomic.
    """

    def __init__(self, folder: str, bound: int):
        self.folder = os.path.join(folder, "v1") if folder and bound else ""
        self.bound = bound
        self._memory: dict[str, bytes] = {}

    def _path(self, key: str) -> str:
        return f"{self.folder}/{key[:2]}/{key}"

    def load(self, key: str) -> bytes | None:
        """The entry's bytes; None if there is none, or none that is whole."""
        kept = self._memory.get(key)
        if kept is not None or not self.folder:
            return kept
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                data = file.read()
        except OSError:
            return None
        body = data[_HEADER:]
        if status.st_uid not in (os.geteuid(), 0):
            return None  # entries are machine code: another user's are not trusted
        if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : _HEADER] != self._check(key, body):
            _quietly(os.unlink, path)
            return None
        if time.time() - status.st_mtime > _TOUCH:
            _quietly(os.utime, path)
        return body

    @staticmethod
    def _check(key: str, body: bytes) -> bytes:
        """Over the key too, so that an entry under another's name does not pass."""
        return blake2b(body, digest_size=_DIGEST, key=key.encode()).digest()

    def store(self, key: str, body: bytes) -> bool:
        """Keeps an entry; True if it is on disk, False if in memory only."""
        data = _MAGIC + self._check(key, body) + body
        stored = bool(self.folder) and len(data) <= self.bound and self._write(self._path(key), data)
        if not stored:
            self._keep(key, body)
        return stored

    def _size_with(self, more: int) -> float:
        """About the bytes on disk, with those that were written just now; infinite if nobody knows."""
        try:
            file = self._open_size(os.O_APPEND)
            try:
                os.write(file, bytes(-(-more // _UNIT)))
                return os.fstat(file).st_size * _UNIT
            finally:
                os.close(file)
        except OSError:
            return float("inf")

    def _set_size(self, size: int) -> None:
        file = self._open_size(os.O_CREAT)
        try:
            os.ftruncate(file, -(-size // _UNIT))
        finally:
            os.close(file)

    def _open_size(self, how: int) -> int:
        return os.open(f"{self.folder}/{_SIZE}", how | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def keep_source(self, source: bytes) -> str:
        """A file with the text of a program, for debuggers; "" if there is no place for it."""
        path = f"{self.folder}/{_SOURCES}/{digest(source)}/{SOURCE_NAME}"
        if self.folder and (os.path.exists(path) or self._write(path, source)):
            return path
        return ""

    def _write(self, path: str, data: bytes) -> bool:
        temporary = f"{self.folder}/{_TEMPORARY}{os.getpid()}-{os.urandom(6).hex()}"
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if not _is_private(os.path.dirname(self.folder)):
                return False
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(data)
            os.rename(temporary, path)
        except OSError:
            _quietly(os.unlink, temporary)
            return False
        if self._size_with(len(data)) > self.bound:
            self.sweep()
        return True

    def _keep(self, key: str, body: bytes) -> None:
        self._memory[key] = body
        total = sum(map(len, list(self._memory.values())))
        for old in list(self._memory):
            if total <= _MEMORY_BOUND:
                break
            total -= len(self._memory.pop(old, b""))

    def sweep(self) -> int:
        """Brings the folder 10 % below its bound, if it is above it, by removing what was not used for the
        longest time; and removes what killed writers left. Returns the bytes that remain."""
        entries, now = [], time.time()
        for entry in self._entries():
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if not entry.name.startswith(_TEMPORARY):
                entries.append((status.st_mtime, status.st_size, entry.path))
            elif now - status.st_mtime > _ABANDONED:
                _quietly(os.unlink, entry.path)
        total = sum(size for _, size, _ in entries)
        if total > self.bound:
            for _, size, path in sorted(entries):
                if total <= self.bound - self.bound // 10:
                    break
                _remove(path)
                total -= size
        _quietly(self._set_size, total)
        return total

    def _entries(self):
        """Every file of the folder and of its sub-folders, but the one that tells their size."""
        pending = [self.folder] if self.folder else []
        while pending:
            try:
                with os.scandir(pending.pop()) as found:
                    for entry in found:
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                        elif entry.name != _SIZE:
                            yield entry
            except OSError:
                continue

    def clear(self) -> None:
        """Forgets everything."""
        self._memory.clear()
        for entry in list(self._entries()):
            _remove(entry.path)
        _quietly(os.unlink, f"{self.folder}/{_SIZE}")

    def status(self) -> str:
        """One sentence for `cl-driver status`: where the cache is, or why there is none on disk."""
        if not self.folder:
            return "in memory only: there is no folder for it (HOME is not set), or its size is set to 0"
        nearest = self.folder
        while not os.path.exists(nearest):
            nearest = os.path.dirname(nearest)
        if not os.access(nearest, os.W_OK | os.X_OK):
            return f"in memory only: {nearest} is not writable"
        count = total = 0
        for entry in self._entries():
            count += 1
            total += entry.stat(follow_symlinks=False).st_size
        return f"{self.folder}: {count} entries, {total / (1 << 20):.1f} of {self.bound / (1 << 20):.0f} MiB"


def _is_private(folder: str) -> bool:
    """True if the folder is this user's own; then nobody else may enter it from now on. A root that works in
    another user's HOME must not leave files there that their owner cannot replace."""
    status = os.stat(folder)
    if status.st_uid != os.geteuid():
        return False
    if status.st_mode & 0o077:
        os.chmod(folder, 0o700)
    return True


def _remove(path: str) -> None:
    _quietly(os.unlink, path)
    if path.endswith(SOURCE_NAME):
        _quietly(os.rmdir, os.path.dirname(path))


def _quietly(function, *args) -> None:
    """contextlib.suppress without importing contextlib, which takes longer than all of this file."""
    try:  # noqa: SIM105
        function(*args)
    except OSError:
        pass
