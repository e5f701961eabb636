"""`kb` as a process: pipes, terminals, locales, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import concord
from support.engines import plain_environment

pytestmark = pytest.mark.slow

KB = (sys.executable, "-c", "import sys; from concord.cli.main import main; sys.exit(main())")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {
        key: value for key, value in plain_environment().items() if not key.startswith(("LC_", "PYTHONUTF8"))
    }
    kept.pop("NO_COLOR", None)
    return {
        **kept,
        "KB_HOME": str(tmp_path / "home"),
        "KB_EMBED_PROVIDER": "hashing",
        "PYTHONPATH": str(Path(concord.__file__).parent.parent),
        "TERM": "xterm-256color",
    }


@pytest.fixture
def folder(tmp_path: Path, environment: dict[str, str]) -> Path:
    """A folder that is indexed, with text that a terminal must not obey and a locale may not know."""
    path = tmp_path / "d"
    path.mkdir()
    (path / "a.md").write_text("# Zebra ☂\n\nA zebra \u202ecrosses\u202c the straße ☂.\n", encoding="utf-8")
    done = run("add", str(path), environment=environment)
    assert done.returncode == 0, done.stderr
    return path


def run(*args: str, environment: dict[str, str], **changes: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*KB, *args],
        env={**environment, **changes},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def at_a_terminal(*args: str, environment: dict[str, str], **changes: str) -> tuple[int, str]:
    """Run with a terminal for stdout; return the exit status and what appeared there."""
    outside, inside = os.openpty()
    with subprocess.Popen(
        [*KB, *args],
        env={**environment, **changes},
        stdin=subprocess.DEVNULL,
        stdout=inside,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(inside)
        shown = b"".join(_until_closed(outside))
    os.close(outside)
    return process.returncode, shown.decode()


def _until_closed(terminal: int) -> Iterator[bytes]:
    try:
        while data := os.read(terminal, 65536):
            yield data
    except OSError:  # Linux says so when the last writer has gone
        return


def test_colours_appear_at_a_terminal_only(folder: Path, environment: dict[str, str]):
    status, shown = at_a_terminal("search", "zebras", environment=environment)
    assert status == 0
    assert "\x1b[1m" in shown
    assert "\x1b[33m\x1b[1mzebra\x1b[0m" in shown  # in another form than in the query, as it is found
    assert b"\x1b" not in run("search", "zebra", environment=environment).stdout


@pytest.mark.parametrize("wish", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_refused(folder: Path, environment: dict[str, str], wish: dict[str, str]):
    _, shown = at_a_terminal("search", "zebra", environment=environment, **wish)
    assert "zebra" in shown
    assert "\x1b" not in shown


def test_a_pipe_gets_the_text_as_it_is(folder: Path, environment: dict[str, str]):
    assert "\u202ecrosses\u202c" in run("get", "d/a.md", environment=environment).stdout.decode()


def test_json_is_indented_for_eyes_and_one_line_for_programs(folder: Path, environment: dict[str, str]):
    assert run("stats", "--json", environment=environment).stdout.count(b"\n") == 1
    assert at_a_terminal("stats", "--json", environment=environment)[1].count("\n") > 10


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=str,
)
def test_no_locale_is_a_reason_to_fail(folder: Path, environment: dict[str, str], locale: dict[str, str]):
    for args in (("search", "☂ straße"), ("get", "d/a.md")):
        done = run(*args, environment=environment, **locale)
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr
    found = run("search", "zebra", "--json", environment=environment, **locale).stdout
    encoding = locale.get("PYTHONIOENCODING", "utf-8")
    assert "straße ☂" in json.loads(found.decode(encoding))["results"][0]["snippet"]


@pytest.mark.parametrize("args", [("--help",), ("search", "zebra")])
def test_a_reader_that_leaves_early_is_no_failure(
    folder: Path, environment: dict[str, str], args: tuple[str, ...]
):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*KB, *args], env=environment, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == 0
    assert b"rror" not in done.stderr


def test_a_note_is_read_from_stdin(environment: dict[str, str]):
    for args in (("note", "-"), ("note",)):
        done = subprocess.run(
            [*KB, *args], env=environment, input="piped ☂ in".encode(), capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        read = run("get", done.stdout.decode().strip(), environment=environment)
        assert "piped ☂ in" in read.stdout.decode()


def test_ctrl_c_is_one_line_and_status_130(environment: dict[str, str]):
    # The signal comes while stdin is read. Whoever runs the tests may ignore it, and a child inherits that.
    code = """
import io, signal, sys
from concord.cli.main import main

class Interrupted(io.BytesIO):
    def read(self, *_):
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.stdin = io.TextIOWrapper(Interrupted(), encoding="utf-8")
sys.exit(main(["note", "-"]))
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 130
    assert done.stderr.decode() == "interrupted; what was stored stays, `kb sync` goes on from there\n"


def test_shells_can_complete_commands_and_options(environment: dict[str, str]):
    ask = {"_KB_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    done = run(environment=environment, COMP_WORDS="kb se", **ask)
    assert b"plain,search" in done.stdout.split()
    done = run(environment=environment, COMP_WORDS="kb search --mo", **{**ask, "COMP_CWORD": "2"})
    assert done.stdout.split() == [b"plain,--mode"]


REGISTERED = """
import atexit, sys
from concord.cli.main import main
atexit.register(print, "done at the end")
sys.exit(main())
"""


def test_what_was_left_for_the_end_is_done_however_the_process_ends(environment: dict[str, str]):
    done = subprocess.run(
        [sys.executable, "-c", REGISTERED, "search", "zebra"],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"done at the end\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("args", [("--help",), ("search", "zebra")])
def test_an_output_that_is_full_is_told_in_a_line(
    folder: Path, environment: dict[str, str], args: tuple[str, ...]
):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*KB, *args], env=environment, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"no space left on device" in done.stderr
    assert args == ("--help",) or b"error: the output: no space" in done.stderr
    assert not {b"Traceback", b"Errno"} & {*done.stderr.replace(b"[", b" ").split()}


def test_paths_whose_indexing_is_interrupted_are_all_known_to_the_next_sync(
    tmp_path: Path, environment: dict[str, str]
):
    paths = [tmp_path / name for name in ("first", "second")]
    for path in paths:
        path.mkdir()
        (path / "a.md").write_text(f"# The {path.name}\n\nA zebra.\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as silent_model:
        url = f"http://127.0.0.1:{silent_model.getsockname()[1]}"
        model = {"KB_EMBED_PROVIDER": "ollama", "KB_EMBED_MODEL": "any", "KB_EMBED_URL": url}
        command = [*KB, "add", *map(str, paths)]
        with subprocess.Popen(command, env={**environment, **model}) as process, silent_model.accept()[0]:
            process.send_signal(signal.SIGINT)
            process.wait()
    assert process.returncode == 130
    synced = json.loads(run("sync", "--json", environment=environment).stdout)
    assert [source["source"] for source in synced["sources"]] == ["first", "second"]
    assert synced["sources"][1]["added"] == 1
