"""The modules of the processes that the driver starts, in one file: there are hundreds, and to look for one
of them takes Python longer than to run it.

What is imported together is there together, too, each module behind those that it imports: names and strings
that modules share are read once. Our own modules are without docstrings and annotations of functions. Regular
expressions, and methods of records, which are written while modules run, are there compiled.

The build makes the file, for an installed package `cl-driver install`: it is for one Python, and has what is
imported of its library. Of each module's own file the time and the size are compared, as Python does for its
caches. What has changed, or is not in the archive, Python finds as ever.
"""

from __future__ import annotations

import marshal
import mmap
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER

from . import archived_texts, native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType, ModuleType
    from typing import Any, TypeAlias

    # The module's file (relative: to the package's folder), whether it is a package, time in ns and size of
    # the file, and where in the archive its code is.
    Entry: TypeAlias = tuple[str, bool, int, int, int, int]

NAME = "cl_driver.modules"
_PACKED = "/modules.xz/"  # in the name of a module's file: it is packed (jit/packed.py)
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGE = __name__.rpartition(".")[0]
_ENOUGH_DESCRIPTORS = 64
_used: list[Archive] = []
_SIZE = 8  # bytes of the size of the index, which comes first

# What compiler processes import at once, in this order: as a server, before LLVM is loaded, and meanwhile.
GROUPS: tuple[tuple[str, ...], ...] = (
    ("service.forks", "service.worker"),
    ("jit.emit",),
    ("compiler.pipeline",),
)

_TEXTS = ("texts",)  # where the archive has the place of what is made of texts

# Those that only run where somebody waits for what they print, or have no business in these processes.
_OTHERS = frozenset(("accuracy", "cli", "interp"))


