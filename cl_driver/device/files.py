"""Reading the small text files of /proc and /sys. No pathlib: it would double the import time."""

import os


def read(path: str) -> str:
    """The file's text without surrounding white space; "" where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_bytes(path: str) -> bytes:
    """The file's bytes; none where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def numbered(folder: str, prefix: str) -> list[str]:
    """The paths folder/prefixN, in order of N; [] where there is no such folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    numbers = sorted(int(name[len(prefix) :]) for name in names if _is_numbered(name, prefix))
    return [f"{folder}/{prefix}{number}" for number in numbers]


def _is_numbered(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name[len(prefix) :].isdigit()
