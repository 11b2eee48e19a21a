"""The C code loader: objects that LLVM makes run; what it cannot load is refused with a reason."""

import ctypes
import mmap
import struct
import subprocess

import pytest

from cl_driver.device.target import Target, host_target
from cl_driver.jit import emit
from cl_driver.jit.errors import CompileError
from tests.conftest import PATIENCE
from tests.runtime import code_loader
from tests.runtime.code_loader import Code, LoadError

AARCH64 = Target("aarch64-unknown-linux-gnu", ("neon", "fp-armv8"), 128)
X86_64 = Target("x86_64-unknown-linux-gnu", ("sse2",), 128)
SIGNATURE = "(ptr %launch, ptr %args, ptr %thread, i64 %first, i64 %last) nounwind"

EVERYTHING = f"""
@table = internal constant [4 x i32] [i32 50, i32 60, i32 70, i32 80]
@text = internal constant [6 x i8] c"hello\\00"
@pointers = internal constant [2 x ptr] [ptr @text, ptr @table]
@counter = internal global i64 7
@zeros = internal global [100 x i64] zeroinitializer
declare i32 @cld_printf(ptr, ptr, ptr, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @kernel{SIGNATURE} {{
  %out = load ptr, ptr %args
  %entry = getelementptr i32, ptr @table, i64 %first
  %value = load i32, ptr %entry
  store i32 %value, ptr %out
  %copy = getelementptr i8, ptr %out, i64 4
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %out, i64 %last, i1 false)
  call i32 @cld_printf(ptr null, ptr @text, ptr %out, i32 77)
  %slot = getelementptr ptr, ptr @pointers, i64 0
  %pointer = load volatile ptr, ptr %slot
  %character = load i8, ptr %pointer
  %second = getelementptr i8, ptr %out, i64 16
  store i8 %character, ptr %second
  %old = atomicrmw add ptr @counter, i64 1 seq_cst
  %third = getelementptr i8, ptr %out, i64 24
  store i64 %old, ptr %third
  %cell = getelementptr [100 x i64], ptr @zeros, i64 0, i64 %first
  %was = atomicrmw add ptr %cell, i64 5 seq_cst
  %fourth = getelementptr i8, ptr %out, i64 32
  store i64 %was, ptr %fourth
  ret void
}}
"""

# A function with a line for each of its instructions, as codegen/llvm/debug.py asks for them.
LINES = """
define void @lined(ptr %p) !dbg !10 {
  %a = load volatile i32, ptr %p, !dbg !20
  store volatile i32 %a, ptr %p, !dbg !21
  ret void, !dbg !22
}
!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!3, !4}
!1 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, producer: "p", isOptimized: true, emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "program.cl", directory: "/sources")
!3 = !{i32 7, !"Dwarf Version", i32 4}
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = !DISubroutineType(types: !{null})
!10 = distinct !DISubprogram(name: "lined", scope: !2, file: !2, line: 5, type: !5, spFlags: DISPFlagDefinition, unit: !1)
!20 = !DILocation(line: 6, scope: !10)
!21 = !DILocation(line: 300, scope: !10)
!22 = !DILocation(line: 7, scope: !10)
"""  # noqa: E501


def compile_kernel(body: str, target: Target | None = None, before: str = "", passes: str = "O2") -> bytes:
    text = f"{before}\ndefine void @kernel{SIGNATURE} {{\n{body}\n  ret void\n}}\n"
    return emit.compile_ir(text, target or host_target(), passes)


def test_runs_with_constants_variables_calls_and_pointers():
    code = Code(emit.compile_ir(EVERYTHING, host_target()))
    out = (ctypes.c_uint64 * 8)()
    args = ctypes.c_void_p(ctypes.addressof(out))
    for i in range(2):
        code.kernel()(None, ctypes.addressof(args), None, 2, 4)
        assert out[0] == 70 | 70 << 32
        assert ctypes.c_uint32.in_dll(code_loader.library(), "printf_bytes").value == 77
        assert chr(out[2]) == "h"
        assert out[3] == 7 + i
        assert out[4] == 5 * i
    code.unload()


def _maps() -> list[tuple[int, int, str]]:
    """First address, end and permissions of this process's mappings."""
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    return [(*(int(end, 16) for end in line[0].split("-")), line[1]) for line in lines]


def _maps_tell_pages_apart() -> bool:
    """Whether /proc/self/maps has each page's permissions. qemu's shows what it has mapped itself: pages
    of code and those that are only to be read are the same there."""
    size = mmap.PAGESIZE
    with mmap.mmap(-1, 3 * size) as pages:
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        assert protect(address, size, mmap.PROT_READ | mmap.PROT_EXEC) == 0
        assert protect(address + size, size, mmap.PROT_READ) == 0
        return any((start, end) == (address, address + size) for start, end, _ in _maps())


