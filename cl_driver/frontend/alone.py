"""Runs a clang of its own for a program: where none can stay (resident.py), or descriptors are few."""

from __future__ import annotations

import os
import time
from collections import namedtuple
from contextlib import ExitStack, suppress

from .clang_start import SIGKILL, has_few_descriptors, has_fewest_descriptors, library_path, limit
from .effort import Allowance, Watch

TYPE_CHECKING = False  # typing takes long to import, and clang waits
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import IO, TypeAlias

    Stream: TypeAlias = int | IO[bytes]

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.05  # seconds between looks at a child that nothing tells of

# What loaders do with a library that is not for them: of glibc, of musl.
_NOT_PRELOADED, _NOT_STARTED = b"ERROR: ld.so: ", 127

PATH = "/proc/self/fd/"

is_own = False  # whether this process is a compiler's own, and nobody else uses its standard descriptors


class Done(namedtuple("Done", "output errors status is_cut", defaults=(False,))):
    """What clang wrote to `-o -`, what it said, and its status: None, and why, if it had to be stopped.
    is_cut: whether functions that no kernel reaches were left out of a program that perhaps is whole."""

    __slots__ = ()

    output: bytes
    errors: bytes
    status: int | None
    is_cut: bool


class _Call(namedtuple("_Call", "arguments source folder environment fds allowance")):
    """A clang that is to be run: fds are the descriptors that it gets besides the standard ones."""

    __slots__ = ()

    arguments: list[str]
    source: bytes
    folder: str | None
    environment: dict[str, str]
    fds: tuple[int, ...]
    allowance: Allowance

    def start(self, given: Stream, output: Stream, errors: Stream) -> subprocess.Popen[bytes]:
        """It runs, with these as its standard input, output and errors."""
        import subprocess

        return subprocess.Popen(
            self.arguments,
            stdin=given,
            stdout=output,
            stderr=errors,
            cwd=self.folder,
            env=self.environment,
            pass_fds=self.fds,
        )


def run(
    arguments: list[str],
    source: bytes,
    folder: str | None,
    environment: dict[str, str],
    listing: int,
    allowance: Allowance,
    is_whole: bool | None,
) -> Done:
    """By a clang of its own, with the library for what it says of files, if the loader takes that."""
    library = library_path()
    fds = (listing,) if listing >= 0 else ()
    arguments = with_list(arguments, listing)
    if os.path.exists(library):
        guarded = environment | {"LD_PRELOAD": library}
        if fds:
            guarded["CLD_CLANG_LIST"] = str(listing)
        if is_whole:
            guarded["CLD_CLANG_WHOLE"] = "1"
        done = _run_process(_Call(arguments, source, folder, guarded, fds, allowance))
        if done.status != _NOT_STARTED and not done.errors.startswith(_NOT_PRELOADED):
            return done
        if fds:
            os.ftruncate(listing, 0)
    return _run_process(_Call(arguments, source, folder, environment, fds, allowance))


def _run_process(call: _Call) -> Done:
    if is_own and has_fewest_descriptors():
        return _run_process_on_fewest(call)
    if has_few_descriptors():
        return _run_process_on_files(call)
    import subprocess

    pipe = subprocess.PIPE
    with call.start(pipe, pipe, pipe) as child:
        limit(child.pid)
        try:
            with Watch(call.allowance, child.pid) as watch:
                text: bytes | None = call.source
                while True:
                    try:
                        output, errors = child.communicate(text, timeout=watch.patience())
                        return Done(output, errors, child.returncode)
                    except subprocess.TimeoutExpired:
                        text = None  # it has been taken
                        if watch.is_over():
                            return Done(b"", watch.stopped.encode(), None)
        finally:
            if child.returncode is None:
                child.kill()


def _run_process_on_files(call: _Call) -> Done:
    """The same with files in memory, of which this process needs one descriptor each; a pipe has two."""
    import subprocess

    with ExitStack() as opened:
        given, output, errors = (
            opened.enter_context(os.fdopen(os.memfd_create(name), "w+b", buffering=0))
            for name in ("source", "output", "errors")
        )
        os.pwrite(given.fileno(), call.source, 0)
        child = opened.enter_context(call.start(given, output, errors))
        limit(child.pid)
        try:
            with Watch(call.allowance, child.pid) as watch:
                while True:
                    try:
                        status = child.wait(watch.patience())
                        break
                    except subprocess.TimeoutExpired:
                        if watch.is_over():
                            return Done(b"", watch.stopped.encode(), None)
        finally:
            if child.returncode is None:
                child.kill()
        said, complained = (
            os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (output, errors)
        )
        return Done(said, complained, status)


def _run_process_on_fewest(call: _Call) -> Done:
    """The same in a process of the compiler's own. Its standard input and output, else /dev/null, are two of
    the files meanwhile, and what it has for its last words is the third: with the list and the socket that it
    answers on there are five, and some libffis keep one."""
    here, has_file = os.getcwd(), os.readlink(f"{PATH}2").startswith("/memfd:")
    errors = 2 if has_file else -1
    before = os.lseek(errors, 0, os.SEEK_END) if has_file else 0
    try:
        for number, name in enumerate(("source", "output")):
            _replace(number, os.memfd_create, name)
        if not has_file:
            errors = os.memfd_create("errors")
        os.pwrite(0, call.source, 0)
        for inherited in call.fds:
            os.set_inheritable(inherited, True)
        if call.folder is not None:
            os.chdir(call.folder)  # posix_spawn cannot, and other means need a pipe
        actions = [] if has_file else [(os.POSIX_SPAWN_DUP2, errors, 2)]
        child = os.posix_spawn(call.arguments[0], call.arguments, call.environment, file_actions=actions)
        limit(child)
        with Watch(call.allowance, child) as watch:
            status = _wait(child, watch)
        if status is None:
            return Done(b"", watch.stopped.encode(), None)
        said = os.pread(1, os.fstat(1).st_size, 0)
        return Done(said, os.pread(errors, os.fstat(errors).st_size - before, before), status)
    finally:
        if has_file:
            os.ftruncate(errors, before)
            os.lseek(errors, before, os.SEEK_SET)
        elif errors >= 0:
            os.close(errors)
        for number in (0, 1):
            _replace(number, os.open, os.devnull, os.O_RDWR)
        os.chdir(here)


def _replace(number: int, opener: Callable[..., int], *arguments: object) -> None:
    """Has a standard descriptor, for children too, be what is opened, which may be the last one that is free.
    Nobody else opens anything meanwhile: has_fewest_descriptors()."""
    with suppress(OSError):  # what was to be there before could not be opened
        os.close(number)
    opened = opener(*arguments)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    os.set_inheritable(number, True)


def _wait(child: int, watch: Watch) -> int | None:
    """How a child ended; None if it had to be stopped."""
    pause, left = _SHORTEST_PAUSE, watch.patience()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if left <= 0:
            if watch.is_over():
                os.kill(child, SIGKILL)
                os.waitpid(child, 0)
                return None
            left = watch.patience()
        time.sleep(pause)
        left -= pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def with_list(arguments: list[str], number: int) -> list[str]:
    """With an option that has clang write what it includes to a descriptor, if there is one."""
    return [*arguments[:-1], "-MD", "-MF", f"{PATH}{number}", arguments[-1]] if number >= 0 else arguments
