"""Many clients of one engine and of one HTTP server: no call fails, and memory does not grow."""

from __future__ import annotations

import http.client
import json
import random
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import pytest

from concord.core.arguments import Arguments, Get, Note, Nothing, RemoveNote, Search, Sync
from concord.core.config import Settings, load_settings
from concord.core.errors import KBError
from concord.engine import client
from concord.operations import OPERATIONS
from concord.types import silent
from support.engines import engines, running, wait_until
from support.kb_process import environment, start
from support.recorders import write
from torture.campaigns import IS_WHOLE

pytestmark = pytest.mark.slow

CLIENTS = 8
SECONDS = 600 if IS_WHOLE else 1.5
CALLS = 1000 if IS_WHOLE else 60  # at once
PATIENCE_S = 120.0  # of a caller; who waits longer has been lost
GROWTH = 1.10
TEXTS = 50  # of a client, again and again: the vectors of what is deleted are kept for texts that come back
SETTLED = 0.3  # of the time: by then all is in memory that stays there
TOPICS = ("heron", "boiler", "ledger", "compass", "violin", "glacier", "harbour", "orchard")
DOCUMENTS = 60


class Call(NamedTuple):
    """What came of one call."""

    fault: str  # empty: it was answered
    took_s: float
    was_refused: bool = False  # with a hint when to try again


Ask = Callable[[str, dict[str, Any]], Any]  # for an operation, with its arguments; returns its JSON
Connect = Callable[[], AbstractContextManager[Ask]]


class Refused(Exception):
    """The server has too much to do, and says when to come back; or a client of the engine does it itself."""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder in memory whose name is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        yield Path(made)


@contextmanager
def engine(home: Path) -> Iterator[tuple[int, Connect]]:
    """Run an engine; give its process, and how a client comes to ask it."""
    with pytest.MonkeyPatch.context() as patched, engines(home, idle_s=600):
        for name, value in environment(home / "home").items():
            if name.startswith("KB_") and name != "KB_ENGINE_START":
                patched.setenv(name, value)
        settings = load_settings()
        assert client.start(settings, wait_s=30)
        (process,) = running(home)
        try:
            yield process, lambda: nullcontext(partial(_asked_of_engine, settings))
        finally:
            client.ask(settings, "stop")


KINDS: dict[str, type[Arguments]] = {
    "search": Search,
    "get": Get,
    "stats": Nothing,
    "note": Note,
    "remove_note": RemoveNote,
    "sync": Sync,
}


def _asked_of_engine(settings: Settings, name: str, given: dict[str, Any]) -> Any:
    try:
        return client.call(settings, OPERATIONS[name], KINDS[name](**given), silent, must_exist=True)
    except client.NoEngine as fault:
        raise Refused from fault


@contextmanager
def server(home: Path) -> Iterator[tuple[int, Connect]]:
    """Run an HTTP server; give its process, and how a client comes to ask it."""
    process = start("serve", "--port", "0", "--json", env=environment(home / "home"))
    try:
        assert process.stdout
        place = urlsplit(json.loads(process.stdout.readline())["url"]).netloc
        yield process.pid, partial(_connected, place)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=30)
        process.kill()


