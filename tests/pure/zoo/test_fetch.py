"""Source archives of packages, without a network."""

import hashlib
import io
import json
import tarfile

import pytest

from tests.zoo import fetch, table

TABLE = '[[source]]\nname = "one"\npypi-source = "some-package"\nversion = "1.2"\n'


def _archive() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        text = b"kernel void k() {}"
        member = tarfile.TarInfo("some_package-1.2/k.cl")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return data.getvalue()


def _fetch(monkeypatch, folder, name, digest):
    archive = _archive()
    digest = digest or hashlib.sha256(archive).hexdigest()
    wheel = {"filename": "some_package-1.2-py3-none-any.whl", "url": "wheel", "hashes": {"sha256": ""}}
    source = {"filename": name, "url": "source", "hashes": {"sha256": digest}}
    answers = {
        "https://pypi.org/simple/some-package/": json.dumps({"files": [wheel, source]}).encode(),
        "source": archive,
    }
    monkeypatch.setattr(fetch, "_read", lambda url, accept="": answers[url])
    (folder / "table.toml").write_text(TABLE)
    return fetch.fetch(table.read(folder / "table.toml")[0], folder / "zoo")


@pytest.mark.parametrize("name", ["some_package-1.2.tar.gz", "Some-Package-1.2.tar.gz"])
def test_a_source_archive_is_unpacked(monkeypatch, tmp_path, name):
    place = _fetch(monkeypatch, tmp_path, name, "")
    assert (place / "some_package-1.2" / "k.cl").read_text() == "kernel void k() {}"


@pytest.mark.parametrize(
    "name, digest, why",
    [
        ("some_package-1.2.tar.gz", "0" * 64, "not what the index says"),
        ("some_package-1.20.tar.gz", "", "no source archive"),
    ],
)
def test_what_is_not_the_archive_is_not_taken(monkeypatch, tmp_path, name, digest, why):
    with pytest.raises(fetch.Missing, match=why):
        _fetch(monkeypatch, tmp_path, name, digest)
    assert not (tmp_path / "zoo" / "one").exists()
