"""The compile cache: entries on disk, named by the digest of what they were made from.

    <folder>/v2-<user>/<two digits>/<digest>           "CLDC" version, digest of the rest, kind-specific bytes
    <folder>/v2-<user>/sources/<digest>/program.cl     the source of a program built with -g, for debuggers
    <folder>/v2-<user>/.size                           its length tells about how large all of this is

The folder may be anybody's; from v2-<user> on all is one user's own, made so, and found to be so whenever it
is opened: entries are machine code, and who could write them could run it. Names are looked up from the
descriptor of their folder, and links are not followed. What is not ours is left as it is, not even opened for
reading if that could block.

Any number of processes share it without locks. An entry is written to a file of its own and renamed, so a
reader sees all of it or none. Nothing is synced: after a loss of power a renamed file may hold anything, the
digest shows it, and an entry that fails its digest is a miss and is removed. What was not read for the
longest time goes first when the folder outgrows its bound. To look at all entries takes a third of a second
where there are 60,000: so each writer lengthens a file by as much as it has written, which says when to look,
and who has looked gives it the length that is right. A folder that cannot be used (no HOME, read-only,
full disk, quota, another user's) is no error: what could not be stored is kept in memory, and the log says
why.

Imported by the host's process: os and a hash are all it needs.
"""

from __future__ import annotations

import os
import stat
import time

from .. import trust
from ..log import log

try:
    from _blake2 import blake2b  # hashlib would load OpenSSL
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import ParamSpec

    Parameters = ParamSpec("Parameters")

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
_LARGEST = 512 << 20  # bytes of an entry
_BEFORE = "v1"  # the folder of earlier versions, which others could have made


def digest(*parts: bytes) -> str:
    """A key: the hash of byte strings, each with its length, so that no two lists of parts run together."""
    state = blake2b(digest_size=24)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def default_folder(setting: str, environment: Mapping[str, str] | None = None) -> str:
    """Where the cache lives: the setting CL_DRIVER_CACHE_DIR, else XDG_CACHE_HOME, else HOME; "" for nowhere.

    environment: of this process when None; a process that is not trusted has no cache on disk. XDG base
    directory specification: a relative XDG_CACHE_HOME is to be ignored.
    """
    if environment is None:
        environment = trust.environment()
    if setting:
        return os.path.abspath(setting)
    xdg = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):
        return os.path.join(xdg, "cl_driver")
    home = environment.get("HOME", "")
    return os.path.join(home, ".cache", "cl_driver") if os.path.isabs(home) else ""


class Untrusted(OSError):
    """A folder or file that is not this user's alone."""


