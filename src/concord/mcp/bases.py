"""The open knowledge bases of a server: one for each organisation, opened when it is first asked for."""

from __future__ import annotations

import logging
import threading

from concord.config import Settings
from concord.errors import KBError
from concord.knowledge import KnowledgeBase

log = logging.getLogger(__name__)


class Bases:
    """Knowledge bases by organisation. Opening one touches no disk: that waits for its first call."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._opened: dict[str, KnowledgeBase] = {}
        self._warming: set[str] = set()
        self._lock = threading.Lock()

    def of(self, org: str | None = None) -> KnowledgeBase:
        """Return the knowledge base of an organisation; None is the one of the settings."""
        org = org or self.settings["org"]
        with self._lock:
            if org not in self._opened:
                self._opened[org] = KnowledgeBase(self.settings, org=org)
            return self._opened[org]

    def warm_in_background(self, org: str | None = None) -> None:
        """Begin to load the model, once, so that a search finds it warm; nobody waits for it."""
        knowledge = self.of(org)
        with self._lock:
            if knowledge.org in self._warming:
                return
            self._warming.add(knowledge.org)
        threading.Thread(target=_warm, args=(knowledge,), name="warm", daemon=True).start()

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            for knowledge in self._opened.values():
                knowledge.close()
            self._opened.clear()


def _warm(knowledge: KnowledgeBase) -> None:
    try:
        knowledge.warm()
    except KBError as fault:  # each search says it as well, in `degraded`
        log.warning("the model cannot be loaded: %s", fault.message)
