"""cl-driver explain: that the report says of each line what the code generator did there."""

from __future__ import annotations

import platform
import re
from html.parser import HTMLParser

import pytest

from cl_driver.cli import main
from cl_driver.compiler import pipeline
from cl_driver.compiler.source import Context, compile_source
from cl_driver.device.target import Target, host_target
from cl_driver.explain.alternatives import Asked
from cl_driver.explain.assembly import Assembly, Code
from cl_driver.explain.cost import chain, registers, slots_of, throughput
from cl_driver.explain.html import report_html
from cl_driver.explain.program import explain_source
from cl_driver.explain.text import report_text
from cl_driver.jit import emit
from cl_driver.jit.errors import CompileError
from cl_driver.passes.ir import remarks

WIDE = host_target("", 8, "1x")
OLD = host_target("x86-64-v2", 8, "1x")
LESS = "x86-64-v2" if platform.machine() == "x86_64" else "-sve"
SVE = ("fp-armv8", "neon", "sve")
ARM = Target("aarch64-unknown-linux-gnu", SVE, 128, 8, 1)


def explained(source: str, target=WIDE, options: str = "", kernel=None):
    return explain_source(source.encode(), {}, Context(target, options, {}), kernel)


def variant(source: str, target=WIDE, options: str = ""):
    """What most launches run of the only kernel."""
    return explained(source, target, options).kernels[0].variants[0]


def said(source: str, target=WIDE, options: str = "") -> dict[str, str]:
    """What is said of each line that ends in a comment, by the text of the comment."""
    lines = variant(source, target, options).lines
    marks = {n: m[1] for n, line in enumerate(source.split("\n"), 1) if (m := re.search(r"// (\w+)$", line))}
    return {mark: "; ".join(note.text for note in lines.get(number, ())) for number, mark in marks.items()}


MEMORY = """kernel void k(global float *out, global const float *in, global const int *index,
    global const uchar *bytes, global const float4 *vectors, global const int *flags, int n) {
    int i = get_global_id(0);
    float r = 0;
    r += in[i];            // contiguous
    r += in[n];            // uniform
    r += in[index[i]];     // gather
    r += bytes[index[i]];  // bytes
    float4 v = vectors[i]; // shuffled
    r += v.x * v.y;
    if (flags[i] > 2)      // divergent
        r += in[i + n];    // masked
    if (n > 3)             // same
        r *= out[n];
    out[index[i] + n] = r; // scatter
    out[2 * i + n] = r;    // strided
    out[i] = r;            // stored
}
"""


def check(lines: dict[str, str], **expected: str) -> None:
    for mark, text in expected.items():
        assert text in lines[mark], (mark, lines[mark])


def test_memory_line_by_line():
    lines = said(MEMORY)
    check(
        lines,
        contiguous="load: contiguous",
        uniform="load: one for all lanes",
        gather="load: contiguous",  # of the index
        bytes="load: lane by lane (no fast gather or scatter of i8)",
        shuffled="load: whole vectors and shuffles",
        divergent="branch: lanes may differ",
        masked="load: contiguous, masked",
        same="branch: the same way for all lanes",
        stored="store: contiguous",
    )
    assert "masked" not in lines["contiguous"]
    if "avx512f" in WIDE.features:
        check(lines, gather="load: gather", scatter="store: scatter")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a level of x86-64")
def test_memory_of_a_cpu_without_scatters():
    check(said(MEMORY, OLD), scatter="store: lane by lane", contiguous="load: contiguous")


def test_what_accesses_cost():
    """In the order of what the ways cost on any CPU, by the same model as code is made by."""
    lines = said(MEMORY)

    def cycles(mark: str, text: str) -> float:
        (found,) = re.findall(rf"{text}[^;]*?, ([0-9.e+]+) cycles?", lines[mark])
        return float(found)

    contiguous, shuffled = cycles("contiguous", "load: contiguous"), cycles("shuffled", "load: whole vectors")
    values = 1 if platform.machine() == "x86_64" else 4  # of each lane; NEON's loads have places for lanes
    assert 0 < contiguous < shuffled < values * cycles("bytes", "load: lane by lane")
    assert cycles("stored", "store: contiguous") < cycles("strided", "store: (?:scatter|lane)")


