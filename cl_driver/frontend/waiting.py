"""Children that are started before there is work for them: more than half of a short run of clang is its
start, which takes as long as it may where nobody waits for it.

A compiler process that has compiled twice has clang wait for its input, with the arguments of the last
program; the next program gets that child if its arguments are the same. The child ends when its input
is closed, which the end of this process does.

clang reads the whole of its main file before anything else. So that it has read OpenCL's header, too, when
the program comes, the main file is one line, which includes a pipe.
"""

from __future__ import annotations

import os
import re
import resource
import select
import subprocess
import time
from contextlib import suppress

TIME_LIMIT = 120  # seconds, of the wall clock and of the CPU
MEMORY_LIMIT = 8 << 30  # bytes of address space

_ENOUGH = 2  # programs that a process has compiled when it expects another one

MAIN_FILE = b"/proc/self/fd/"  # in messages about that line: something is unfinished where the program ends

# What clang says before messages about the program, where that is what the main file includes.
_INCLUDED = re.compile(rb"^In file included from /proc/self/fd/\d+:1:\n", re.MULTILINE)

_FUNCTION_END = (1 << 16 | 56).to_bytes(4, "little")  # OpFunctionEnd

_allowed = False
_started = 0
_expected: list[tuple] = []  # what begin() starts, one at most
_waiting: list[tuple[tuple, Child]] = []  # (what it was started as, the child), one at most


def allow() -> None:
    """This process is a compiler's own, not somebody's who would not expect children."""
    global _allowed
    _allowed = True


def _key(arguments: list[str], folder: str | None) -> tuple:
    status = os.stat(arguments[0])
    return (*arguments, folder, status.st_mtime_ns, status.st_ino)


