"""Compiler processes, and those that start them, as the service sees them.

A server (fork_server.py) is started by exec; compiler processes are forks of it. So a second one, or one of a
forked host, is there at once and shares memory with the others.
"""

from __future__ import annotations

import os
from _socket import MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET, socketpair

from .. import late_modules, log, native, settings, spawn, trust
from ..jit.errors import CompileError
from . import protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .pool import Budget
    from .protocol import Request

    # A command, and the variables that are read there.
    MadeWith: TypeAlias = tuple[list[str], dict[str, str]]
    Rights: TypeAlias = tuple[int, int, int, int]

_LAST_WORDS = 2000  # bytes of a dead compiler's stderr that go into the log

# With fewer descriptors the one to a server is not kept.
_ENOUGH_DESCRIPTORS = 64

# What compiler processes, clang and the loader of both read.
_VARIABLES = ("PATH", "TMPDIR", "HOME")
_KINDS_OF_VARIABLES = ("CL_DRIVER_", "XDG_", "LD_")

_STANDARD = 3  # descriptors with names; hosts may lack them, and open them later


def command(module: str, *arguments: str) -> list[str]:
    """What starts a module of this driver in a Python of its own, which is told whether it is trusted."""
    try:
        others = native.configuration().get("path", [])
    except OSError:
        others = []
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    start = (
        f"import gc, sys; gc.disable(); sys.path.insert(0, {root!r}); sys.path += {others!r}; "
        f"from cl_driver import trust; trust.hand({trust.is_trusted()}); "
        "from cl_driver import module_archive; module_archive.use(); "
        f"from {module} import main; main(sys.argv[1:])"
    )
    # Of modules no garbage comes, so it is not searched for. -I: the host's PYTHONPATH, PYTHONHOME and
    # working directory are no business of the compiler's. -S: what other packages put into .pth files takes
    # as long as everything else; jit/emit.py asks for it if it must.
    return [native.python(), "-I", "-S", "-c", start, *arguments]


def rights() -> Rights:
    """What of this process's own it can tell at once that it has changed: its root folder, as device and
    inode, and the ids by which it reaches files."""
    status = os.stat("/")
    return status.st_dev, status.st_ino, os.geteuid(), os.getegid()


