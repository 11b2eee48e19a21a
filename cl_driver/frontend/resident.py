"""Runs clang. In a compiler process by one that is loaded already and, for arguments that came before, has
read OpenCL's header, too; it forks a child for each program.

Two thirds of a small program's run of clang are its start. native_shim/clang/resident.c, preloaded, stops
clang before its main(), where it forks a child for each request. A child that is to hold has a main file of
one line, which includes the program; there it forks a child for each program itself. All of them end when
their sockets close, which the end of this process does.

Where that cannot be (a static clang, another C library), each program has a clang of its own.
"""

from __future__ import annotations

import os
import re
import resource
import select
import socket
import struct
import subprocess
from contextlib import ExitStack, suppress

from .. import native
from .effort import Allowance, Watch

MEMORY_LIMIT = 8 << 30  # bytes of address space

# Numbers of descriptors in a child; resident.c has the same. From FREE on they are the caller's.
_SOURCE, _OUTPUT, _MAIN, _HOLD, FREE = range(3, 8)
_PATH = "/proc/self/fd/"

_MOST_TEXT = 60_000  # bytes of arguments in a request
_MOST_HELD = 4  # sets of arguments for which a clang holds
_ENOUGH_DESCRIPTORS = 64  # with fewer there are descriptors for one of these

# A folder in which nothing is found by a name that a program would have.
_NOWHERE = "/proc/self/fdinfo"
_MOST_SEEN = 100  # sets of arguments that are known

_INT = 4  # bytes of an int

# What loaders do with a library that is not for them: of glibc, of musl.
_NOT_PRELOADED, _NOT_STARTED = b"ERROR: ld.so: ", 127

# In messages about the line that includes the program: something is unfinished where that ends.
_MAIN_FILE = _PATH.encode()
# What clang says before messages about the program, where that is what the main file includes.
_INCLUDED = re.compile(rb"^In file included from %s%d:1:\n" % (_MAIN_FILE, _MAIN), re.MULTILINE)

_tries = 0  # how often a clang that is loaded may fail; none in processes that are not the compiler's own
_loaded: list[_Loaded] = []  # one at most


def allow() -> None:
    """This process is a compiler's own, not somebody's who would not expect children that stay."""
    global _tries
    _tries = 3


def run(
    arguments: list[str],
    source: bytes,
    folder: str | None,
    environment: dict[str, str],
    fds: tuple[int, ...] = (),
    allowance: Allowance | None = None,
) -> tuple[bytes, bytes, int | None]:
    """What clang writes to `-o -`, what it says, and its status: None, and why, if it had to be stopped.

    fds: descriptors that it gets, too, under their numbers, which are FREE or above.
    """
    global _tries
    allowance, folder = allowance or Allowance(), _enterable(folder)
    if _tries and sum(map(len, arguments)) + len(arguments) < _MOST_TEXT:
        try:
            loaded = _clang(arguments[0], environment)
            done = loaded.run(arguments, source, folder, fds, allowance)
            if _MAIN_FILE in done[1]:
                done = loaded.run(arguments, source, folder, fds, allowance, may_hold=False)
            if done[2] is None:
                end()
            return done
        except (OSError, EOFError):
            end()
            _tries -= 1
    return _run_alone(arguments, source, folder, environment, fds, allowance)


def _enterable(folder: str | None) -> str | None:
    """The folder, or one without files where this user may not enter it: what is to be found there by a
    relative name then is not, and the rest is."""
    try:
        os.stat(os.path.join(folder or ".", "."))
    except OSError:
        return _NOWHERE if os.path.isdir(_NOWHERE) else "/"
    return folder


def end() -> None:
    """Ends the clang that is loaded, and its children."""
    while _loaded:
        _loaded.pop().end()


def _clang(path: str, environment: dict[str, str]) -> _Loaded:
    if _loaded and not _loaded[0].is_still(path):
        end()
    if not _loaded:
        _loaded.append(_Loaded(path, environment))
    return _loaded[0]