class Folder:
    """A folder of this user's alone, open. For `with`, which closes it.

    OSError where it is not there, or is somebody's who could change what is in it.
    """

    descriptor: int

    def __init__(self, name: str, parent: Folder | None = None, make: bool = False) -> None:
        where = None if parent is None else parent.descriptor
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self.descriptor = os.open(name, flags, dir_fd=where)
        except FileNotFoundError:
            if not make:
                raise
            try:  # noqa: SIM105
                os.mkdir(name, 0o700, dir_fd=where)
            except FileExistsError:
                pass
            self.descriptor = os.open(name, flags, dir_fd=where)
        status = os.fstat(self.descriptor)
        wrong = ""
        if status.st_uid != os.geteuid():
            wrong = f"{name} belongs to user {status.st_uid}"
        elif status.st_mode & 0o077:
            wrong = f"{name} may be entered by other users"
        if wrong:
            self.__exit__()
            raise Untrusted(0, wrong)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *why: object) -> None:
        os.close(self.descriptor)

    def open(self, name: str, flags: int) -> int:
        """The descriptor of a file, without waiting for anybody."""
        flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(name, flags, 0o600, dir_fd=self.descriptor)

    def unlink(self, path: str) -> None:
        """Removes a file, and the folder of a source, which has no other. No error where it cannot."""
        _quietly(os.unlink, path, dir_fd=self.descriptor)
        if path.endswith(f"/{SOURCE_NAME}"):
            _quietly(os.rmdir, os.path.dirname(path), dir_fd=self.descriptor)

    def entries(self, path: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """(path from here, status) of every file in it and in its folders, but the one with their size."""
        with os.scandir(self.descriptor) as found:
            for entry in found:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        with Folder(entry.name, self) as inner:
                            yield from inner.entries(f"{path}{entry.name}/")
                    elif path or entry.name != _SIZE:
                        yield path + entry.name, entry.stat(follow_symlinks=False)
                except OSError:
                    continue


def make_folders(path: str) -> None:
    """The folder that a user named, with those above it.

    A root that works in another user's HOME must not leave files there that their owner cannot replace.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        make_folders(os.path.dirname(path))
        try:  # noqa: SIM105
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        return
    if os.geteuid() == 0 != status.st_uid and not status.st_mode & stat.S_IWOTH:
        raise Untrusted(0, f"{path} belongs to user {status.st_uid}")


class Cache:
    """folder: "" keeps everything in memory; bound: bytes on disk, 0 stores nothing there.

    Thread-safe as far as the files go; the memory part relies on single dict operations being atomic.
    """

    def __init__(self, folder: str, bound: int) -> None:
        self.folder = f"{folder}/v2-{os.geteuid()}" if folder and bound else ""
        self.bound = bound
        self._memory: dict[str, bytes] = {}
        self._complained = False

    def _open(self, make: bool = False) -> Folder:
        if not make:
            return Folder(self.folder)
        try:
            return Folder(self.folder)
        except FileNotFoundError:
            base = os.path.dirname(self.folder)
            make_folders(base)
            made = Folder(self.folder, make=True)
            _quietly(self._adopt, base, made)
            return made

    @staticmethod
    def _adopt(base: str, made: Folder) -> None:
        """Puts what an earlier version left where it counts, and goes in the end."""
        with Folder(f"{base}/{_BEFORE}"):
            os.rename(f"{base}/{_BEFORE}", _BEFORE, dst_dir_fd=made.descriptor)

    def _complain(self, error: OSError) -> None:
        """Once: it would be the same of every entry."""
        if not self._complained:
            self._complained = True
            log(1, f"the compile cache {self.folder} cannot be used: {error.strerror}")

    def load(self, key: str) -> bytes | None:
        """The entry's bytes; None if there is none, or none that is whole."""
        kept = self._memory.get(key)
        if kept is not None or not self.folder:
            return kept
        try:
            with self._open() as root, Folder(key[:2], root) as folder:
                return self._read(folder, key)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._complain(error)
            return None

    def _read(self, folder: Folder, key: str) -> bytes | None:
        with open(folder.open(key, os.O_RDONLY), "rb") as file:
            status = os.fstat(file.fileno())
            if not _is_ours(status) or status.st_size > _LARGEST:
                return None
            data = file.read(status.st_size)
            if time.time() - status.st_mtime > _TOUCH:
                _quietly(os.utime, file.fileno())
        body = data[_HEADER:]
        if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : _HEADER] != self._check(key, body):
            folder.unlink(key)
            return None
        return body

    @staticmethod
    def _check(key: str, body: bytes) -> bytes:
        """Over the key too, so that an entry under another's name does not pass."""
        return blake2b(body, digest_size=_DIGEST, key=key.encode()).digest()

    def store(self, key: str, body: bytes) -> bool:
        """Keeps an entry; True if it is on disk, False if in memory only."""
        data = _MAGIC + self._check(key, body) + body
        fits = self.folder and len(data) <= min(self.bound, _LARGEST)
        stored = bool(fits) and self._write([key[:2]], key, data)
        if not stored:
            self._keep(key, body)
        return stored

    def _size_with(self, root: Folder, more: int) -> float:
        """About the bytes on disk, with those that were written just now; infinite if nobody knows."""
        try:
            file = root.open(_SIZE, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(file, bytes(-(-more // _UNIT)))
                return os.fstat(file).st_size * _UNIT
            finally:
                os.close(file)
        except OSError:
            return float("inf")

    @staticmethod
    def _set_size(root: Folder, size: int) -> None:
        file = root.open(_SIZE, os.O_WRONLY | os.O_CREAT)
        try:
            os.ftruncate(file, -(-size // _UNIT))
        finally:
            os.close(file)

    def keep_source(self, source: bytes) -> str:
        """A file with the text of a program, for debuggers; "" if there is no place for it."""
        key = digest(source)
        if self.folder and (self._has_source(key) or self._write([_SOURCES, key], SOURCE_NAME, source)):
            return f"{self.folder}/{_SOURCES}/{key}/{SOURCE_NAME}"
        return ""

    def _has_source(self, key: str) -> bool:
        try:
            with self._open() as root, Folder(_SOURCES, root) as sources, Folder(key, sources) as folder:
                return _is_ours(os.stat(SOURCE_NAME, dir_fd=folder.descriptor, follow_symlinks=False))
        except OSError:
            return False

    def _write(self, folders: list[str], name: str, data: bytes) -> bool:
        try:
            with self._open(make=True) as root:
                self._replace(root, folders, name, data)
                if self._size_with(root, len(data)) > self.bound:
                    self._sweep(root)
        except OSError as error:
            self._complain(error)
            return False
        return True

    @staticmethod
    def _replace(root: Folder, folders: list[str], name: str, data: bytes) -> None:
        """Gives a file, in folders inside one another, another content: whole or not at all."""
        temporary = f"{_TEMPORARY}{os.getpid()}-{os.urandom(6).hex()}"

        def put(folder: Folder, inner: list[str]) -> None:
            if inner:
                with Folder(inner[0], folder, make=True) as next_one:
                    put(next_one, inner[1:])
            else:
                os.rename(temporary, name, src_dir_fd=root.descriptor, dst_dir_fd=folder.descriptor)

        try:
            with open(root.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(data)
            put(root, folders)
        except OSError:
            root.unlink(temporary)
            raise

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
        try:
            with self._open() as root:
                return self._sweep(root)
        except OSError:
            return 0

    def _sweep(self, root: Folder) -> int:
        entries, now = [], time.time()
        for path, status in root.entries():
            if not path.startswith(_TEMPORARY):
                entries.append((status.st_mtime, status.st_size, path))
            elif now - status.st_mtime > _ABANDONED:
                root.unlink(path)
        total = sum(size for _, size, _ in entries)
        if total > self.bound:
            for _, size, path in sorted(entries):
                if total <= self.bound - self.bound // 10:
                    break
                root.unlink(path)
                total -= size
        _quietly(self._set_size, root, total)
        return total

    def clear(self) -> None:
        """Forgets everything."""
        self._memory.clear()
        try:
            with self._open() as root:
                for path, _ in list(root.entries()):
                    root.unlink(path)
                root.unlink(_SIZE)
        except OSError:
            pass

    def trouble(self) -> str:
        """Why nothing can be kept on disk; "" if it can, as far as one can tell without doing it."""
        if not self.folder:
            return "there is no folder for it (HOME is not set), or its size is set to 0"
        try:
            self._open().__exit__()
            nearest = self.folder
        except FileNotFoundError:
            nearest = os.path.dirname(self.folder)
            while not os.path.exists(nearest):
                nearest = os.path.dirname(nearest)
        except OSError as error:
            return error.strerror or str(error)
        try:
            make_folders(nearest)  # which are there
        except OSError as error:
            return error.strerror or str(error)
        if not os.path.isdir(nearest):
            return f"Not a directory ({nearest})"
        return "" if os.access(nearest, os.W_OK | os.X_OK) else f"{nearest} is not writable"

    def status(self) -> str:
        """One sentence for `cl-driver status`: where the cache is, or why there is none on disk."""
        trouble = self.trouble()
        if trouble:
            return f"in memory only: {trouble}"
        sizes: list[int] = []
        try:
            with self._open() as root:
                sizes = [status.st_size for _, status in root.entries()]
        except OSError:
            pass  # it is not there yet
        total = sum(sizes) / (1 << 20)
        return f"{self.folder}: {len(sizes)} entries, {total:.1f} of {self.bound / (1 << 20):.0f} MiB"


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file is one that this user wrote."""
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _quietly(
    function: Callable[Parameters, object], *args: Parameters.args, **names: Parameters.kwargs
) -> None:
    """contextlib.suppress without importing contextlib, which takes longer than all of this file."""
    try:  # noqa: SIM105
        function(*args, **names)
    except OSError:
        pass
