"""piglit's OpenCL C programs as SPIR-V made in five ways, and as source: the same results each way?

python tests/peers/spirv_matrix.py [--filter REGEX] [--ways 22-O0,15-O2] [--list]

Every program is compiled by clang-22 at -O0, -O1 and -O2 and by clang-15 with llvm-spirv-15 at -O0 and -O2,
and loaded through clCreateProgramWithIL. Every kernel runs with the arguments that piglit's tests give it,
those of generated_tests/ with generated ones as well, and each buffer is compared with the one that the same
kernel built from source left: integers bit for bit, floating point within ULPS, since not all fuse alike.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import re
import select
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import piglit_programs
import spirv_ways
from peers import ROOT, WORK, environment, need

sys.path.insert(0, str(ROOT))

ITEMS = 64  # work-items of launches with generated arguments
ROOM = 16 << 10  # bytes of each buffer at least: kernels of other sizes stay inside
TIME_LIMIT = 120  # seconds, of one program built and run in all ways

# What SPIR-V does not define, though OpenCL C does: {(program, kernel, compiler): why}.
UNDEFINED = {
    (
        "global-offset",
        "dynamic",
        "15",
    ): "llvm-spirv-15 takes component -1 of a vector for get_global_offset(-1)",
}


def standard_of(program: piglit_programs.Program) -> tuple[int, int]:
    """OpenCL C 3.0 has all features of 2.0 that the device has."""
    if found := re.search(r"-cl-std=CL(\d)\.(\d)", program.options):
        return int(found[1]), int(found[2])
    return (3, 0) if program.standard >= 20 else (1, 2)


# --- the child: builds and runs one program after the other ----------------------------------------------


class Child:
    """Reads requests, one JSON object a line, and answers in kind."""

    def __init__(self):
        from tests.loader.opencl import OpenCL

        self.cl = OpenCL("libOpenCL.so.1")
        self.context = self.cl.context()
        self.device = self.cl.device()
        self.queue = self.cl.make("clCreateCommandQueue", self.context, self.device, 0)
        # Kernels may print.
        self.answers = os.fdopen(os.dup(1), "w")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def serve(self) -> None:
        for line in sys.stdin:
            print(json.dumps(self.program(**json.loads(line))), file=self.answers, flush=True)

    def at(self, *where: str) -> None:
        """Says what is about to be done, for the parent to know what a crash was of."""
        print(json.dumps({"at": where}), file=self.answers, flush=True)

    def program(self, path: str, ways: dict[str, str]) -> dict:
        """{"ways": {way: log, "" if built}, "kernels": {kernel: {way: verdict}}, ...}."""
        root = piglit_programs.folder()
        program = piglit_programs.read(Path(path), root)
        major, minor = standard_of(program)
        options = f"{program.options} -cl-kernel-arg-info"
        if "-cl-std" not in options:
            options += f" -cl-std=CL{major}.{minor}"
        self.at("source", "build")
        source = self.cl.program(self.context, program.source)
        logs = {"source": self.build(source, options)}
        if logs["source"]:
            return {"ways": logs, "kernels": {}}
        handles = {"source": source}
        for way, file in ways.items():
            self.at(way, "build")
            data = Path(file).read_bytes()
            handle, status = self.cl.call("clCreateProgramWithIL", self.context, data, len(data))
            logs[way] = f"clCreateProgramWithIL: {status}" if status else self.build(handle, program.options)
            if handle and not logs[way]:
                handles[way] = handle
        names = self.cl.text("clGetProgramInfo", source, 0x1168).split(";")  # CL_PROGRAM_KERNEL_NAMES
        generated = "/generated_tests/cl/builtin/" in path and "/misc/" not in path
        # Many have one variable in local memory for all work-items, and are right in groups of one only.
        shared = b"barrier(" in program.source
        kernels = {
            name: self.kernel(name, handles, program.runs.get(name, []), generated, shared)
            for name in names
            if name
        }
        for handle in handles.values():
            self.cl.ok("clReleaseProgram", handle)
        return {"ways": logs, "kernels": kernels}

    def build(self, program: int, options: str) -> str:
        status = self.cl.call("clBuildProgram", program, 0, None, options, None, None)
        return self.cl.build_log(program) or f"clBuildProgram: {status}" if status else ""

    def kernel(self, name, handles, runs, generated, shared) -> dict[str, list[str]]:
        """{way: [verdict of each launch]}."""
        verdicts: dict[str, list[str]] = {way: [] for way in handles}
        reference = self.cl.make("clCreateKernel", handles["source"], name.encode())
        described = self.arguments(reference)
        required = self.cl.words("clGetKernelWorkGroupInfo", reference, self.device, 0x11B1)
        if generated or not runs:
            runs = [*runs, generated_run(described, required, shared)]
        for run in runs:
            expected: list[bytes] | None = None
            for way, program in handles.items():
                self.at(way, name, run.name)
                kernel, status = self.cl.call("clCreateKernel", program, name.encode())
                if status:
                    verdicts[way].append(f"clCreateKernel: {status}")
                    continue
                try:
                    result = self.launch(kernel, described, run)
                except RuntimeError as error:
                    verdicts[way].append(str(error))
                    continue
                finally:
                    self.cl.ok("clReleaseKernel", kernel)
                if expected is None:
                    expected = result
                verdicts[way].append(compare(described, run, expected, result))
        self.cl.ok("clReleaseKernel", reference)
        return verdicts

    def arguments(self, kernel: int) -> list[tuple[str, str]]:
        """(address space, type name) of each argument."""
        spaces = {0x119B: "global", 0x119C: "local", 0x119D: "constant", 0x119E: "private"}
        out = []
        for index in range(self.cl.integer("clGetKernelInfo", kernel, 0x1191)):
            space = self.cl.integer("clGetKernelArgInfo", kernel, index, 0x1196)
            out.append((spaces[space], self.cl.text("clGetKernelArgInfo", kernel, index, 0x1198)))
        return out

    def launch(self, kernel: int, described, run) -> list[bytes]:
        """The contents of all buffers afterwards."""
        buffers: list[tuple[int, int]] = []
        try:
            for index, (space, type_) in enumerate(described):
                kind, _, data = run.arguments.get(index, ("value", "uchar", bytes(8)))
                if space == "local":
                    self.check("clSetKernelArg", kernel, index, max(len(data), 1024), None)
                elif space in ("global", "constant"):
                    size = max(ROOM, 2 * len(data))
                    data += bytes(size - len(data))
                    buffer = self.cl.make("clCreateBuffer", self.context, 1 | 32, size, data)
                    buffers.append((buffer, size))
                    self.check("clSetKernelArg", kernel, index, 8, ctypes.c_uint64(buffer))
                else:
                    if kind != "value":
                        raise RuntimeError(f"skipped: argument {index} is {type_}")
                    self.check("clSetKernelArg", kernel, index, len(data), data)
            sizes = [run.global_size, run.local_size, run.offset]
            dims = len(run.global_size)
            whole, local, offset = (size and [*size, 0, 0][:dims] for size in sizes)
            self.check(
                "clEnqueueNDRangeKernel", self.queue, kernel, dims, offset, whole, local, 0, None, None
            )
            results = []
            for buffer, size in buffers:
                out = ctypes.create_string_buffer(size)
                self.check("clEnqueueReadBuffer", self.queue, buffer, 1, 0, size, out, 0, None, None)
                results.append(out.raw)
            return results
        finally:
            for buffer, _ in buffers:
                self.cl.ok("clReleaseMemObject", buffer)

    def check(self, name: str, *arguments) -> None:
        status = self.cl.call(name, *arguments)
        if status:
            raise RuntimeError(f"{name}: {status}")


def scalar_of(type_name: str) -> tuple[str, int]:
    """("float", 4) of "float4*"; ("", 1) for what is no arithmetic type."""
    found = re.fullmatch(r"(?:unsigned )?([a-z]+?)(\d*)\**", type_name)
    if not found or found[1] not in piglit_programs.SCALARS:
        return "", 1
    return found[1], int(found[2] or 1)


def values(scalar: str, count: int, seed: int) -> bytes:
    """Of all sizes, the special ones first."""
    import numpy

    random = numpy.random.default_rng(seed)
    code = piglit_programs.SCALARS[scalar]
    if code in "efd":
        special = [0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), 1e-40, 6e4, 0.5]
        some = numpy.concatenate([random.uniform(-10, 10, count), random.normal(0, 1e3, count)])
        random.shuffle(some)
        with numpy.errstate(over="ignore"):
            return numpy.concatenate([special, some])[:count].astype(code).tobytes()
    info = numpy.iinfo(code.lower() if code.islower() else code)
    special = [0, 1, info.max, info.min, 2, info.max // 2 + 1, 7]
    wide = random.integers(info.min, info.max, count, dtype=code, endpoint=True)
    small = random.integers(0, 100, count, dtype=code)
    some = numpy.where(random.integers(0, 2, count), wide, small)
    return numpy.concatenate([numpy.array(special, code), some])[:count].tobytes()


def generated_run(described, required, shared: bool) -> piglit_programs.Run:
    """shared: work-items may share groups."""
    arguments = {}
    for index, (space, type_) in enumerate(described):
        scalar, width = scalar_of(type_)
        stored = 4 if width == 3 else width
        if space == "private":
            if scalar:
                arguments[index] = ("value", scalar, values(scalar, 16, index + 1)[-stored * _size(scalar) :])
            else:
                arguments[index] = ("unknown", type_, b"")
        elif space == "local":
            arguments[index] = ("buffer", scalar, bytes(ITEMS * 128))
        elif scalar:
            arguments[index] = ("buffer", scalar, values(scalar, ITEMS * stored, index + 1))
        else:
            arguments[index] = ("buffer", "uint", values("uint", ITEMS * 16, index + 1))
    local = list(required) if any(required) else None if shared else [1]
    whole = list(required) if any(required) else [ITEMS]
    return piglit_programs.Run("generated", arguments, whole, local, None)


def _size(scalar: str) -> int:
    import struct

    return struct.calcsize(piglit_programs.SCALARS[scalar])


def compare(described, run, expected: list[bytes], result: list[bytes]) -> str:
    """ "same", "N ulps", or how they differ."""
    import numpy

    worst = 0
    places = [index for index, (space, _) in enumerate(described) if space in ("global", "constant")]
    for index, a, b in zip(places, expected, result, strict=True):
        if a == b:
            continue
        scalar, width = scalar_of(described[index][1])
        code = piglit_programs.SCALARS.get(scalar, "B")
        x, y = numpy.frombuffer(a, code), numpy.frombuffer(b, code)
        different = x.view(f"u{x.itemsize}") != y.view(f"u{y.itemsize}")
        if width == 3:
            different[3::4] = False  # the room of a fourth component holds anything
        if code in "efd":
            different &= ~(numpy.isnan(x) & numpy.isnan(y))
        if not different.any():
            continue
        if code in "efd":
            apart = numpy.abs(_order(x) - _order(y))[different]
            if not (numpy.isnan(x[different]) | numpy.isnan(y[different])).any():
                worst = max(worst, int(apart.max()))
                if worst <= ULPS:
                    continue
        (where,) = numpy.nonzero(different)
        at = where[0]
        count = len(where)
        return (
            f"differs: argument {index} ({described[index][1]}) at {at}: {x[at]} and {y[at]}, {count} in all"
        )
    return f"{worst} ulps" if worst else "same"


def _order(x):
    """Floating point numbers by their place in order, as Python's integers where 64 bits would overflow."""
    import numpy

    bits = x.view(f"i{x.itemsize}").astype(numpy.int64)
    least = -(1 << (8 * x.itemsize - 1))
    ordered = numpy.where(bits < 0, least - bits, bits)
    return ordered.astype(object) if x.itemsize == 8 else ordered


