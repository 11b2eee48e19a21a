"""The data plane's C tests: plain, and with ThreadSanitizer and AddressSanitizer.

Each program in c/ is linked with the objects of native_shim/build.py's own configurations and runs without
Python, a loader or a compiler: kernels are C functions. A program checks itself; here only its exit status
counts.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EMULATOR
from tests.marks import needs_kernel

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).parent / "c"
sys.path.insert(0, str(ROOT / "native_shim"))

import build as shim  # noqa: E402

SANITIZERS = ("", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("thread", "address")))
PROGRAMS = (
    "objects", "events", "buffers", "launch", "late_code", "counts", "printf", "no_threads", "value_code",
    "images", "storage", "native", "variants", "turns",
    "schedule/share", "schedule/alone", "schedule/calls", "schedule/longer",
    "cluster/extents", "cluster/worth", "cluster/choice", "cluster/held_up", "cluster/no_memory",
    "cluster/executor", "kernel/ab_trial", "check/plain",
)  # fmt: skip
WRAPPED = {
    "value_code": ["cld_now"],
    "turns": ["madvise", "mmap"],
    "cluster/choice": ["cld_worker_at", "cld_worker_count", "cld_worker_in"],
    "cluster/held_up": ["cld_now", "cld_worker_at"],
    "cluster/executor": ["clCreateContext", "cld_launch_enqueue", "cld_remote_kernel_of"],
    "cluster/no_memory": [
        "cld_spawn",
        "cld_guest_config",
        "malloc",
        "calloc",
        "realloc",
        "posix_memalign",
    ],
    "variants": [
        "cld_door_call",
        "cld_code_load",
        "cld_code_set_terminated",
        "cld_code_symbol",
        "cld_code_unload",
    ],
}
# What tests depend on, whichever machine they run on: how many groups a trial takes differs with it.
THREADS = {"value_code": ("2", "16"), "schedule/longer": ("2", "4")}
PROCESS_TESTS = ("fork_idle", "fork_in_flight", "fork_busy", "exit_running", "exit_idle")

pytestmark = pytest.mark.skipif(not shutil.which(os.environ.get("CC", "cc")), reason="no C compiler")


@pytest.fixture(scope="module")
def objects():
    """Makes the driver's objects of one configuration: a function of the sanitizer's name."""
    made: dict[str, tuple[shim.Builder, list[Path]]] = {}

    def make(sanitize: str) -> tuple[shim.Builder, list[Path]]:
        if sanitize not in made:
            shim.build(ROOT / "build" / "lib")  # what is generated is there, too
            builder = shim.Builder(ROOT / "build" / "data_plane", ROOT / "build", sanitize)
            generated = [builder.generated / name for name in ("answers.c", "dispatch.c", "error_names.c")]
            with open(ROOT / "build" / ".lock", "w") as lock:  # the shim's: workers share the objects
                fcntl.flock(lock, fcntl.LOCK_EX)
                made[sanitize] = builder, builder.compile_all([*shim.sources(), *generated])
        return made[sanitize]

    return make


def program(objects, name: str, sanitize: str) -> Path:
    """The linked test program; made again when a source or the driver is newer."""
    builder, files = objects(sanitize)
    target = builder.out / f"{name}-{sanitize or 'plain'}"
    target.parent.mkdir(parents=True, exist_ok=True)
    headers = (ROOT / "native_shim" / "src").rglob("*.h")
    sources = [SOURCES / f"{name}.c", *SOURCES.rglob("*.h"), *headers, *files]
    if not target.exists() or any(s.stat().st_mtime_ns > target.stat().st_mtime_ns for s in sources):
        fresh = target.with_suffix(f".{os.getpid()}")  # several workers may want the same program
        flags = [*builder.flags, *shim.WARNINGS, "-std=gnu11", *builder.sanitize]
        command = [*builder.compiler, *flags, str(sources[0]), *map(str, files), "-o", str(fresh), "-pthread"]
        wrapped = (f"-Wl,--wrap={function}" for function in WRAPPED.get(name, ()))
        shim.run([*command, *wrapped, *shim.LIBRARIES])
        fresh.replace(target)
    return target


def run(path: Path, *arguments: str, seconds: int = 600, environment: dict[str, str] | None = None) -> None:
    """Runs it in a process group of its own, which ends with the test whatever its children do."""
    env = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1", **(environment or {})}
    process = subprocess.Popen(
        [str(path), *arguments], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        pytest.fail(f"no end after {seconds} s\n{output}")
    assert process.returncode == 0, output


@pytest.mark.parametrize("sanitize", SANITIZERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(objects, name, sanitize):
    path = program(objects, name, sanitize)
    for threads in THREADS.get(name, ("",)):
        run(path, environment={"CL_DRIVER_THREADS": threads} if threads else None)


@pytest.mark.parametrize("sanitize", SANITIZERS)
def test_two_threads_of_100000_commands(objects, sanitize):
    run(program(objects, "stress", sanitize), "100000")


# How each message of a fault ends.
FINDS_OUT_MORE = "; CL_DRIVER_CHECK=1, or cl-driver run --check, finds out more"


@pytest.mark.parametrize("name", ["twice", "k" * 200])
@pytest.mark.parametrize(("kernel", "end"), [("illegal", signal.SIGILL), ("divide", signal.SIGFPE)])
def test_instructions_that_trap(objects, kernel, end, name):
    """The host is told which kernel it was, and ends of the same signal as without the driver's handler."""
    if kernel == "divide" and platform.machine() != "x86_64":
        pytest.skip("a division by zero gives zero here")
    path = program(objects, "process", "")
    done = subprocess.run([path, kernel, name], capture_output=True, text=True, timeout=60, check=False)
    shown = name if len(name) <= 160 else f"{name[:160]}..."
    message = f"cl_driver: {end.name} in kernel {shown}{FINDS_OUT_MORE}\n"
    assert EMULATOR.sub("", done.stderr) == message
    assert done.returncode == -end
    settings = {**os.environ, "CL_DRIVER_FAULT_MESSAGE": "off"}
    done = subprocess.run(
        [path, kernel, name], capture_output=True, text=True, timeout=60, check=False, env=settings
    )
    assert (done.returncode, EMULATOR.sub("", done.stderr)) == (-end, "")


