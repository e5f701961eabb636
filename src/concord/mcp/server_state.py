"""What the tools of one server share: knowledge bases, folders to index from, what runs, how fast it is.

An agent chooses what `kb_add_source` reads, so whoever started the server draws the line. The folder in which
the server was started is allowed to its own organisation, because that is where its client works. What
`mcp.roots` lists besides is allowed to everybody or, as `ORG=PATH`, to one organisation. The root of the file
system never is by default: several desktop clients start their servers there. A server that others reach over
the network has `mcp.roots` alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

# Imported early: greeting a client takes a tenth longer, but a search that follows at once, before the model
# is loaded, waits for no import.
import concord.search.pipeline  # noqa: F401
from concord.core.config import Settings
from concord.core.errors import BadValue, DeadlinePassed, KBError, NotAllowed, NotFound
from concord.core.values import without_org
from concord.index.sources import absolute_path
from concord.knowledge import KnowledgeBase
from concord.mcp.jobs import Jobs
from concord.quality.metrics import percentiles
from concord.types import Document

T = TypeVar("T")

log = logging.getLogger(__name__)

# The model is loaded once no call came for so long: a client's first search comes at once or much later.
QUIET_S = 0.3
BUSY_S = 5.0  # then it is loaded even if calls keep coming
LOADING_S = 0.5  # how long a server that ends waits for a model that is being loaded
SET_ROOTS = "set mcp.roots (KB_MCP_ROOTS) to the folders that may be indexed, or let a person add it with kb"
AT_ONCE = 8  # calls worked on at once: more threads than that only wait for each other
REMEMBERED = 200  # calls of each tool that the latencies are taken from
REPEATED_S = 60.0  # the same note again within this time is the same call, sent twice
CLOSING_S = 2.0  # how long running work may take to stop when the server ends


class Total(Struct):
    """How many calls there were, and how long they took together."""

    calls: int = 0
    ms: float = 0.0


class Latencies:
    """How long recent calls of each organisation took."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, str], Total] = defaultdict(Total)
        self._took_ms: dict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))

    def add(self, org: str, tool: str, took_ms: float) -> None:
        """Remember a call."""
        self._took_ms[org, tool].append(took_ms)
        total = self._totals[org, tool]
        total.calls, total.ms = total.calls + 1, total.ms + took_ms

    def total(self, org: str, tool: str) -> Total:
        """Return what all calls of a tool came to."""
        return self._totals[org, tool]

    def summary(self, org: str) -> dict[str, dict[str, float]]:
        """Return for each tool how many calls are remembered, the median and the 95th percentile."""
        calls = list(self._took_ms.items())  # at once: other threads add to it
        return {tool: _summary(took) for (caller, tool), took in calls if caller == org}


class RecentNote:
    """The note that one call has kept; a call with the same arguments waits for its turn."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.document: Document | None = None
        self.asked_at = 0.0


class RecentNotes:
    """Notes kept a moment ago: a call sent again, because its answer was lost, keeps no second one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: dict[Hashable, RecentNote] = {}

    @contextmanager
    def turn(self, key: Hashable) -> Iterator[RecentNote]:
        """Give what the same call has kept, if anything, to this call alone: calls sent at once keep one."""
        with self._lock:
            now = self._clock()
            self._recent = {
                known: note
                for known, note in self._recent.items()
                if now - note.asked_at < REPEATED_S or note.turn.locked()
            }
            recent = self._recent.setdefault(key, RecentNote())
            recent.asked_at = now
        with recent.turn:
            try:
                yield recent
            finally:
                recent.asked_at = self._clock()  # of a call that waited for long, too


class ServerState(Struct):
    """What the calls of one server share."""

    bases: Bases
    roots: tuple[Root, ...] = ()
    jobs: Jobs = field(default_factory=Jobs)
    latencies: Latencies = field(default_factory=Latencies)
    notes: RecentNotes = field(default_factory=RecentNotes)
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def in_thread(self, work: Callable[[], T], limit_s: float, late: str = "") -> T:
        """Do blocking work in a thread of its own, and wait for it no longer than `limit_s`.

        The thread is a daemon: work that hangs delays neither other calls nor the server's end. It goes on
        after the limit, so `late` tells the caller what becomes of work that writes something.

        Raises:
            DeadlinePassed: it took too long, or all places were taken for too long.
        """
        has_begun = False
        try:
            async with asyncio.timeout(limit_s), self.places:
                with self.bases.calls.counted():
                    has_begun = True
                    return await _threaded(work)
        except TimeoutError as fault:
            hint = late if has_begun and late else "try again in a moment, or ask for less"
            raise DeadlinePassed(f"no answer within {limit_s:g} seconds", hint=hint) from fault

    def close(self) -> None:
        """Stop what is running and close the knowledge bases."""
        if self.jobs.close(CLOSING_S):
            self.bases.close()


