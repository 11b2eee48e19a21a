"""What debuggers are given. README.md has how."""

from __future__ import annotations

from pathlib import Path

GDB_SCRIPT = Path(__file__).with_name("gdb_commands.py")  # for gdb -x