def test_control_atomics_and_arithmetic():
    lines = said("""kernel void k(global float *out, global int *counts, global const int *limits, int n) {
    int i = get_global_id(0);
    float x = limits[i];
    for (int j = 0; j < limits[i]; j++) // live
        x = x * 1.5f + 1.0f;            // vector
    for (int j = 0; j < n; j++) {       // uniform
        out[n + j] = n * 0.5f;          // scalar
        x += out[i];
    }
    atomic_add(counts, limits[i]);      // reduced
    atomic_inc(counts + limits[i]);     // lanes
    out[i] = x;
}
""")
    check(
        lines,
        live="goes on as long as any is in it",
        vector="arithmetic: vectors",
        uniform="branch: the same way for all lanes",
        scalar="store: one for all lanes",
        reduced="atomic: one for all lanes",
        lanes="atomic: lane by lane",
    )


LOSING_LINES = {  # clang and passes name no line, or more than one
    "merged": """kernel void k(global float *out, global const float *in, int n) {
    int i = get_global_id(0);
    if (i < n)
        out[i] = in[i];
    else
        out[i] = 0.0f;
}
""",
    "sincos": """kernel void k(global float2 *out, global const float *in) {
    int i = get_global_id(0);
    out[i] = (float2)(sin(in[i]), cos(in[i]));
}
""",
    "image": """constant sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void k(read_only image2d_t in, write_only image2d_t out) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(out, at, read_imagef(in, s, at.yx) + read_imagef(in, s, at));
}
""",
    "components": """kernel void k(global float4 *a, global const int *which, float x) {
    global float4 *p = a + which[get_global_id(0)];
    if (x > 0) p->x = x; else p->x = -x;
}
""",
}


@pytest.mark.parametrize("source", LOSING_LINES.values(), ids=LOSING_LINES)
@pytest.mark.parametrize("width", [4, 8])
def test_no_access_is_without_a_line(source, width):
    context = Context(host_target("", width, "1x"), "-g", {})
    program = pipeline.prepare(compile_source(source.encode(), {}, context).spirv, context)
    program.explains = True
    notes = pipeline.entry(program, "k").remarks.notes
    accesses = [note for note in notes if note.what in (remarks.LOAD, remarks.STORE)]
    assert accesses and all(note.location is not None and note.location.line > 0 for note in accesses)


def test_functions_and_built_ins_are_told_where_they_are():
    lines = said("""float inner(float x) {
    return x / 3.0f + exp(x);  // callee
}
kernel void k(global float *out, global const float *in) {
    size_t i = get_global_id(0);
    out[i] = inner(in[i]);     // caller
}
""")
    assert re.search("arithmetic: vectors \N{MULTIPLICATION SIGN}[0-9]{2}", lines["callee"])  # exp is inlined
    assert "load: contiguous" in lines["caller"]


def test_why_lanes_are_on_their_own():
    lines = said("""kernel void k(global float *out, volatile global float *port, global int *counts) {
    int i = get_global_id(0);
    float x = port[i];                              // volatile
    atomic_inc(counts + counts[i]);                 // atomic
    if (x > 100.0f) printf("%f", x);                // printf
    barrier(CLK_GLOBAL_MEM_FENCE);                  // barrier
    out[i] = x;
}
""")
    check(
        lines,
        volatile="load: lane by lane (volatile)",
        atomic="atomic: lane by lane (addresses differ",
        printf="call: lane by lane (printf), masked",
        barrier="barrier: all of the group come here",
    )


def facts(source: str, target=WIDE, options: str = "") -> str:
    return "\n".join(fact.text for fact in variant(source, target, options).facts)


BARRIERS = """kernel void k(global float *out, local float *t, int n) {
    int i = get_local_id(0);
    float kept = out[i] * 2;
    for (int k = 0; k < n; k++) {
        t[i] = kept + k;
        barrier(CLK_LOCAL_MEM_FENCE);
        kept += t[i ^ k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = kept;
}
"""


def test_barriers_and_what_is_kept_across_them():
    text = facts(BARRIERS)
    assert re.search(r"barriers divide it into \d regions", text)
    assert re.search(r"kept across barriers: f32.*, one per work-item", text)
    assert re.search(r"kept across barriers: i32.*, once per group", text)


def test_sub_groups_that_take_turns():
    source = """kernel void k(global int *out, volatile global int *flag) {
        sub_group_barrier(CLK_LOCAL_MEM_FENCE);
        WAIT out[get_global_id(0)] = 1;
    }"""
    for wait, is_told in (("while (*flag != 7) ;", True), ("", False)):
        facts = variant(source.replace("WAIT", wait), options="-cl-std=CL3.0").facts
        assert any("takes turns" in fact.text for fact in facts) == is_told


