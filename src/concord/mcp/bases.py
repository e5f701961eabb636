"""The open knowledge bases of a server: one for each organisation, opened when it is first asked for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Imported early: greeting a client takes a tenth longer, but a search that follows at once, before the model
# is loaded, waits for no import.
import concord.search.pipeline  # noqa: F401
from concord.core.config import Settings
from concord.core.errors import KBError
from concord.knowledge import KnowledgeBase

log = logging.getLogger(__name__)

# The model is loaded once no call came for so long: a client's first search comes at once or much later.
QUIET_S = 0.3
BUSY_S = 5.0  # then it is loaded even if calls keep coming
CLOSING_S = 0.5  # how long a server that ends waits for a model that is being loaded


class Bases:
    """Knowledge bases by organisation. Opening one touches no disk: that waits for its first call."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.calls = Calls()
        self._opened: dict[str, KnowledgeBase] = {}
        self._warming: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def of(self, org: str | None = None) -> KnowledgeBase:
        """Return the knowledge base of an organisation; None is the one of the settings."""
        org = self.name_of(org)
        with self._lock:
            if org not in self._opened:
                self._opened[org] = KnowledgeBase(self.settings, org=org)
            return self._opened[org]

    def name_of(self, org: str | None) -> str:
        """Return the name of an organisation; None is the one of the settings."""
        name: str = org or self.settings["org"]
        return name

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
            thread.join(CLOSING_S)
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
