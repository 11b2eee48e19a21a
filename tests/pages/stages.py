"""What every stage of the compiler makes of one kernel, as text: the blocks of cl_driver/ARCHITECTURE.md.

The stages begin with SPIR-V that is kept beside this file, since another clang writes other SPIR-V, and are
for a CPU that is named, so that every machine makes the same text. LLVM's part depends on its version, which
the block says.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import re
import subprocess
from pathlib import Path

from cl_driver import settings
from cl_driver.builtins.library import library_for
from cl_driver.compiler import pipeline, variants
from cl_driver.compiler.source import Context, compile_source
from cl_driver.device.target import _LEVELS, Target
from cl_driver.frontend import find_clang
from cl_driver.jit import emit, identity
from cl_driver.passes.ir.dump import plan_text
from cl_driver.passes.pipeline import plan
from cl_driver.records import replace
from cl_driver.spirv.reading import dis
from cl_driver.spirv.reflect import GLOBAL, LOCAL, VALUE
from tests.conftest import ROOT

HERE = Path(__file__).parent
SOURCE = HERE / "stencil.cl"
MODULE = HERE / "stencil.spv"
MADE_BY = HERE / "stencil.clang"  # the clang that wrote it
CPU = "x86-64-v3"
NAME = "smooth"
GROUP = [64, 1, 1]
KINDS = {VALUE: "value", GLOBAL: "global", LOCAL: "local"}
FIELDS = ("symbol", "width", "tile_width", "has_rest", "has_narrow", "most_group_items", "free_groups")

# What is shown of each text: from a line that matches to the next one that does.
SHOWN = {
    "spirv": (
        ("= OpFunction ", "OpFunctionParameter"),
        ("OpLabel", "OpStore"),
        ("OpIEqual", "OpBranchConditional"),
        ("OpControlBarrier", "OpExtInst .* fma"),
        ("OpStore", "OpFunctionEnd"),
    ),
    "simplified": (
        ("^function", "Load f32 "),
        ("IEqual", "b.0:"),
        ("ControlBarrier", "OpenCLStd.fma"),
    ),
    "plan": (
        ("^kernel", "EntryMask"),
        ("PtrAccessChain", "PtrAccessChain"),
        ("Load f32 ", "Load f32 "),
        ("IEqual", "Store "),
        ("RegionExit", "RegionExit"),
        ("^region 1", "EntryMask"),
        ("Load f32 ", "Load f32 "),
        ("FMul", "OpenCLStd.fma"),
        ("Store", "RegionExit"),
    ),
    "llvm": (
        ("^define", "^entry"),
        ("^group:", "group.index ="),
        ("^r0.b0:", "br i1 "),
        ("^r0.b1:", "masked.load"),
        ("^r1.b0:", "^stored"),
    ),
    "assembly": (
        ("^cld_kernel_smooth:", "pushq"),
        ("vmulps|vfmadd", "jmp"),
        ("sfence", "sfence"),
        ("retq", "retq"),
    ),
    "group": (
        ("^define", "^entry"),
        ("= load <8 x float>", "= load <8 x float>"),
        ("masked.load", "masked.load"),
        ("shufflevector", "shufflevector.*<i32 7,"),
        ("fmul", "fmul"),
        ("@llvm.fma", "@llvm.fma"),
        ("ret void", "ret void"),
    ),
}


def target(level: str = CPU) -> Target:
    """A level of x86-64 with vectors (v3, v4), whatever this machine is."""
    levels = list(_LEVELS)
    features = " ".join(_LEVELS[name] for name in levels[: levels.index(level) + 1]).split()
    bits = 512 if "avx512f" in features else 256
    return Target("x86_64-unknown-linux-gnu", tuple(sorted(features)), bits)


def context() -> Context:
    return Context(target(), "-cl-std=CL3.0", {})


def compile_kernel() -> bytes:
    """The kernel's SPIR-V by this machine's clang."""
    result = compile_source(SOURCE.read_bytes(), {}, context())
    assert result.spirv is not None, result.log
    return result.spirv


def excerpt(text: str, parts: tuple[tuple[str, str], ...]) -> str:
    """Lines of a text: for each part those from the first that matches one pattern to the next that matches
    the other. A line says how many were left out."""
    lines, kept, at = text.rstrip().split("\n"), [], 0
    for first, last in parts:
        start = next(k for k in range(at, len(lines)) if re.search(first, lines[k]))
        end = next(k for k in range(start, len(lines)) if re.search(last, lines[k]))
        kept += [_left_out(start - at)] if start > at else []
        kept += lines[start : end + 1]
        at = end + 1
    kept += [_left_out(len(lines) - at)] if at < len(lines) else []
    return "\n".join(kept)


def _left_out(count: int) -> str:
    return f"[... {count} line{'s' * (count > 1)}]"


def spirv_text(data: bytes) -> str:
    """A module without the offsets of its words."""
    return re.sub(r"^ *\d+  ", "", dis.disassemble(data), flags=re.MULTILINE)


class Stages:
    """One run of the compiler's stages."""

    def __init__(self):
        self.context = context()
        self.program = pipeline.prepare(MODULE.read_bytes(), self.context)
        options = replace(self.program.lanes(NAME), show=("all",), verify=True)
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            functions = library_for(self.context.target)
            self.plan = plan(self.program.module, self.program.entry_points[NAME], options, functions)
        self.passes = [tuple(part.split("\n", 1)) for part in told.getvalue().split("; after ")[1:]]
        self.entry = pipeline.entry(self.program, NAME)
        self.group = variants.variant(self.program, NAME, variants.GROUP, GROUP)

    def text_after(self, name: str) -> str:
        """The function as the last run of a pass left it."""
        return [text for passed, text in self.passes if passed == name][-1]

    def pass_table(self) -> str:
        """Each pass that ran, its file, and what it left of the function."""
        rows = ["| pass | file | instructions |", "|---|---|---|"]
        before: dict[str, str] = {}
        for name, text in self.passes:
            (file,) = (ROOT / "cl_driver" / "passes").glob(f"*/{name}.py")
            function = re.match(r"function ([\w.]+)", text)[1]
            count = len(re.findall(r"^    ", text, re.MULTILINE))
            what = "as before" if before.get(function) == text else str(count)
            if function != NAME:
                what += ", in the second region"
            before[function] = text
            rows.append(f"| {name} | `passes/{file.parent.name}/{file.name}` | {what} |")
        return "\n".join(rows)

    def assembly(self, code, variant: str = "") -> str:
        """Machine code as text, by the LLVM in use."""
        return emit.assembly(code.text, self.context.target, *pipeline.llvm_ways(self.context, code, variant))

    def info_text(self) -> str:
        """What launches know of the kernel."""
        info = pipeline.kernel_info(self.program, self.entry)
        lines = [f"argument {k}: {KINDS[a.kind]}, at byte {a.offset}" for k, a in enumerate(info.args)]
        return "\n".join([*lines, *(f"{field}: {getattr(info, field)}" for field in FIELDS)])

    def blocks(self) -> dict[str, str]:
        """The blocks of the page that no other version of clang or LLVM changes."""
        spirv = f"; {MADE_BY.read_text().strip()}\n" + excerpt(
            spirv_text(MODULE.read_bytes()), SHOWN["spirv"]
        )
        return {
            "source": _code("c", SOURCE.read_text()),
            "spirv": _code("", spirv),
            "passes": self.pass_table(),
            "simplified": _code("", excerpt(self.text_after("simplify"), SHOWN["simplified"])),
            "plan": _code("", excerpt(plan_text(self.plan), SHOWN["plan"])),
            "llvm": _code("llvm", excerpt(self.entry.text, SHOWN["llvm"])),
            "executable": _code("", self.info_text()),
            "group": _code("llvm", excerpt(self.group.text, SHOWN["group"])),
        }

    def machine_blocks(self) -> dict[str, str]:
        """The block that LLVM makes, with its version."""
        text = excerpt(self.assembly(self.entry), SHOWN["assembly"])
        return {"assembly": _code("asm", f"# {llvm_version()}\n{text}")}


def llvm_version() -> str:
    """Of the LLVM that makes machine code."""
    path = identity.llvm(settings.text("CL_DRIVER_LLVM"))
    if not path:
        import llvmlite.binding

        return "LLVM " + ".".join(map(str, llvmlite.binding.llvm_version_info))
    numbers = [ctypes.c_uint() for _ in range(3)]
    ctypes.CDLL(path).LLVMGetVersion(*(ctypes.byref(number) for number in numbers))
    return "LLVM " + ".".join(str(number.value) for number in numbers)


def clang_version() -> str:
    """Of the clang that compiles programs: "clang 22.1.8"."""
    path = find_clang.find(settings.text("CL_DRIVER_CLANG")).path
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return f"clang {said.partition('clang version ')[2].split()[0]}"


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
