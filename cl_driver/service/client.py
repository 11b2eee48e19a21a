"""The compile service as the control plane sees it: cache first, then compiler processes.

Runs in the host's process or in the runtime process; never imports llvmlite or numpy, and what only a cache
miss needs (sockets, threads) only then. Any thread may call any function here. After a fork the child starts
its own compiler processes.
"""

from __future__ import annotations

import os
import stat
import time

from .. import settings, trust, wire
from ..device.target import Target, target_of
from ..jit import bundle, identity
from ..jit.cache import Cache, default_folder, digest
from ..jit.errors import CompileError
from ..jit.executable import Executable, ExecutableError, KernelInfo, VariantCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pool import Budget, Pool
    from .protocol import Answer, Files, Job, Request

# A program of fewer instructions than this is compiled where it was read: to hand its kernels to other
# processes would take longer.
_FINISH_ALONE = 600

# Requests into which the kernels of another are divided, for each process: as many as it takes to end
# together, and no more than that, since each of them has the program with it.
_SHARES = 16

# Files that a program looks for, of one that is cached.
_MOST_FILES = 4096

_PART = 1 << 20  # bytes read at a time

# Seconds by which a file's time stamp may lag behind the clock.
_CLOCK_STEP = 0.02

# What a build without a source depends on: no file, none that is missing, and not the time.
_NO_FILES: Files = [[], [], True]


class SourceResult:
    """il: SPIR-V, or None if the source does not compile; log: what the compiler said, warnings too."""

    __slots__ = ("il", "log")

    def __init__(self, il: bytes | None, log: str) -> None:
        self.il = il
        self.log = log