def test_groups_that_are_held_whole():
    target = host_target("", 8)
    kernel = explained(BARRIERS, target, kernel="k").kernels[0]
    assert len(kernel.variants) == 1
    assert any("made for their local size" in fact.text for fact in kernel.variants[0].facts)
    context = Context(target, "", {})
    kernel = explain_source(BARRIERS.encode(), {}, context, None, [32, 1, 1]).kernels[0]
    general, held = kernel.variants
    text = "\n".join(fact.text for fact in held.facts)
    assert "4 vectors of work-items at a time" in text and "the whole group" in text
    assert held.loops and all(loop.items == 32 for loop in held.loops)
    said_of = "\n".join(note.text for notes in held.lines.values() for note in notes)
    assert "barrier: nothing to do" in said_of and "before any goes on" not in said_of
    assert "barriers divide" not in text and "kept across barriers" not in text
    kernel = explain_source(BARRIERS.encode(), {}, context, None, [3, 1, 1]).kernels[0]
    assert any("no code of their own for groups of 3" in fact.text for fact in kernel.variants[0].facts)


def test_private_arrays():
    source = """kernel void k(global int *out, int n) {
        int a[32]; %s
        for (int j = 0; j < 32; j++) a[j] = out[j] + get_global_id(0);
        for (int j = 0; j < n; j++) a[(a[j & 31] + j) & 31] += j;
        out[get_global_id(0)] = a[n & 31] %s;
    }"""
    assert "interleaved, so that lanes lie side by side" in facts(source % ("", ""))
    mixed = facts(source % ("", "+ ((uchar *)a)[n & 127]"))
    assert "a block for each lane, since elements of different sizes" in mixed


def test_buffers_that_must_not_overlap_are_named():
    source = """kernel void k(global int *out, global const int *in, int n) {
        for (int j = 0; j < n; j++) out[get_global_id(0)] += in[j] %s;
    }"""
    said = "launches whose buffers overlap that of"
    assert said in facts(source % "") and said not in facts(source % "+ out[j]")


def test_width_and_parts_say_why():
    triad = "kernel void k(global float *a) { size_t i = get_global_id(0); a[i] *= 2.0f; }"
    assert "8 work-items per vector: a setting asks for it" in facts(triad)
    free = host_target()
    text = facts(triad, free)
    assert f"vectors of {free.vector_bits} bits hold {free.vector_bits // 32} values of 32" in text
    assert re.search(r"4 vectors of work-items at a time, of the same row: each needs \d+ of \d+ vec", text)
    longer = "kernel void k(global float *a) { size_t i = get_global_id(0); a[i] = sin(a[i]); }"
    first, late = explained(longer, free).kernels[0].variants
    assert any("1 vector at a time: to be compiled soon" in fact.text for fact in first.facts)
    assert any(re.search(r"[248] vectors.* at a time.*estimated cycles", fact.text) for fact in late.facts)
    assert "for a while" in late.title and late.tile > first.tile
    narrow = triad.replace("void k", "__attribute__((reqd_work_group_size(2, 1, 1))) void k")
    assert "1 work-item at a time: the kernel requires rows of 2 work-items" in facts(narrow, free)
    group = facts("kernel void k(global int *a) { a[get_group_id(0)] = get_global_id(0); }", free)
    assert "1 vector at a time: work-items can tell how they are divided into groups" in group


def test_what_llvm_vectorises_at_width_1():
    target = host_target("", 1)
    text = facts("kernel void k(global float *a) { size_t i = get_global_id(0); a[i] *= 2.0f; }", target)
    assert "1 work-item at a time: a setting asks for it" in text
    assert re.search(r"LLVM vectorised loops of it, so that they take \d+", text)


