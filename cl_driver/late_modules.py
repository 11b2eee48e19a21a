"""Modules of the driver that a host's process imports when it needs them, for a host that may change its root
folder: they are not found in another one. Their text is kept, and compiled if it is asked for there."""

from __future__ import annotations

import os
import sys
from _frozen_importlib import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

# What may not be there yet when a context is made (tests/pure/test_late_modules.py).
NAMES = (
    "api.device_info", "api.device_info_extensions", "api.il", "api.info", "api.kernel",
    "api.on_demand", "api.program", "api.program_binary", "api.program_build", "api.program_info",
    "device.arm_cores", "device.capabilities", "device.platform", "device.remote", "device.target",
    "frontend", "frontend.options", "jit.bundle", "jit.cache", "jit.clang_paths", "jit.executable",
    "jit.identity", "jit.llvm_paths", "service.client", "service.condition", "service.entries",
    "service.files", "service.kernels", "service.pool", "service.protocol", "stages", "trace",
    "trace.writer", "version",
)  # fmt: skip
# Of Python, what they import and what may be a library, which cannot be kept.
_LIBRARIES = ("select", "_blake2")
_PACKAGES = ("frontend", "trace")
_OF_PACKAGE = "/__init__.py"


class _Kept:
    """Finds and loads them. texts: by name, with the file that each was in."""

    def __init__(self) -> None:
        self.texts: dict[str, tuple[str, bytes]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Asked when nobody else has found the module."""
        if name not in self.texts:
            return None
        file = self.texts[name][0]
        return ModuleSpec(name, self, origin=file, is_package=file.endswith(_OF_PACKAGE))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """None: an ordinary one."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the text of a new one."""
        file, text = self.texts[module.__name__]
        module.__file__ = file
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)


_kept = _Kept()


def keep() -> None:
    """Reads those that have not been imported. Only the first call does."""
    if _kept.texts:
        return
    package, here = __name__.rpartition(".")[0], os.path.dirname(os.path.abspath(__file__))
    for short in NAMES:
        name = f"{package}.{short}"
        if name not in sys.modules:
            place = os.path.join(here, *short.split("."))
            path = place + (_OF_PACKAGE if short in _PACKAGES else ".py")
            _kept.texts[name] = path, _read(path)
    sys.meta_path.append(_kept)
    for name in _LIBRARIES:
        try:
            __import__(name)
        except ImportError:
            pass  # who needs it can do without


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