class Service:
    """One per process. pid: of the process that may use it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.target: Target = target_of(settings)
        folder = default_folder(settings.text("CL_DRIVER_CACHE_DIR"))
        self.cache = Cache(folder, settings.integer("CL_DRIVER_CACHE_SIZE") or 0)
        self._settings = dict(settings.key_values())
        self._key = "\0".join(f"{name}={value}" for name, value in self._settings.items())
        self._settings["CL_DRIVER_DUMP"] = settings.text("CL_DRIVER_DUMP")
        self._explain = settings.text("CL_DRIVER_EXPLAIN")
        self._uses_cache = not (self._settings["CL_DRIVER_DUMP"] or self._explain)
        self._inprocess = settings.text("CL_DRIVER_COMPILE") == "inprocess"
        self._pools: list[Pool] = []

    # Keys.

    def _digest(self, what: str, options: str, *parts: bytes) -> str:
        common = (what, identity.compiler(), self.target.key, self._key, options)
        return digest(*(text.encode("utf-8", "surrogateescape") for text in common), *parts)

    def _source_keys(self, what: str, source: bytes, options: str, headers: dict[str, bytes]) -> list[str]:
        """Of a program that looks for no files, and of one that does: relative paths start in the working
        folder. Which it is, clang tells."""
        if not self._uses_cache:
            return []
        parts = [source]
        for name in sorted(headers):
            parts += [name.encode("utf-8", "surrogateescape"), headers[name]]
        plain = self._digest(what, options, *parts)
        return [plain, digest(plain.encode(), os.fsencode(_cwd()))]

    # The cache.

    def _load(self, keys: list[str]) -> tuple[str, bytes] | None:
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
            if os.path.lexists(path) if content is None else _content(path) != content:
                return None
        return log, result

    def _store(
        self, keys: list[str], options: str, start: float, files: Files, log: str, result: bytes
    ) -> None:
        """start: time.time() before the source was read. files: those of frontend/includes.Files."""
        read, absent, is_timeless = files
        if not keys or not is_timeless or any(_changed_since(path, start) for path in read):
            return
        known = [[path, _content(path)] for path in read]
        if any(content is None for _, content in known):
            return
        known += [[path, None] for path in _would_come_first(read, absent, options)]
        if len(known) > _MOST_FILES or any(
            content is None and os.path.lexists(path) for path, content in known
        ):
            return  # it has come into being meanwhile
        tools = identity.tools(self._settings["CL_DRIVER_CLANG"], self._settings["CL_DRIVER_LLVM"])
        self.cache.store(keys[-1 if known else 0], wire.encode([tools, known, log, result]))

    # Processes.

    def _pool(self) -> Pool:
        if not self._pools:
            from .pool import Pool

            self._pools.append(Pool(len(os.sched_getaffinity(0))))
        return self._pools[0]

    def _job(self, options: str, source_copy: str = "") -> Job:
        return {
            "target": self.target.to_values(),
            "options": options,
            "settings": self._settings,
            "cwd": _cwd(),
            "source_copy": source_copy,
        }

    def _source_copy(self, source: bytes, options: str) -> str:
        """Where a debugger finds the source of a program built with -g; "" without."""
        return self.cache.keep_source(source) if "-g" in options.split() else ""

    def _budget(self) -> Budget:
        """For one build."""
        from .pool import Budget

        return Budget(settings.integer("CL_DRIVER_COMPILE_TIMEOUT") or 0)

    def _run(self, requests: list[Request], budget: Budget) -> list[Any]:
        if self._inprocess:
            from . import jobs

            return [jobs.run(*request) for request in requests]
        return self._pool().run(requests, budget)

    def _start_more(self, kernels: int) -> None:
        """Has processes warm up, while the first one reads the program, if its kernels will need them."""
        if kernels > 1 and not self._inprocess:
            self._pool().start(kernels)

    # Operations.

    def compile_source(self, source: bytes, options: str, headers: dict[str, bytes]) -> SourceResult:
        """See the function of that name."""
        if self._explain:
            options += " -g"  # so that the report on what is linked has lines; the code is the same
        keys, copy = (
            self._source_keys("compile", source, options, headers),
            self._source_copy(source, options),
        )
        found = self._load(keys)
        if found:
            return SourceResult(found[1], found[0])
        start = time.time()
        try:
            request = ["compile_source", self._job(options, copy), source, headers]
            [(il, log, files)] = self._run([request], self._budget())
        except CompileError as error:
            return SourceResult(None, str(error))
        if il is not None:
            self._store(keys, options, start, files, log, il)
        return SourceResult(il, log)

    def link(self, modules: list[bytes], options: str) -> tuple[bytes | None, str]:
        """See the function of that name."""
        try:
            il = bundle.join(modules)
            [log] = self._run([["link", self._job(options), il]], self._budget())
        except (CompileError, bundle.BundleError) as error:
            return None, str(error)
        return il, log

    def build(
        self, modules: list[bytes], options: str, specialisation: dict[int, bytes]
    ) -> tuple[Executable | None, str]:
        """See the function of that name."""
        try:
            il = bundle.join(modules)
            if specialisation:
                il = bundle.specialise(il, specialisation)
        except bundle.BundleError as error:
            return None, str(error)
        keys = [self._digest("build", options, il)] if self._uses_cache else []
        finished = self._finished(keys)
        if finished:
            return finished
        return self._build(keys, ["prepare", self._job(options), il, self._finish()])

    def build_source(
        self, source: bytes, options: str, headers: dict[str, bytes]
    ) -> tuple[Executable | None, str]:
        """See the function of that name."""
        keys, copy = self._source_keys("build", source, options, headers), self._source_copy(source, options)
        finished = self._finished(keys)
        if finished:
            return finished
        if len(source) > 4000:
            self._start_more(source.count(b"kernel void"))
        request = ["build_source", self._job(options, copy), source, headers, self._finish()]
        return self._build(keys, request)

    def _finish(self) -> int:
        """Programs of at most so many instructions are finished by the process that reads them."""
        return 1 << 62 if self._inprocess or self._pool().limit == 1 else _FINISH_ALONE

    def _finished(self, keys: list[str]) -> tuple[Executable, str] | None:
        """What the cache has."""
        found = self._load(keys)
        if not found:
            return None
        try:
            return Executable.from_bytes(found[1]), found[0]
        except ExecutableError:
            return None

    def _build(self, keys: list[str], request: Request) -> tuple[Executable | None, str]:
        start, budget, log = time.time(), self._budget(), ""
        try:
            answer: Answer
            [answer] = self._run([request], budget)
            log = answer["log"]
            if "kernels" not in answer:
                return None, log
            data = answer.get("executable") or self._kernels(request[1], answer, budget)
            executable = Executable.from_bytes(data)
        except (CompileError, ExecutableError) as error:
            return None, log + str(error)
        self._store(keys, request[1]["options"], start, answer.get("files", _NO_FILES), log, data)
        if self._explain:
            self._report(request)
        return executable, log

    def _report(self, request: Request) -> None:
        """Leaves a report on a program that was built, in the folder of CL_DRIVER_EXPLAIN."""
        operation, job, program, *rest = request
        headers = rest[0] if operation == "build_source" else None
        try:
            self._run([["explain", job, self._explain, program, headers]], self._budget())
        except CompileError:
            pass  # nobody waits for it (and contextlib takes long to import)

    def _kernels(self, job: Job, answer: Answer, budget: Budget) -> bytes:
        """Has the kernels of a program compiled, the largest first, and puts them together."""
        executable = Executable.from_values(answer["program"])
        shares = _shares(answer["kernels"], self._pool().limit * _SHARES)
        requests: list[Request] = [["kernels", job, executable.il, names] for names in shares]
        results: dict[str, Any] = {}
        for names, answers in zip(shares, self._run(requests, budget), strict=True):
            results.update(zip(names, answers, strict=True))
        for name, _ in answer["kernels"]:
            info, objects = results[name]
            executable.add(KernelInfo.from_values(info), objects)
        return executable.to_bytes()

    def kernel_variant(
        self,
        options: str,
        il: bytes,
        name: str,
        kind: int,
        size: list[int],
        values: list[tuple[int, bytes]],
    ) -> VariantCode:
        """See the function of that name."""
        what = [name, kind, size, values]
        keys = []
        if self._uses_cache:
            keys = [self._digest("variant", options, il, wire.encode(what))]
        start, found = time.time(), self._load(keys)
        try:
            if found:
                return VariantCode.from_values(wire.decode(found[1]))
            [answer] = self._run([["kernel_variant", self._job(options), il, *what]], self._budget())
            code = VariantCode.from_values(answer)
        except (CompileError, ExecutableError, wire.WireError) as error:
            # Not for the cache: the process may have been ended.
            return VariantCode(
                object=b"", symbol=str(error), local_static=0, scratch_fixed=0, scratch_per_item=0
            )
        self._store(keys, options, start, _NO_FILES, "", wire.encode(answer))
        return code

    def unload(self) -> None:
        """clUnloadPlatformCompiler: idle compiler processes end."""
        for pool in self._pools:
            pool.close()

    def let_go(self) -> None:
        """In a fork of this service's process: closes its copies of the sockets."""
        for pool in self._pools:
            pool.close(inherited=True)


