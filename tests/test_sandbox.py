"""The worker process: what it is given, what it may cost, and that it never outlives its parent.

The extractors here do to their process what hostile files do to native libraries. They are installed as
anybody's would be, by entry points, so that the real worker loads them by name.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from concord.core.errors import Damaged, NotIndexable, TooLarge
from concord.extract.reader import SandboxedReader
from concord.extract.sandbox import Sandbox, WorkerLimits

SOURCE = str(Path(__file__).parent.parent / "src")

EXTRACTORS = """
import itertools, os, signal, sys
from concord.core import errors
from concord.types import Block, Extracted, Section

class Echo:
    def extract(self, data, name):
        print("a library that prints")
        os.write(1, b"and one that writes to the descriptor")
        return Extracted(data.decode(), "pdf", title=name, tags=("a", "b"), details={"n": [1, None, "ä"]},
                         page_starts=(0, 3), file_lines=(1, 7), language="python", body_start=len(data) // 2,
                         links=(("a", "b"),))

class Locked:
    def extract(self, data, name):
        raise errors.Encrypted("is locked", hint="find the key")

class Broken:
    def extract(self, data, name):
        raise KeyError("a bug, not a fault of the file's")

class Hog:
    def extract(self, data, name):
        return Extracted(str(len(bytearray(3 * 1024**3))), "text")

class Crash:
    def extract(self, data, name):
        os.abort()

def tell(pipe):
    if pipe:
        with open(pipe, "w") as file:
            file.write(str(os.getpid()))

class Spin:
    def extract(self, data, name):
        tell(data)
        sum(itertools.repeat(0))  # for ever, in C, and without letting go of the interpreter

class Hang:
    def extract(self, data, name):
        tell(data)
        while True:
            signal.pause()

class Killed:
    def extract(self, data, name):
        os.kill(os.getpid(), signal.SIGKILL)

class Interrupt:
    def extract(self, data, name):
        os.kill(os.getppid(), signal.SIGINT)
        while True:
            signal.pause()

class Nonsense:
    def extract(self, data, name):
        return Extracted(**{"text": "x", "type": "text", **eval(data)})

class Files:
    def extract(self, data, name):
        links = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd")]
        return Extracted("\\n".join(os.readlink(link) for link in links if os.path.lexists(link)), "text")

class Half:
    def extract(self, data, name):
        return Extracted("half \\ud800 a pair", "text")

class Imports:
    def extract(self, data, name):
        import colorsys
        return Extracted(" ".join([colorsys.__file__, *sys.path]), "text")
"""
NAMES = re.findall(r"^class (\w+)", EXTRACTORS, re.MULTILINE)


@pytest.fixture(autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path_factory.mktemp("site")
    (site / "hostile.py").write_text(EXTRACTORS, encoding="utf-8")
    package = site / "hostile-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n", encoding="utf-8"
    )
    rows = "".join(f"{name.lower()} = hostile:{name}\n" for name in NAMES)
    (package / "entry_points.txt").write_text(f"[concord.extractors]\n{rows}", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), SOURCE]))


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox(WorkerLimits(cpu_s=20, wall_s=60))
    yield sandbox
    sandbox.close()


def serves(sandbox: Sandbox) -> bool:
    return sandbox.extract("echo", b"fine", "a.x").text == "fine"


def has_ended(pid: int) -> bool:
    """Wait until a process, of whoever, has ended."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        return bool(poll.poll(10_000))
    finally:
        os.close(watched)


def test_an_answer_comes_back_whole_whatever_a_library_prints(sandbox: Sandbox):
    extracted = sandbox.extract("echo", "fünf".encode(), "a.x")
    assert (extracted.text, extracted.type, extracted.title) == ("fünf", "pdf", "a.x")
    assert (extracted.tags, extracted.details) == (("a", "b"), {"n": [1, None, "ä"]})
    assert (extracted.page_starts, extracted.file_lines, extracted.language) == ((0, 3), (1, 7), "python")
    assert extracted.body_start == 2


def test_one_worker_serves_many_files_and_large_ones(sandbox: Sandbox):
    assert serves(sandbox)
    pid = sandbox.worker_pid
    large = "ä" * 2_000_000
    assert sandbox.extract("echo", large.encode(), "a.x").text == large
    with pytest.raises(NotIndexable, match="no text"):
        sandbox.extract("echo", b"", "a.x")
    assert sandbox.worker_pid == pid


def test_a_bug_in_an_extractor_is_a_sentence_about_the_file(sandbox: Sandbox):
    with pytest.raises(Damaged, match="KeyError"):
        sandbox.extract("broken", b"x", "a.x")
    assert serves(sandbox)


