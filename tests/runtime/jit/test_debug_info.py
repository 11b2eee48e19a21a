"""Debug information: from -g or from a module's own instructions to the line tables of objects."""

import itertools
import re
import subprocess
from pathlib import Path

import pytest

from cl_driver.compiler import pipeline
from cl_driver.compiler.source import Context
from cl_driver.device.target import host_target, make_target
from cl_driver.frontend import debug, opencl_c
from cl_driver.frontend.options import parse
from cl_driver.spirv.reading import reader
from tests.cpus import ZEN3
from tests.marks import needs_x86
from tests.runtime.code_loader import line_of
from tests.runtime.emulation import IS_NATIVE
from tests.runtime.kernel_harness import assemble

SOURCE = """float helper(float x) {
    float y = x * 2.0f;
    return y + 1.0f;
}
kernel void k(global float *out, global const float *in, int n) {
    int i = get_global_id(0);
    switch (n & 3) {
    case 0: out[i] = 1; break;
    case 1:
        out[i] = in[i] + 5;
        break;
    default:
        for (int j = 0; j < n; j++)
            out[i + j] = helper(in[j]);
    }
}
"""
HELPER, CALL = {2, 3}, 14
STATEMENTS = {7, 8, 10, CALL}


def spirv_of(options: str, source: str = SOURCE) -> bytes:
    result = opencl_c.compile(source.encode(), parse(options), source_copy="/sources/program.cl")
    assert result.spirv is not None, result.log
    return result.spirv


def object_of(il: bytes, path, options: str = "", width: int = 1) -> str:
    """The object of the only kernel, in a file."""
    made = pipeline.build(il, options, host_target("", width))
    path.write_bytes(made.objects[0])
    return str(path)


