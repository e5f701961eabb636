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
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
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

FIRST_S = 0.3  # before the model is loaded: a client's first search comes at once or much later
LOAD_S = 5.0  # how long a search may wait for a model that is being loaded
LOADING_S = 0.5  # how long a server that ends waits for a model that is being loaded
SET_ROOTS = "set mcp.roots (KB_MCP_ROOTS) to the folders that may be indexed, or let a person add it with kb"
AT_ONCE = 8  # calls worked on at once: more threads than that only wait for each other
REMEMBERED = 200  # calls of each tool that the latencies are taken from
REPEATED_S = 60.0  # the same note again within this time is the same call, sent twice
CLOSING_S = 2.0  # how long running work may take to stop when the server ends


class Latencies:
    """How long calls of each organisation took."""

    def __init__(self) -> None:
        self._recent_ms: dict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._totals: dict[tuple[str, str], tuple[int, float]] = {}

    def add(self, org: str, tool: str, took_ms: float) -> None:
        """Remember a call."""
        self._recent_ms[org, tool].append(took_ms)
        calls, total_ms = self.total(org, tool)
        self._totals[org, tool] = calls + 1, total_ms + took_ms

    def total(self, org: str, tool: str) -> tuple[int, float]:
        """Return how many calls of a tool there were, and how many milliseconds they took together."""
        return self._totals.get((org, tool), (0, 0.0))

    def summary(self, org: str) -> dict[str, dict[str, float]]:
        """Return for each tool how many calls are remembered, the median and the 95th percentile."""
        calls = list(self._recent_ms.items())  # at once: other threads add to it
        return {
            tool: {"calls": len(took), **{name: round(ms, 2) for name, ms in percentiles(took).items()}}
            for (caller, tool), took in calls
            if caller == org
        }


class RecentNotes:
    """Notes kept a moment ago: a call sent again, because its answer was lost, keeps no second one."""

    def __init__(self) -> None:
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._kept: defaultdict[str, dict[Hashable, tuple[float, Document]]] = defaultdict(dict)

    def kept_once(
        self, org: str, call: Hashable, keep: Callable[[], Document], is_same: Callable[[Document], bool]
    ) -> tuple[Document, bool]:
        """Return what the same call kept, if it still says so, or else keep it; and whether it is new."""
        with self._turns[org]:  # calls sent at once keep one
            now = time.monotonic()
            recent = {key: note for key, note in self._kept[org].items() if now - note[0] < REPEATED_S}
            self._kept[org] = recent
            if call in recent and is_same(recent[call][1]):
                return recent[call][1], False
            document = keep()
            recent[call] = (time.monotonic(), document)
            return document, True


class ServerState(Struct):
    """What the calls of one server share."""

    bases: Bases
    roots: tuple[Root, ...] = ()
    org: str = ""  # of calls without a token; that of the settings if it is empty
    owns_bases: bool = True  # and closes them at its end
    jobs: Jobs = field(default_factory=Jobs)
    latencies: Latencies = field(default_factory=Latencies)
    notes: RecentNotes = field(default_factory=RecentNotes)
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    def name_of(self, org: str | None) -> str:
        """Return the name of an organisation; None is our own."""
        return org or self.org or str(self.bases.settings["org"])

    def base_of(self, org: str | None) -> KnowledgeBase:
        """Return the knowledge base of an organisation; None is our own."""
        return self.bases.of(self.name_of(org))

    async def in_thread(self, work: Callable[[], T], limit_s: float) -> T:
        """Do blocking work in a thread of its own, and wait for it no longer than `limit_s`.

        The thread is a daemon: work that hangs delays neither other calls nor the server's end. It goes on
        after the limit; a note that is sent again meanwhile is kept once.

        Raises:
            DeadlinePassed: it took too long, or all places were taken for too long.
        """
        try:
            async with asyncio.timeout(limit_s), self.places:
                return await _threaded(work)
        except TimeoutError as fault:
            hint = "try again in a moment, or ask for less"
            raise DeadlinePassed(f"no answer within {limit_s:g} seconds", hint=hint) from fault

    def close(self) -> None:
        """Stop what is running and close the knowledge bases."""
        if self.jobs.close(CLOSING_S) and self.owns_bases:
            self.bases.close()