def test_a_file_that_takes_all_memory_dies_alone(sandbox: Sandbox):
    with pytest.raises(TooLarge, match="1024 MB of memory"):
        sandbox.extract("hog", b"x", "a.x")
    assert serves(sandbox)


def test_a_file_that_crashes_its_reader_dies_alone(sandbox: Sandbox):
    with pytest.raises(Damaged, match="SIGABRT"):
        sandbox.extract("crash", b"x", "a.x")
    assert serves(sandbox)


def test_a_file_that_spins_is_stopped_by_processor_time():
    sandbox = Sandbox(WorkerLimits(cpu_s=1))
    try:
        with pytest.raises(TooLarge, match="1 s of processor time"):
            sandbox.extract("spin", b"", "a.x")
        assert serves(sandbox)
    finally:
        sandbox.close()


def test_a_file_that_hangs_is_stopped_by_the_clock():
    sandbox = Sandbox(WorkerLimits(wall_s=1.5))
    try:
        with pytest.raises(TooLarge, match=r"longer than 1\.5 s"):
            sandbox.extract("hang", b"", "a.x")
    finally:
        sandbox.close()


def test_a_worker_killed_between_files_is_replaced_unnoticed(sandbox: Sandbox):
    assert serves(sandbox)
    pid = sandbox.worker_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert serves(sandbox)
    assert sandbox.worker_pid != pid


def test_ctrl_c_ends_the_worker_and_the_next_file_gets_its_own_answer(sandbox: Sandbox):
    assert serves(sandbox)
    pid = sandbox.worker_pid
    assert pid is not None
    with pytest.raises(KeyboardInterrupt):
        sandbox.extract("interrupt", b"x", "a.x")
    assert has_ended(pid)
    assert serves(sandbox)


@pytest.mark.parametrize("busy_with", ["spin"])
def test_a_parent_killed_in_the_middle_takes_its_worker_with_it(tmp_path: Path, busy_with: str):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = (
        "from concord.extract.sandbox import Sandbox\n"
        f"Sandbox().extract({busy_with!r}, {str(pipe).encode()!r}, 'a.x')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        worker = int(pipe.read_text(encoding="utf-8"))  # it is at work now
        parent.kill()
        parent.wait()
    assert has_ended(worker)


def test_a_worker_inherits_no_open_file(sandbox: Sandbox, tmp_path: Path):
    database = os.open(tmp_path / "store.db", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(database, True)
    try:
        assert "store.db" not in sandbox.extract("files", b"x", "a.x").text
    finally:
        os.close(database)


def test_nothing_is_imported_from_the_working_folder(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "colorsys.py").write_text("raise SystemExit", encoding="utf-8")
    (tmp_path / "json.py").write_text("raise SystemExit", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path) not in sandbox.extract("imports", b"x", "a.x").text


@pytest.mark.parametrize(
    "answer",
    [
        {"text": 5},
        {"tags": [1]},
        {"title": 1.5},
    ],
)
def test_an_answer_of_the_wrong_shape_is_not_believed(sandbox: Sandbox, answer: dict[str, object]):
    with pytest.raises(Damaged, match="nonsense|cannot be read"):
        sandbox.extract("nonsense", repr(answer).encode(), "a.x")


def test_an_answer_over_the_limit_is_not_taken_in():
    sandbox = Sandbox(WorkerLimits(reply_bytes=1000))
    try:
        with pytest.raises(TooLarge):
            sandbox.extract("echo", b"x" * 2000, "a.x")
        assert serves(sandbox)
    finally:
        sandbox.close()


def test_a_file_is_read_while_its_caller_goes_on_and_two_share_no_worker(sandbox: Sandbox):
    first, second = sandbox.begin("echo", b"one", "a.x"), sandbox.begin("echo", b"two", "b.x")
    assert [second.result().text, first.result().text] == ["two", "one"]


def test_a_system_without_limits_and_lifelines_reads_files_and_stops_them_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lacking = 'import sys\nsys.modules["fcntl"] = sys.modules["resource"] = None\n'
    (tmp_path / "sitecustomize.py").write_text(lacking, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    monkeypatch.setattr("concord.extract.sandbox.IS_UNIX", False)
    sandbox = Sandbox(WorkerLimits(cpu_s=1, wall_s=3))
    try:
        assert serves(sandbox)
        with pytest.raises(TooLarge, match="longer than 3 s"):
            sandbox.extract("spin", b"", "a.x")
    finally:
        sandbox.close()


def test_a_package_can_add_a_format_by_the_extension_it_reads(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(os.environ["PYTHONPATH"].partition(os.pathsep)[0])
    reader = SandboxedReader(sandbox)
    assert reader.read(b"by a plug-in\0", "a.echo").text == "by a plug-in\0"
    with pytest.raises(NotIndexable, match="binary"):
        reader.read(b"nobody's\0", "a.other")