class Archive:
    """Finds modules and loads them. index: by name; _groups: places of the code of GROUPS; _code: what places
    refer to; _read: code of a group that has not been run, by module."""

    def __init__(self, path: str) -> None:
        """OSError, ValueError, EOFError or TypeError where that is not an archive for this Python."""
        with open(path, "rb") as file:
            # Most of it is never looked at. It is replaced as a whole (make()), and so stays what it is.
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        end = _SIZE + int.from_bytes(data[:_SIZE], "little")
        magic, self.index, self._groups = marshal.loads(data[_SIZE:end])
        if magic != MAGIC_NUMBER:
            raise ValueError("for another Python")
        self._code = data[end:]
        self._read: dict[str, CodeType] = {}
        self._texts: dict[str, bytes] | None = None

    def of_text(self, text: str) -> Any:
        """What has been made of such a text (_texts()), None if it does not have it."""
        if self._texts is None:
            start, size = self._groups.get(_TEXTS, (0, 0))
            self._texts = marshal.loads(self._code[start : start + size]) if size else {}
        found = self._texts.get(text)
        return None if found is None else marshal.loads(found)

    def read_group(self, number: int) -> None:
        """Reads the code of a group of modules, which are about to be imported. An old archive has others."""
        if GROUPS[number] in self._groups:
            start, size = self._groups[GROUPS[number]]
            self._read |= marshal.loads(self._code[start : start + size])

    def import_read(self) -> None:
        """Imports the modules whose code was read, each behind those that it imports: to come to them one
        inside the other takes Python longer."""
        modules = sys.modules
        for name in list(self._read):
            package, _, own_name = name.rpartition(".")
            if name in modules or (package and package not in modules):
                continue
            spec = self.find_spec(name)
            if spec is None:
                return  # it has changed, and with it perhaps what the others import: Python goes on
            module = modules[name] = type(sys)(name)
            # What importlib.util.module_from_spec() does, in less time.
            made = {"__spec__": spec, "__loader__": self, "__package__": package}
            if spec.submodule_search_locations is not None:
                made |= {"__package__": name, "__path__": spec.submodule_search_locations}
            module.__dict__.update(made)
            try:
                self.exec_module(module)
            except BaseException:
                del modules[name]
                raise
            if package:
                setattr(modules[package], own_name, module)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for a module that it does not have as it is now."""
        entry = self.index.get(name)
        if entry is None or not _is_current(entry):
            return None
        file = _file(entry)
        spec = ModuleSpec(name, self, origin=file, is_package=entry[1])  # type: ignore[arg-type]
        if entry[1]:
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """None: an ordinary one."""

    def get_source(self, name: str) -> str | None:
        """The text of a module that is packed, for tracebacks; others have files."""
        packed = _packed()
        own = packed.path_of(name)
        return packed.texts()[own].decode() if own else None

    def exec_module(self, module: ModuleType) -> None:
        """Runs the code of a new one."""
        module.__file__ = _file(self.index[module.__name__])
        code = self._read.pop(module.__name__, None)
        if code is None:
            start, size = self.index[module.__name__][4:]
            code = marshal.loads(self._code[start : start + size])
        exec(code, module.__dict__)


def _file(entry: Entry) -> str:
    """By hand: os.path.join() for each of some hundred modules takes a noticeable part of their start."""
    return entry[0] if entry[0].startswith("/") else f"{_ROOT}/{entry[0]}"


def _is_current(entry: Entry) -> bool:
    file = _file(entry)
    if _PACKED in file:  # all of them change together
        file = file.partition(_PACKED)[0] + _PACKED[:-1]
    try:
        status = os.stat(file)
    except OSError:
        return False
    return (status.st_mtime_ns, status.st_size) == entry[2:4]


def use() -> None:
    """Modules that are imported from now on come from the archive, if there is one for this Python and a
    descriptor, which Python keeps open with a mapping, is not missed."""
    if os.sysconf("SC_OPEN_MAX") < _ENOUGH_DESCRIPTORS:
        return
    try:
        archive = Archive(os.path.join(native.folder(), NAME))
    except (OSError, ValueError, EOFError, TypeError):
        return
    _used.append(archive)
    archived_texts.sources.append(archive.of_text)
    # Before the finder of files, which is the last one.
    sys.meta_path.insert(max(len(sys.meta_path) - 1, 0), archive)


def expect(number: int) -> None:
    """Imports the modules of a group, which are about to be used, unless they already are there."""
    for archive in _used:
        if f"{_PACKAGE}.{GROUPS[number][0]}" not in sys.modules:
            archive.read_group(number)
            archive.import_read()


def is_current(path: str) -> bool:
    """Whether there is an archive of all modules as they are."""
    try:
        index = Archive(path).index
    except (OSError, ValueError, EOFError, TypeError):
        return False
    files = {entry[0] for entry in index.values()}
    return all(map(_is_current, index.values())) and files.issuperset(
        os.path.relpath(file, _ROOT) for _, file in _modules(os.path.join(_ROOT, _PACKAGE), _PACKAGE)
    )


def _modules(folder: str, package: str) -> Iterator[tuple[str, str]]:
    """Names and files of the package's modules that have to be in the archive."""
    for name in sorted(os.listdir(folder)):
        path, stem = os.path.join(folder, name), name.removesuffix(".py")
        if name == "__init__.py":
            yield package, path
        elif name.endswith(".py") and not name.startswith("__"):
            yield f"{package}.{stem}", path
        elif name not in _OTHERS and os.path.isfile(os.path.join(path, "__init__.py")):
            yield from _modules(path, f"{package}.{name}")
        elif name == _PACKED.strip("/") and package == _PACKAGE:
            for module, own in _packed().modules():
                if own.partition("/")[0] not in _OTHERS:
                    yield module, os.path.join(path, own)


def _packed() -> Any:
    """The module that knows of those that are packed. By name: it stands above this one."""
    import importlib

    return importlib.import_module(f"{_PACKAGE}.jit.packed")


