"""The compile service as the control plane sees it: cache first, then compiler processes.

Runs in the host's process or in the runtime process; never imports llvmlite or numpy, and what only a cache
miss needs (sockets, threads) only then. Any thread may call any function here. After a fork the child starts
its own compiler processes.
"""

from __future__ import annotations

import os
import time
from _thread import _local

from .. import settings, spawn, wire
from ..device.target import Target, target_of
from ..jit import bundle
from ..jit.cache import digest
from ..jit.errors import CompileError
from ..jit.executable import Executable, ExecutableError, KernelInfo, VariantCode
from .entries import NO_FILES, Entries
from .files import contents_of, cwd, digest_of
from .kernels import Kernels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .kernels import Code
    from .pool import Budget, Pool
    from .process import Server
    from .protocol import Answer, Files, Job, Request

# A program of less weight than this is compiled where it was read: to hand its kernels to other processes
# would take longer.
_FINISH_ALONE = 800

# Bytes of a source up to which one process compiles it.
_FOR_ONE = 4000

# The least weight that a kernel has (compiler/pipeline.py).
_LEAST_WEIGHT = 64

# The weight of a program, for each process, up to which a build compiles all kernels: about half a second.
# With more, each is compiled when it is asked for: most programs ask for few of many.
_AT_BUILD = 4000

_FOR_SEVERAL = 16  # descriptors; with fewer there is one compiler process


class Cut:
    """What complete() makes all of a program of, whose SPIR-V has only what its kernels reach.

    The text, options and headers that were compiled, in which working folder; files: what it included, by
    path; absent: what it looked for and did not find.
    """

    __slots__ = ("absent", "files", "folder", "headers", "options", "source")

    def __init__(
        self,
        source: bytes,
        options: str,
        headers: dict[str, bytes],
        files: dict[str, bytes],
        absent: list[str],
    ) -> None:
        self.source = source
        self.options = options
        self.headers = headers
        self.folder = cwd()
        self.files = files
        self.absent = absent


class SourceResult:
    """il: SPIR-V, or None if the source does not compile; log: what the compiler said, warnings too; cut: of
    SPIR-V that is not all of the program, but does where nothing is linked with it, else None."""

    __slots__ = ("cut", "il", "log")

    def __init__(self, il: bytes | None, log: str, cut: Cut | None = None) -> None:
        self.il = il
        self.log = log
        self.cut = cut


class _Pools(_local):
    """Of a thread with descriptors of its own: no other can reach its processes. They end with it."""

    def __init__(self) -> None:
        self.pools: list[Pool] = []
        self.servers: list[Server] = []