@contextmanager
def _connected(place: str) -> Iterator[Ask]:
    """Keep one connection."""
    connection = http.client.HTTPConnection(place, timeout=PATIENCE_S)

    def ask(name: str, given: dict[str, Any]) -> Any:
        method, path, body = _request(name, given)
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            connection.request(method, f"/api/v1{path}", body, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        wire = json.loads(text)
        if answer.status in (429, 503):
            assert wire["hint"], wire
            assert answer.headers["Retry-After"], wire
            raise Refused
        assert answer.status < 300, (answer.status, wire)
        return wire

    try:
        yield ask
    finally:
        connection.close()


def _request(name: str, given: dict[str, Any]) -> tuple[str, str, str | None]:
    if name in ("search", "stats"):
        return "GET", f"/{name}?{urlencode(given)}", None
    if name == "get":
        return "GET", f"/passages?{urlencode(given)}", None
    if name == "remove_note":
        return "DELETE", f"/notes/{quote(given['document_id'])}", None
    return "POST", {"note": "/notes", "sync": "/sync?wait=60"}[name], json.dumps(given)


PLACES = {"engine": engine, "http": server}


def _fill(home: Path) -> Path:
    """Index some documents, and return their folder."""
    draw = random.Random(5)
    for n in range(DOCUMENTS):
        topic = TOPICS[n % len(TOPICS)]
        said = " ".join(f"The {topic} keeps {draw.randrange(1000)} reports." for _ in range(60))
        write(home / "docs" / f"{topic}{n}.md", f"# The {topic} {n}\n\n{said}\n")
    added = start("add", str(home / "docs"), env=environment(home / "home"))
    _, said = added.communicate(timeout=PATIENCE_S)
    assert added.returncode == 0, said
    return home / "docs"


@pytest.mark.promise("torture.load")
@pytest.mark.campaign(whole=2, part=2)
def test_clients_that_read_and_write_at_once_meet_no_error_and_no_memory_is_lost(
    seed: int,
    home: Path,
    counted: Callable[[int, int], None],
    record_property: Callable[[str, object], None],
):
    docs, name = _fill(home), list(PLACES)[seed]
    with PLACES[name](home) as (process, connected):
        until = time.monotonic() + SECONDS
        with ThreadPoolExecutor(CLIENTS) as pool:
            work = [pool.submit(_working, connected, docs, number, until) for number in range(CLIENTS)]
            memory = _watched(process, until)
            calls = [call for each in work for call in each.result()]
        with connected() as ask:
            stats = ask("stats", {})
    faults = [call.fault for call in calls if call.fault]
    settled = memory[int(SETTLED * len(memory)) :]
    early, late = (median(part) for part in (settled[: len(settled) // 4], settled[-(len(settled) // 4) :]))
    p99_ms = quantiles((call.took_s for call in calls), n=100)[98] * 1000
    grown = f"{early:.0f} → {late:.0f} MB"
    record_property(
        "said", f"{name}: {len(calls):,} calls in {SECONDS} s, p99 {p99_ms:.0f} ms, memory {grown}"
    )
    counted(len(calls), len(calls) - len(faults))
    assert not faults, faults[:5]
    assert stats["documents"] == DOCUMENTS  # what was kept for a moment is gone
    assert late <= GROWTH * early or not IS_WHOLE, memory


def _working(connected: Connect, docs: Path, number: int, until: float) -> list[Call]:
    """Read and write again and again, as one client."""
    draw = random.Random(number)
    with connected() as ask:
        return list(_calls(ask, docs, number, draw, until))


def _calls(ask: Ask, docs: Path, number: int, draw: random.Random, until: float) -> Iterator[Call]:
    while time.monotonic() < until:
        kind = draw.choices(("search", "get", "stats", "note", "edit"), (70, 10, 5, 12, 3))[0]
        topic = draw.choice(TOPICS)
        if kind == "search":
            mode = draw.choice(("auto", "auto", "fts5", "semantic"))
            yield _call(_found, ask, f"what does the {topic} keep?", mode)
        elif kind == "get":
            yield _call(ask, "get", {"citation": f"docs/{topic}{TOPICS.index(topic)}.md"})
        elif kind == "stats":
            yield _call(ask, "stats", {})
        elif kind == "note":
            yield _call(_kept_for_a_moment, ask, f"tapir{number}x{draw.randrange(TEXTS)}")
        else:
            write(docs / f"{TOPICS[number]}{number}.md", f"# The {topic}\n\nEdit {draw.randrange(TEXTS)}.\n")
            yield _call(ask, "sync", {})


FAULTS = (KBError, OSError, http.client.HTTPException, AssertionError, ValueError)


def _call(work: Callable[..., object], *args: object) -> Call:
    """Do what a client wants done, and tell what came of it."""
    began = time.monotonic()
    try:
        work(*args)
    except Refused:
        return Call("", time.monotonic() - began, was_refused=True)
    except FAULTS as fault:
        said = re.sub(r"\s+", " ", f"{type(fault).__name__}: {fault}")[:300]
        return Call(said, time.monotonic() - began)
    return Call("", time.monotonic() - began)


def _found(ask: Ask, text: str, mode: str) -> None:
    wire = ask("search", {"query": text, "mode": mode})
    assert wire["results"], wire["degraded"]


def _kept_for_a_moment(ask: Ask, word: str) -> None:
    note = ask("note", {"content": f"The {word} was seen at noon."})
    wire = ask("search", {"query": word, "mode": "fts5"})
    assert note["document_id"] in [result["document_id"] for result in wire["results"]], wire["note"]
    ask("remove_note", {"document_id": note["document_id"]})


def _watched(process: int, until: float) -> list[float]:
    """Return the memory of a process and of those below it, in MB, looked at again and again."""
    sizes: list[float] = []
    clock = threading.Event()
    while time.monotonic() < until:
        clock.wait(SECONDS / 200)
        sizes.append(sum(map(_memory, _family(process))))
    return sizes


def _family(process: int) -> list[int]:
    below: list[int] = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # that thread has just ended
            below += map(int, listed.read_text(encoding="ascii").split())
    return [process, *(member for child in below for member in _family(child))]


def _memory(process: int) -> float:
    with suppress(OSError, AttributeError):  # it has just ended
        status = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
        return int(re.search(r"^Pss:\s+(\d+)", status, re.MULTILINE)[1]) / 1024  # type: ignore[index]
    return 0.0


@pytest.mark.promise("torture.load")
@pytest.mark.campaign(whole=2, part=2)
def test_of_many_calls_at_once_each_is_answered_or_told_when_to_come_back(
    seed: int,
    home: Path,
    counted: Callable[[int, int], None],
    record_property: Callable[[str, object], None],
):
    _fill(home)
    name = list(PLACES)[seed]
    with PLACES[name](home) as (process, connected):
        with connected() as ask:
            ask("search", {"query": "heron"})  # what follows finds everything in memory
        barrier = threading.Barrier(CALLS)
        with ThreadPoolExecutor(CALLS) as pool:
            work = [pool.submit(_at_once, barrier, connected, number) for number in range(CALLS)]
            calls = [each.result() for each in work]
        assert wait_until(lambda: _is_well(connected))
    lost = [call.fault for call in calls if call.fault]
    refused = sum(call.was_refused for call in calls)
    longest = max(call.took_s for call in calls)
    record_property(
        "said", f"{name}: {CALLS:,} calls at once, {refused:,} told to come back, longest {longest:.1f} s"
    )
    counted(len(calls), len(calls) - len(lost))
    assert not lost, lost[:5]


def _at_once(barrier: threading.Barrier, connected: Connect, number: int) -> Call:
    with connected() as ask:
        barrier.wait(PATIENCE_S)
        return _call(_found, ask, f"what does the {TOPICS[number % len(TOPICS)]} keep?", "auto")


def _is_well(connected: Connect) -> bool:
    with connected() as ask:
        call = _call(ask, "stats", {})
    return not (call.fault or call.was_refused)