def readelf(what: str, path: str) -> str:
    command = ["readelf", f"--debug-dump={what}", path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def lines_of(path: str) -> set[int]:
    """The lines that an object has code of."""
    found = re.findall(r"\.cl +(\d+) +(?:0x)?[0-9a-f]+", readelf("decodedline", path))
    return {int(line) for line in found} - {0}


def instructions_of(il: bytes) -> list:
    return [
        [i.op for block in function.blocks for i in block.instructions]
        for function in reader.read(il).functions
    ]


@pytest.mark.parametrize("options", ["-g", "-g -cl-opt-disable", "-g -cl-std=CL3.0"])
@pytest.mark.parametrize("width", [1, 8])
def test_line_tables(tmp_path, options, width):
    path = object_of(spirv_of(options), tmp_path / "k.o", options, width)
    lines = lines_of(path)
    assert HELPER & lines and STATEMENTS <= lines, lines
    assert lines <= set(range(1, 18))
    information = readelf("info", path)
    assert re.search(r"DW_AT_name .*: k\n", information)
    assert re.search(r"DW_AT_name .*: helper\n", information)
    inlined = information.split("DW_TAG_inlined_subroutine", 1)[1]
    assert re.search(rf"DW_AT_call_line +: {CALL}\n", inlined)
    assert "/sources" in information


@pytest.mark.parametrize("options", ["-g", "-g -cl-opt-disable"])
@pytest.mark.parametrize("width", [1, 8])
def test_the_line_of_each_instruction(tmp_path, options, width):
    """What a fault is told with, beside binutils' opinion on the same table."""
    path = object_of(spirv_of(options), tmp_path / "k.o", options, width)
    data, base = Path(path).read_bytes(), 0x7F0000000000

    def found(address: int) -> tuple[str, int] | None:
        return line_of(data, address, base, IS_NATIVE)

    rows = re.findall(r"(\S+\.cl) +(\d+|-) +(?:0x)?([0-9a-f]+)", readelf("decodedline", path))
    rows = [(name, line, int(address, 16)) for name, line, address in rows]
    checked = 0
    for (name, line, address), (_, _, end) in itertools.pairwise(rows):
        if line not in ("0", "-") and address < end:
            expected = (name, int(line))
            assert found(base + address) == found(base + end - 1) == expected
            checked += 1
    assert checked > 10
    assert found(base + rows[-1][2]) is None and found(base - 1) is None


def test_nothing_without_asking(tmp_path):
    il = spirv_of("")
    assert debug.SET not in il
    assert not readelf("info", object_of(il, tmp_path / "k.o")).strip()


def test_the_module_is_valid_and_means_the_same(tmp_path):
    for options in ("-g", "-g -cl-opt-disable"):
        il = spirv_of(options)
        assert debug.MARKER.encode() not in il
        done = subprocess.run(["spirv-val", "-"], input=il, capture_output=True, text=False)
        assert done.returncode == 0, done.stderr
        plain = spirv_of(options.removeprefix("-g"))
        assert instructions_of(il) == instructions_of(plain)


def test_included_files_and_line_directives(tmp_path):
    (tmp_path / "part.h").write_text("float part(float x) {\n    return x * x;\n}\n")
    source = (
        f'#include "{tmp_path}/part.h"\n#line 100 "/elsewhere/own.cl"\n'
        "kernel void k(global float *a) {\n    a[get_global_id(0)] = part(a[get_global_id(0)]);\n}\n"
    )
    path = object_of(spirv_of("-g", source), tmp_path / "k.o")
    table = readelf("decodedline", path)
    assert re.search(r"part\.h +2 ", table) and re.search(r"own\.cl +101 ", table), table


def test_wrong_programs_have_their_logs():
    result = opencl_c.compile(b"kernel void k(global int *a) { *a = nothing; }", parse("-g"))
    assert result.spirv is None and "program.cl:1:" in result.log and "nothing" in result.log


HEAD = """
    OpCapability Kernel
    OpCapability Addresses
    OpCapability Linkage
    {imports}
    OpMemoryModel Physical64 OpenCL
    OpEntryPoint Kernel %k "k"
    %file = OpString "/sources/own.cl"
    %name = OpString "k"
    %called = OpString "called"
    %void = OpTypeVoid
    %i32 = OpTypeInt 32 0
    %gi32 = OpTypePointer CrossWorkgroup %i32
    %fn = OpTypeFunction %void %gi32
    %one = OpConstant %i32 1
    %zero = OpConstant %i32 0
    {nodes}
    %k = OpFunction %void None %fn
    %p = OpFunctionParameter %gi32
    %l = OpLabel
"""
SET = '%set = OpExtInstImport "OpenCL.DebugInfo.100"'
LINE = "OpLine %file 22 5\n%a = OpAtomicIAdd %i32 %p %one %zero %one\n"
SCOPED = f"%s = OpExtInst %void %set DebugScope %block %at\n{LINE}"
TAIL = "OpReturn\nOpFunctionEnd"
NODES = """
    %source = OpExtInst %void %set DebugSource %file
    %unit = OpExtInst %void %set DebugCompilationUnit 65536 4 %source OpenCL_C
    %ftype = OpExtInst %void %set DebugTypeFunction None %void
    %none = OpExtInst %void %set DebugInfoNone
    %dk = OpExtInst %void %set DebugFunction %name %ftype %source 10 0 %unit %name None 10 %k
    %dc = OpExtInst %void %set DebugFunction %called %ftype %source 20 0 %unit %called None 20 %none
    %block = OpExtInst %void %set DebugLexicalBlock %source 21 1 %dc
    %at = OpExtInst %void %set DebugInlinedAt 12 %dk
"""


def module(body: str, imports: str = "", nodes: str = "") -> bytes:
    return assemble(HEAD.format(imports=imports, nodes=nodes) + body + TAIL)


def test_lines_alone(tmp_path):
    il = module("OpLine %file 12 3\n%a = OpAtomicIAdd %i32 %p %one %zero %one\n")
    path = object_of(il, tmp_path / "k.o")
    assert 12 in lines_of(path)
    assert re.search(r"DW_AT_name .*: k\n", readelf("info", path))


def test_scopes_of_a_module(tmp_path):
    il = module(SCOPED, SET, NODES)
    store = reader.read(il).functions[0].blocks[0].instructions[0]
    assert store.line[:3] == ("/sources/own.cl", 22, 5)
    assert (store.line.scope.name, store.line.at.line, store.line.at.scope.name) == ("called", 12, "k")
    path = object_of(il, tmp_path / "k.o")
    assert 22 in lines_of(path)
    assert re.search(r"DW_AT_call_line +: 12\n", readelf("info", path))


def test_functions_in_a_module(tmp_path):
    """SPV_INTEL_debug_module: a module of the language is the scope of functions, and has none itself."""
    declared = (
        'OpCapability DebugInfoModuleINTEL\nOpExtension "SPV_INTEL_debug_module"\n'
        '%set = OpExtInstImport "OpenCL.DebugInfo.100"'
    )
    named = "%named = OpExtInst %void %set DebugModuleINTEL %name %source %unit 1 %name %name %name 0"
    nodes = NODES.replace("%ftype =", f"{named}\n    %ftype =").replace("0 %unit", "0 %named")
    assert nodes.count("%named") == 3
    il = module(SCOPED, declared, nodes)
    store = reader.read(il).functions[0].blocks[0].instructions[0]
    assert (store.line.scope.name, store.line.at.scope.name) == ("called", "k")
    assert 22 in lines_of(object_of(il, tmp_path / "k.o"))
    inside = module(SCOPED.replace("%block %at", "%named"), declared, nodes)
    assert 22 in lines_of(object_of(inside, tmp_path / "k.o"))


def test_nothing_outlives_a_block():
    il = module(LINE + "OpBranch %m\n%m = OpLabel\n%b = OpAtomicIAdd %i32 %p %one %zero %one\n")
    first, second = reader.read(il).functions[0].blocks
    assert first.terminator.line.line == 22
    assert all(i.line is None for i in second.instructions)


@pytest.mark.parametrize(
    "change", [("%block %at", "%unit"), ("%block %at", "%block %dk"), ("%dc\n", "%source\n")], ids="abc"
)
def test_malformed_debug_information_is_left_out(tmp_path, change):
    il = module(SCOPED.replace(*change), SET, NODES.replace(*change))
    assert 22 in lines_of(object_of(il, tmp_path / "k.o"))


def test_a_cycle_of_scopes_ends():
    """Words changed by hand: no assembler writes a scope that is its own parent."""
    il = module(SCOPED, SET, NODES)
    words = list(memoryview(il).cast("I"))
    for p in range(len(words) - 9):
        if words[p] == 9 << 16 | 12 and words[p + 4] == 21:  # DebugLexicalBlock: its parent becomes itself
            words[p + 8] = words[p + 2]
    changed = b"".join(word.to_bytes(4, "little") for word in words)
    assert changed != il
    store = reader.read(changed).functions[0].blocks[0].instructions[0]
    assert store.line.scope.name == "k"


VARIABLES = """typedef struct { float x; uchar n; } pair;
typedef struct list { struct list *next; int value; } list;
float helper(float a) { float twice = a * 2; return twice; }
kernel void k(global float *out, const uint n, float3 v) {
    int i = get_global_id(0);
    pair p = {2.5f, 7};
    list l = {0, n};
    short table[2][3] = {{1}};
    out[i] = v.x + p.x + p.n + table[n & 1][i & 1] + helper(n) + l.value;
}
"""


def test_private_variables_without_optimisation_are_described(tmp_path):
    text = readelf(
        "info", object_of(spirv_of("-g -cl-opt-disable", VARIABLES), tmp_path / "k.o", "-g -cl-opt-disable")
    )
    named = set(re.findall(r"DW_AT_name +: (?:\(.*\): )?(\w+)\n", text))
    assert {"out", "n", "v", "i", "p", "l", "table", "a", "twice", "cl_item", "value", "short"} <= named
    assert "unsigned char" in text and "unsigned int" in text and "DW_TAG_formal_parameter" in text
    counts = re.findall(r"DW_AT_count +: (?:\(.*\) )?(\d+)|DW_AT_upper_bound +: (?:\(.*\) )?(\d+)", text)
    assert {("3", ""), ("2", "")} <= set(counts) or {("", "2"), ("", "1")} <= set(counts), counts


@pytest.mark.parametrize("options", ["-g", "-cl-opt-disable", ""])
def test_private_variables_cost_nothing_else(options):
    il = spirv_of(options, VARIABLES)
    program = pipeline.prepare(il, Context(host_target("", 1), options, {}))
    text = pipeline.entry(program, "k").text
    assert "#dbg_declare" not in text and "cl_item" not in text


def test_malformed_variables_are_left_out():
    """Each word of the debug instructions, set to other values, gives a module that is read."""
    il = spirv_of("-g -cl-opt-disable", VARIABLES)
    words = [*memoryview(il).cast("I")]
    at = 5
    changed = 0
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if opcode == debug.EXT_INST and words[at + 4] in (2, 3, 5, 6, 10, 11, 26, 28):
            for place in range(at + 5, at + count):
                before, words[place] = words[place], words[3] - 1
                reader.read(b"".join(word.to_bytes(4, "little") for word in words))
                words[place] = before
                changed += 1
        at += count
    assert changed > 50


MASKED = """kernel void k(global float *out, global const float *in, global int *more, int n) {
    int i = get_global_id(0);
    float x = in[i];
    if (x > 2.0f) {
        out[i] = x * 3.0f;
        more[i] = n;
    }
}
"""


@needs_x86
def test_stores_that_wait_for_others_have_their_own_lines():
    """Masked ones are made together, behind the instructions between them, where they are slow."""
    program = pipeline.prepare(spirv_of("-g", MASKED), Context(make_target(ZEN3, "", 8), "-g", {}))
    text = pipeline.entry(program, "k").text
    stores = re.findall(r"^.*(?:store <8 x|llvm\.masked\.store\.).*$", text, re.MULTILINE)
    stores = [line for line in stores if "declare" not in line]
    numbers = [re.search(r"!dbg !(\d+)$", line) for line in stores]
    assert len(stores) >= 4 and all(numbers), stores
    places = [f"!{number[1]} = !DILocation(line: " for number in numbers if number]
    assert {text.partition(place)[2].partition(",")[0] for place in places} == {"5", "6"}
