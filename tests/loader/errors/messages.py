"""What the log says of calls that fail (CL_DRIVER_LOG=errors): the rules that each line keeps.

python -m tests.loader.errors.messages LOG lists the lines of a log that break one, and the error codes that
are in none, and ends with 1 if there is any. `make test` asks this of the log of tests that provoke errors.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from cl_driver.api import errors
from cl_driver.api.generated import enums

PREFIX = re.compile(r"cl_driver\[\d+\]: ")
CALL = re.compile(r"cl[A-Z]\w+: ")
CODE = re.compile(r" \((CL_[A-Z_]+|-\d+)\)$")
# What is of the driver's insides: C conditions, names of its own functions, tracebacks.
INSIDE = re.compile(r"->|&&|\|\||==|!=|\bcld_|\b__\w+__\b|Traceback|\bsizeof \w|NULL\)")
# A call that failed without a check that said why.
SILENT = re.compile(r": it failed\b")
# What a comparison must have on both sides: a value.
COMPARED = re.compile(r"\bat (most|least)\b|\bno multiple of\b|\bthe (buffer|answer|image|kernel) has\b")
VALUE = re.compile(r"\b\d+\b|0x[0-9a-f]+|\bNULL\b|\bCL_[A-Z]\w+")

# Codes of core OpenCL that need not be there: of what this driver always has, of failures that are not to be
# provoked, and of answers.
NOT_DUE = {
    "CL_COMPILER_NOT_AVAILABLE",
    "CL_LINKER_NOT_AVAILABLE",
    "CL_MAP_FAILURE",
    "CL_INVALID_GL_OBJECT",
    "CL_INVALID_DEVICE_QUEUE",  # tests/loader/launches/test_device_enqueue.py
    "CL_INVALID_PIPE_SIZE",  # tests/loader/launches/test_pipes.py
    "CL_OUT_OF_HOST_MEMORY",
    "CL_DEVICE_NOT_AVAILABLE",
    "CL_DEVICE_NOT_FOUND",  # is an answer
    "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",  # likewise
    "CL_MAX_SIZE_RESTRICTION_EXCEEDED",
}


def lines(log: Path) -> Iterator[str]:
    """The lines of a log without what is before each, and without what compilers say."""
    in_build_log = False
    for line in log.read_text(errors="replace").splitlines():
        text = PREFIX.sub("", line, count=1)
        if text.startswith("the build log:"):
            in_build_log = True
        elif CALL.match(text):
            in_build_log = False
            yield text
        elif not in_build_log:
            yield text


def wrong(text: str) -> str:
    """Which rule a line breaks; "" if it breaks none."""
    if not CALL.match(text):
        return "names no call"
    said = CODE.sub("", text)
    if INSIDE.search(said):
        return "tells of the driver's insides"
    if SILENT.search(said):
        return "does not say why"
    if COMPARED.search(said) and len(VALUE.findall(said)) < 2:
        return "has not both values"
    return ""


def offenders(texts: Iterable[str]) -> list[str]:
    """The lines that break a rule, each once, with the rule."""
    return sorted({f"{rule}: {text}" for text in texts if (rule := wrong(text))})


def missing_codes(texts: Iterable[str]) -> set[str]:
    """Error codes of core OpenCL that no line has."""
    seen = {found[1] for text in texts if (found := CODE.search(text))}
    codes = {value for value in vars(enums).values() if isinstance(value, int) and -73 < value < 0}
    return set(map(errors.name, codes)) - seen - NOT_DUE


def main(log: Path) -> int:
    """The command line. Returns the exit status."""
    found = list(lines(log))
    broken, missing = offenders(found), sorted(missing_codes(found))
    for line in (*broken, *(f"no line has {code}" for code in missing)):
        print(line)
    return 1 if broken or missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