def test_pages_are_writable_or_executable_but_never_both():
    if not _maps_tell_pages_apart():
        pytest.skip("/proc/self/maps does not tell pages apart (an emulator's)")
    code = Code(emit.compile_ir(EVERYTHING, host_target()))
    address = code.address("kernel")
    ranges = _maps()
    index = next(i for i, (start, end, _) in enumerate(ranges) if start <= address < end)
    assert ranges[index][2] == "r-xp"
    assert ranges[index + 1][0] == ranges[index][1] and ranges[index + 1][2] == "r--p"
    assert ranges[index + 2][0] == ranges[index + 1][1] and ranges[index + 2][2] == "rw-p"
    code.unload()
    assert not any(start == ranges[index][0] for start, _, _ in _maps())


def test_two_copies_have_their_own_variables():
    data = emit.compile_ir(EVERYTHING, host_target())
    first, second = Code(data), Code(data)
    out = (ctypes.c_uint64 * 8)()
    args = ctypes.c_void_p(ctypes.addressof(out))
    first.kernel()(None, ctypes.addressof(args), None, 0, 4)
    second.kernel()(None, ctypes.addressof(args), None, 0, 4)
    assert out[3] == 7
    first.unload()
    second.unload()


def test_a_jump_table():
    cases = "\n".join(f"    i64 {i}, label %c{i}" for i in range(12))
    blocks = "\n".join(f"c{i}:\n  store i64 {i * i + 3}, ptr %out\n  br label %end" for i in range(12))
    body = f"""
  %out = load ptr, ptr %args
  switch i64 %first, label %end [
{cases}
  ]
{blocks}
end:"""
    code = Code(compile_kernel(body, passes="O0"))
    out = ctypes.c_uint64()
    args = ctypes.c_void_p(ctypes.addressof(out))
    for i in range(12):
        code.kernel()(None, ctypes.addressof(args), None, i, 0)
        assert out.value == i * i + 3
    code.unload()


def test_an_absent_symbol_is_none():
    code = Code(compile_kernel(""))
    assert code.address("kernel") and code.address("kernels") is None
    code.unload()


def test_a_call_of_an_unknown_function_is_refused_twice():
    with pytest.raises(CompileError, match="getenv"):
        compile_kernel("  call i32 @getenv(ptr null)", before="declare i32 @getenv(ptr)")
    data = compile_kernel("  call i32 @cld_printf(ptr null, ptr null, ptr null, i32 0)",
                          before="declare i32 @cld_printf(ptr, ptr, ptr, i32)")  # fmt: skip
    with pytest.raises(LoadError, match="'cld_prinXf' is not a function that kernels may call"):
        Code(data.replace(b"cld_printf", b"cld_prinXf"))


def test_library_calls_that_llvm_invents_are_named():
    with pytest.raises(CompileError, match="__udivti3"):
        compile_kernel("""  %a = load i128, ptr %args
  %b = load i128, ptr %launch
  %c = udiv i128 %a, %b
  store i128 %c, ptr %args""")


def compile_c_object(tmp_path, source: str) -> bytes:
    """What gcc makes of C, where LLVM of the wheel would make no such object."""
    path = tmp_path / "object.o"
    command = ["gcc", "-xc", "-c", "-O1", "-fPIC", "-ftls-model=local-exec", "-o", str(path), "-"]
    subprocess.run(command, input=source.encode(), check=True, timeout=60)
    return path.read_bytes()


def test_thread_local_storage_is_refused(tmp_path):
    data = compile_c_object(tmp_path, "__thread int v = 3; int *kernel(void) { return &v; }")
    with pytest.raises(LoadError, match="thread-local"):
        Code(data)


def test_common_symbols_are_refused(tmp_path):
    data = compile_c_object(tmp_path, "int v __attribute__((common)); int kernel(void) { return v; }")
    with pytest.raises(LoadError, match="'v' is a common symbol"):
        Code(data)


def test_global_variables_are_reached_through_words_of_their_own(tmp_path):
    """gcc reaches symbols of default visibility through the global offset table."""
    data = compile_c_object(
        tmp_path,
        """
int v = 41;
extern void *memset(void *, int, unsigned long);
void *(*pointer)(void *, int, unsigned long) = memset;
void kernel(void *launch, int **args) { **args = ++v; pointer(*args + 1, 1, 4); }
""",
    )
    code = Code(data)
    out = (ctypes.c_int * 2)()
    args = ctypes.c_void_p(ctypes.addressof(out))
    code.kernel()(None, ctypes.addressof(args), None, 0, 0)
    assert list(out) == [42, 0x01010101]
    code.unload()


