"""Python's memory in large pages (cl_driver/arenas.py, native_shim/arenas/arenas.c)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What is there before is freed afterwards, and the other way round; then memory is that of many arenas.
_USE = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from cl_driver import arenas
before = [bytearray(200) for _ in range(50_000)]
assert arenas.use()
for _ in range(3):
    kept = [[n, str(n)] for n in range(300_000)]
    before = None
    assert kept[123_456] == [123_456, "123456"]
    del kept
kept = [[n, str(n)] for n in range(300_000)]
assert all(text == str(n) for n, text in kept)
"""


def run(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", text], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_arenas_are_taken_and_returned():
    run(_USE)


# KiB of memory for which the system was asked for large pages.
_ASKED = """
size = asked = 0
for line in open('/proc/self/smaps'):
    if line.startswith('Size:'):
        size = int(line.split()[1])
    elif line.startswith('VmFlags:') and 'hg' in line.split():
        asked += size
print(asked)
"""


def test_the_system_is_asked_for_large_pages():
    """Which it may not have."""
    if not Path("/sys/kernel/mm/transparent_hugepage").exists():
        pytest.skip("a system that knows of none")
    assert int(run(_USE + _ASKED)) > 16_000


def test_without_the_library_python_has_memory_of_its_own():
    text = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom cl_driver import arenas\n"
    run(text + "arenas.LIBRARY = 'absent.so'\nassert not arenas.use()\nlist(map(str, range(100_000)))\n")
