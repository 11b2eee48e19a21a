"""Runs clang. In a compiler process by one that is loaded already and, for arguments that came before, has
read OpenCL's header, too; it forks a child for each program.

Two thirds of a small program's run of clang are its start. native_shim/clang/resident.c, preloaded, stops
clang before its main() (clang_start.py), where it forks a child for each request. A child that is to hold has
a main file that waits for the program's text; where that would begin it forks a child for each program
itself. All of them end when their sockets close, which the end of this process does. Forks of a process that
has called load() have its clang.

Where that cannot be (a static clang, another C library), each program has a clang of its own.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
from _socket import AF_UNIX, MSG_NOSIGNAL, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socketpair
from _socket import socket as Socket
from contextlib import ExitStack, suppress

from ..jit import clang_paths
from . import alone
from .alone import PATH, Done, with_list
from .clang_start import Started, has_few_descriptors, has_fewest_descriptors
from .effort import Allowance, Watch

TYPE_CHECKING = False  # typing takes long to import, and clang waits
if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import FileIO
    from typing import TypeAlias

    # Arguments, folder and room of a clang that holds.
    Key: TypeAlias = tuple[tuple[str, ...], str | None, int]

# What resident.c knows of requests, too (native_shim/gen/shared.py).
MOST_TEXT = 60_000  # bytes of arguments

# What a request says of a program with which perhaps nothing is linked, and a bit of what is told of its end:
# functions that no kernel reaches were taken out.
PERHAPS, CUT = 2, 1 << 16


class Number:
    """Of descriptors in a child."""

    SOURCE = 3
    OUTPUT = 4
    MAIN = 5
    HOLD = 6
    LIST = 7


OUTPUT_PATH = f"{PATH}{Number.OUTPUT}"
# clang remembers files by their names: one that a program includes from the folder of its main file has one
# slash before its name.
MAIN_PATH = f"{PATH}/{Number.MAIN}"
EMPTY_PATH = f"{PATH}/{Number.SOURCE}"

_MOST_HELD = 4  # sets of arguments for which a clang holds
# A folder in which nothing is found by a name that a program would have.
_NOWHERE = "/proc/self/fdinfo"
_MOST_SEEN = 100  # sets of arguments that are known
_MOST_FAILURES = 3  # of clangs that hold; then there are no more of them

_INT = 4  # bytes of an int

# Bytes of the main file of a clang that holds: the smallest that has room for a program. It is a comment, of
# which the program's text takes the end; a little less than whole pages, for which files are mapped.
_ROOM = tuple((1 << exponent) - 1 for exponent in (16, 20, 22))
_COMMENT, _COMMENT_ENDS = b"/*", b"*/"

_tries = 0  # how often a clang that is loaded may fail; none in processes that are not the compiler's own
_loaded: list[_Loaded] = []  # one at most
_confined: list[str] = []  # arguments that a clang has which is confined (confine()), the only one there is


def allow() -> None:
    """This process is a compiler's own, not somebody's who would not expect children that stay."""
    global _tries
    _tries, alone.is_own = 3, True


def adopt(clang: Started) -> None:
    """Takes one that has been started, for this process and its forks."""
    _loaded.append(_Loaded(clang))


def load(clang: str, environment: dict[str, str]) -> None:
    """Loads a clang for forks of this process, if it can be. clang: its path; environment: its variables."""
    if not clang_paths.is_zig(clang):
        with suppress(OSError):
            _clang(clang, environment)


def confine(
    clang: str, environment: dict[str, str], rights: str, root: int, resources: str, own: list[str]
) -> None:
    """Loads a clang with other rights and another root folder, the only one for this process from now on.
    OSError if it cannot be.

    rights, root: see native_shim/clang/confine.c; resources: clang's folder of headers; own: files that are
    not the program's.
    """
    end()
    _confined[:] = ["-resource-dir", os.path.dirname(resources)]
    with ExitStack() as opened:
        files = [(path, opened.enter_context(open(path, "rb"))) for path in own]
        # Higher than those that programs bring; and folders are none that it may have open.
        numbers = [(path, fcntl.fcntl(file.fileno(), fcntl.F_DUPFD, 2 * Number.LIST)) for path, file in files]
        for _, number in numbers:
            opened.callback(os.close, number)
        lines = [f"{number} {path}\n" for path, number in [(resources, -1), *numbers]]
        more = {"CLD_CLANG_CONFINED": rights, "CLD_CLANG_OWN": "".join(lines)}
        given = [number for _, number in numbers] + [root] * (root >= 0)
        _loaded.append(_Loaded(Started(clang, environment | more, given)))


# Of runs that only ask whether a program is right.
CHECK_ONLY = "-fsyntax-only"


def run(
    arguments: list[str],
    source: bytes,
    folder: str | None,
    environment: dict[str, str],
    listing: int = -1,
    allowance: Allowance | None = None,
    is_whole: bool | None = False,
) -> Done:
    """Runs clang to its end. Raises OSError if it cannot be started.

    arguments: its path first; source: its standard input; folder: to work in, None for that of this process;
    environment: its variables; listing: a file for what the program includes, as includes.read() reads it, -1
    for none; allowance: the time that it may take; is_whole: functions that no kernel reaches may be left out
    (native_shim/clang/reached.c), where that library can be loaded; None: if they are much, and Done says so.
    """
    global _tries
    allowance, folder = allowance or Allowance(), _enterable(folder)
    if _confined:
        return _run_confined(arguments, source, folder, listing, allowance, is_whole)
    is_short = sum(map(len, arguments)) + len(arguments) < MOST_TEXT
    is_rare = CHECK_ONLY in arguments  # no clang need wait for the next such program
    if (
        _tries
        and is_short
        and not is_rare
        and not clang_paths.is_zig(arguments[0])
        and not has_fewest_descriptors()
    ):
        try:
            clang = _clang(arguments[0], environment)
            done = clang.run(arguments, source, folder, listing, allowance, is_whole)
            if done.status is None:
                end()
            return done
        except (OSError, EOFError):
            end()
            _tries -= 1
    return alone.run(arguments, source, folder, environment, listing, allowance, is_whole)


def _run_confined(
    arguments: list[str],
    source: bytes,
    folder: str | None,
    listing: int,
    allowance: Allowance,
    is_whole: bool | None,
) -> Done:
    arguments = [arguments[0], *_confined, *arguments[1:]]
    folder = folder or os.getcwd()
    try:
        return _loaded[0].run(arguments, source, folder, listing, allowance, is_whole)
    except (EOFError, OSError) as error:
        if not _loaded[0].clang.is_there():
            os._exit(1)  # there is no other for this process; who wants this program asks another process
        raise OSError(str(error)) from error


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
    if _loaded and not _loaded[0].clang.is_still(path):
        end()
    if not _loaded:
        _loaded.append(_Loaded(Started(path, environment)))
    return _loaded[0]


class _Loaded:
    """A clang that stays before its main(), and those of its children that hold. clang: it, which may be one
    that a process has started of which this one is a fork."""

    def __init__(self, clang: Started) -> None:
        self.clang = clang
        self._held: dict[Key, Socket] = {}  # the last used is the last
        self._seen: dict[Key, None] = {}
        self._failures = 0  # of those that hold

    def end(self) -> None:
        """Ends those that this process has started, and with them their children, whatever they are doing."""
        for each in self._held.values():
            each.close()
        self.clang.end()

    def run(
        self,
        arguments: list[str],
        source: bytes,
        folder: str | None,
        listing: int,
        allowance: Allowance,
        is_whole: bool | None,
    ) -> Done:
        """See run() above. OSError or EOFError where it does not do as it should."""
        if listing >= 0:
            arguments = with_list(arguments, Number.LIST)
        if self._failures < _MOST_FAILURES and _may_hold(arguments):
            room = next((each for each in _ROOM if each >= len(source) + 4), 0)
            key = tuple(arguments), folder, room
            try:
                held = self._hold(arguments, key) if room else None
                if held:
                    text = _COMMENT_ENDS + source
                    return self._ask_and_collect(held, [], Number.SOURCE, text, listing, allowance, is_whole)
            except (OSError, EOFError):
                self._failures += 1
                if key in self._held:
                    self._held.pop(key).close()
                if listing >= 0:
                    os.ftruncate(listing, 0)
        texts = [folder or "", *_named(arguments)]
        return self._ask_and_collect(self.clang.socket, texts, 0, source, listing, allowance, is_whole)

    def _ask_and_collect(
        self,
        where: Socket,
        texts: list[str],
        source_number: int,
        source: bytes,
        listing: int,
        allowance: Allowance,
        is_whole: bool | None,
    ) -> Done:
        with ExitStack() as ours:
            with ExitStack() as theirs:
                (output, errors, status), ends = zip(*(_pipe(ours, theirs) for _ in range(3)), strict=True)
                program = theirs.enter_context(_file(source))
                numbers: dict[int, FileIO | int]
                numbers = {source_number: program, Number.OUTPUT: ends[0], 2: ends[1]}
                if listing >= 0:
                    numbers[Number.LIST] = listing
                _ask(where, ends[2], numbers, texts, is_whole)
            with Watch(allowance, self.clang.pid, is_new=False) as watch:
                return _collect(output, errors, status, watch)

    def _hold(self, arguments: list[str], key: Key) -> Socket | None:
        """One that holds, from the second program with these arguments on."""
        if key not in self._seen:
            self._seen[key] = None
            if len(self._seen) > _MOST_SEEN:
                del self._seen[next(iter(self._seen))]
            return None
        _, folder, room = key
        held = self._held.pop(key, None) or self._start(arguments, folder, room)
        self._held[key] = held
        if len(self._held) > _most_held():
            self._held.pop(next(iter(self._held))).close()
        return held

    def _start(self, arguments: list[str], folder: str | None, room: int) -> Socket:
        # A main file from standard input is in the working folder, where its includes are looked for first.
        more = ["-iquote", ".", "-include", EMPTY_PATH, MAIN_PATH]
        texts = [folder or "", *_named(arguments[:-1]), *more]
        with ExitStack() as stack:
            main = stack.enter_context(_file(_COMMENT.ljust(room, b".")))
            ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
            for each in (ours, theirs):
                stack.callback(each.close)
            # It looks at what it will write to before it reads anything.
            _, output = _pipe(stack, stack)
            _, status = _pipe(stack, stack)
            # The numbers of what a program brings are taken, or clang would have files of its own under them.
            numbers: dict[int, FileIO | int] = dict.fromkeys(range(Number.SOURCE, Number.LIST + 1), main)
            numbers |= {Number.OUTPUT: output, Number.HOLD: theirs.fileno()}
            _ask(self.clang.socket, status, numbers, texts)
            return Socket(fileno=os.dup(ours.fileno()))


def _most_held() -> int:
    return 1 if has_few_descriptors() else _MOST_HELD


def _may_hold(arguments: list[str]) -> bool:
    """Whether clang does the same with a program whose main file has another name, which debug information
    has."""
    return arguments[-1] == "-" and is_program(arguments) and "-c" in arguments and "-g" not in arguments


def is_program(arguments: list[str]) -> bool:
    """Whether clang reads OpenCL C and not LLVM IR, which includes nothing."""
    return "cl" in arguments[1:]


def _named(arguments: list[str]) -> list[str]:
    """With the output under its name, which resident.c knows."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [OUTPUT_PATH if before == "-o" and a == "-" else a for before, a in pairs]