def test_spilled_registers_are_those_of_the_machine_code():
    names = [f"v{k}" for k in range(48)]
    source = "kernel void k(global float *a, int n) {\n  size_t i = get_global_id(0);\n"
    source += "".join(f"  float {v} = a[i + {k}];\n" for k, v in enumerate(names))
    source += "  for (int j = 0; j < n; j++) {\n"
    source += "".join(
        f"    {v} = {v} * {w} + {v};\n" for v, w in zip(names, names[1:] + names[:1], strict=True)
    )
    source += "  }\n" + "".join(f"  a[i + {k}] = {v};\n" for k, v in enumerate(names)) + "}\n"
    crowded = facts(source, OLD)
    found = re.search(r"spilled registers: (\d+) stores and (\d+) reloads, (\d+) of these in loops", crowded)
    assert found and int(found[2]) >= 16 and int(found[3]) >= 16, crowded
    assert "spilled registers: none" in facts("kernel void k(global int *a) { a[get_global_id(0)] = 1; }")


def test_calls_that_are_not_inlined():
    source = """kernel void k(global double *a, global int *b) {
        size_t i = get_global_id(0);
        a[i] = lgamma(a[i]) + lgamma(a[i + b[i]]);
    }"""
    one = variant(source, host_target("", 1))
    text = "\n".join(note.text for notes in one.lines.values() for note in notes)
    assert re.search(r"call: of \w*lgamma\w*, which is not inlined", text)


def test_cycles_are_estimated_for_loops():
    loops = variant("""kernel void k(global float *a, int n) {
    size_t i = get_global_id(0);
    float x = a[i];
    for (int j = 0; j < n; j++)
        x = x * x + 0.5f;
    a[i] = x;
}
""").loops
    (inner,) = [loop for loop in loops if not loop.over_items]
    assert (inner.first, inner.last) == (4, 5)
    if inner.cycles is not None:  # x86: LLVM may unroll, and fma waits four cycles for the one before
        assert inner.limit == "instructions that wait for one another"
        assert inner.cycles % 4 == 0 and inner.cycles >= 4
        assert inner.items == 8


PRODUCT = """kernel void k(global float *out, global const float *in, int n) {
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += in[y * n + i] * in[i * n + x];
    out[y * n + x] = sum;
}
"""


def test_alternatives_are_estimated():
    def kernel(**asked):
        context = Context(host_target("", None, ""), "", {})
        return explain_source(PRODUCT.encode(), {}, context, asked=Asked(**asked)).kernels[0]

    found = kernel().alternatives
    assert [a.width for a in found] == [1, *sorted({found[1].width, 2 * found[1].width})]
    assert [a.chosen for a in found].count(True) == 1

    def cycles(kernel):
        return [float(re.match(r"[\d.e+]+", a.text)[0]) for a in kernel.alternatives]

    few, many = (kernel(global_size=(512, 512), values={"n": n}) for n in (16, 1024))
    assert "512 \N{MULTIPLICATION SIGN} 512" in few.launch
    # 64 times as often round the loop; and what is read fits into some CPUs' caches no more.
    assert all(16 < b / a < 256 for a, b in zip(cycles(few), cycles(many), strict=True))
    alone, chosen = cycles(many)[0], cycles(many)[[a.chosen for a in many.alternatives].index(True)]
    assert chosen < 0.5 * alone


def test_groups_in_lockstep_are_an_alternative():
    source = """kernel void k(global float *out, global const float *in, local float *tile) {
    int i = get_local_id(0);
    tile[i] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = tile[i ^ 1];
}
"""
    context = Context(host_target("", None, ""), "", {})
    for size, count in ((None, 0), ([64, 1, 1], 1)):
        found = explain_source(source.encode(), {}, context, None, size).kernels[0].alternatives
        assert sum(a.in_lockstep for a in found) == count


def test_alternatives_are_in_both_reports():
    report = explained(PRODUCT, host_target("", None, ""))
    for text in (report_text(report), report_html(report)):
        assert "estimates for 1048576 work-items in groups of 64" in text
        assert re.search(r"at a time \(chosen\): [\d.e+]+ cycles each", text)
        assert "1 work-item at a time: " in text


def assembly_of(source: bytes, target: Target) -> Assembly:
    context = Context(target, "-g", {})
    program = pipeline.prepare(compile_source(source, {}, context).spirv, context)
    code = pipeline.entry(program, "k")
    made = emit.commented_assembly(code.text, target, *pipeline.llvm_ways(context, code, ""))
    return Assembly(*made, code.symbol)


@pytest.mark.parametrize("target", [WIDE, ARM], ids=["host", "aarch64"])
def test_the_slower_of_two_ways_is_left_out_of_the_estimate(target):
    source = b"kernel void k(global float *a, int n) { int i = get_global_id(0); a[i] += a[i ^ n]; }"
    (loop,) = assembly_of(source, target).body_loops()
    assert loop.is_over_items and 0 < len(loop.usual_codes) < len(loop.codes)
    assert {block.name.rstrip("0123456789") for block in loop.blocks} >= {"regular", "irregular"}


