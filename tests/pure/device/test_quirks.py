"""The table of programs that want settings of their own."""

import pytest

from cl_driver import quirks, settings

ROW = '[[quirk]]\nname = "a"\nprograms = ["b*"]\nwhy = "c"\nsettings = { CL_DRIVER_DEVICE_NAME = "d {}" }\n'


def read(tmp_path, text):
    file = tmp_path / "quirks.toml"
    file.write_text(text)
    return quirks.read(str(file))


def test_rows(tmp_path):
    assert read(tmp_path, ROW) == [quirks.Quirk("a", "c", ("b*",), (), {"CL_DRIVER_DEVICE_NAME": "d {}"})]


def test_a_row_says_nothing_but_names(tmp_path):
    with pytest.raises(ValueError, match="CL_DRIVER_CLANG"):
        read(tmp_path, ROW.replace("CL_DRIVER_DEVICE_NAME", "CL_DRIVER_CLANG"))
    with pytest.raises(ValueError, match="quirk a sets nothing"):
        read(tmp_path, ROW.replace('CL_DRIVER_DEVICE_NAME = "d {}"', ""))
    with pytest.raises(ValueError, match="two stars"):
        read(tmp_path, ROW.replace("b*", "*b*"))


def test_the_table():
    rows = quirks.read()
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert not settings.malformed(row.settings)


def test_the_hosts_row_is_a_default(monkeypatch):
    name, value = "CL_DRIVER_DEVICE_NAME", "{} = mine"
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(settings, "_quirk", {})
    settings.use_quirk(f"{name}={value}\nCL_DRIVER_DEVICE_TYPE=gpu\n")
    assert settings.text(name) == value
    assert settings.text(name, {}) == settings.SETTINGS[name].default, "of another process"
    assert settings.text("CL_DRIVER_CLANG") == settings.text("CL_DRIVER_CLANG", {})
    monkeypatch.setenv(name, "mine")
    assert settings.text(name) == "mine"
    monkeypatch.delenv(name)
    settings.use_quirk("")
    assert settings.text(name) == settings.SETTINGS[name].default
