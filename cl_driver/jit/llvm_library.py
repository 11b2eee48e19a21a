"""LLVM as the shared library that clang is linked with, through its C API (llvm-c/*.h).

It has no assertions, which makes it faster than llvmlite's, and any number of threads may compile at
once, each in a context of its own; ctypes lets go of the GIL meanwhile.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

from .. import stages
from ..device.target import Target
from .errors import NOT_VALID, CompileError
from .printed_ir.change import changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    # What a function returns that has c_void_p for its result.
    Handle: TypeAlias = int

_STRING = POINTER(c_char_p)
_HANDLE = POINTER(c_void_p)

# Result and arguments of the functions that are used; LLVMBool is an int that is not 0 for a failure.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "LLVMContextCreate": (c_void_p,),
    "LLVMContextDispose": (None, c_void_p),
    "LLVMCreateMemoryBufferWithMemoryRange": (c_void_p, c_char_p, c_size_t, c_char_p, c_int),
    "LLVMParseIRInContext": (c_int, c_void_p, c_void_p, _HANDLE, _STRING),
    "LLVMVerifyModule": (c_int, c_void_p, c_int, _STRING),
    "LLVMDisposeModule": (None, c_void_p),
    "LLVMDisposeMessage": (None, c_char_p),
    "LLVMSetTarget": (None, c_void_p, c_char_p),
    "LLVMSetModuleDataLayout": (None, c_void_p, c_void_p),
    "LLVMGetTargetFromTriple": (c_int, c_char_p, _HANDLE, _STRING),
    "LLVMCreateTargetMachine": (c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_int, c_int),
    "LLVMSetTargetMachineAsmVerbosity": (None, c_void_p, c_int),
    "LLVMPrintModuleToString": (c_void_p, c_void_p),
    "LLVMCreateTargetDataLayout": (c_void_p, c_void_p),
    "LLVMCreatePassBuilderOptions": (c_void_p,),
    "LLVMPassBuilderOptionsSetSLPVectorization": (None, c_void_p, c_int),
    "LLVMDisposePassBuilderOptions": (None, c_void_p),
    "LLVMRunPasses": (c_void_p, c_void_p, c_char_p, c_void_p, c_void_p),
    "LLVMGetErrorMessage": (c_void_p, c_void_p),
    "LLVMTargetMachineEmitToMemoryBuffer": (c_int, c_void_p, c_void_p, c_int, _STRING, _HANDLE),
    "LLVMGetBufferStart": (c_void_p, c_void_p),
    "LLVMGetBufferSize": (c_size_t, c_void_p),
    "LLVMDisposeMemoryBuffer": (None, c_void_p),
    "LLVMParseCommandLineOptions": (None, c_int, POINTER(c_char_p), c_char_p),
    "LLVMGetVersion": (None, POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)),
}
_BACK_ENDS = {"x86_64": "X86", "aarch64": "AArch64"}

# O2 without vectorisers, as far as large code gains from it: in LLVM 22 the option for that does nothing.
_SCALAR = (
    "default<O1>,function(early-cse<memssa>,jump-threading,correlated-propagation,loop-mssa(licm),gvn,sccp,"
    "instcombine<no-verify-fixpoint>,dse,adce,simplifycfg)"
)

_RETURN_STATUS = 2  # LLVMVerifierFailureAction
_PIC, _SMALL = 2, 3  # LLVMRelocMode, LLVMCodeModel
_ASSEMBLY, _OBJECT = 0, 1  # LLVMCodeGenFileType


# The same for code that is to run in this process: the self-test's.
_ORC_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "LLVMCreateMemoryBufferWithMemoryRangeCopy": (c_void_p, c_char_p, c_size_t, c_char_p),
    "LLVMOrcCreateLLJIT": (c_void_p, _HANDLE, c_void_p),
    "LLVMOrcLLJITGetMainJITDylib": (c_void_p, c_void_p),
    "LLVMOrcLLJITAddObjectFile": (c_void_p, c_void_p, c_void_p, c_void_p),
    "LLVMOrcLLJITLookup": (c_void_p, c_void_p, POINTER(c_uint64), c_char_p),
}


def _declare(library: ctypes.CDLL, functions: dict[str, tuple[Any, ...]]) -> None:
    for name, (result, *arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def version_of(path: str) -> tuple[int, ...]:
    """The version of the library there. OSError where there is none, AttributeError where it is no LLVM or
    one that is older than 16."""
    numbers = [c_uint() for _ in range(3)]
    ctypes.CDLL(path).LLVMGetVersion(*map(byref, numbers))
    return tuple(number.value for number in numbers)


class Library:
    """See emit.py for what the arguments are. Any thread may call generate()."""

    def __init__(self, path: str, options: tuple[str, ...], short_list: tuple[str, ...]) -> None:
        """OSError or AttributeError where the library or a function of it is missing."""
        self._llvm = ctypes.CDLL(path)
        _declare(self._llvm, _FUNCTIONS)
        words = [b"cl_driver", *(option.encode() for option in options)]
        self._llvm.LLVMParseCommandLineOptions(len(words), (c_char_p * len(words))(*words), None)
        # One "function(...)" around the steps for functions: all of them for one function, then the next.
        steps = ",".join(_PARAMETERS.get(name, name) for name in short_list if name not in _OF_MODULES)
        modules = [name for name in short_list if name in _OF_MODULES]
        self._short_list = ",".join([*modules, f"function({steps})"])
        self._started: set[str] = set()
        # Idle ones, with their layouts; two threads must not use one at once.
        self._machines: dict[tuple[Target, int], list[tuple[Handle, Handle]]] = {}

    def generate(
        self, text: str, target: Target, passes: str, level: int, form: str = "object"
    ) -> tuple[bytes, str]:
        """Text to an "object" or its "assembly", the latter also with "comments"; with these comes the IR
        that it was made of, as text. CompileError for text that is not valid, and for what LLVM refuses."""
        idle = self._machines.setdefault((target, level), [])
        machine, layout = idle.pop() if idle else self._machine(target, level)
        context = self._llvm.LLVMContextCreate()  # the global one would keep every type for ever
        module = c_void_p()
        try:
            module = self._parse(text.encode(), context)
            self._llvm.LLVMSetTarget(module, target.triple.encode())
            self._llvm.LLVMSetModuleDataLayout(module, layout)
            with stages.stage("optimise", passes):
                self._optimize(module, machine, passes)
            other = changed(text, lambda: self._print(module), target, passes) if level else None
            if other is not None:
                self._llvm.LLVMDisposeModule(module)
                module = c_void_p()
                module = self._parse(other.encode(), context)
            self._llvm.LLVMSetTargetMachineAsmVerbosity(machine, form == "comments")
            with stages.stage("generate code"):
                data = self._emit(module, machine, _OBJECT if form == "object" else _ASSEMBLY)
            return data, self._print(module) if form == "comments" else ""
        finally:
            if module:
                self._llvm.LLVMDisposeModule(module)
            self._llvm.LLVMContextDispose(context)
            idle.append((machine, layout))

    def _machine(self, target: Target, level: int) -> tuple[Handle, Handle]:
        """A target machine, of position-independent code of the small model as the code loader wants it, and
        the layout of its data."""
        back_end = _BACK_ENDS.get(target.architecture)
        if back_end and back_end not in self._started:
            for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"):
                getattr(self._llvm, f"LLVMInitialize{back_end}{part}")()
            self._started.add(back_end)
        found, why = c_void_p(), c_char_p()
        triple = target.triple.encode()
        if self._llvm.LLVMGetTargetFromTriple(triple, byref(found), byref(why)):
            raise CompileError(f"LLVM has no back end for {target.triple}: {self._message(why)}")
        features = target.feature_string.encode()
        machine = self._llvm.LLVMCreateTargetMachine(found, triple, b"", features, level, _PIC, _SMALL)
        return machine, self._llvm.LLVMCreateTargetDataLayout(machine)

    def _parse(self, text: bytes, context: Handle) -> c_void_p:
        """A verified module."""
        module, why = c_void_p(), c_char_p()
        buffer = self._llvm.LLVMCreateMemoryBufferWithMemoryRange(text, len(text), b"", 1)
        failed = self._llvm.LLVMParseIRInContext(context, buffer, byref(module), byref(why))
        if not failed:
            failed = self._llvm.LLVMVerifyModule(module, _RETURN_STATUS, byref(why))
            if failed:
                self._llvm.LLVMDisposeModule(module)
        text_of_failure = self._message(why)
        if failed:
            raise CompileError(f"{NOT_VALID}{text_of_failure}")
        return module

    def _optimize(self, module: c_void_p, machine: Handle, passes: str) -> None:
        lists = {"short": self._short_list, "ordered": self._short_list, "scalar": _SCALAR}
        names = lists.get(passes, f"default<{passes}>")
        options = self._llvm.LLVMCreatePassBuilderOptions()
        self._llvm.LLVMPassBuilderOptionsSetSLPVectorization(options, passes in ("O2", "O3"))
        error = self._llvm.LLVMRunPasses(module, names.encode(), machine, options)
        self._llvm.LLVMDisposePassBuilderOptions(options)
        if error:
            why = ctypes.string_at(self._llvm.LLVMGetErrorMessage(error)).decode()
            raise CompileError(f"LLVM's passes: {why}")

    def _print(self, module: c_void_p) -> str:
        return self._message(c_char_p(self._llvm.LLVMPrintModuleToString(module)))

    def _emit(self, module: c_void_p, machine: Handle, kind: int) -> bytes:
        buffer, why = c_void_p(), c_char_p()
        emit = self._llvm.LLVMTargetMachineEmitToMemoryBuffer
        if emit(machine, module, kind, byref(why), byref(buffer)):
            raise CompileError(f"LLVM's code generator: {self._message(why)}")
        try:
            size = self._llvm.LLVMGetBufferSize(buffer)
            return ctypes.string_at(self._llvm.LLVMGetBufferStart(buffer), size)
        finally:
            self._llvm.LLVMDisposeMemoryBuffer(buffer)

    def run_here(self, data: bytes, name: str) -> int:
        """The address of a function of an object that this process may call from now on."""
        _declare(self._llvm, _ORC_FUNCTIONS)
        orc, address = c_void_p(), c_uint64()
        self._check(self._llvm.LLVMOrcCreateLLJIT(byref(orc), None))
        place = self._llvm.LLVMOrcLLJITGetMainJITDylib(orc)
        buffer = self._llvm.LLVMCreateMemoryBufferWithMemoryRangeCopy(data, len(data), name.encode())
        self._check(self._llvm.LLVMOrcLLJITAddObjectFile(orc, place, buffer))
        self._check(self._llvm.LLVMOrcLLJITLookup(orc, byref(address), name.encode()))
        return address.value

    def _check(self, error: Handle | None) -> None:
        if error:
            why = ctypes.string_at(self._llvm.LLVMGetErrorMessage(error)).decode("utf-8", "replace")
            raise CompileError(f"LLVM does not load its own object: {why}")

    def _message(self, why: c_char_p) -> str:
        """What LLVM said, which is then freed."""
        text = (why.value or b"").decode("utf-8", "replace")
        if why:
            self._llvm.LLVMDisposeMessage(why)
        return text


_OF_MODULES = ("always-inline", "globaldce")
_PARAMETERS = {"instcombine": "instcombine<no-verify-fixpoint>", "sroa": "sroa<preserve-cfg>"}
