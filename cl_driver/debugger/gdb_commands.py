"""Commands for gdb on kernels: which work-item this is, which ones the other threads are at, and how to come
to another one. gdb loads the file itself; README.md beside it tells how.

Kernels that are built with -g -cl-opt-disable have a variable of their own, cl_item
(codegen/kernel/debug_item.py), in the frame of the kernel.
"""

from __future__ import annotations

import gdb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PARTS = (
    ("global id", "global_id"),
    ("local id", "local_id"),
    ("group id", "group_id"),
    ("local size", "local_size"),
    ("number of groups", "num_groups"),
)
_NONE = "No work-item here: stop in a kernel that is built with -g -cl-opt-disable."


def kernel_frame() -> tuple[Any, Any]:
    """The frame of the kernel that the selected thread is in, and its cl_item; (None, None) in none."""
    frame = gdb.newest_frame()
    while frame is not None:
        try:
            return frame, frame.read_var("cl_item")
        except (ValueError, gdb.error):
            frame = frame.older()
    return None, None


def numbers(item: Any, part: str) -> list[int]:
    """Three numbers of a work-item."""
    return [int(item[part][k]) for k in range(3)]


def place(frame: Any) -> str:
    """Kernel, file and line."""
    found = frame.find_sal()
    file = found.symtab.filename if found.symtab is not None else "?"
    return f"{frame.name()} at {file}:{found.line}"


class InfoKernel(gdb.Command):  # type: ignore[misc]
    """The kernel that the selected thread is in, and the ids of its work-item."""

    def __init__(self) -> None:
        super().__init__("info kernel", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """The command."""
        frame, item = kernel_frame()
        if frame is None:
            raise gdb.GdbError(_NONE)
        print(f"kernel {place(frame)}")
        for words, part in _PARTS:
            print(f"  {words}: {', '.join(map(str, numbers(item, part)))}")


class InfoWorkItems(gdb.Command):  # type: ignore[misc]
    """The work-items that threads are at; "thread N" switches to one. A thread executes one after another."""

    def __init__(self) -> None:
        super().__init__("info work-items", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """The command."""
        selected = gdb.selected_thread()
        if selected is None:
            raise gdb.GdbError(_NONE)
        found = 0
        try:
            for thread in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num):
                thread.switch()
                frame, item = kernel_frame()
                if frame is not None:
                    found += 1
                    mark = "*" if thread.num == selected.num else " "
                    own = ", ".join(map(str, numbers(item, "global_id")))
                    print(f"{mark} thread {thread.num}: work-item {own} of kernel {place(frame)}")
        finally:
            selected.switch()
        if not found:
            raise gdb.GdbError(_NONE)


class WorkItem(gdb.Command):  # type: ignore[misc]
    """work-item X [Y [Z]]: goes on until the work-item with this global id comes to the line at hand."""

    def __init__(self) -> None:
        super().__init__("work-item", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """The command."""
        frame, _ = kernel_frame()
        if frame is None:
            raise gdb.GdbError(_NONE)
        try:
            wanted = [int(word, 0) for word in argument.split()]
        except ValueError:
            wanted = []
        if not 1 <= len(wanted) <= 3:
            raise gdb.GdbError("work-item X [Y [Z]]: the global id of a work-item")
        found = frame.find_sal()
        if found.symtab is None:
            raise gdb.GdbError(_NONE)
        stop = gdb.Breakpoint(f"{found.symtab.filename}:{found.line}", internal=True, temporary=True)
        stop.condition = " && ".join(f"cl_item.global_id[{k}] == {id_}" for k, id_ in enumerate(wanted))
        gdb.execute("continue")


InfoKernel()
InfoWorkItems()
WorkItem()
