"""Builds the native shim (libcl_driver.so, _cl_driver_embed-VERSION.so, _cl_driver_clang.so,
_cl_driver_arenas.so, cl_driver.conf) and the builtin library.

    python native_shim/build.py [--out DIR] [--sanitize thread|address] [--allow-missing]

Needs a C compiler, clang, the OpenCL headers, Python's headers and cffi. Only what changed is compiled again.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shlex
import signal
import site
import subprocess
import sys
import time
from concurrent.futures import ALL_COMPLETED, FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

SHIM = Path(__file__).resolve().parent
ROOT = SHIM.parent
for folder in (str(ROOT), str(SHIM)):
    if folder not in sys.path:
        sys.path.insert(0, folder)

import needs  # noqa: E402
from gen import answers, calls, dispatch, embed, headers, platform, quirks, settings, shared  # noqa: E402

from cl_driver import arenas, module_archive  # noqa: E402
from cl_driver.frontend import corrections, find_clang  # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
COMPILE = ["-std=c11", "-fPIC", "-fvisibility=hidden", "-pthread"]
# Folders of src/ whose code is to be small: what it does waits for messages, files and people.
SMALL = ("cluster", "executor", "profile", "python", "trace", "validation")
# But not these files there: what is called for every number of every packet, and what measures the machine.
FAST = ("trace/packet.c", "profile/roofline.c")
LINK = ["-shared", "-pthread", "-Wl,-z,nodelete", "-Wl,-Bsymbolic"]
LIBRARIES = ["-ldl", "-lm"]

# The folders of src/, lowest first. Includes and symbols lead downwards only: a file uses those of its own
# folder and of folders before it (tests/pure/test_native_layers.py).
FOLDERS = (
    "abi",
    "base",
    "schedule",
    "check",
    "object",
    "memory",
    "loader",
    "python",
    "runtime",
    "kernel",
    "cluster",
    "graph",
    "launch",
    "enqueue",
    "profile",
    "semaphore",
    "command_buffer",
    "trace",
    "api",
    "executor",
    "validation",
    "icd",
)
EXPORTS = (
    "clGetExtensionFunctionAddress",
    "cld_executor_functions",
    "__jit_debug_descriptor",
    "__jit_debug_register_code",
    "clGetPlatformInfo",
    *dispatch.ICD_NAMES,
)


class BuildError(Exception):
    """What went wrong, for whoever typed the command."""


def run(command: list[str]) -> str:
    """Runs a tool; returns its standard output. BuildError with what it said if it fails."""
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        raise BuildError(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def sources() -> list[Path]:
    """The C files of the driver. Raises BuildError for one that is in none of FOLDERS."""
    files = sorted((SHIM / "src").rglob("*.c"))
    strangers = [str(f) for f in files if f.parent.parent != SHIM / "src" or f.parent.name not in FOLDERS]
    if strangers:
        raise BuildError(f"in no folder of build.FOLDERS: {' '.join(strangers)}")
    return files


def write(path: Path, text: str) -> None:
    """Writes a generated file, unless it is there and the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


