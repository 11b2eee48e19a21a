"""How an entry point fails: CLError carries the code that the host sees, and why, for the log."""

from cl_driver.api.generated import enums


class CLError(Exception):
    """An OpenCL error code raised by an entry point.

    code: a negative CL_* value; why: a sentence for CL_DRIVER_LOG; condition: what should have held.
    """

    def __init__(self, code: int, why: str = "", condition: str = ""):
        super().__init__(code, why, condition)
        self.code = code
        self.why = why
        self.condition = condition

    def __str__(self):
        return f"{name(self.code)}: {self.why}" if self.why else name(self.code)


def require(condition, code: int, why: str = "") -> None:
    """Raises CLError(code, why) unless the condition holds."""
    if not condition:
        raise CLError(code, why)


def name(code: int) -> str:
    """The enum's name of an error code, or its number when the headers have none."""
    if not _names:
        _names.update(
            (value, key)
            for key, value in reversed(vars(enums).items())
            if isinstance(value, int) and value <= 0 and not key.startswith("__") and _is_error(key)
        )
    return _names.get(code, str(code))


def _is_error(key: str) -> bool:
    return key == "CL_SUCCESS" or getattr(enums, key) < 0


_names: dict[int, str] = {}
