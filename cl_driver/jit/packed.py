"""Modules that a wheel has in one file (native_shim/wheel_file.py): those that only compiler processes and
`cl-driver` import; and the library of built-in functions. In a working tree, in a Debian and in a conda
package each is a file of its own.

When the first of them is needed they are unpacked, once for a user, into a folder beside the compile cache.
From then on Python finds modules there as it finds any, and keeps there what it compiles. Whoever has no such
folder has them from memory. An archive of modules (module_archive.py) has them, too.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder

from .. import settings
from . import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

NAME = "modules.xz"
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGE = __name__.partition(".")[0]
FILE = os.path.join(_HERE, NAME)
_OF_PACKAGE = "/__init__.py"
_FOLDER = "modules-"
_UNUSED = 30 * 86400  # seconds after which the folder of another version goes
_DAY = 86400
_texts: dict[str, bytes] = {}


def texts() -> dict[str, bytes]:
    """What each file has, by its path in the package; nothing where no module is packed. OSError or
    ImportError where the file cannot be read."""
    if not _texts:
        try:
            with open(FILE, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return {}
        import marshal

        try:
            import lzma
        except ImportError:
            raise ImportError(f"{FILE} cannot be unpacked: this Python has no module lzma") from None
        _texts.update(marshal.loads(lzma.decompress(data)))
    return _texts


def modules() -> Iterator[tuple[str, str]]:
    """Their names, each with its path in the package, packages before what is in them."""
    for path in filter(lambda path: path.endswith(".py"), texts()):
        yield f"{_PACKAGE}.{path.removesuffix(_OF_PACKAGE).removesuffix('.py').replace('/', '.')}", path


def path_of(name: str) -> str:
    """The path in the package of a module; "" if it is not packed."""
    own = name.removeprefix(f"{_PACKAGE}.").replace(".", "/")
    return next((path for path in (f"{own}.py", own + _OF_PACKAGE) if path in texts()), "")


class _Memory:
    """Finds and loads modules whose text is in memory."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for a module that is not packed."""
        own = path_of(name)
        if not own:
            return None
        file = os.path.join(FILE, own)
        spec = ModuleSpec(name, self, origin=file, is_package=own.endswith(_OF_PACKAGE))  # type: ignore[arg-type]
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """None: an ordinary one."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the text of a new one."""
        own = path_of(module.__name__)
        module.__file__ = os.path.join(FILE, own)
        exec(compile(_texts[own], module.__file__, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, name: str) -> str | None:
        """Its text, for tracebacks."""
        own = path_of(name)
        return _texts[own].decode() if own else None


class _Finder(_Memory):
    """Is asked where nobody else has found a module. digest: of the file, names the folder; packages: those
    whose modules are packed."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.packages: set[str] = set()
        self._root: str | None = None

    def root(self) -> str:
        """Where the files are; "" if only in memory."""
        if self._root is None:
            self._root = _unpacked(self.digest)
        return self._root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """In the folder, else in memory."""
        package = ".".join(name.split(".")[:2])
        if package not in self.packages or name == package:
            return None
        if self.root():
            folder = os.path.join(self.root(), package.rpartition(".")[2])
            if folder not in sys.modules[package].__path__:
                sys.modules[package].__path__ = [folder]
                path = [folder] if name.count(".") == 2 else path  # noqa: PLR2004
            spec = PathFinder.find_spec(name, path)
            if spec or os.path.isdir(folder):
                return spec
        return super().find_spec(name, path, target)


_finders: list[_Finder] = []


def use(package: str, digest: str) -> None:
    """The modules of a package are packed. digest: of the file."""
    if not _finders:
        _finders.append(_Finder(digest))
        sys.meta_path.append(_finders[0])
    _finders[0].packages.add(package)


def read(path: str) -> bytes | None:
    """A file that is packed beside the modules, by its path in the package; None if it is not."""
    if not _finders:
        return None
    root = _finders[0].root()
    try:
        with open(os.path.join(root or FILE, path), "rb") as file:
            return file.read()
    except OSError:
        return texts().get(path)


def _unpacked(digest: str) -> str:
    """The folder with the modules, which is made if it is not there; "" where there can be none."""
    base = cache.default_folder(settings.text("CL_DRIVER_CACHE_DIR"))
    if not base or not settings.integer("CL_DRIVER_CACHE_SIZE"):
        return ""
    import time

    folder = f"{base}/{_FOLDER}{os.geteuid()}-{digest}"
    try:
        cache.make_folders(base)
        if not os.path.isdir(folder):
            _unpack(folder)
        with cache.Folder(folder):  # this user's alone
            if time.time() - os.stat(folder).st_mtime > _DAY:
                os.utime(folder)
    except OSError:
        return ""
    return folder


def _unpack(folder: str) -> None:
    """Whole or not at all. OSError where it cannot."""
    import shutil
    import time

    temporary = f"{folder}.{os.getpid()}-{os.urandom(6).hex()}"
    try:
        for path, text in texts().items():
            file = os.path.join(temporary, path)
            os.makedirs(os.path.dirname(file), 0o700, exist_ok=True)
            with open(file, "xb") as out:
                out.write(text)
        os.chmod(temporary, 0o700)
        os.rename(temporary, folder)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not os.path.isdir(folder):  # another process has been faster
            raise
    base, own = os.path.split(folder)
    start = own[: -len(own.rpartition("-")[2])]
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if name.startswith(start) and name != own and time.time() - os.stat(path).st_mtime > _UNUSED:
            shutil.rmtree(path, ignore_errors=True)
