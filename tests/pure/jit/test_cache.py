"""The compile cache: what goes in comes out, and nothing that goes wrong with files is more than a miss."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cl_driver.jit.cache import Cache, default_folder, digest

BOUND = 1 << 20
PRIVATE = f"v2-{os.geteuid()}"
KEY = digest(b"a key")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def files(folder) -> list[Path]:
    """But the one that tells their size."""
    return sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name != ".size")


def test_what_goes_in_comes_out_in_another_process(folder):
    assert Cache(str(folder), BOUND).store(KEY, b"some code")
    command = f"from cl_driver.jit.cache import Cache; print(Cache({str(folder)!r}, 1).load({KEY!r}))"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "b'some code'\n"


def test_unknown_keys_are_misses(folder):
    cache = Cache(str(folder), BOUND)
    assert cache.load(KEY) is None
    cache.store(KEY, b"x")
    assert cache.load(digest(b"another key")) is None


def test_the_digest_separates_its_parts():
    assert digest(b"ab", b"c") != digest(b"a", b"bc") != digest(b"abc")


@pytest.mark.parametrize("mode", [0o755, 0o1777, 0o700])
def test_others_may_not_read_it(folder, mode):
    """What is ours, that is: the folder that was named stays as its owner made it."""
    folder.mkdir()
    folder.chmod(mode)
    Cache(str(folder), BOUND).store(KEY, b"x")
    assert folder.stat().st_mode & 0o7777 == mode
    [entry] = files(folder)
    assert [path.stat().st_mode & 0o777 for path in (entry, *entry.parents[:2])] == [0o600, 0o700, 0o700]


def test_folders_that_are_not_there_are_made_for_the_user_alone(folder):
    assert Cache(str(folder / "a" / "b"), BOUND).store(KEY, b"x")
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "a", folder / "a" / "b")] == [0o700] * 3


@pytest.mark.parametrize("size", [0, 1, 8, 23, 24, 30])
def test_a_truncated_entry_is_a_miss_and_goes(folder, size):
    cache = Cache(str(folder), BOUND)
    cache.store(KEY, b"some code")
    os.truncate(files(folder)[0], size)
    assert cache.load(KEY) is None
    assert files(folder) == []
    assert cache.store(KEY, b"new") and cache.load(KEY) == b"new"


def test_every_single_damaged_byte_is_found(folder):
    cache = Cache(str(folder), BOUND)
    cache.store(KEY, b"some code")
    whole = files(folder)[0].read_bytes()
    for i in range(len(whole)):
        path = folder / PRIVATE / KEY[:2] / KEY
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0x20]) + whole[i + 1 :])
        assert cache.load(KEY) is None
    path.write_bytes(whole)
    assert cache.load(KEY) == b"some code"


def test_an_entry_under_another_name_is_a_miss(folder):
    cache = Cache(str(folder), BOUND)
    cache.store(KEY, b"some code")
    other = digest(b"another key")
    (folder / PRIVATE / other[:2]).mkdir(exist_ok=True)
    os.rename(files(folder)[0], folder / PRIVATE / other[:2] / other)
    assert cache.load(other) is None


def test_a_folder_in_the_place_of_an_entry_is_a_miss(folder):
    cache = Cache(str(folder), BOUND)
    (folder / PRIVATE / KEY[:2] / KEY).mkdir(parents=True)
    assert cache.load(KEY) is None
    assert not cache.store(KEY, b"x")
    assert cache.load(KEY) == b"x"  # from memory


def put_fifo(path):
    os.mkfifo(path)


def put_link(path):
    elsewhere = path.parents[2] / "elsewhere"
    os.rename(path.parents[2] / "kept", elsewhere)
    path.symlink_to(elsewhere)


def put_huge(path):
    with open(path, "wb") as file:
        os.truncate(file.fileno(), 1 << 40)  # a read of it would not end


@pytest.mark.parametrize("put", [put_fifo, put_link, put_huge])
def test_what_is_no_entry_of_ours_is_a_miss_at_once(folder, put):
    """In a process of its own, with little memory: a FIFO would hang it, and nothing huge may be read."""
    Cache(str(folder), BOUND).store(KEY, b"some code")
    path = folder / PRIVATE / KEY[:2] / KEY
    path.rename(folder / "kept")
    put(path)
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28,) * 2)\n"
        "from cl_driver.jit.cache import Cache\n"
        f"cache = Cache({str(folder)!r}, {BOUND}); print(cache.load({KEY!r}))\n"
        f"cache.store({KEY!r}, b'new'); print(cache.load({KEY!r}))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert (done.stdout, done.stderr) == ("None\nb'new'\n", "")
    assert path.is_file() and not path.is_symlink()


def test_a_fifo_in_the_place_of_the_size_does_not_hang(folder):
    (folder / PRIVATE).mkdir(mode=0o700, parents=True)
    os.mkfifo(folder / PRIVATE / ".size")
    script = (
        f"from cl_driver.jit.cache import Cache; print(Cache({str(folder)!r}, 9999).store({KEY!r}, b'x'))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert (done.stdout, done.stderr) == ("True\n", "")


WRITER = """
import os, signal, sys
from cl_driver.jit import cache
step = int(sys.argv[2])
calls = 0
def counted(function):
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == step:
            function(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call
class Half:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *why): self.file.close()
    def write(self, data):
        self.file.write(data[: len(data) // 2]); self.file.flush()
        global calls
        calls += 1
        if calls == step:
            os.kill(os.getpid(), signal.SIGKILL)
        self.file.write(data[len(data) // 2 :])
cache.os.mkdir, cache.os.rename = counted(os.mkdir), counted(os.rename)
real_open = open
cache.open = lambda file, mode: Half(real_open(file, mode)) if mode == "wb" else real_open(file, mode)
cache.Cache(sys.argv[1], 1 << 20).store(sys.argv[3], b"some code" * 100)
print("stored", calls)
"""


def test_kill_9_at_every_step_of_a_write(folder):
    found = []
    for step in range(1, 20):
        command = [sys.executable, "-c", WRITER, f"{folder}{step}", str(step), KEY]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
        cache = Cache(f"{folder}{step}", BOUND)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        found.append(cache.load(KEY))
    # The last step but one is after the rename: then the entry is whole, before it there is none.
    assert len(found) >= 4 and found[-1] == b"some code" * 100 and not any(found[:-1])
    assert cache.load(KEY) == b"some code" * 100


def test_what_killed_writers_left_goes(folder):
    cache = Cache(str(folder), BOUND)
    cache.store(KEY, b"x")
    left, fresh = folder / PRIVATE / ".tmp-1-abc", folder / PRIVATE / ".tmp-2-abc"
    left.write_bytes(b"half"), fresh.write_bytes(b"being written")
    os.utime(left, (time.time() - 7200,) * 2)
    cache.sweep()
    assert not left.exists() and fresh.exists() and cache.load(KEY) == b"x"


def as_nobody(function) -> int:
    """Exit status of a function that runs without root's rights."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            function()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_folder_that_cannot_be_written_keeps_entries_in_memory(folder):
    folder.mkdir(mode=0o555)
    for parent in folder.parents[:-2]:
        parent.chmod(0o755)

    def use():
        cache = Cache(str(folder), BOUND)
        assert not cache.store(KEY, b"x")
        assert cache.load(KEY) == b"x"
        assert "not writable" in cache.status()

    assert as_nobody(use) == 0


def test_a_read_only_folder_with_entries_is_still_read(folder):
    Cache(str(folder), BOUND).store(KEY, b"x")
    os.chmod(folder / PRIVATE / KEY[:2], 0o500)
    os.chmod(folder / PRIVATE, 0o500)
    cache = Cache(str(folder), BOUND)
    assert cache.load(KEY) == b"x"


def test_a_full_disk(folder):
    """RLIMIT_FSIZE makes write() fail as a full disk does, but for the errno."""

    def use():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        cache = Cache(str(folder), BOUND)
        assert not cache.store(KEY, b"x" * 1000)
        assert cache.load(KEY) == b"x" * 1000
        assert files(folder) == []

    pid = os.fork()
    if not pid:
        try:
            use()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert Cache(str(folder), BOUND).load(KEY) is None
    assert Cache(str(folder), BOUND).store(KEY, b"x" * 1000)


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="no /dev/full")
def test_no_space_left_on_device(folder, monkeypatch):
    real_open = open

    def full(file, mode):
        if mode != "wb":
            return real_open(file, mode)
        os.close(file)
        return real_open("/dev/full", mode, buffering=0)

    monkeypatch.setattr("cl_driver.jit.cache.open", full, raising=False)
    cache = Cache(str(folder), BOUND)
    assert not cache.store(KEY, b"x" * 1000)
    assert cache.load(KEY) == b"x" * 1000 and files(folder) == []
    monkeypatch.undo()
    assert Cache(str(folder), BOUND).load(KEY) is None


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")


def complaints(monkeypatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr("cl_driver.jit.cache.log", lambda level, text: lines.append(text))
    return lines


@needs_root
@pytest.mark.parametrize("level", [0, 1, 2])
def test_another_users_entries_are_not_run(folder, monkeypatch, level):
    """Whatever of it belongs to somebody else: the entry, the folder of two digits, ours."""
    logged = complaints(monkeypatch)
    cache = Cache(str(folder), BOUND)
    cache.store(KEY, b"x")
    path = [files(folder)[0], *files(folder)[0].parents][level]
    os.chown(path, 12345, 12345)
    assert cache.load(KEY) is None and cache.load(KEY) is None
    assert not level or (len(logged) == 1 and "belongs to user 12345" in logged[0])
    os.chown(path, 0, 0)
    assert cache.load(KEY) == b"x"


@pytest.mark.parametrize("level", [0, 1])
def test_folders_that_others_may_enter_are_not_used(folder, monkeypatch, level):
    """They could have been anybody's when their entries were made. Nor are they changed."""
    logged = complaints(monkeypatch)
    Cache(str(folder), BOUND).store(KEY, b"x")
    path = files(folder)[0].parents[level]
    path.chmod(0o770)
    cache = Cache(str(folder), BOUND)
    assert cache.load(KEY) is None and not cache.store(KEY, b"y")
    assert cache.load(KEY) == b"y" and path.stat().st_mode & 0o777 == 0o770
    assert len(logged) == 1 and f"{path.name} may be entered by other users" in logged[0]
    if level:
        assert f"{path.name} may be entered by other users" in cache.status()


def test_a_link_in_the_place_of_our_folder_is_not_followed(folder, tmp_path):
    Cache(str(tmp_path / "other"), BOUND).store(KEY, b"x")
    folder.mkdir()
    (folder / PRIVATE).symlink_to(tmp_path / "other" / PRIVATE)
    cache = Cache(str(folder), BOUND)
    assert cache.load(KEY) is None and not cache.store(digest(b"2"), b"y")
    assert "in memory only" in cache.status()


@needs_root
def test_root_leaves_nothing_in_another_users_folder(folder, monkeypatch):
    logged = complaints(monkeypatch)
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    for cache in (Cache(str(folder), BOUND), Cache(str(folder / "deeper"), BOUND)):
        assert not cache.store(KEY, b"y") and cache.load(KEY) == b"y"
        assert f"{folder} belongs to user 12345" in cache.status()
    assert list(folder.iterdir()) == [] and len(logged) == 2


@needs_root
def test_users_of_one_folder_have_each_their_own(folder):
    """CL_DRIVER_CACHE_DIR=/tmp/x for everybody, say."""
    folder.mkdir()
    folder.chmod(0o1777)
    for parent in folder.parents[:-2]:
        parent.chmod(0o755)
    assert Cache(str(folder), BOUND).store(KEY, b"root's")

    def use():
        cache = Cache(str(folder), BOUND)
        assert cache.load(KEY) is None
        assert cache.store(KEY, b"nobody's") and Cache(str(folder), BOUND).load(KEY) == b"nobody's"

    assert as_nobody(use) == 0
    assert Cache(str(folder), BOUND).load(KEY) == b"root's"
    assert sorted(path.name for path in folder.iterdir()) == ["v2-0", "v2-65534"]


def test_what_an_earlier_version_left_counts_and_goes(folder):
    old = folder / "v1" / "ab" / "abcd"
    old.parent.mkdir(parents=True)
    for path in old.parents[:2]:
        path.chmod(0o700)
    old.write_bytes(b"x" * 30_000)
    os.utime(old, (time.time() - 10_000,) * 2)
    cache = Cache(str(folder), 20_000)
    assert cache.store(KEY, b"y") and cache.load(KEY) == b"y"
    assert not old.exists() and files(folder) == [folder / PRIVATE / KEY[:2] / KEY]


def test_the_folder_stays_below_its_bound_and_the_oldest_go_first(folder):
    cache = Cache(str(folder), 20_000)
    now = time.time()
    keys = [digest(b"%d" % i) for i in range(40)]
    for i, key in enumerate(keys):
        cache.store(key, b"x" * 1000)
        path = folder / PRIVATE / key[:2] / key
        if path.exists():
            os.utime(path, (now - 10_000 + i,) * 2)
    assert sum(path.stat().st_size for path in files(folder)) <= 25_000
    assert cache.sweep() <= 20_000
    there = [cache.load(key) is not None for key in keys]
    assert there == sorted(there) and 10 < sum(there) < 20


def test_sources_count_for_the_bound(folder):
    cache = Cache(str(folder), 20_000)
    for i in range(40):
        assert cache.keep_source(b"%1000d" % i)
    assert sum(path.stat().st_size for path in files(folder)) <= 25_000


def test_all_entries_are_looked_at_seldom(folder, monkeypatch):
    """By all processes together: once to know their size, and again when they have outgrown the bound."""
    swept = []
    sweep = Cache._sweep
    monkeypatch.setattr(Cache, "_sweep", lambda self, root: swept.append(sweep(self, root)))
    for i in range(140):  # 50 entries fit, 45 are left
        Cache(str(folder), 50 << 11).store(digest(b"%d" % i), b"x" * (2048 - 24))
    assert swept == [2048, *[45 * 2048] * ((140 - 45) // 6)]
    (folder / PRIVATE / ".size").unlink()
    for _ in range(3):
        Cache(str(folder), 1 << 20).store(KEY, b"x")
    assert len(swept) == 17
    Cache(str(folder), 1 << 20).clear()
    assert list((folder / PRIVATE).rglob(".size")) == []


def test_reading_an_entry_keeps_it(folder):
    cache = Cache(str(folder), 20_000)
    old = time.time() - 10_000
    for i in range(15):
        cache.store(digest(b"%d" % i), b"x" * 1000)
    for path in files(folder):
        os.utime(path, (old, old))
    assert cache.load(digest(b"3"))
    for i in range(15, 30):
        cache.store(digest(b"%d" % i), b"x" * 1000)
    cache.sweep()
    assert cache.load(digest(b"3"))


def test_an_entry_larger_than_the_bound_stays_in_memory(folder):
    cache = Cache(str(folder), 500)
    assert not cache.store(KEY, b"x" * 1000)
    assert cache.load(KEY) == b"x" * 1000 and files(folder) == []


def test_a_bound_of_zero_keeps_nothing_on_disk(folder):
    cache = Cache(str(folder), 0)
    assert not cache.store(KEY, b"x") and cache.load(KEY) == b"x"
    assert not folder.exists()


def test_memory_is_bounded_too():
    cache = Cache("", BOUND)
    for i in range(100):
        cache.store(digest(b"%d" % i), bytes(1 << 20))
    assert sum(map(len, cache._memory.values())) <= 64 << 20
    assert cache.load(digest(b"99")) is not None and cache.load(digest(b"0")) is None


def test_many_processes_at_once(folder):
    script = """
import sys
from cl_driver.jit.cache import Cache, digest
cache = Cache(sys.argv[1], 40_000)
for i in range(300):
    key = digest(b"%d" % (i % 50))
    found = cache.load(key)
    assert found is None or found == key.encode() * 20, found
    cache.store(key, key.encode() * 20)
"""
    command = [sys.executable, "-c", script, str(folder)]
    children = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for child in children:
        _, errors = child.communicate(timeout=120)
        assert child.returncode == 0, errors
    assert Cache(str(folder), 40_000).sweep() <= 40_000


@pytest.mark.parametrize("setting, environment, expected", [
    ("", {"HOME": "/home/u"}, "/home/u/.cache/cl_driver"),
    ("", {"HOME": "/home/u", "XDG_CACHE_HOME": "/xdg"}, "/xdg/cl_driver"),
    ("", {"HOME": "/home/u", "XDG_CACHE_HOME": "relative"}, "/home/u/.cache/cl_driver"),
    ("/set", {"HOME": "/home/u", "XDG_CACHE_HOME": "/xdg"}, "/set"),
    ("", {}, ""),
    ("", {"HOME": "relative"}, ""),
])  # fmt: skip
def test_where_it_is(setting, environment, expected):
    assert default_folder(setting, environment) == expected


def test_status_is_a_sentence(folder):
    cache = Cache(str(folder), BOUND)
    cache.store(KEY, b"x")
    assert "1 entries" in cache.status()
    assert "memory only" in Cache("", BOUND).status()