class Service:
    """One per process. pid: of the process that may use it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.target: Target = target_of(settings)
        known = dict(settings.key_values())
        if settings.text("CL_DRIVER_PROFILE"):
            known["CL_DRIVER_PROFILE"] = "1"  # kernels have accounts then, wherever the profile goes
        if settings.cluster(settings.text("CL_DRIVER_CLUSTER"))[1]:
            known["CL_DRIVER_CLUSTER"] = "whole"  # kernels have extents then, whichever cluster it is
        self._settings = known | {"CL_DRIVER_DUMP": settings.text("CL_DRIVER_DUMP")}
        self._explain = settings.text("CL_DRIVER_EXPLAIN")
        self.entries = Entries(self.target, known, not (self._settings["CL_DRIVER_DUMP"] or self._explain))
        self._inprocess = settings.text("CL_DRIVER_COMPILE") == "inprocess"
        self._when = settings.text("CL_DRIVER_COMPILE_KERNELS") if self.entries.is_used else "build"
        self._kernels = Kernels(self)
        self._pools: list[Pool] = []
        self._of_thread = _Pools()

    # Processes.

    def _pool(self) -> Pool:
        is_own = spawn.has_own_descriptors()
        pools = self._of_thread.pools if is_own else self._pools
        if not pools:
            from .pool import Pool

            servers = self._of_thread.servers if is_own else _servers
            is_poor = os.sysconf("SC_OPEN_MAX") < _FOR_SEVERAL
            pools.append(Pool(1 if is_poor else len(os.sched_getaffinity(0)), servers))
        return pools[0]

    def job(self, options: str, source_copy: str = "") -> Job:
        """What requests with these options have in common."""
        return {
            "target": self.target.to_values(),
            "options": options,
            "settings": self._settings,
            "cwd": cwd(),
            "source_copy": source_copy,
        }

    def most_processes(self) -> int:
        """How many compiler processes there may be."""
        return 1 if self._inprocess else self._pool().limit

    def spare_processes(self, wanted: int) -> int:
        """How many have nothing to do, but for one; starts some if there are fewer than are wanted."""
        if self._inprocess:
            return 0
        self._pool().start(wanted)
        return self._pool().idle() - 1

    def budget(self) -> Budget:
        """For one build."""
        from .pool import Budget

        return Budget(settings.integer("CL_DRIVER_COMPILE_TIMEOUT") or 0)

    def run(self, requests: list[Request], budget: Budget) -> list[Any]:
        """The answers of compiler processes, in the order of the requests. CompileError if one fails."""
        if self._inprocess:
            from .. import stages
            from . import jobs

            try:
                return [jobs.run(*request) for request in requests]
            finally:
                if stages.is_on:
                    from ..trace import writer

                    writer.add(os.getpid(), stages.take())
        return self._pool().run(requests, budget)

    def _processes_for(self, source: bytes) -> int:
        """How many processes will compile a program, judging by its text."""
        kernels = source.count(b"kernel void")
        is_compiled = kernels * _LEAST_WEIGHT <= self._most()  # else they are not compiled yet
        return min(kernels, self.most_processes()) if len(source) > _FOR_ONE and is_compiled else 1

    # Operations.

    def compile_source(self, source: bytes, options: str, headers: dict[str, bytes]) -> SourceResult:
        """See the function of that name."""
        if self._explain:
            options += " -g"  # so that the report on what is linked has lines; the code is the same
        keys = self.entries.source_keys("compile", source, options, headers)
        copy = self.entries.source_copy(source, options)
        found = self.entries.load(keys)
        if found:
            il, is_cut, read, absent = wire.decode(found[1])
            files = contents_of(read) if is_cut else {}
            if files is not None:
                cut = Cut(source, options, headers, files, absent) if is_cut else None
                return SourceResult(il, found[0], cut)
        start = time.time()
        try:
            il, log, known = self._compile(options, copy, source, headers, None)
            files = contents_of(known[0]) if known[3] else {}
            if known[3] and (files is None or not known[2]):  # there is no compiling it again
                il, log, known = self._compile(options, copy, source, headers, False)
        except CompileError as error:
            return SourceResult(None, str(error))
        if il is None:
            return SourceResult(None, log)
        self.entries.store(keys, options, start, wire.encode([il, *_cut_of(known)]), known, log)
        return SourceResult(
            il, log, Cut(source, options, headers, files or {}, known[1]) if known[3] else None
        )

    def _compile(
        self,
        options: str,
        copy: str,
        source: bytes,
        headers: dict[str, bytes],
        is_whole: bool | None,
        as_before: dict[str, bytes] | None = None,
        folder: str = "",
    ) -> tuple[bytes | None, str, Files]:
        job = self.job(options, copy)
        if folder:
            job["cwd"] = folder
        [answer] = self.run(
            [["compile_source", job, source, headers, is_whole, as_before or {}]], self.budget()
        )
        il, log, files = answer
        return il, log, files

    def complete(self, cut: Cut) -> tuple[bytes | None, str]:
        """See the function of that name."""
        new = next((path for path in cut.absent if os.path.lexists(path)), None)
        if new is not None:
            return None, f"error: {new}: this file was not there when the program was compiled\n"
        changed = {path: old for path, old in cut.files.items() if digest_of(path) != digest(old)}
        is_as_before = not changed and cut.folder == cwd()
        keys = (
            self.entries.source_keys("compile all", cut.source, cut.options, cut.headers)
            if is_as_before
            else []
        )
        found, start = self.entries.load(keys), time.time()
        if found:
            return found[1], found[0]
        try:
            il, log, known = self._compile(
                cut.options, "", cut.source, cut.headers, False, changed, cut.folder
            )
        except CompileError as error:
            return None, str(error)
        if il is not None:
            self.entries.store(keys, cut.options, start, il, known, log)
        return il, log

    def link(self, modules: list[bytes], options: str) -> tuple[bytes | None, str]:
        """See the function of that name."""
        try:
            il = bundle.join(modules)
            [log] = self.run([["link", self.job(options), il]], self.budget())
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
        keys = self.entries.keys(self.entries.key("build", options, il))
        finished = self._finished(keys)
        if finished:
            return finished
        return self._build(keys, ["prepare", self.job(options), il, self._finish()])

    def build_source(
        self, source: bytes, options: str, headers: dict[str, bytes]
    ) -> tuple[Executable | None, str]:
        """See the function of that name."""
        keys = self.entries.source_keys("build", source, options, headers)
        copy = self.entries.source_copy(source, options)
        finished = self._finished(keys)
        if finished:
            return finished
        request = ["build_source", self.job(options, copy), source, headers, self._finish()]
        return self._build(keys, request, self._processes_for(source))

    def _most(self) -> int:
        """The weight of programs of which a build compiles all kernels."""
        return {"build": 1 << 62, "create": 0}.get(self._when, _AT_BUILD * self.most_processes())

    def _finish(self) -> int:
        """Programs of at most that weight are finished by the process that reads them."""
        most = self._most()
        return most if self.most_processes() == 1 else min(most, _FINISH_ALONE)

    def _finished(self, keys: list[str]) -> tuple[Executable | None, str] | None:
        """What the cache has."""
        found = self.entries.load(keys)
        if not found:
            return None
        try:
            executable = Executable.from_bytes(found[1])
            if self._when == "build" and (missing := executable.missing()):
                for code in self.kernels(executable.options, executable.il, missing, {}, 0).values():
                    executable.add(*code)
        except ExecutableError:
            return None
        except CompileError as error:
            return None, found[0] + str(error)
        return executable, found[0]

    def _build(self, keys: list[str], request: Request, processes: int = 1) -> tuple[Executable | None, str]:
        start, budget, log = time.time(), self.budget(), ""
        try:
            answer: Answer
            if processes > 1 and not self._pool().has_any():
                answer = self._build_by_new(request, processes, budget)
            else:
                if processes > 1:
                    self._pool().start(processes)
                [answer] = self.run([request], budget)
            log = answer["log"]
            if "kernels" not in answer:
                return None, log
            executable = self._executable(answer, budget)
        except (CompileError, ExecutableError) as error:
            return None, log + str(error)
        data, files = executable.to_bytes(), answer.get("files", NO_FILES)
        self.entries.store(keys, request[1]["options"], start, data, files, log)
        if self._explain:
            self._report(request)
        return executable, log

    def _build_by_new(self, request: Request, processes: int, budget: Budget) -> Answer:
        """The answer to a request to build a source, by so many processes that are started now."""
        _, job, source, headers, finish = request
        compiling = ["compile_source", job, source, headers, True, {}]
        il, log, files = self._pool().run_apart(compiling, processes, budget)
        if il is None:
            return {"log": log, "files": files}
        try:
            answer: Answer
            [answer] = self.run([["prepare", job, il, finish]], budget)
        except CompileError as error:
            raise CompileError(f"{log}{error}") from error
        return {**answer, "log": log + answer["log"], "files": files}

    def _report(self, request: Request) -> None:
        """Leaves a report on a program that was built, in the folder of CL_DRIVER_EXPLAIN."""
        operation, job, program, *rest = request
        headers = rest[0] if operation == "build_source" else None
        try:
            self.run([["explain", job, self._explain, program, headers]], self.budget())
        except CompileError:
            pass  # nobody waits for it (and contextlib takes long to import)

    def _executable(self, answer: Answer, budget: Budget) -> Executable:
        """What a build makes of a program that was read: all kernels, or none where they are much to
        compile."""
        if "executable" in answer:
            return Executable.from_bytes(answer["executable"])
        executable = Executable.from_values(answer["program"])
        missing = executable.missing()
        if sum(missing.values()) <= self._most():
            made = self._kernels.compile(executable.options, executable.il, missing, budget)
            for info, objects in made.values():
                executable.add(KernelInfo.from_values(info), objects)
        return executable

    def kernels(
        self, options: str, il: bytes, names: dict[str, int], others: dict[str, int], before: int
    ) -> dict[str, Code]:
        """See the function of that name."""
        return self._kernels.get(options, il, names, others, before)

    def kernel_variant(
        self,
        options: str,
        il: bytes,
        name: str,
        key: list[int],
        size: list[int],
        values: list[tuple[int, bytes]],
        apart: list[int],
    ) -> VariantCode:
        """See the function of that name."""
        what = [name, key, size, values, apart]
        keys = self.entries.keys(self.entries.key("variant", options, il, wire.encode(what)))
        start, found = time.time(), self.entries.load(keys)
        try:
            if found:
                return VariantCode.from_values(wire.decode(found[1]))
            [answer] = self.run([["kernel_variant", self.job(options), il, *what]], self.budget())
            code = VariantCode.from_values(answer)
        except (CompileError, ExecutableError, wire.WireError) as error:
            # Not for the cache: the process may have been ended.
            return VariantCode(
                object=b"", symbol=str(error), local_static=0, scratch_fixed=0, scratch_per_item=0
            )
        self.entries.store(keys, options, start, wire.encode(answer))
        return code

    def unload(self) -> None:
        """clUnloadPlatformCompiler: idle compiler processes end soon, unless this thread cannot reach them or
        there is work again."""
        for pool in [] if spawn.has_own_descriptors() else self._pools:
            pool.rest()

    def let_go(self) -> None:
        """In a fork of this service's process: closes its copies of the sockets."""
        for pool in self._pools:
            pool.let_go()