def _shares(kernels: list[tuple[str, int]], most: int) -> list[list[str]]:
    """Names of kernels, of (name, weight), the largest first, in at most so many lists of about equal
    weight."""
    least = sum(weight for _, weight in kernels) / most
    shares: list[list[str]] = []
    room = 0.0
    for name, weight in sorted(kernels, key=lambda kernel: -kernel[1]):
        if room <= 0:
            shares.append([])
            room = least
        shares[-1].append(name)
        room -= weight
    return shares


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"  # it was removed


def _content(path: str) -> str | None:
    """The digest of a file; None if it cannot be read, or is none that clang reads for a program."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > trust.MOST_INCLUDED:
            return None
        data = []
        while part := os.read(descriptor, _PART):
            data.append(part)
            if len(data) * _PART > 2 * trust.MOST_INCLUDED:
                return None  # of those of /proc no size is known
        return digest(b"".join(data))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _changed_since(path: str, start: float) -> bool:
    """Whether a file was perhaps written after that time: clang may have seen another one."""
    try:
        return os.stat(path).st_mtime > start - _CLOCK_STEP
    except OSError:
        return True


def _would_come_first(read: list[str], absent: list[str], options: str) -> list[str]:
    """Files that are not there, but which the program would find before those that it read, or in place of
    those that it did not find: those, and what it did not even look for in folders that are not there.

    The search goes through the folder of the including file, then the folders of -I in their order.
    """
    if not read and not absent:
        return []
    from ..frontend.options import parse

    cwd = _cwd()
    folders = [os.path.normpath(os.path.join(cwd, folder)) for folder in parse(options).include_folders]
    including = list(dict.fromkeys([cwd, *map(os.path.dirname, read)]))
    missing = [folder for folder in folders if not os.path.isdir(folder)]
    found = dict.fromkeys(absent)
    for path in (*read, *absent):
        for folder in {*including, *folders}:
            name = path.removeprefix(folder.rstrip("/") + "/")
            if name == path:
                continue  # it was not looked for there
            before = folders[: folders.index(folder)] if folder in folders else []
            for other in missing if path in found else [*including, *before]:
                candidate = os.path.join(other, name)
                if not os.path.lexists(candidate):
                    found[candidate] = None
    return list(found)


_services: dict[int, Service] = {}


def service() -> Service:
    """This process's service. No lock: one could be held by another thread at the time of a fork."""
    pid = os.getpid()
    found = _services.get(pid)
    if found is None:
        for old in [key for key in _services if key != pid]:
            _services.pop(old).let_go()
        found = _services.setdefault(pid, Service())
    return found


