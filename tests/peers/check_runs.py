"""Runs of single kernels with checks, here and in oclgrind, and what the reports say: for check_oclgrind.py
and check_gpuverify.py."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from peers import environment, need

FOLDER = Path(tempfile.mkdtemp(prefix="check-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
OCLGRIND_ICD = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"

# What reports are about, by their first line.
_OURS = (
    ("race", "data race"),
    ("bounds", "out of bounds|null pointer|was freed|beyond"),
    ("unwritten", "nobody has written"),
    ("alignment", "no multiple of"),
    ("divergence", "barrier that not all|not all work-items|diverg"),
    ("access", "read-only|write-only|READ_ONLY|WRITE_ONLY"),
    ("wait", r"wait|event"),
)
_OCLGRIND = (
    ("race", "data race"),
    ("access", "-only buffer"),
    ("bounds", "Invalid (read|write) of size|exceeds static array size"),
    ("unwritten", "Uninitialized"),
    ("alignment", "not aligned"),
    ("divergence", "divergence detected"),
    ("wait", "without waiting for events|Invalid wait event"),
)


class Argument(NamedTuple):
    """As clGetKernelArgInfo has it."""

    space: str  # global, local, constant, private
    type: str


class Report(NamedTuple):
    """What was found, and the source lines that are named."""

    kind: str
    lines: tuple[int, ...]


class Outcome(NamedTuple):
    """Of one run. milliseconds: of the launch; seconds: of the process."""

    status: int
    reports: list[Report]
    milliseconds: float
    seconds: float
    text: str

    def kinds(self) -> set[str]:
        return {report.kind for report in self.reports}

    def lines(self, kind: str) -> set[int]:
        return {line for report in self.reports if report.kind == kind for line in report.lines}


def prepare() -> Path:
    """The compiled host; oclgrind is installed if it is not."""
    need("oclgrind", "ocl-icd-opencl-dev", "gcc")
    (FOLDER / "oclgrind").mkdir()
    (FOLDER / "oclgrind" / "oclgrind.icd").write_text(OCLGRIND_ICD + "\n")
    host = FOLDER / "host"
    source = Path(__file__).with_name("check_host.c")
    flags = ["-O1", "-DCL_TARGET_OPENCL_VERSION=120"]
    subprocess.run(["cc", *flags, "-o", host, source, "-lOpenCL"], check=True)
    return host


def _kind(kinds, line: str) -> str:
    return next((kind for kind, pattern in kinds if re.search(pattern, line)), "other")


def our_reports(text: str) -> list[Report]:
    """Those of the check mode of this driver; objects that are left over at the end do not count."""
    found = []
    for block in re.split(r"(?m)^cl_driver(?:\[\d+\])? check: ", text)[1:]:
        first, _, rest = block.partition("\n")
        if re.search(r"left over|more, at other places", first):
            continue
        lines = re.findall(r"(?m)^\s+at .*?:(\d+):\d+$", rest)
        what = re.sub(r"^kernel '\w+': ", "", first)  # names may say anything
        found.append(Report(_kind(_OURS, what), tuple(map(int, lines))))
    return found


def oclgrind_reports(text: str) -> list[Report]:
    """Those of oclgrind's log; of the same kind and lines only the first."""
    found = {}
    for block in re.split(r"\n\s*\n(?=\S)", "\n\n" + text):
        first = block.strip().partition("\n")[0]
        kind = _kind(_OCLGRIND, first)
        if kind != "other":
            lines = tuple(int(line) for line in re.findall(r"(?m)At line (\d+)", block))
            found[kind, lines] = Report(kind, lines)
    return list(found.values())


def environment_of(checker: str, log: Path) -> dict[str, str]:
    if checker == "oclgrind":
        switches = dict.fromkeys(("CHECK_API", "DATA_RACES", "UNINITIALIZED"), "1")
        return {
            **os.environ,
            "OCL_ICD_VENDORS": f"{FOLDER / 'oclgrind'}/",
            "OCLGRIND_LOG": str(log),
            "OCLGRIND_MAX_ERRORS": "1000",
            **{f"OCLGRIND_{name}": value for name, value in switches.items()},
        }
    checks = {"CL_DRIVER_CHECK": "1", "CL_DRIVER_LOG_FILE": str(log)} if checker == "ours" else {}
    return environment() | checks


def run(host: Path, checker: str, job: str, seconds: float = 20) -> Outcome:
    """Runs a job (check_host.c). checker: ours, oclgrind, or plain for this driver without checks."""
    (FOLDER / "job").write_text(job)
    log = FOLDER / "log"
    log.unlink(missing_ok=True)
    begin = time.monotonic()
    process = subprocess.Popen(
        [host, FOLDER / "job"],
        env=environment_of(checker, log),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0] + b"\ntimed out"
    took = time.monotonic() - begin
    text = output.decode(errors="replace")
    told = re.search(r"(?m)^time (\d+)", text)
    logged = log.read_text(errors="replace") if log.exists() else ""
    reports = oclgrind_reports(logged + "\n" + text) if checker == "oclgrind" else our_reports(logged)
    return Outcome(
        process.returncode, reports, int(told[1]) / 1e6 if told else 0.0, took, (text + logged).strip()
    )


def signatures(host: Path, program: Path, options: str) -> dict[str, list[Argument]] | str:
    """The arguments of each kernel, or why there are none."""
    spaces = {"119b": "global", "119c": "local", "119d": "constant", "119e": "private"}
    options = f"-cl-kernel-arg-info {options}".strip()
    done = run(host, "plain", f"program {program}\noptions {options}\n")
    if done.status:
        return done.text
    kernels: dict[str, list[Argument]] = {}
    for line in done.text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "kernel":
            arguments = kernels[rest] = []
        elif word == "argument":
            space, _, type_name = rest.partition(" ")
            arguments.append(Argument(spaces[space], type_name))
    return kernels


def job(program: Path, options: str, kernel: str, sizes, arguments: list[str], rounds: int = 1) -> str:
    """The text of a job. sizes: global and local ones, three each; arguments: lines of check_host.c."""
    total, local = (" ".join(map(str, [*size, 1, 1][:3])) for size in sizes)
    head = [
        f"program {program}",
        f"options -cl-kernel-arg-info {options}".strip(),
        f"kernel {kernel}",
        f"global {total}",
        f"local {local}",
        f"rounds {rounds}",
    ]
    return "\n".join([*head, *arguments]) + "\n"


def file_of(name: str, content: bytes) -> Path:
    """A file of a job's argument."""
    path = FOLDER / name
    path.write_bytes(content)
    return path
