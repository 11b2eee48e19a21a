"""Traces as packets and as pages."""

import base64
import re
import shutil
import subprocess
import zlib

import pytest

from cl_driver.cli import trace as command
from cl_driver.trace import writer
from cl_driver.trace.packets import whole_size
from cl_driver.trace.page import page
from tests.loader.tracing import reader

STAGES = [("clang", "", 1000, 5000), ("job", "kernel a", 900, 9000), ("passes", "a", 5000, 9500)]


@pytest.fixture
def packets(monkeypatch) -> bytes:
    monkeypatch.setattr(writer, "_known", set())
    return writer.packets(4711, STAGES) + writer.packets(4711, [("later", "", 10_000, 11_000)])


def test_stages_nest(packets, tmp_path):
    (tmp_path / "trace").write_bytes(packets)
    trace = reader.read(tmp_path / "trace")
    assert trace.processes == {4711: "cl_driver compiler"}
    assert [(s.name, s.begin, s.end, s.parent and s.parent.name) for s in trace.slices] == [
        ("job", 900, 9000, None),
        ("clang", 1000, 5000, "job"),
        ("passes", 5000, 9000, "job"),  # it cannot end later than what contains it
        ("later", 10_000, 11_000, None),
    ]
    assert trace.slices[0].arguments == {"of": "kernel a"}


def test_what_is_whole(packets):
    ends = {whole_size(packets[:size]) for size in range(len(packets) + 1)}
    assert len(ends) == 1 + len(reader.message(packets)[1])
    assert 0 in ends and len(packets) in ends
    for end in ends - {0}:
        reader.message(packets[:end])


@pytest.mark.parametrize("data", [b"{}", b"[", b"\x00", b"\x0b\x01a"])
def test_what_is_no_trace(data, tmp_path, capsys):
    with pytest.raises(ValueError, match="not a trace"):
        whole_size(data)
    (tmp_path / "file").write_bytes(data)
    options = command_line([str(tmp_path / "file")])
    assert command.run(options) == 1
    assert "file: not a trace" in capsys.readouterr().err


def command_line(words):
    import argparse

    parser = argparse.ArgumentParser()
    command.arguments(parser)
    return parser.parse_args(words)


def data_of(text: str) -> bytes:
    (packed,) = re.findall(r'<script id="data" type="text/plain">([^<]*)</script>', text)
    return zlib.decompress(base64.b64decode(packed), 16 + zlib.MAX_WBITS)


def test_a_page_needs_nothing_else(packets):
    text = page("a <b> & c", packets)
    assert data_of(text) == packets
    assert "<title>a &lt;b&gt; &amp; c</title>" in text and "TITLE" not in text
    assert not re.search(r"https?://|<link|\bsrc=|@import|url\(", text)


def test_pages_of_several_files_and_of_one_that_is_cut(packets, tmp_path, capsys):
    for name, data in (("a", packets), ("b", packets[:-3])):
        (tmp_path / name).write_bytes(data)
    target = tmp_path / "page.html"
    assert command.run(command_line([str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(target)])) == 0
    assert data_of(target.read_text()) == packets + packets[: whole_size(packets[:-3])]
    assert "b: the last packet is not whole" in capsys.readouterr().err


READS = """
const fs = require("fs"), zlib = require("zlib"), text = fs.readFileSync(process.argv[2], "utf8");
const code = text.split("<script>")[1].split("</script>")[0].split("/* ---- what is shown")[0];
const packed = text.split('type="text/plain">')[1].split("</script>")[0];
const data = zlib.gunzipSync(Buffer.from(packed, "base64"));
globalThis.document = { getElementById: () => ({}) };
new Function("data", code + `
let seqList; raw = new Uint8Array(data); seqList = readPackets();
for (const t of tracks.values()) for (let i = 0; i < t.start.length; i++)
  console.log(t.name, names[t.name_.data[i]], t.start.data[i], t.end.data[i],
    JSON.stringify(argumentsOf(t, i)));
`)(data);
"""


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_the_script_of_a_page_reads_packets(packets, tmp_path):
    (tmp_path / "read.js").write_text(READS)
    (tmp_path / "page.html").write_text(page("t", packets))
    done = subprocess.run(
        ["node", str(tmp_path / "read.js"), str(tmp_path / "page.html")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        'stages of builds job 900 9000 [["of","kernel a"]]',
        "stages of builds clang 1000 5000 []",
        'stages of builds passes 5000 9000 [["of","a"]]',
        "stages of builds later 10000 11000 []",
    ]