def test_steps_of_scalable_vectors():
    """SVE's vectors are as wide as the CPU has them: steps are counted for the least."""
    source = b"kernel void k(global float *a) { size_t i = get_global_id(0); a[i] *= 2.0f; }"
    for features in (SVE, SVE[:2]):
        loops = assembly_of(source, Target(ARM.triple, features, 128, 1, 1)).loops.values()
        steps = [(loop.step, loop.is_scalable) for loop in loops if loop.step]
        assert steps == [(8, "sve" in features)]


@pytest.mark.parametrize(
    ("text", "reads", "writes", "slots"),
    [
        ("vfmadd213ps\t%zmm1, %zmm2, %zmm3", {"v1", "v2", "v3"}, {"v3"}, {"mul": 1, "issue": 1}),
        ("vaddps\t%ymm1, %ymm2, %ymm3", {"v1", "v2"}, {"v3"}, {"mul": 1, "issue": 1}),
        (
            "vaddps\t(%rax,%rcx,4), %ymm2, %ymm3",
            {"v2", "rax", "rcx"},
            {"v3"},
            {"mul": 1, "load": 1, "issue": 2},
        ),
        ("vmovups\t%zmm0, 64(%rsp)", {"v0", "rsp"}, set(), {"store": 1, "issue": 1}),
        ("addq\t$16, %r11", {"r11"}, {"r11"}, {"scalar": 1, "issue": 1}),
        ("movl\t%eax, %edi", {"rax"}, {"rdi"}, {"issue": 1}),
        ("vpaddd\t%zmm1, %zmm2, %zmm3 {%k1}", {"v1", "v2", "v3", "k1"}, {"v3"}, {"vector": 1, "issue": 1}),
        ("vpxor\t%xmm8, %xmm8, %xmm8", set(), {"v8"}, {"vector": 1, "issue": 1}),
        ("cmpq\t%r10, %r11", {"r10", "r11"}, set(), {"scalar": 1, "issue": 1}),
    ],
)
def test_what_instructions_take(text, reads, writes, slots):
    code = Code(text, "", None)
    assert registers(code) == (reads, writes)
    assert slots_of(code)[0] == slots


def test_chains_and_throughput():
    add, other = Code("vaddps\t%zmm0, %zmm1, %zmm1", "", None), Code("vaddps\t%zmm0, %zmm2, %zmm2", "", None)
    assert chain([add, add]) == 8
    assert chain([add, other]) == 4
    assert throughput([add, other] * 8) == (8.0, "mul")


class Checker(HTMLParser):
    """Whether every element is closed in order, and nothing is asked for from elsewhere."""

    VOID = ("meta", "br", "link", "img", "input", "hr")

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick", "srcset"}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_is_self_contained():
    source = MEMORY.replace("float r = 0;", 'float r = 0; /* <b> & "quotes" */')
    page = report_html(explained(source))
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert not checker.open and page.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe", "b"} & set(checker.seen)
    assert "url(" not in page and "@import" not in page and "http" not in page
    assert "prefers-color-scheme: dark" in page and '<meta charset="utf-8">' in page
    text = "".join(checker.texts)
    for line in source.split("\n")[4:17]:
        assert line in text
    assert "store: " in text


def test_the_code_is_that_of_a_build_without_debug_information():
    for source in (MEMORY, BARRIERS):
        assert not any("other code" in sentence for sentence in explained(source).about)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.cl"
    path.write_text(
        "#ifdef BROKEN\n#error here\n#endif\n"
        "kernel void first(global float *a) { a[get_global_id(0)] *= FACTOR; }\n"
        "kernel void second(global int *a) { a[get_global_id(0)] += 1; }\n"
    )
    return path


