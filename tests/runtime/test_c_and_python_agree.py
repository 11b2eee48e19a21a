"""What is written in C and in Python: the door's codec, the settings, the names of errors."""

import random
import re
import struct
import subprocess

import pytest

from cl_driver import settings
from cl_driver.compiler import pipeline, variants
from cl_driver.device.limits import MAX_NAMED_BARRIERS
from cl_driver.door import answers
from cl_driver.door.codec import decode, encode
from cl_driver.jit.executable import MOST_SPECIALISABLE
from cl_driver.passes.ir.ops import BARRIER_BITS
from cl_driver.wire import WireError
from tests.conftest import ROOT, compile_c

SHIM = ROOT / "native_shim"
INCLUDES = (f"-I{SHIM / 'src'}", f"-I{ROOT / 'build' / 'gen'}")


@pytest.fixture(scope="module")
def echo(made):
    """echo(messages): what the C codec makes of each; None where it refuses."""
    program = compile_c(
        ROOT / "tests/runtime/c/agree/codec_echo.c",
        made / "codec_echo",
        *INCLUDES,
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        str(SHIM / "src/base/codec.c"),
    )

    def run(messages: list[bytes]) -> list[bytes | None]:
        data = b"".join(struct.pack("<I", len(m)) + m for m in messages)
        done = subprocess.run([program], input=data, capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        answers, at = [], 0
        for _ in messages:
            (size,) = struct.unpack_from("<I", done.stdout, at)
            at += 4
            if size == 0xFFFFFFFF:
                answers.append(None)
            else:
                answers.append(done.stdout[at : at + size])
                at += size
        return answers

    return run


def value(generator: random.Random, depth: int = 0):
    """A random value of a message."""
    kind = generator.randrange(4 if depth < 4 else 3)
    if kind == 0:
        return generator.randrange(-(2**63), 2**63)
    if kind == 1:
        return generator.randbytes(generator.randrange(20))
    if kind == 2:
        return None
    return [value(generator, depth + 1) for _ in range(generator.randrange(5))]


def test_codec_of_whole_messages(echo):
    generator = random.Random(2)
    messages = [encode([value(generator) for _ in range(generator.randrange(6))]) for _ in range(2000)]
    assert echo(messages) == messages


def test_codec_of_damaged_messages(echo):
    """C refuses what Python refuses, and reads past nothing."""
    generator = random.Random(3)
    messages = []
    for _ in range(5000):
        damaged = bytearray(encode([value(generator) for _ in range(1 + generator.randrange(4))]))
        for _ in range(1 + generator.randrange(3)):
            damaged[generator.randrange(len(damaged))] = generator.choice((0, 1, 0xFF, *b"ibln"))
        messages.append(bytes(damaged[: generator.randrange(len(damaged) + 1)]))
    for message, answer in zip(messages, echo(messages), strict=True):
        try:
            decode(message)
        except WireError:
            assert answer is None
        else:
            assert answer == message


@pytest.fixture(scope="module")
def accepts(made):
    """accepts(messages): whether C takes each for an answer of program_executable."""
    program = compile_c(
        ROOT / "tests/runtime/c/agree/answers_read.c",
        made / "answers_read",
        *INCLUDES,
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        str(ROOT / "build/gen/answers.c"),
        str(SHIM / "src/base/codec.c"),
    )

    def run(messages: list[bytes]) -> list[bool]:
        data = b"".join(struct.pack("<I", len(m)) + m for m in messages)
        done = subprocess.run([program], input=data, capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return [answer == ord("y") for answer in done.stdout]

    return run


def an_answer(generator: random.Random, type_, **given):
    """A random value of a type of answers; given: fields that are to be so."""
    match type_:
        case answers.Answer():
            fields = {n: an_answer(generator, t) for n, (t, _) in type_.fields.items() if n not in given}
            return type_(**fields, **given)
        case answers.List():
            most = 3 if type_.most is None else type_.most
            return [an_answer(generator, type_.of) for _ in range(generator.randrange(most + 1))]
        case answers.Bytes():
            return None if type_.optional and generator.randrange(2) else generator.randbytes(4)
        case answers.Integer():
            return generator.choice((0, 1, 2 ** (type_.bits - type_.signed) - 1))


def test_whole_answers_are_read(accepts):
    generator = random.Random(4)
    messages = [encode(an_answer(generator, answers.EXECUTABLES)) for _ in range(300)]
    assert all(accepts(messages))


def test_answers_of_other_shapes_are_refused(accepts):
    generator = random.Random(5)
    refused = (
        {"uses_printf": 1 << 32},
        {"width": -1},
        {"required_local_size": [1, 2, 3, 4]},
        {"max_local_size": [1, 2, 3, 4]},
        {"specialisable_arguments": list(range(9))},
        {"name": None},
        {"block_size": b"4"},
        {"arguments": [[0] * 7]},
        {"arguments": [an_answer(generator, answers.ARGUMENT, kind=256)]},
    )
    messages = []
    for fields in ({}, *refused):
        kernel = an_answer(generator, answers.KERNEL, **fields)
        executable = an_answer(generator, answers.EXECUTABLE, kernels=[kernel])
        messages.append(encode(answers.EXECUTABLES(executables=[executable], of_devices=[0])))
    assert accepts(messages) == [True, *[False] * len(refused)]


def test_damaged_answers_are_read_within_bounds(accepts):
    generator = random.Random(6)
    messages = []
    for _ in range(3000):
        damaged = bytearray(encode(an_answer(generator, answers.EXECUTABLES)))
        for _ in range(1 + generator.randrange(3)):
            damaged[generator.randrange(len(damaged))] = generator.choice((0, 1, 0xFF, *b"ibln"))
        messages.append(bytes(damaged[: generator.randrange(len(damaged) + 1)]))
    assert not all(accepts(messages))


def test_answers_have_all_their_fields():
    whole = dict.fromkeys(answers.BUILD.fields, 0)
    assert answers.BUILD(**whole) == [0, 0]
    for wrong in ({"status": 0}, whole | {"other": 0}):
        with pytest.raises(TypeError, match="^build: "):
            answers.BUILD(**wrong)


def test_settings(made):
    source = ROOT / "tests/runtime/c/agree/settings_print.c"
    program = compile_c(
        source,
        made / "settings_print",
        *INCLUDES,
        *(str(SHIM / "src/base" / name) for name in ("settings.c", "quirks.c")),
        "-pthread",
    )
    numbers = ("0", "1", "17", "3K", "2g", "1T", "-4", " 7", "9" * 18, "9" * 19, "9" * 16 + "K")
    texts = ("", *numbers, "junk", "process", "auto", "calls", "gpu", "/some/where")
    texts += ("4", "16,32", "a=16", "a=4,b=64", "a", "a=", "=4", "a=5", "a=4,", ",a=4", "a=4,=8", "a=4=8")
    for text in texts:
        environment = dict.fromkeys(settings.SETTINGS, text)
        done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True)
        expected = []
        for name in settings.SETTINGS:
            chosen = settings.text(name, environment)
            number = settings.parse_integer(chosen) if chosen else None
            expected.append(f"{chosen}={-1 if number is None else number}")
        assert done.stdout.splitlines() == expected


def test_error_names():
    from cl_driver.api.errors import name

    cases = re.findall(r'case (-?\d+):\s+return "(\w+)"', (ROOT / "build/gen/error_names.c").read_text())
    core = [(int(code), text) for code, text in cases if -100 < int(code) <= 0]
    assert len(core) > 55
    assert [(code, name(code)) for code, _ in core] == core


def test_values_of_arguments():
    """How many arguments there may be code for the values of."""
    (most,) = re.findall(r"CLD_MOST_SPECIALISABLE = (\d+)", (SHIM / "src/kernel/kernel.h").read_text())
    assert int(most) == MOST_SPECIALISABLE
    assert answers.KERNEL.fields["specialisable_arguments"][0].most == MOST_SPECIALISABLE


def test_keys_of_variants():
    """The numbers of tiers and of launch shapes, and that each kind of code has a key."""
    header = (SHIM / "src/kernel/variant.h").read_text()
    assert re.findall(r"CLD_TIER_(\w+),", header) == [tier.upper() for tier in variants.TIERS]
    assert re.findall(r"CLD_SHAPE_(\w+),", header) == [shape.upper() for shape in variants.SHAPES]
    choice = (SHIM / "src/kernel/variant_choice.c").read_text()
    rows = re.findall(r"CLD_TIER_(\w+), CLD_SHAPE_(\w+), (true|false),", choice)
    keys = [
        [variants.TIERS.index(tier.lower()), variants.SHAPES.index(shape.lower()), apart == "true", False]
        for tier, shape, apart in rows
    ]
    of_items = re.search(r"CLD_TIER_(\w+), \.shape = CLD_SHAPE_ITEMS, \.assumes_apart = true\}", choice)
    assert of_items is not None
    keys.append([variants.TIERS.index(of_items[1].lower()), variants.SHAPES.index("items"), True, False])
    kinds = {variants.kind_of(key) for key in keys}
    assert kinds == set(variants.KINDS) - {pipeline.SOON, variants.PLAIN}
    key = re.search(r"cld_variant_key plain = \{\.tier = CLD_TIER_(\w+), \.shape = CLD_SHAPE_(\w+)\}", choice)
    assert key is not None
    tier, shape = variants.TIERS.index(key[1].lower()), variants.SHAPES.index(key[2].lower())
    assert variants.kind_of([tier, shape, False, False]) == variants.PLAIN
    assert {variants.kind_of([tier, 5, 1, 1]) for tier in (0, 1)} == {pipeline.SOON, variants.ANY}


def test_named_barriers():
    text = (SHIM / "src/abi/kernel_abi.h").read_text()
    found = re.search(r"CLD_NAMED_BARRIERS = (\d+), CLD_NAMED_BARRIER_SHIFT = (\d+)", text)
    assert found is not None
    assert tuple(map(int, found.groups())) == (MAX_NAMED_BARRIERS, BARRIER_BITS)
    assert MAX_NAMED_BARRIERS <= 1 << BARRIER_BITS