def update(path: str, folders: Sequence[str]) -> bool:
    """Has a process of its own, by this Python, write the archive, unless it is current; whether it did.
    folders: where llvmlite may be. PermissionError if it may not be written, OSError if it cannot."""
    if is_current(path):
        return False
    if not os.access(os.path.dirname(path), os.W_OK):
        raise OSError(f"{path}: may not be written")
    import subprocess

    start = f"import sys; sys.path.insert(0, {_ROOT!r}); sys.path += {list(folders)!r}; "
    start += f"from {_PACKAGE} import module_archive; module_archive.make({path!r})"
    command = [sys.executable, "-I", "-S", "-c", start]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        why = done.stderr.strip().rpartition("\n")[2]
        raise OSError(f"{path}: {why}")
    return True


def make(path: str) -> None:
    """Writes the archive: of the package's modules, and of those of Python's library that these import. To be
    called in a process that has imported nothing else."""
    import importlib

    groups: list[dict[str, CodeType | None]] = []
    for roots in GROUPS:
        before = set(sys.modules)
        for root in roots:
            importlib.import_module(f"{_PACKAGE}.{root}")
        groups.append(dict.fromkeys(name for name in sys.modules if name not in before))
    for name, _ in _modules(os.path.join(_ROOT, _PACKAGE), _PACKAGE):
        try:
            importlib.import_module(name)
        except ImportError:  # of a package that is not there; who needs it says so
            pass
    library = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
    packed = _packed()
    index: dict[str, Entry] = {}
    code: list[bytes] = []
    place = 0
    for name, module in sorted(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or spec.name != name:
            continue
        file = os.path.realpath(spec.origin or "")
        own = packed.path_of(name)
        if own:
            file = os.path.join(os.path.realpath(packed.FILE), own)
        is_own = file.startswith(_ROOT + os.sep + _PACKAGE + os.sep)
        is_pythons = file.startswith(library) and "site-packages" not in file
        if not file.endswith(".py") or not (is_own or is_pythons):
            continue
        status = os.stat(packed.FILE if own else file)
        if own:
            text = packed.texts()[own]
        else:
            with open(file, "rb") as source:
                text = source.read()
        made = _compiled(text, file, is_own)
        for group in groups:
            if name in group:
                group[name] = made
        compiled = marshal.dumps(made)
        shown = os.path.relpath(file, _ROOT) if is_own else file
        is_package = spec.submodule_search_locations is not None
        index[name] = shown, is_package, status.st_mtime_ns, status.st_size, place, len(compiled)
        code.append(compiled)
        place += len(compiled)
    places = {}
    for roots, group in zip(GROUPS, groups, strict=True):
        compiled = marshal.dumps({name: made for name, made in group.items() if made})
        places[roots] = place, len(compiled)
        code.append(compiled)
        place += len(compiled)
    compiled = marshal.dumps(_texts())
    places[_TEXTS] = place, len(compiled)
    code.append(compiled)
    head = marshal.dumps((MAGIC_NUMBER, index, places))
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as archive:
        archive.write(len(head).to_bytes(_SIZE, "little") + head + b"".join(code))
    os.replace(temporary, path)


def _texts() -> dict[str, bytes]:
    """What archived_texts will be asked for."""
    from . import late_patterns, records

    found: dict[str, Any] = {text: late_patterns.arguments_of(text) for text in late_patterns.texts}
    for name, module in sys.modules.items():
        for value in list(vars(module).values()) if name.startswith(f"{_PACKAGE}.") else ():
            text = records.text_of(value) if isinstance(value, type) else None
            if text is not None:
                found[text] = archived_texts.code_of(text)
    return {text: marshal.dumps(made) for text, made in found.items()}


def _compiled(text: bytes, file: str, is_own: bool) -> CodeType:
    """The code of a module; of our own without what nobody asks for when it runs."""
    import ast

    tree = ast.parse(text)
    for node in ast.walk(tree) if is_own else ():
        if isinstance(node, ast.arg):
            vars(node).update(annotation=None)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            vars(node).update(returns=None)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [] if len(node.body) > 1 else [ast.copy_location(ast.Pass(), node.body[0])]
    return compile(tree, file, "exec", dont_inherit=True)