def test_command(program, tmp_path, capsys):
    page = tmp_path / "page.html"
    options = ["-DFACTOR=2", "-cl-fast-relaxed-math", "-I", str(tmp_path)]
    assert main(["explain", str(program), *options, "--width", "4", "--html", str(page)]) == 0
    out, err = capsys.readouterr()
    assert "kernel first" in out and "kernel second" in out and not err
    assert "    4 | kernel void first" in out and "store: contiguous" in out
    assert "4 work-items per vector" in out
    assert f"options: -DFACTOR=2 -cl-fast-relaxed-math -I {tmp_path}" in out
    assert "kernel void first" in page.read_text()
    chosen = ["--kernel", "second", "--parts", "2x", f"--cpu={LESS}", "-DFACTOR=1"]
    assert main(["explain", str(program), *chosen]) == 0
    out = capsys.readouterr().out
    assert (
        "first, " not in out and "2 vectors of work-items at a time" in out and "vectors of 128 bits" in out
    )


def test_command_on_a_module(program, tmp_path, capsys):
    module = tmp_path / "program.spv"
    for options, known in (("-DFACTOR=2", False), ("-DFACTOR=2 -g", True)):
        arguments = ["spirv", "compile", str(program), f"--options={options}", "-o", str(module)]
        assert main(arguments) == 0
        assert main(["explain", str(module)]) == 0
        out = capsys.readouterr().out
        assert "kernel first" in out and "store: contiguous" in out
        assert ("(no line known)" not in out) == known


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["none.cl"], "No such file"),
        (["program.cl"], "FACTOR"),
        (["program.cl", "-DBROKEN"], "#error here"),
        (["program.cl", "-DFACTOR=1", "--kernel", "third"], "no kernel third; there are first, second"),
        (["program.cl", "-DFACTOR=1", "-nonsense"], "-nonsense"),
        (["program.cl", "--width", "7"], "a width of 7"),
        (["program.cl", "--parts", "y"], "parts 'y'"),
        (["program.cl", "--local-size", "16,16"], "local size of '16,16'"),
        (["program.cl", "--global-size", "16 by 16"], "global size of '16 by 16'"),
        (["program.cl", "--value", "n"], "'n' is not of the form NAME=NUMBER"),
        (["program.cl", "--cpu", "pentium"], "pentium"),
        (["bad.spv"], "SPIR-V"),
    ],
)
def test_what_is_wrong_is_said(program, tmp_path, capsys, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.spv").write_bytes(b"nonsense")
    assert main(["explain", *arguments]) == 1
    out, err = capsys.readouterr()
    assert complaint in err and not out


def test_other_commands_take_no_build_options(program, capsys):
    with pytest.raises(SystemExit):
        main(["passes", str(program), "-DFACTOR=1"])
    assert "unrecognized arguments: -DFACTOR=1" in capsys.readouterr().err


def test_unknown_kernels_are_errors():
    with pytest.raises(CompileError, match="no kernel other; there are k"):
        explained(MEMORY, kernel="other")


def test_builds_of_running_programs_leave_reports(make_service, tmp_path):
    folder = tmp_path / "reports"
    service = make_service(EXPLAIN=folder)
    source = b"kernel void scale(global float *a, float f) {\n  a[get_global_id(0)] *= f;\n}\n"
    for _ in range(2):  # not from the cache
        assert service.build_source(source, "", {})[0]
        text, page = sorted(folder.iterdir(), key=lambda path: path.suffix, reverse=True)
        assert text.name.startswith("scale-") and text.suffix == ".txt" and page.suffix == ".html"
        assert "    2 |   a[get_global_id(0)] *= f;" in text.read_text()
        assert text.read_text().startswith("a program in OpenCL C\n")
        text.unlink(), page.unlink()
    compiled = service.compile_source(source, "", {})
    assert service.build([compiled.il], "", {})[0]
    (report,) = folder.glob("*.txt")
    text = report.read_text()  # with lines, and the source, which debuggers have it from
    assert "    2 |   a[get_global_id(0)] *= f;" in text and "load: contiguous" in text
    assert service.build_source(b"kernel void k() { x; }", "", {})[0] is None
    assert len(list(folder.glob("*.txt"))) == 1


@pytest.mark.parametrize("source", [MEMORY, BARRIERS])
def test_nothing_is_different_where_it_is_noted(source):
    """The code of a build, with and without somebody who wants to know what was decided."""
    context = Context(WIDE, "-g", {})
    spirv = compile_source(source.encode(), {}, context).spirv
    program = pipeline.prepare(spirv, context)
    plain = pipeline.entry(program, "k").text
    assert pipeline.entry(program, "k").remarks is None
    program.explains = True
    noted = pipeline.entry(program, "k").text
    assert noted == plain and pipeline.entry(program, "k").remarks.notes