class Builder:
    """One configuration: a compiler with options, a folder for objects, a folder for the result."""

    def __init__(self, out: Path, build: Path, sanitize: str = "", jobs: int = 0):
        self.compiler = shlex.split(os.environ.get("CC", "cc"))
        self.out = out
        self.said: set[str] = set()
        self.objects = build / f"obj{'-' + sanitize if sanitize else ''}"
        self.generated = build / "gen"
        self.jobs = jobs or len(os.sched_getaffinity(0))
        optimise = ["-O1", f"-fsanitize={sanitize}", "-fno-omit-frame-pointer"] if sanitize else ["-O2"]
        # What a launch costs depends on where functions and loops lie in cache lines: it is not to depend on
        # what else is in a file.
        optimise += ["-falign-functions=64", "-falign-loops=32"]
        # A package is the same whatever the folder it was made in, and without what only debuggers read.
        self.is_package = embed.is_package(out)
        self.strip = ["-s"] if self.is_package else []
        optimise += [f"-ffile-prefix-map={ROOT}=."] if self.is_package else ["-g"]
        self.sanitize = [f"-fsanitize={sanitize}"] if sanitize else []
        includes = [f"-I{SHIM / 'src'}", f"-I{self.generated}"]
        self.user_flags = shlex.split(os.environ.get("CFLAGS", ""))
        self.flags = [*COMPILE, *optimise, *includes, *self.user_flags]

    def say(self, step: str) -> None:
        """A line for each step that there is something to do in."""
        if step not in self.said:
            self.said.add(step)
            print(f"{self.out.name}: {step}", flush=True)

    def _fresh(self, target: Path, command: list[str]) -> bool:
        """Whether the object is newer than all that it was made of, by the same command."""
        record, depends = target.with_suffix(".cmd"), target.with_suffix(".d")
        if not (target.exists() and depends.exists() and record.exists()):
            return False
        if record.read_text() != shlex.join(command):
            return False
        made = target.stat().st_mtime_ns
        rule = depends.read_text().replace("\\\n", " ").partition(":")[2]
        try:
            return all(os.stat(name).st_mtime_ns <= made for name in rule.split())
        except FileNotFoundError:
            return False

    def object_of(self, source: Path) -> Path:
        """Where the object file of a C file is: those of src/ are in folders as their sources are."""
        below = source.relative_to(SHIM / "src") if source.is_relative_to(SHIM / "src") else Path(source.name)
        return self.objects / below.with_suffix(".o")

    def compile(self, source: Path, *extra: str, kind: str = "") -> Path:
        """The object file of a C file; kind: there is one of each."""
        target = self.object_of(source).with_suffix(f".{kind}.o" if kind else ".o")
        is_fast = any(map(source.match, FAST))
        if target.parent.name in SMALL and not is_fast and not self.sanitize:
            extra = ("-Os", "-falign-functions=1", "-falign-loops=1", *extra)
        command = [*self.compiler, *self.flags, *WARNINGS, *extra, "-c", str(source), "-o", str(target)]
        if not self._fresh(target, command):
            self.say("compiling C files")
            target.parent.mkdir(parents=True, exist_ok=True)
            start = time.time_ns()
            run([*command, "-MMD", "-MF", str(target.with_suffix(".d"))])
            os.utime(target, ns=(start, start))  # what is saved while it compiles is newer
            target.with_suffix(".cmd").write_text(shlex.join(command))
        return target

    def compile_all(self, sources: list[Path], keep_going: bool = False) -> list[Path]:
        """Objects of several C files. The first error ends it, but for what is being compiled.

        keep_going: a file that does not compile is reported, and its last good object taken, if any.
        """
        with ThreadPoolExecutor(self.jobs) as pool:
            futures = {source: pool.submit(self.compile, source) for source in sources}
            wait(futures.values(), return_when=ALL_COMPLETED if keep_going else FIRST_EXCEPTION)
            pool.shutdown(wait=False, cancel_futures=True)
        failed = [f for f in futures.values() if not f.cancelled() and f.exception()]
        if failed and not keep_going:
            failed[0].result()
        objects = []
        for source, future in futures.items():
            old = self.object_of(source)
            if future.exception():
                print(f"{future.exception()}\nkept as it was: {source}", file=sys.stderr)
                objects += [old] if old.exists() else []
            else:
                objects.append(future.result())
        return objects

    def link(self, name: str, objects: list[Path], *options: str, how: list[str] = LINK) -> Path:
        """A shared library in the result folder. Replaced as a whole: running programs keep the old one."""
        target = self.out / name
        command = [*self.compiler, *how, *self.strip, *self.sanitize, *map(str, objects), *options]
        record = self.objects / f"{name}.cmd"
        newest = max(o.stat().st_mtime_ns for o in objects)
        unchanged = record.exists() and record.read_text() == shlex.join(command)
        if target.exists() and unchanged and target.stat().st_mtime_ns >= newest:
            return target
        self.say(f"linking {name}")
        self.out.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".new")
        run([*command, "-o", str(fresh)])
        fresh.replace(target)
        record.write_text(shlex.join(command))
        return target


def defined_functions(objects: list[Path]) -> set[str]:
    """Names of the functions that object files define for one another."""
    output = run(["nm", "--defined-only", "--extern-only", "--format=posix", *map(str, objects)])
    return {line.split()[0] for line in output.splitlines() if " T " in line}


