"""How an entry point fails: CLError carries the code that the host sees, and why, for the log."""

from __future__ import annotations

from .generated import enums


class CLError(Exception):
    """An OpenCL error code raised by an entry point. code: a negative CL_* value; why: for CL_DRIVER_LOG."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(code, why)
        self.code = code
        self.why = why

    def __str__(self) -> str:
        return f"{name(self.code)}: {self.why}" if self.why else name(self.code)


class UnknownQuery(CLError):
    """A query of a device that this driver does not know, which is no error of the program's: hosts try those
    of other vendors' devices on all of them."""


def require(condition: object, code: int, why: str = "") -> None:
    """Raises CLError(code, why) unless the condition holds. code: one of the CL_ constants."""
    if not condition:
        raise CLError(code, why)


def name(code: int) -> str:
    """The enum's name of an error code, or its number when the headers have none."""
    if not _names:
        # The headers define error codes first; constants with the same value (CL_BUILD_ERROR) come later.
        for key, value in vars(enums).items():
            if isinstance(value, int) and value < 0:
                _names.setdefault(value, key)
        _names[enums.CL_SUCCESS] = "CL_SUCCESS"
    return _names.get(code, str(code))


_names: dict[int, str] = {}