class Server:
    """Starts compiler processes. made_with: its command, and the variables that are read there; rights: what
    this process had then."""

    def __init__(self, made_with: MadeWith, holder: str = "") -> None:
        """holder: a program that waits until it is asked for the first one (native_shim/holder/holder.c).
        OSError if it cannot be started."""
        self.made_with = made_with
        self.rights = rights()
        command = [holder, *made_with[0], holder] if holder else [*made_with[0], ""]
        self._sock = spawn.spawn(command, {**trust.environment(), **spawn.LARGE_PAGES})
        # It looks at who asks (fork_server.py), which the kernel tells it.
        self._sock.setsockopt(SOL_SOCKET, protocol.SO_PASSCRED, 1)

    def is_there(self) -> bool:
        """Whether it may be asked for something."""
        return self._sock.is_ours() and not protocol.is_closed(self._sock)

    def connect(self, for_source: bool) -> spawn.Connection:
        """A socket to a new process; its other end is closed if there is none. OSError if nobody is asked.
        for_source: it will run clang at once."""
        ours, theirs = map(_out_of_the_way, _pair())
        given = [theirs]
        what = protocol.CONNECT_FOR_SOURCE if for_source else protocol.CONNECT
        try:
            if self.rights != rights():  # it may be that the compiler has to follow us there
                given.append(os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            content = b"".join(map(protocol.DESCRIPTOR.pack, given))
            self._sock.sendmsg([what], [(SOL_SOCKET, SCM_RIGHTS, content)], MSG_NOSIGNAL)
            return spawn.Connection(ours)
        except BaseException:
            os.close(ours)
            raise
        finally:
            for descriptor in given:
                os.close(descriptor)

    def rest(self) -> None:
        """It ends soon after its last process, unless it is asked for another one."""
        try:
            if self.is_there():
                self._sock.sendmsg([protocol.LEAVE], (), MSG_NOSIGNAL)
        except OSError:
            pass

    def close(self) -> None:
        """It ends after its last process."""
        self._sock.close()


def _pair() -> tuple[int, int]:
    ours, theirs = socketpair()
    return ours.detach(), theirs.detach()


def _out_of_the_way(descriptor: int) -> int:
    """Closes it, for one with a number that no standard one has."""
    low = []
    try:
        while descriptor < _STANDARD:
            low.append(descriptor)
            descriptor = os.dup(descriptor)
        return descriptor
    finally:
        for number in low:
            os.close(number)


def _made_with() -> MadeWith:
    limits = [settings.integer(f"CL_DRIVER_COMPILE_{name}") or 0 for name in ("IDLE", "MEMORY")]
    variables = {
        name: value
        for name, value in trust.environment().items()
        if name in _VARIABLES or name.startswith(_KINDS_OF_VARIABLES)
    }
    return command("cl_driver.service.fork_server", *map(str, limits)), variables


def hold() -> None:
    """For a host that has a context and could change its root folder: sees to it that there is what it could
    not find or start in another one. The process is small until it is asked for a compiler."""
    if spawn.servers or settings.text("CL_DRIVER_COMPILE") == "inprocess":
        return
    try:
        late_modules.keep()
        if os.sysconf("SC_OPEN_MAX") >= _ENOUGH_DESCRIPTORS:
            spawn.servers.append(Server(_made_with(), os.path.join(native.folder(), "_cl_driver_holder")))
    except OSError as error:
        log.log(1, f"nothing can be built in another root folder: {error}")


def _start(servers: list[Server], for_source: bool) -> tuple[Server, spawn.Connection]:
    """A process, by the server that there is or a new one. Two threads may both start one: each uses its
    own."""
    root = rights()[:2]
    made_with = None
    for server in list(servers):
        if server.rights[:2] == root:
            made_with = made_with or _made_with()
        # From another root folder none like it could be started.
        if (server.rights[:2] != root or server.made_with == made_with) and server.is_there():
            try:
                return server, server.connect(for_source)
            except OSError:
                pass
        _forget(servers, server)
    server = Server(made_with or _made_with())
    connection = server.connect(for_source)
    if os.sysconf("SC_OPEN_MAX") < _ENOUGH_DESCRIPTORS:
        server.close()
    else:
        servers.append(server)
    return server, connection


def _forget(servers: list[Server], server: Server) -> None:
    if server in servers:
        servers.remove(server)
        server.close()


class Process:
    """One compiler process. sock: to it; pid, and errors, the file that is its stderr: both
    known when it has sent them, which it does first; started: whether it has begun the request."""

    errors: spawn.Descriptor | None

    def __init__(self, servers: list[Server], for_source: bool = False) -> None:
        """servers: those that there are; the one that starts it is there afterwards; for_source: its first
        request is to compile a source. Raises CompileError if it cannot be started."""
        self.pid, self.errors, self.started = 0, None, False
        self._servers, self._rights = servers, rights()
        try:
            self._server, self.sock = _start(servers, for_source)
        except OSError as error:
            raise CompileError(f"the compiler process cannot be started: {error}") from error

    def send(self, request: Request, budget: Budget) -> None:
        """Hands it a request. protocol.Disconnected if it is gone."""
        self.started = False
        self.sock.settimeout(budget.wait())
        operation, *arguments = request
        protocol.send(self.sock, [operation, float(budget.of(self)), *arguments])

    def receive(self) -> list[Any] | None:
        """The answer, or None when the process has only said that it began. protocol.Disconnected if it is
        gone."""
        if self.errors is None:
            self.pid, descriptor = protocol.receive_hello(self.sock)
            self.errors = spawn.Descriptor(descriptor)
        answer = protocol.receive(self.sock)
        if answer[0] == protocol.STARTED:
            self.started = True
            return None
        if answer[0] == protocol.SAID:
            _log_once(*answer[1:])
            return None
        if answer[0] == protocol.TOOK:
            from ..trace import writer

            writer.add(self.pid, answer[1])
            return None
        return answer

    def is_fit(self) -> bool:
        """Whether it is there, and may do what this process may: if that has changed, it would read files
        that the host must not, or not those that the host means."""
        return self.sock.is_ours() and not protocol.is_closed(self.sock) and self._rights == rights()

    def rest(self) -> bool:
        """It ends if it has no work soon; False if it has gone already."""
        try:
            protocol.send(self.sock, [protocol.REST])
        except protocol.Disconnected:
            return False
        return self.sock.is_ours()

    def close(self) -> None:
        """The process ends when it sees this, whatever it is doing."""
        has_gone = not self.sock.is_ours() or protocol.is_closed(self.sock) or self._rights == rights()
        self.sock.close()
        if self.errors is None:
            if not has_gone:
                return
            # It has never said a word: perhaps who should have started it has not.
            _forget(self._servers, self._server)
            return
        self.errors.close()
        self.errors = None

    def last_words(self) -> str:
        """The end of what it wrote to stderr: LLVM says there why it gives up."""
        if self.errors is None or not self.errors.is_ours():
            return ""
        start = max(0, os.fstat(self.errors.number).st_size - _LAST_WORDS)
        return os.pread(self.errors.number, _LAST_WORDS, start).decode("utf-8", "replace").strip()


_logged: set[str] = set()


def _log_once(level: int, text: str) -> None:
    """Compiler processes find out the same, each for itself."""
    if text not in _logged:
        _logged.add(text)
        log.log(level, text)