# qemu says of guards that madvise is to install that they are there, and installs none.
@pytest.mark.parametrize("kind", [pytest.param("", marks=needs_kernel), "mapped"])
def test_guards_below_the_stacks_of_sub_groups(objects, kind):
    """One that takes more than its stack ends the host as a fault does: it never reaches another's memory."""
    path = program(objects, "turns", "")
    run(path, "guards", kind)
    done = subprocess.run([path, "overflow", kind], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGSEGV
    message = r"cl_driver: SIGSEGV in kernel test, which (writes to|accesses) address 0x[0-9a-f]+"
    message += f"{FINDS_OUT_MORE}\n"
    assert re.fullmatch(message, EMULATOR.sub("", done.stderr))


@pytest.mark.parametrize("threads", ["1", "5"])
def test_other_numbers_of_threads(objects, threads):
    """More threads than CPUs, and one alone."""
    environment = {"CL_DRIVER_THREADS": threads}
    run(program(objects, "stress", ""), "20000", environment=environment)
    run(program(objects, "launch", ""), environment=environment)
    run(program(objects, "events", ""), environment=environment)


@pytest.mark.parametrize("name", PROCESS_TESTS)
def test_fork_and_exit(objects, name):
    """Not with sanitizers: their allocators do not survive a fork of a process with threads."""
    path = program(objects, "process", "")
    for _ in range(5):
        run(path, name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["exit_running", "exit_idle"])
@pytest.mark.parametrize("sanitize", ["thread", "address"])
def test_exit_sanitized(objects, name, sanitize):
    run(program(objects, "process", sanitize), name, environment={"ASAN_OPTIONS": "detect_leaks=0"})
