"""Debian's clinfo, under both loaders."""

import subprocess


def failures(text):
    """The lines in which clinfo says that a query failed."""
    return [line for line in text.splitlines() if " : error " in line or "<" in line]


def clinfo(loader, variables, *arguments):
    env = variables | {"LD_LIBRARY_PATH": str(loader.parent)}
    return subprocess.run(
        ["clinfo", *arguments], env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_human_output(loader, variables):
    done = clinfo(loader, variables)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "Number of platforms                               1\n" in done.stdout
    assert "Number of devices                                 1\n" in done.stdout
    assert failures(done.stdout) == []


def test_raw_output(loader, variables):
    """Every property that clinfo knows, those that it does not expect included."""
    done = clinfo(loader, variables, "--raw")
    assert done.returncode == 0
    assert done.stderr == ""
    assert failures(done.stdout) == []
    assert len(done.stdout.splitlines()) > 100


def test_list(loader, variables):
    done = clinfo(loader, variables, "-l")
    assert done.stdout.startswith("Platform #0: cl_driver\n `-- Device #0: ")
