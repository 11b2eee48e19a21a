"""What a process may do and where it is; and how a compiler process gets the same as who wants it.

A host may give up rights or change its root folder after its context was created, or be a fork that does.
Then its compiler is to have no more than it, and finds the files that it finds.
"""

from __future__ import annotations

import os

# Of /proc/PID/status.
_FIELDS = ("Uid", "Gid", "Groups", "CapEff", "NoNewPrivs", "Seccomp", "Cpus_allowed")
# What nobody can be given, and what only has a root folder in it.
_SPACES = ("ns/user", "ns/net", "ns/ipc", "ns/pid")
_ROOTS = ("root", "ns/mnt")

_SET_NO_NEW_PRIVILEGES = 38


class Standing:
    """Of a process. fields: by the names of _FIELDS; spaces, roots: namespaces and the root folder, as
    devices and inodes; label: what security modules call it."""

    __slots__ = ("fields", "label", "pid", "priority", "roots", "spaces")

    def __init__(
        self, pid: int, fields: dict[str, str], places: list[tuple[int, int]], label: bytes, priority: int
    ) -> None:
        self.pid, self.fields, self.label, self.priority = pid, fields, label, priority
        self.spaces, self.roots = places[: len(_SPACES)], places[len(_SPACES) :]

    def is_that_of(self, other: Standing) -> bool:
        """Whether another process may do the same, in the same place."""
        names = [name for name in self.__slots__ if name != "pid"]
        return all(getattr(self, name) == getattr(other, name) for name in names)


def standing(pid: int) -> Standing | None:
    """That of a process; None where it cannot be known."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="surrogateescape") as file:
            lines = dict(line.rstrip("\n").split(":", 1) for line in file if ":" in line)
        fields = {name: lines[name].strip() for name in _FIELDS if name in lines}
        places = [_identity(os.stat(f"/proc/{pid}/{place}")) for place in (*_SPACES, *_ROOTS)]
        priority = os.getpriority(os.PRIO_PROCESS, pid)
    except OSError:
        return None
    return Standing(pid, fields, places, _label(pid), priority)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _label(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/attr/current", "rb") as file:
            return file.read()
    except OSError:
        return b""  # no module has one


def can_be_taken(wanted: Standing, own: Standing, root: int) -> bool:
    """Whether take() may try. root: a descriptor of the root folder, as who asks has sent it, or -1."""
    if wanted.spaces != own.spaces or wanted.label != own.label or set(wanted.fields) != set(own.fields):
        return False
    if wanted.fields["Seccomp"] != own.fields["Seccomp"] or wanted.fields["Seccomp"] != "0":
        return False
    if wanted.roots == own.roots:
        return True
    try:
        return root >= 0 and _identity(os.fstat(root)) == wanted.roots[0]
    except OSError:
        return False


def take(wanted: Standing, own: Standing, root: int, setting: str) -> None:
    """This process, which has loaded what it needs, and the clang that it starts, are as that one is. Raises
    OSError, ClangError and CorrectionsError where they cannot be: then this process must end.

    root: see can_be_taken(); setting: CL_DRIVER_CLANG.
    """
    import ctypes

    from ..frontend import clang, clang_start

    os.sched_setaffinity(0, os.sched_getaffinity(wanted.pid))
    if wanted.priority > own.priority:
        os.setpriority(os.PRIO_PROCESS, 0, wanted.priority)
    if wanted.fields["NoNewPrivs"] != own.fields["NoNewPrivs"]:
        ctypes.CDLL(None).prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    # The ids by which files are reached are the last ones.
    user, group = (wanted.fields[name].split()[-1] for name in ("Uid", "Gid"))
    groups = ",".join(wanted.fields["Groups"].split())
    if wanted.roots == own.roots:
        root = -1
    rights = f"{root} {user} {group} {wanted.fields['CapEff']} {groups}"
    library = ctypes.CDLL(clang_start.library_path())
    clang.confine(setting, rights, root)
    error = library.cld_confine(rights.encode())
    if error:
        raise OSError(error, os.strerror(error))