def _cut_of(files: Files) -> list[Any]:
    """Of an entry of the cache: whether the SPIR-V is cut, and files that then are to be kept."""
    read, absent, _, is_cut = files
    return [is_cut, list(read), list(absent)] if is_cut else [False, [], []]


_services: dict[int, Service] = {}

# What starts compiler processes, of this process's forks as well.
_servers: list[Server] = spawn.servers


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


def complete(cut: Cut) -> tuple[bytes | None, str]:
    """All of a program, of which compile_source() has left out what no kernel reaches, and the log."""
    return service().complete(cut)


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


def kernels(
    options: str, il: bytes, names: dict[str, int], others: dict[str, int] | None = None, before: int = 0
) -> dict[str, Code]:
    """Kernels of the executable that was made of this IL, by name. CompileError if one cannot be compiled.

    options, il: of the executable; names: what is wanted, with weights; others: what may be asked for later,
    likewise, in order; before: how many kernels were asked for before. Of the others some are compiled
    meanwhile if processes are idle, the more the more were asked for, and are in the answer.
    """
    return service().kernels(options, il, names, others or {}, before)


def kernel_variant(
    options: str,
    il: bytes,
    name: str,
    key: list[int],
    size: list[int],
    values: list[tuple[int, bytes]] | None = None,
    apart: list[int] | None = None,
) -> VariantCode:
    """Code for some launches of a kernel of the executable that was made of this IL; an empty object, and
    why, where there is none.

    options, il: of the executable; key: see variants.kind_of(); size: see variants.variant(); values:
    numbers of arguments, and their bytes; apart: KernelInfo.apart_args.
    """
    return service().kernel_variant(options, il, name, key, size, values or [], apart or [])


def unload() -> None:
    """Idle compiler processes end soon, unless there is another build before."""
    if os.getpid() in _services:
        service().unload()