async def _threaded(work: Callable[[], T]) -> T:
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # so that nobody who gives up can cancel it

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as fault:  # handed to whoever waits
            done.set_exception(fault)

    # In the caller's context, which may say in which folder its client works.
    threading.Thread(target=copy_context().run, args=(run,), name="call", daemon=True).start()
    return await asyncio.wrap_future(done)


class Bases:
    """Knowledge bases by organisation. Opening one touches no disk: that waits for its first call."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._opened: dict[str, KnowledgeBase] = {}
        self._warming: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def of(self, org: str) -> KnowledgeBase:
        """Return the knowledge base of an organisation."""
        with self._lock:
            if org not in self._opened:
                self._opened[org] = KnowledgeBase(self.settings, org=org)
            return self._opened[org]

    def warm_in_background(self, org: str, *, again: bool = False) -> None:
        """Begin to load the model, once and soon; nobody waits for it.

        With `again`, also if that was done before: another process may have switched to another model since.
        """
        if org not in self._warming or (again and not self._warming[org].is_alive()):
            thread = threading.Thread(target=self._warm, args=(org,), name="warm", daemon=True)
            self._warming[org] = thread
            thread.start()

    def wait_while_warming(self, org: str) -> None:
        """Wait for a model that is being loaded, so that the time a search may take begins after it."""
        if thread := self._warming.get(org):
            thread.join(LOAD_S)

    def close(self) -> None:
        """Close what was opened, but for a model that is being loaded: that cannot be stopped, only left."""
        self._ended.set()
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
            if not self._ended.wait(FIRST_S):
                knowledge.warm()
        except KBError as fault:  # each search says it as well, in `degraded`
            log.warning("the model cannot be loaded: %s", fault.message)


class Root(NamedTuple):
    """A folder that may be indexed, without links, and for which organisation."""

    path: Path
    org: str | None = None  # None means all


def allowed_roots(configured: str, started_in: Path | None, org: str) -> tuple[Root, ...]:
    """Return the folders that may be indexed, the configured ones first; `org` is the server's own.

    Raises:
        NotFound: a configured one does not exist.
    """
    entries = [without_org(part) for part in configured.split(os.pathsep) if part.strip()]
    roots = [Root(absolute_path(path), only_of) for only_of, path in entries]
    if started_in is not None and (folder := started_in.resolve()) != Path(folder.anchor):
        roots.append(Root(folder, org))
    return tuple(roots)


def roots_of(org: str, roots: Sequence[Root]) -> tuple[Path, ...]:
    """Return the folders that an organisation may index."""
    return tuple(dict.fromkeys(root.path for root in roots if root.org in (None, org)))


def permitted(path: str, roots: Sequence[Path]) -> Path:
    """Return a path that may be indexed, without links; a relative one is looked for under each root in turn.

    Raises:
        NotAllowed: it lies outside. Nobody learns whether something outside is there.
        NotFound: there is nothing there.
    """
    if "\0" in path:
        raise BadValue("a path cannot hold a null character", hint="give the path of a folder or file")
    given = Path(os.path.expanduser(path))  # unlike Path's own, it leaves an unknown ~name as it is
    for candidate in (root / given for root in roots):
        with suppress(NotFound):
            found = absolute_path(candidate)
            if any(found.is_relative_to(root) for root in roots):
                return found
    allowed = ", ".join(map(str, roots)) or "none"
    if any(Path(os.path.normpath(root / given)).is_relative_to(root) for root in roots):
        raise NotFound(
            f"there is no {path!r} in the folders that may be indexed", hint=f"they are: {allowed}"
        )
    raise NotAllowed(f"{path!r} is outside the folders that may be indexed ({allowed})", hint=SET_ROOTS)