ULPS = 16  # of a result, by which compilers may differ

# --- the parent: compiles, asks, counts -------------------------------------------------------------------


class Runner:
    """One child at a time; a new one after a crash or a time-out."""

    def __init__(self):
        self.process = None

    def ask(self, request: dict) -> dict:
        if self.process is None:
            command = [sys.executable, __file__, "--child"]
            variables = environment() | {"CL_DRIVER_CACHE_DIR": str(WORK / "cache")}
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=variables
            )
        at, text = ["start"], b""
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            while select.select([self.process.stdout], [], [], TIME_LIMIT)[0]:
                more = self.process.stdout.read(1 << 16)
                if not more:
                    return self.end(f"crash at {' '.join(at)}")
                *lines, text = (text + more).split(b"\n")
                for line in lines:
                    answer = json.loads(line)
                    if "at" not in answer:
                        return answer
                    at = answer["at"]
        except BrokenPipeError:
            return self.end("crash")
        return self.end(f"more than {TIME_LIMIT} s at {' '.join(at)}")

    def end(self, why: str) -> dict:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        return {"died": why, "ways": {}, "kernels": {}}


def modules(program: piglit_programs.Program, ways: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """({way: file}, {way: why a compiler failed}); files are kept, since compilers do not change."""
    files, failures = {}, {}
    for way in ways:
        key = [program.source, program.options, standard_of(program), spirv_ways.device_arguments((3, 0))]
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
        target = WORK / "spirv_matrix" / way / f"{program.path.stem}.{digest}.spv"
        failed = target.with_suffix(".failed")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() and not failed.exists():
            try:
                fresh = target.with_suffix(f".{os.getpid()}")
                spirv_ways.compile(program.source, program.options, standard_of(program), way, fresh)
                fresh.replace(target)
            except spirv_ways.WayError as error:
                failed.write_text(str(error))
        if target.exists():
            files[way] = str(target)
        else:
            failures[way] = failed.read_text()
    return files, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="only programs whose path matches")
    parser.add_argument("--ways", default=",".join(spirv_ways.WAYS))
    parser.add_argument(
        "--list", action="store_true", help="also what is skipped and what differs by some ulps"
    )
    parser.add_argument("--progress", action="store_true", help="which program is at work, on stderr")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        Child().serve()
        return 0
    need("piglit", "clang-22", "clang-15", "llvm-spirv-15")
    ways = arguments.ways.split(",")
    chosen = [p for p in piglit_programs.programs() if re.search(arguments.filter, str(p.path))]
    counts = {way: Counter() for way in ["source", *ways]}
    root, runner, faults = piglit_programs.folder(), Runner(), 0
    with ThreadPoolExecutor(2) as pool:
        ready = pool.map(lambda p: None if p.left_out else modules(p, ways), chosen)
        for number, (program, made) in enumerate(zip(chosen, ready, strict=True)):
            name = str(program.path.relative_to(root))
            if sys.stderr.isatty() or arguments.progress:
                print(f"{number}/{len(chosen)} {name}", file=sys.stderr, flush=True)
            if made is None:
                counts["source"]["left out"] += 1
                print(f"left out {name}: {program.left_out}")
                continue
            files, failures = made
            answer = runner.ask({"path": str(program.path), "ways": files})
            faults += tally(name, program, answer, failures, counts, arguments.list)
    if runner.process:
        runner.process.stdin.close()
        runner.process.wait()
    for way, count in counts.items():
        print(f"{way:7}", ", ".join(f"{number} {what}" for what, number in sorted(count.items())))
    return bool(faults)