async def _threaded(work: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as fault:  # handed to whoever waits
            _hand_over(loop, done, partial(done.set_exception, fault))
        else:
            _hand_over(loop, done, partial(done.set_result, result))

    # In the caller's context, which may say in which folder its client works.
    threading.Thread(target=copy_context().run, args=(run,), name="call", daemon=True).start()
    return await done


def _hand_over(loop: asyncio.AbstractEventLoop, done: asyncio.Future[T], give: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(lambda: None if done.done() else give())


def _summary(took: Collection[float]) -> dict[str, float]:
    return {"calls": len(took), **{name: round(ms, 2) for name, ms in percentiles(took).items()}}


class Bases:
    """Knowledge bases by organisation. Opening one touches no disk: that waits for its first call."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.own: str = settings["org"]
        self.calls = Calls()
        self._opened: dict[str, KnowledgeBase] = {}
        self._warming: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def of(self, org: str | None = None) -> KnowledgeBase:
        """Return the knowledge base of an organisation; None is our own."""
        org = self.name_of(org)
        with self._lock:
            if org not in self._opened:
                self._opened[org] = KnowledgeBase(self.settings, org=org)
            return self._opened[org]

    def name_of(self, org: str | None) -> str:
        """Return the name of an organisation; None is our own."""
        return org or self.own

    def warm_in_background(self, org: str | None = None, *, again: bool = False) -> None:
        """Begin to load the model, once, when no call is being worked on; nobody waits for it.

        With `again`, also if that was done before: another process may have switched to another model since.
        """
        org = self.name_of(org)
        if org not in self._warming or (again and not self._warming[org].is_alive()):
            thread = threading.Thread(target=self._warm, args=(org,), name="warm", daemon=True)
            self._warming[org] = thread
            thread.start()

    def close(self) -> None:
        """Close what was opened, but for a model that is being loaded: that cannot be stopped, only left."""
        self.calls.end()
        for thread in self._warming.values():
            thread.join(LOADING_S)
        with self._lock:
            for org, knowledge in self._opened.items():
                if org not in self._warming or not self._warming[org].is_alive():
                    knowledge.close()
            self._opened.clear()

    def _warm(self, org: str) -> None:
        """Make words ready first, then the model: loading it would slow down a search that is on its way."""
        try:
            knowledge = self.of(org)
            _ = knowledge.generation
            if self.calls.wait_for_quiet():
                knowledge.warm()
        except KBError as fault:  # each search says it as well, in `degraded`
            log.warning("the model cannot be loaded: %s", fault.message)


class Calls:
    """How many calls are being worked on, so that heavy work can wait for a quiet moment."""

    def __init__(self) -> None:
        self._running = 0
        self._ended = False
        self._changed = threading.Condition()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a call while it is worked on."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def wait_for_quiet(self, quiet_s: float = QUIET_S, most_s: float = BUSY_S) -> bool:
        """Wait for `quiet_s` without a call, but no longer than `most_s`; return False if the server ends."""
        until = time.monotonic() + most_s
        with self._changed:
            while time.monotonic() < until and not self._ended:
                if not self._changed.wait(quiet_s) and not self._running:
                    break
            return not self._ended

    def end(self) -> None:
        """Let whoever waits go: there will be no more calls."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _count(self, change: int) -> None:
        with self._changed:
            self._running += change
            self._changed.notify_all()


class Root(NamedTuple):
    """A folder that may be indexed, without links, and for which organisation."""

    path: Path
    org: str | None = None  # None means all


def allowed_roots(configured: str, started_in: Path | None, org: str) -> tuple[Root, ...]:
    """Return the folders that may be indexed, the configured ones first; `org` is the server's own.

    Raises:
        NotFound: a configured one does not exist.
    """
    given = [_configured(part) for part in configured.split(os.pathsep) if part.strip()]
    return (*given, *(Root(folder, org) for folder in _working_folder(started_in)))


def roots_of(org: str, roots: Sequence[Root]) -> tuple[Path, ...]:
    """Return the folders that an organisation may index."""
    return tuple(dict.fromkeys(root.path for root in roots if root.org in (None, org)))


def permitted(path: str, roots: Sequence[Path]) -> Path:
    """Return a path that may be indexed, without links; a relative one is looked for under each root in turn.

    Raises:
        NotAllowed: it lies outside.
        NotFound: there is nothing there.
    """
    if "\0" in path:
        raise BadValue("a path cannot hold a null character", hint="give the path of a folder or file")
    given = Path(os.path.expanduser(path))  # unlike Path's own, it leaves an unknown ~name as it is
    for found in _existing(root / given for root in roots):
        if any(found.is_relative_to(root) for root in roots):
            return found
    raise _refusal(path, given, roots)


def _configured(entry: str) -> Root:
    org, path = without_org(entry)
    return Root(absolute_path(path), org)


def _existing(candidates: Iterable[Path]) -> Iterator[Path]:
    for candidate in candidates:
        try:
            yield absolute_path(candidate)
        except NotFound:
            continue


def _refusal(path: str, given: Path, roots: Sequence[Path]) -> NotAllowed | NotFound:
    """Say that it is not there, or outside; nobody learns whether something outside is there."""
    allowed = ", ".join(map(str, roots)) or "none"
    if any(Path(os.path.normpath(root / given)).is_relative_to(root) for root in roots):
        return NotFound(
            f"there is no {path!r} in the folders that may be indexed", hint=f"they are: {allowed}"
        )
    return NotAllowed(f"{path!r} is outside the folders that may be indexed ({allowed})", hint=SET_ROOTS)


def _working_folder(started_in: Path | None) -> Iterator[Path]:
    if started_in is not None and (folder := started_in.resolve()) != Path(folder.anchor):
        yield folder