def _file(content: bytes) -> FileIO:
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


def _pipe(readers: ExitStack, writers: ExitStack) -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    ours = readers.enter_context(open(read, "rb", buffering=0))
    return ours, writers.enter_context(open(write, "wb", buffering=0))


def _ask(
    where: Socket,
    status: FileIO,
    numbers: Mapping[int, FileIO | int],
    texts: list[str],
    is_whole: bool | None = False,
) -> None:
    """A request as resident.c has it. numbers: of descriptors in the child, and files or descriptors here."""
    whole = PERHAPS if is_whole is None else int(is_whole)
    data = struct.pack(f"={2 + len(numbers)}I", len(numbers), whole, *numbers)
    data += b"".join(os.fsencode(text) + b"\0" for text in texts)
    files = [file if isinstance(file, int) else file.fileno() for file in (status, *numbers.values())]
    rights = SOL_SOCKET, SCM_RIGHTS, struct.pack(f"={len(files)}i", *files)
    where.sendmsg([data], [rights], MSG_NOSIGNAL)


def _collect(output: FileIO, errors: FileIO, status: FileIO, watch: Watch) -> Done:
    """What comes through the pipes. It is whole once clang has told its status, which it does when it has
    written everything; an end of the output alone can be that of a clang that died half-way. EOFError where
    nobody tells."""
    poll, texts = select.poll(), {file.fileno(): bytearray() for file in (output, errors, status)}
    made, said, told = texts.values()
    for number in texts:
        os.set_blocking(number, False)
        poll.register(number, select.POLLIN)
    followed = False
    while len(told) < 2 * _INT:
        ready = poll.poll(watch.patience() * 1000)
        if not ready and watch.is_over():
            return Done(b"", watch.stopped.encode(), None)
        for number, _ in ready:
            if _read(number, texts[number]):
                continue
            poll.unregister(number)
            if number == status.fileno() and len(told) < 2 * _INT:
                raise EOFError("clang did not tell how it ended")
        if not followed and len(told) >= _INT:
            followed = True
            watch.follow(int.from_bytes(told[:_INT], "little"))
    for file in (output, errors):
        _read(file.fileno(), texts[file.fileno()])
    end = int.from_bytes(told[_INT : 2 * _INT], "little")
    return Done(bytes(made), bytes(said), os.waitstatus_to_exitcode(end & ~CUT), bool(end & CUT))


def _read(file: int, text: bytearray) -> bool:
    """Adds all that there is now; False at the end."""
    with suppress(BlockingIOError):
        while part := os.read(file, 1 << 16):
            text += part
        return False
    return True