def tally(name, program, answer, failures, counts, everything: bool) -> int:
    """Counts a program's results and prints what is wrong. The number of faults."""
    faults = 0
    if "died" in answer:
        print(f"died {name}: {answer['died']}")
        return 1
    if len(failures) == len(counts) - 1 and answer["ways"]["source"]:
        counts["source"]["left out"] += 1
        print(f"left out {name}: no compiler takes it: {next(iter(failures.values()))}")
        return 0
    for way, why in failures.items():
        counts[way]["compilers failed"] += 1
        if everything:
            print(f"compiler {name} {way}: {why}")
    for way, log in answer["ways"].items():
        counts[way]["programs not built" if log else "programs built"] += 1
        if log:
            faults += 1
            print(f"not built {name} {way}: {log.strip().splitlines()[0]}")
    for kernel, verdicts in answer["kernels"].items():
        for way, launches in verdicts.items():
            if why := UNDEFINED.get((program.path.stem, kernel, way[:2])):
                counts[way]["launches undefined"] += len(launches)
                print(f"undefined {name} {kernel} {way}: {why}")
                continue
            for verdict in launches:
                what = "launches " + ("within ulps" if "ulps" in verdict else verdict.split(":")[0])
                counts[way][what] += 1
                bad = verdict != "same" and "ulps" not in verdict and not verdict.startswith("skipped")
                faults += bad
                if bad or (everything and verdict != "same"):
                    print(f"{name} {kernel} {way}: {verdict}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
