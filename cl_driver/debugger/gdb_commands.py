"""Commands for gdb on kernels: which work-item this is, which ones the other threads are at, and how to come
to another one. gdb loads the file itself (cl-driver gdb); elsewhere it does nothing.

Kernels that are built with -g -cl-opt-disable have a variable of their own, cl_item
(codegen/kernel/debug_item.py), in the frame of the kernel.
"""

from __future__ import annotations

import sys

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


def add_commands(gdb: Any) -> None:
    """Makes the commands. gdb: its module, which is only there within gdb."""

    def kernel_frame() -> tuple[Any, Any]:
        """The frame of the kernel that the selected thread is in, and its cl_item. GdbError in none."""
        frame = gdb.selected_thread() and gdb.newest_frame()
        while frame:
            try:
                return frame, frame.read_var("cl_item")
            except (ValueError, gdb.error):
                frame = frame.older()
        raise gdb.GdbError(_NONE)

    def numbers(item: Any, part: str) -> list[int]:
        return [int(item[part][k]) for k in range(3)]

    def place(frame: Any) -> str:
        found = frame.find_sal()
        file = found.symtab.filename if found.symtab is not None else "?"
        return f"{frame.name()} at {file}:{found.line}"

    def breakpoints_in(symtab: Any) -> list[Any]:
        """The user's breakpoints in a file of kernels that stop the program."""
        file, found = symtab.fullname(), []  # gdb 18 tells of a location's file with its folder, 13 without
        for each in gdb.breakpoints():
            if each.type != gdb.BP_BREAKPOINT or not (each.visible and each.enabled):
                continue
            if hasattr(each, "locations"):  # from gdb 13 on
                files = [where.source[0] for where in each.locations if where.source]
            else:
                files = [(each.location or "").rpartition(":")[0]]
            if any(name and (file == name or file.endswith("/" + name)) for name in files):
                found.append(each)
        return found

    class InfoKernel(gdb.Command):  # type: ignore[misc]
        """The kernel that the selected thread is in, and the ids of its work-item."""

        def invoke(self, argument: str, from_tty: bool) -> None:
            """The command. GdbError outside of kernels."""
            frame, item = kernel_frame()
            print(f"kernel {place(frame)}")
            for words, part in _PARTS:
                print(f"  {words}: {', '.join(map(str, numbers(item, part)))}")

    class InfoWorkItems(gdb.Command):  # type: ignore[misc]
        """The work-items that threads are at; "thread N" switches to one. A thread executes one after
        another."""

        def invoke(self, argument: str, from_tty: bool) -> None:
            """The command. GdbError where no thread is in a kernel."""
            selected = gdb.selected_thread()
            lines = []
            for thread in sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num):
                thread.switch()
                try:
                    frame, item = kernel_frame()
                except gdb.GdbError:
                    continue
                mark = "*" if thread.num == selected.num else " "
                own = ", ".join(map(str, numbers(item, "global_id")))
                lines.append(f"{mark} thread {thread.num}: work-item {own} of kernel {place(frame)}")
            if selected is not None:
                selected.switch()
            if not lines:
                raise gdb.GdbError(_NONE)
            print("\n".join(lines))

    class WorkItem(gdb.Command):  # type: ignore[misc]
        """work-item X [Y [Z]]: goes on until the work-item with this global id comes to the line at hand,
        whatever breakpoints in kernels others come to before."""

        def invoke(self, argument: str, from_tty: bool) -> None:
            """The command. GdbError outside of kernels, or for what is no id."""
            found = kernel_frame()[0].find_sal()
            try:
                wanted = [int(word, 0) for word in argument.split()]
            except ValueError:
                wanted = []
            if not 1 <= len(wanted) <= 3:
                raise gdb.GdbError("work-item X [Y [Z]]: the global id of a work-item")
            line = f"{found.symtab.filename}:{found.line}"
            others = breakpoints_in(found.symtab)
            stop = gdb.Breakpoint(line, internal=True, temporary=True)
            stop.condition = " && ".join(f"cl_item.global_id[{k}] == {id_}" for k, id_ in enumerate(wanted))
            for each in others:
                each.enabled = False
            try:
                gdb.execute("continue")
            finally:
                for each in others:
                    if each.is_valid():
                        each.enabled = True

    InfoKernel("info kernel", gdb.COMMAND_STATUS)
    InfoWorkItems("info work-items", gdb.COMMAND_STATUS)
    WorkItem("work-item", gdb.COMMAND_RUNNING)


if "gdb" in sys.modules:
    add_commands(sys.modules["gdb"])
