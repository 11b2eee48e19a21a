"""Where long blocks are cut, and that the rest of the function knows of it."""

import re

import pytest

from cl_driver.jit.printed_ir import long_blocks

HEAD = "define void @kernel(ptr %p, i32 %n) #0 {\n"


def accesses(count, first=0):
    """So many loads and additions."""
    return "".join(
        f"  %x{i} = load i32, ptr %p, align 4\n  %y{i} = add i32 %x{i}, {i}\n"
        for i in range(first, first + count)
    )


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(long_blocks, "LONG", 8000)
    monkeypatch.setattr(long_blocks, "PIECE", 1000)


def pieces(text):
    """The instructions of each block of the module as it is cut."""
    made = long_blocks.cut(text)
    assert made is not None
    blocks = re.split(r"\n(?=[\w.\"]+.*:)", made)
    return [[line for line in block.split("\n") if re.match(r"  [^ \]]", line)] for block in blocks]


def test_what_is_short_stays():
    assert long_blocks.cut(f"{HEAD}entry:\n{accesses(60)}  ret void\n}}\n") is None
    assert long_blocks.cut("declare void @f()\n") is None


def test_what_has_no_accesses_may_be_longer():
    adds = "".join(f"  %x{i} = add i32 %n, {i}\n" for i in range(500))
    assert long_blocks.cut(f"{HEAD}entry:\n{adds}  ret void\n}}\n") is None
    adds = "".join(f"  %x{i} = add i32 %n, {i}\n" for i in range(520))
    assert len(pieces(f"{HEAD}entry:\n{adds}  ret void\n}}\n")) == 4


def test_pieces_are_bounded_and_joined_by_what_no_pass_merges():
    text = f"{HEAD}entry:\n{accesses(500)}  ret void\n}}\n"
    found = pieces(text)[1:]
    assert sum(map(len, found)) == 1000 + 1 + len(found) - 1
    for number, piece in enumerate(found[:-1], 1):
        assert piece[-1] == f'  callbr void asm "", ""() to label %cut.{number} []'
        assert sum("load" in line for line in piece) * len(piece) <= 1000 * 1.2
    assert "ret void" in found[-1][-1] and len(found[-1]) >= 16


def test_phis_name_the_last_piece():
    text = (
        f"{HEAD}entry:\n  br label %loop\n\nloop:{' ' * 30}; preds = %loop, %entry\n"
        "  %i = phi i32 [ 0, %entry ], [ %y99, %loop ]\n  %j = phi i32 [ 1, %loop ], [ 0, %entry ]\n"
        f"{accesses(100)}"
        "  switch i32 %y99, label %loop [\n    i32 1, label %end\n    i32 2, label %end\n  ]\n\n"
        "end:\n  %e = phi i32 [ %y1, %loop ], [ %y2, %loop ]\n  ret void\n}\n"
    )
    made = long_blocks.cut(text)
    last = max(re.findall(r"^(cut\.\d+):", made, re.M), key=lambda name: int(name[4:]))
    assert f"phi i32 [ 0, %entry ], [ %y99, %{last} ]" in made
    assert f"phi i32 [ 1, %{last} ], [ 0, %entry ]" in made
    assert f"phi i32 [ %y1, %{last} ], [ %y2, %{last} ]" in made
    assert "\n    i32 2, label %end\n  ]\n" in made
    assert made.index("%j = phi") < made.index("callbr")


def test_allocations_of_the_first_block_stay_there():
    text = f"{HEAD}entry:\n{accesses(100)}  %a = alloca i32, align 4\n{accesses(100, 100)}  ret void\n}}\n"
    made = long_blocks.cut(text)
    assert made.index("alloca") < made.index("callbr")


def test_names():
    """Of labels that need quotes; names that a cut would have are taken; a block that has a number only."""
    body = f'{accesses(100)}  br label %end\n\nend:\n  %e = phi i32 [ 0, %"a b" ]\n  ret void\n}}\n'
    made = long_blocks.cut(f'{HEAD}"a b":\n{body}')
    assert re.search(r"phi i32 \[ 0, %cut\.\d+ \]", made)
    made = long_blocks.cut(f"{HEAD}cut.1:\n{accesses(100)}  br label %cut.2\n\ncut.2:\n  ret void\n}}\n")
    assert "to label %cut_.1 []" in made and "%cut_.2 []" in made
    assert long_blocks.cut(f"{HEAD}{accesses(100)}  br label %1\n\n1:\n  ret void\n}}\n") is None


def test_functions_have_labels_of_their_own():
    end = "end:\n  %e = phi i32 [ 0, %entry ]\n  ret void\n}\n"
    one = f"{HEAD}entry:\n{accesses(100)}  br label %end\n\n{end}"
    short = HEAD.replace("kernel", "short") + one[len(HEAD) :].replace(accesses(100), accesses(3))
    made = long_blocks.cut(one + "\n" + short + "\n" + one.replace("kernel", "other"))
    labels = re.findall(r"^cut\.\d+(?=:)", made, re.M)
    assert len(labels) == len(set(labels)) > 2
    assert made.count("phi i32 [ 0, %entry ]") == 1


@pytest.mark.parametrize("line, counts", [
    ("store i32 0, ptr %p, align 4", True),
    ("%v = atomicrmw add ptr %p, i32 1 monotonic, align 4", True),
    ("%v = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, <4 x i1> %m, <4 x i32> %z)", True),
    ("call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 8, i1 false)", True),
    ("%v = tail call i32 @function(ptr %p)", True),
    ("%v = call float @llvm.fma.f32(float %a, float %b, float %c)", False),
    ("%v = tail call i32 @llvm.smax.i32(i32 %a, i32 %b)", False),
    ("%v = getelementptr i8, ptr %p, i64 4", False),
])  # fmt: skip
def test_what_is_an_access(line, counts):
    text = f"{HEAD}entry:\n" + f"  {line}\n" * 200 + "  ret void\n}\n"
    assert (long_blocks.cut(text) is not None) == counts