def build(
    out: Path, *, build: Path = ROOT / "build", sanitize: str = "", allow_missing: bool = False
) -> None:
    """Everything, into the folder `out`. Raises BuildError."""
    build.mkdir(parents=True, exist_ok=True)
    with open(build / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several make runs at once
        builder = Builder(out, build, sanitize)
        if not builder.objects.exists() and (lacks := list(needs.missing())):
            raise BuildError("\n".join(lacks))
        _build(builder, allow_missing)


def _build(builder: Builder, allow_missing: bool) -> None:
    """All of it. The built-in library takes one clang as long as all C files take together."""
    library = _begin_builtins(builder.out / "builtins.spv")
    try:
        _build_libraries(builder, allow_missing)
        said = library.communicate()[1]
    except BaseException:
        _end(library)
        raise
    if library.returncode:
        raise BuildError(f"the builtin library: {said.strip()}")
    print(said, end="", file=sys.stderr)
    _build_derived(builder)


def _begin_builtins(output: Path) -> subprocess.Popen[str]:
    """A process that makes the built-in library, if it is not the newest: one that can be ended."""
    command = [sys.executable, "-m", "cl_driver.builtins.build", str(output), "--update"]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def _end(process: subprocess.Popen[str]) -> None:
    """And what it has started, of which it may not know yet. process: its group's first."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.communicate(timeout=2)
            return
        except subprocess.TimeoutExpired:
            pass


def _build_libraries(builder: Builder, allow_missing: bool) -> None:
    """What is made of C files."""
    generated = builder.generated
    api = headers.read(builder.compiler, builder.user_flags)
    write(generated / "settings_table.h", settings.generate())
    write(generated / "quirks_table.h", quirks.generate())
    write(generated / "platform_table.h", platform.generate())
    write(generated / "shared.h", shared.generate())
    write(generated / "answers.h", answers.header())
    made = {"answers.c": answers.source(), "error_names.c": dispatch.error_names(api)}
    for name, text in made.items():
        write(generated / name, text)
    objects = builder.compile_all(
        [*sources(), *(generated / name for name in made)], keep_going=allow_missing
    )
    try:
        text, missing = dispatch.generate(
            api, defined_functions(objects), allow_missing, calls.read(sources())
        )
    except dispatch.MissingEntries as error:
        raise BuildError(f"neither a C function nor listed in gen/entries.py: {error}") from None
    if missing:
        print(f"{len(missing)} entries answer CL_INVALID_OPERATION: {' '.join(missing)}", file=sys.stderr)
    write(generated / "dispatch.c", text)
    objects.append(builder.compile(generated / "dispatch.c"))
    script = f"{{ global: {'; '.join(EXPORTS)}; local: *; }};\n"
    write(generated / "exports.map", script)
    whole = [] if allow_missing else ["-Wl,-z,relro,-z,now"]
    if not builder.sanitize and not allow_missing:  # sanitizers leave their run-time's symbols open
        whole.append("-Wl,-z,defs")
    version_script = f"-Wl,--version-script={generated / 'exports.map'}"
    builder.link("libcl_driver.so", objects, version_script, *whole, *LIBRARIES)

    write(generated / "embed_start.h", embed.start_text(SHIM / "embed" / "start.py"))
    write(generated / "embed_bindings.c", embed.generate())
    for version, include in embed.includes().items():
        flags = ["-isystem", include]
        built = [
            builder.compile(SHIM / "embed" / "embed.c", *flags, kind=version),
            # cffi's own text is not ours to mend: no -Werror for it.
            builder.compile(generated / "embed_bindings.c", *flags, "-w", kind=version),
        ]
        # Python's symbols come from the Python that is in the process or that guest.c loads.
        builder.link(embed.library(version), built)
    if not builder.sanitize:  # it goes into a clang that has no sanitizer
        objects = [builder.compile(path) for path in sorted((SHIM / "clang").glob("*.c"))]
        builder.link("_cl_driver_clang.so", objects, "-ldl")
        builder.link(arenas.LIBRARY, [builder.compile(SHIM / "arenas" / "arenas.c")], "-ldl")
        holder = builder.compile(SHIM / "holder" / "holder.c", "-fno-stack-protector", "-fno-pie")
        builder.link("_cl_driver_holder", [holder], how=["-static", "-nostdlib", "-Wl,-z,noexecstack"])
    write(builder.out / "cl_driver.conf", embed.configuration(builder.out))
    write(builder.out / "code_symbols.def", (SHIM / "src" / "abi" / "code_symbols.def").read_text())


def _build_derived(builder: Builder) -> None:
    """What is made of the package and its libraries."""
    archive = builder.out / module_archive.NAME
    if builder.is_package:  # a file for `cl-driver install` to fill, so that it goes with the package
        archive.write_bytes(b"")
    else:
        try:
            module_archive.update(str(archive), site.getsitepackages())
        except OSError as error:
            raise BuildError(str(error)) from None
    try:
        found = find_clang.find(os.environ.get("CL_DRIVER_CLANG", ""))
        corrections.update(builder.out, found.path, found.major)
    except (find_clang.ClangError, corrections.CorrectionsError) as error:
        raise BuildError(str(error)) from None


def main() -> int:
    """The command line. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Build the native shim of cl_driver.")
    parser.add_argument("--out", type=Path, default=None, help="where the libraries go (build/lib)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where objects go (build)")
    parser.add_argument("--sanitize", choices=["thread", "address"], default="")
    parser.add_argument("--allow-missing", action="store_true", help="stubs for entries that are not there")
    arguments = parser.parse_args()
    out = arguments.out or arguments.build / f"lib{'-' + arguments.sanitize if arguments.sanitize else ''}"
    try:
        build(
            out.resolve(),
            build=arguments.build.resolve(),
            sanitize=arguments.sanitize,
            allow_missing=arguments.allow_missing,
        )
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