def _run_alone(arguments, source, folder, environment, fds, allowance: Allowance):
    """By a clang of its own, with the library for what it says of files, if the loader takes that."""
    library = _library()
    if os.path.exists(library):
        guarded = environment | {"LD_PRELOAD": str(library)}
        output, errors, status = _run_process(arguments, source, folder, guarded, fds, allowance)
        if status != _NOT_STARTED and not errors.startswith(_NOT_PRELOADED):
            return output, errors, status
    return _run_process(arguments, source, folder, environment, fds, allowance)


def _run_process(arguments, source, folder, environment, fds, allowance: Allowance):
    pipe = subprocess.PIPE
    with subprocess.Popen(
        arguments, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=environment, pass_fds=fds
    ) as child:
        _limit(child.pid)
        try:
            with Watch(allowance, child.pid) as watch:
                text = source
                while True:
                    try:
                        output, errors = child.communicate(text, timeout=watch.patience())
                        return output, errors, child.returncode
                    except subprocess.TimeoutExpired:
                        text = None  # it has been taken
                        if watch.is_over():
                            return b"", watch.stopped.encode(), None
        finally:
            if child.returncode is None:
                child.kill()


def _library():
    return native.directory() / "_cl_driver_clang.so"


def _limit(pid: int) -> None:
    # Limits are set from outside: code that runs between fork and exec would forbid vfork.
    for kind, value in ((resource.RLIMIT_AS, MEMORY_LIMIT), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # it has ended already, or a lower limit is in force
            resource.prlimit(pid, kind, (value, value))


class _Loaded:
    """A clang that stays before its main(), and those of its children that hold."""

    def __init__(self, clang: str, environment: dict[str, str]):
        self._identity = _identity(clang)
        self._held: dict[tuple, socket.socket] = {}  # by arguments and folder; the last used is the last
        self._seen: dict[tuple, None] = {}
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        null = subprocess.DEVNULL
        with theirs:
            number = theirs.fileno()
            meant = " ".join(map(str, (number, *self._identity[:2])))
            more = {"LD_PRELOAD": str(_library()), "CLD_CLANG_SOCKET": meant}
            self.process = subprocess.Popen(
                [clang], stdin=null, stdout=null, stderr=null, env=environment | more, pass_fds=[number]
            )
        _limit(self.process.pid)

    def is_still(self, clang: str) -> bool:
        """Whether it is there, and what is at this path."""
        return self.process.poll() is None and self._identity == _identity(clang)

    def end(self) -> None:
        """Ends it, and with it its children, whatever they are doing."""
        for each in (self._socket, *self._held.values()):
            each.close()
        self.process.kill()
        self.process.wait()

    def run(self, arguments, source, folder, fds, allowance: Allowance, may_hold: bool = True):
        """See run() above. OSError or EOFError where it does not do as it should."""
        may_hold = may_hold and not fds and _may_hold(arguments)
        held = self._hold(arguments, folder) if may_hold else None
        texts = [] if held else [folder or "", *_named(arguments)]
        with ExitStack() as ours:
            with ExitStack() as theirs:
                (output, errors, status), ends = zip(*(_pipe(ours, theirs) for _ in range(3)), strict=True)
                program = theirs.enter_context(_file(source))
                numbers = {_SOURCE if held else 0: program, _OUTPUT: ends[0], 2: ends[1]}
                _ask(held or self._socket, ends[2], numbers | {fd: fd for fd in fds}, texts)
            with Watch(allowance, self.process.pid, is_new=False) as watch:
                return _collect(output, errors, status, watch)

    def _hold(self, arguments: list[str], folder: str | None) -> socket.socket | None:
        """One that holds, from the second program with these arguments on."""
        key = (*arguments, folder)
        if key not in self._seen:
            self._seen[key] = None
            if len(self._seen) > _MOST_SEEN:
                del self._seen[next(iter(self._seen))]
            return None
        held = self._held.pop(key, None) or self._start(arguments, folder)
        self._held[key] = held
        if len(self._held) > _most_held():
            self._held.pop(next(iter(self._held))).close()
        return held

    def _start(self, arguments: list[str], folder: str | None) -> socket.socket:
        texts = [folder or "", *_named(arguments[:-1]), f"{_PATH}{_MAIN}"]
        with ExitStack() as stack:
            main = stack.enter_context(_file(b'#include "%s%d"\n' % (_MAIN_FILE, _SOURCE)))
            ours, theirs = map(stack.enter_context, socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            # It looks at what it will write to before it reads anything.
            _, output = _pipe(stack, stack)
            _, status = _pipe(stack, stack)
            # The number of the source is taken, or clang would have a file of its own under it.
            numbers = {_SOURCE: main, _OUTPUT: output, _MAIN: main, _HOLD: theirs}
            _ask(self._socket, status, numbers, texts)
            return ours.dup()


def _identity(path: str) -> tuple:
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_mtime_ns, path


def _most_held() -> int:
    return _MOST_HELD if resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= _ENOUGH_DESCRIPTORS else 1


def _may_hold(arguments: list[str]) -> bool:
    """Whether clang does the same with a program that the main file includes. It leaves out some warnings on
    files that are included, which are off by default, and debug information names the main file."""
    asks = any(a.startswith("-W") and not a.startswith("-Wno-") for a in arguments)
    is_text = "cl" in arguments[1:] and "-c" in arguments  # not LLVM IR, which includes nothing
    return arguments[-1] == "-" and is_text and "-g" not in arguments and not asks


def _named(arguments: list[str]) -> list[str]:
    """With the output under its name, which resident.c knows."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [f"{_PATH}{_OUTPUT}" if before == "-o" and a == "-" else a for before, a in pairs]


def _file(content: bytes):
    """A file in memory, to be read from its start."""
    file = open(os.memfd_create("program"), "w+b", buffering=0)
    try:
        while content:
            content = content[file.write(content) :]
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _pipe(readers: ExitStack, writers: ExitStack):
    read, write = os.pipe()
    ours = readers.enter_context(open(read, "rb", buffering=0))
    return ours, writers.enter_context(open(write, "wb", buffering=0))


def _ask(where: socket.socket, status, numbers: dict, texts: list[str]) -> None:
    """A request as resident.c has it. numbers: of descriptors in the child, and files or descriptors here."""
    data = struct.pack(f"={1 + len(numbers)}I", len(numbers), *numbers)
    data += b"".join(os.fsencode(text) + b"\0" for text in texts)
    files = [file if isinstance(file, int) else file.fileno() for file in (status, *numbers.values())]
    socket.send_fds(where, [data], files, socket.MSG_NOSIGNAL)


def _collect(output, errors, status, watch: Watch) -> tuple[bytes, bytes, int | None]:
    """What comes through the pipes. It is whole once clang has told its status, which it does when it has
    written everything; an end of the output alone can be that of a clang that died half-way. EOFError where
    nobody tells."""
    poll, texts = select.poll(), {file.fileno(): bytearray() for file in (output, errors, status)}
    made, said, told = texts.values()
    for file in texts:
        os.set_blocking(file, False)
        poll.register(file, select.POLLIN)
    followed = False
    while len(told) < 2 * _INT:
        ready = poll.poll(watch.patience() * 1000)
        if not ready and watch.is_over():
            return b"", watch.stopped.encode(), None
        for file, _ in ready:
            if _read(file, texts[file]):
                continue
            poll.unregister(file)
            if file == status.fileno() and len(told) < 2 * _INT:
                raise EOFError("clang did not tell how it ended")
        if not followed and len(told) >= _INT:
            followed = True
            watch.follow(int.from_bytes(told[:_INT], "little"))
    for file in (output, errors):
        _read(file.fileno(), texts[file.fileno()])
    code = os.waitstatus_to_exitcode(int.from_bytes(told[_INT : 2 * _INT], "little"))
    return bytes(made), _INCLUDED.sub(b"", bytes(said)), code


def _read(file: int, text: bytearray) -> bool:
    """Adds all that there is now; False at the end."""
    with suppress(BlockingIOError):
        while part := os.read(file, 1 << 16):
            text += part
        return False
    return True