class Child(subprocess.Popen):
    """clang with pipes, whose limits are set, started now.

    What it writes with `-o -` comes through a pipe that it opens by name, and so closes when all is written:
    its end, which takes it another 3 ms, need not be waited for.
    """

    def __init__(
        self,
        arguments: list[str],
        folder: str | None,
        environment: dict[str, str],
        fds=(),
        reads_ahead: bool = False,
    ):
        """reads_ahead: the program is included by the main file."""
        self._output, self._other_end = os.pipe()
        path = f"/proc/self/fd/{self._output}"
        named = [
            path if before == "-o" and a == "-" else a
            for before, a in zip(["", *arguments[:-1]], arguments, strict=True)
        ]
        ahead: tuple[int, ...] = ()  # the main file, and the pipe that the program comes through
        try:
            if reads_ahead:
                ahead = main, program, _ = _main_file()
                named[-1], fds = f"/proc/self/fd/{main}", (*fds, main, program)
            super().__init__(
                named,
                stdin=subprocess.DEVNULL if reads_ahead else subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment,
                pass_fds=(*fds, self._output),
            )
        except BaseException:
            self._close()
            for descriptor in ahead[2:]:
                os.close(descriptor)
            raise
        finally:
            for descriptor in ahead[:2]:
                os.close(descriptor)
        if reads_ahead:
            self.stdin = open(ahead[2], "wb", buffering=0)
        with suppress(OSError, ValueError):  # it has ended already, or a lower limit is in force
            # Limits are set from outside: code that runs between fork and exec would forbid vfork.
            resource.prlimit(self.pid, resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
            resource.prlimit(self.pid, resource.RLIMIT_CPU, (TIME_LIMIT, TIME_LIMIT))
            resource.prlimit(self.pid, resource.RLIMIT_CORE, (0, 0))

    def converse(self, source: bytes, seconds: float) -> tuple[bytes, bytes, int | None]:
        """What it makes of a source, what it says, and its status: None if that takes more than `seconds`."""
        poll, end = select.poll(), time.monotonic() + seconds
        stdin, errors = self.stdin.fileno(), self.stderr.fileno()
        poll.register(stdin, select.POLLOUT)
        poll.register(self._output, select.POLLIN)
        poll.register(errors, select.POLLIN)
        texts: dict[int, bytearray] = {self._output: bytearray(), errors: bytearray()}
        left, rest = {self._output, errors}, memoryview(source)
        try:
            while left and not (self._output not in left and _is_whole(texts[self._output], texts[errors])):
                ready = poll.poll(max(0, end - time.monotonic()) * 1000)
                if not ready:
                    self.kill()
                    self.wait()
                    return b"", b"", None
                for descriptor, _ in ready:
                    if descriptor == stdin:
                        with suppress(BrokenPipeError):
                            rest = rest[os.write(stdin, rest[: select.PIPE_BUF]) :]
                            if rest:
                                continue
                        poll.unregister(stdin)
                        self._end_input()
                    elif descriptor in left:
                        part = os.read(descriptor, 1 << 16)
                        texts[descriptor] += part
                        if not part:
                            left.discard(descriptor)
                            poll.unregister(descriptor)
                        if bool(part) == (descriptor == self._output):
                            self._close_other_end()  # it has opened the pipe, or never will
            status = 0 if left else self.wait()
            return bytes(texts[self._output]), _INCLUDED.sub(b"", bytes(texts[errors])), status
        finally:
            self._end_input()
            self.stderr.close()
            self._close()

    def discard(self) -> None:
        """Ends it unheard."""
        self.kill()
        self.wait()
        self._end_input()
        self.stderr.close()
        self._close()

    def _end_input(self) -> None:
        with suppress(BrokenPipeError):
            self.stdin.close()

    def _close_other_end(self) -> None:
        if self._other_end >= 0:
            os.close(self._other_end)
            self._other_end = -1

    def _close(self) -> None:
        self._close_other_end()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1


def _main_file() -> tuple[int, int, int]:
    """Descriptors: a file that includes the second one, the end of a pipe whose other end is the third."""
    program, source = os.pipe()
    try:
        main = os.memfd_create("main")
    except OSError:
        os.close(program)
        os.close(source)
        raise
    os.write(main, f'#include "/proc/self/fd/{program}"\n'.encode())
    return main, program, source


def _may_read_ahead(arguments: list[str]) -> bool:
    """Whether clang does the same with a program that the main file includes. It leaves out some warnings on
    files that are included, which are off by default, and debug information names the main file."""
    asks = any(a.startswith("-W") and not a.startswith("-Wno-") for a in arguments)
    return arguments[-1] == "-" and "-c" in arguments and "-g" not in arguments and not asks


def _is_whole(output: bytearray, errors: bytearray) -> bool:
    """Whether that is a SPIR-V module with a last function, of which there was nothing to say."""
    return not errors and output.endswith(_FUNCTION_END)


def take(arguments: list[str], folder: str | None, environment: dict[str, str], fds=()) -> Child:
    """The child that waits, if it was started with these arguments; else a new one."""
    global _started
    _started += 1
    if _waiting and not fds:
        known, child = _waiting.pop()
        if child.poll() is None:
            if known == _key(arguments, folder):
                return child
        child.discard()
    return Child(arguments, folder, environment, fds)


def expect(arguments: list[str], folder: str | None, environment: dict[str, str]) -> None:
    """A program came with these arguments: others like it may follow. begin() starts the child."""
    if _allowed and _started >= _ENOUGH and not _waiting:
        _expected[:] = [(arguments, folder, environment)]


def is_expected() -> bool:
    """Whether begin() has something to do."""
    return bool(_expected)


def begin() -> None:
    """Starts the child that is expected, if any. To start a process takes some milliseconds of Python: the
    program that is being compiled should not have to wait for that."""
    with suppress(IndexError, OSError):  # another thread has; the next program does without
        arguments, folder, environment = _expected.pop()
        child = Child(arguments, folder, environment, reads_ahead=_may_read_ahead(arguments))
        _waiting.append((_key(arguments, folder), child))