def compile_source(source: bytes, options: str, headers: dict[str, bytes] | None = None) -> SourceResult:
    """clCompileProgram: OpenCL C to SPIR-V. headers: contents by the names that #include uses."""
    return service().compile_source(source, options, headers or {})


def link(modules: list[bytes], options: str) -> tuple[bytes | None, str]:
    """clLinkProgram with -create-library: one library of several modules, and the log; None where they do not
    fit together. A library is what build() and link() take as a module (jit/bundle.py)."""
    return service().link(modules, options)


def specialise(il: bytes, specialisation: dict[int, bytes], options: str) -> tuple[bytes | None, str]:
    """clCompileProgram of IL with specialisation constants: a module with them set, and the log."""
    try:
        return service().link([bundle.specialise(il, specialisation)], options)
    except bundle.BundleError as error:
        return None, str(error)


def build(
    modules: list[bytes], options: str, specialisation: dict[int, bytes] | None = None
) -> tuple[Executable | None, str]:
    """SPIR-V modules to an executable, and the log; None where it fails."""
    return service().build(modules, options, specialisation or {})


def build_source(
    source: bytes, options: str, headers: dict[str, bytes] | None = None
) -> tuple[Executable | None, str]:
    """compile_source() and build() in one go, the common case: one look into the cache, one process."""
    return service().build_source(source, options, headers or {})


def kernel_variant(
    options: str,
    il: bytes,
    name: str,
    kind: int,
    size: list[int],
    values: list[tuple[int, bytes]] | None = None,
) -> VariantCode:
    """Code for some launches of a kernel of the executable that was made of this IL; an empty object, and
    why, where there is none.

    options, il: of the executable; kind: number in variants.VARIANTS; size: see variants.variant(); values:
    numbers of arguments, and their bytes.
    """
    return service().kernel_variant(options, il, name, kind, size, values or [])


def unload() -> None:
    """Ends idle compiler processes. The next build starts new ones."""
    if os.getpid() in _services:
        service().unload()