@pytest.mark.parametrize("damage, reason", [
    (lambda d: b"", "not an ELF file"),
    (lambda d: d[:63], "not an ELF file"),
    (lambda d: b"\x7fELG" + d[4:], "not an ELF file"),
    (lambda d: d[:4] + b"\x01" + d[5:], "64-bit"),
    (lambda d: d[:16] + struct.pack("<H", 3) + d[18:], "not a relocatable object"),
    (lambda d: d[:18] + struct.pack("<H", 243) + d[20:], "machine 243"),
    (lambda d: d[:100], "section table outside the file"),
    (lambda d: d[:60] + struct.pack("<H", 0) + d[62:], "unusable section table"),
    (lambda d: d[:62] + struct.pack("<H", 999) + d[64:], "section name table"),
])  # fmt: skip
def test_malformed_headers_are_refused(damage, reason):
    with pytest.raises(LoadError, match=reason):
        Code(damage(compile_kernel("")))


def _sections(data: bytes):
    """(offset of the header, its fields) of each section."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    return [(table + 64 * i, struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i)) for i in range(count)]


def _patch(data: bytes, type_: int, field: int, value: int) -> bytes:
    """With one field of the first section of a type replaced."""
    offsets = (0, 4, 8, 16, 24, 32, 40, 44, 48, 56)
    at = next(at for at, fields in _sections(data) if fields[1] == type_) + offsets[field]
    patch = struct.pack("<I" if field in (0, 1, 6, 7) else "<Q", value)
    return data[:at] + patch + data[at + len(patch) :]


SYMTAB, RELA, PROGBITS = 2, 4, 1


@pytest.mark.parametrize("type_, field, value, reason", [
    (SYMTAB, 5, 1 << 60, "outside the file"),
    (SYMTAB, 4, (1 << 64) - 8, "outside the file"),
    (SYMTAB, 6, 1000, "no string table"),
    (SYMTAB, 9, 16, "entries of 16"),
    (RELA, 7, 1000, "relocates section 1000"),
    (RELA, 6, 0, "malformed"),
    (RELA, 1, 9, "without addends"),
    (PROGBITS, 8, 3, "alignment"),
    (PROGBITS, 8, 1 << 40, "alignment"),
    (PROGBITS, 2, 7, "writable and executable"),
    (PROGBITS, 2, 0x806, "compressed"),
    (PROGBITS, 2, 0x406, "thread-local"),
    (PROGBITS, 1, 14, "not loaded"),
])  # fmt: skip
def test_malformed_sections_are_refused(type_, field, value, reason):
    data = emit.compile_ir(EVERYTHING, host_target())
    Code(data).unload()
    with pytest.raises(LoadError, match=reason):
        Code(_patch(data, type_, field, value))


@pytest.mark.parametrize("entry, value, reason", [
    (0, 1 << 40, "outside section"),
    (8, 0xFFFFFFFF << 32 | 2, "names symbol"),
    (8, 2, "names symbol 0"),
    (8, 1 << 32 | 250, "type 250"),
])  # fmt: skip
def test_malformed_relocations_are_refused(entry, value, reason):
    data = emit.compile_ir(EVERYTHING, X86_64)
    place = next(fields[4] for _, fields in _sections(data) if fields[1] == RELA) + entry
    with pytest.raises(LoadError, match=reason):
        code_loader.link(data[:place] + struct.pack("<Q", value) + data[place + 8 :], 0x10000)


def test_damaged_objects_never_crash_the_loader(tmp_path):
    fuzz = code_loader.compile_c(
        tmp_path / "fuzz", str(code_loader.HERE / "code_fuzz.c"), "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all", "-fno-omit-frame-pointer",
    )  # fmt: skip
    objects = []
    for name, target in (("x86_64", X86_64), ("aarch64", AARCH64)):
        objects.append(str(tmp_path / f"{name}.o"))
        with open(objects[-1], "wb") as file:
            file.write(emit.compile_ir(EVERYTHING + LINES, target))
    command = [str(fuzz), "6000", "12345", *objects]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300 * PATIENCE)
    assert done.returncode == 0, done.stderr
    refused, accepted, with_lines = (int(word) for word in done.stdout.split() if word.isdigit())
    assert refused > 1000 and accepted > 100 and with_lines == len(objects)
