"""How are the sources of a knowledge base kept current? By `index/sync.py`, with the parts that are open."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from threading import Event

from msgspec import Struct

from concord.core.errors import NotFound, ReadOnlyStore, StoreBusy, Unavailable, Unreadable, joined
from concord.core.places import holder
from concord.core.protocols import Progress
from concord.core.reports import Failure, SyncReport
from concord.files.watch import WatchTools, watch
from concord.index.documents import SyncTools
from concord.index.sources import glob_under, register
from concord.index.sync import embed_notes, sync
from concord.parts import Parts
from concord.types import Source, silent


class Scope(Struct, frozen=True):
    """A part of the knowledge base: a source, or what lies under a path of one."""

    source: str
    path: str | None
    stale: str = ""  # why it could not be brought up to date


class Syncing:
    """Syncs sources, and embeds their chunks."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def sync_and_report(self, source: Source, *, embed: bool, progress: Progress) -> SyncReport:
        """Sync a source; one that is out of reach, or was removed meanwhile, is reported, not raised."""
        try:
            return self.sync(source, embed=embed, progress=progress)
        except Unreadable as fault:
            return _failed(source, joined("; ", fault.message, fault.hint) if fault.hint else fault.message)
        except NotFound:  # somebody wanted it removed: nothing has failed
            return SyncReport(source, skipped={"removed meanwhile": 1})

    def sync(
        self, source: Source, *, embed: bool, progress: Progress, wait_s: float | None = None
    ) -> SyncReport:
        """Bring a source up to date.

        `wait_s` is how long another sync of it may take first; None leaves that to the settings.

        Raises:
            Unreadable: its folder is gone or cannot be read; nothing of it is removed.
            NotFound: it was removed before its turn came.
            StoreBusy: another process has been syncing it for too long.
        """
        parts = self._parts
        tools = SyncTools(
            store=parts.store,
            reader=parts.reader,
            tokenizer=cache(parts.tokenizer),
            embedder=lambda: parts.embedder if embed else None,
            limits=parts.limits(),
            progress=progress,
            pictures=lambda: parts.pictures,
        )
        if source.kind == "notes":
            report = embed_notes(source, tools)
        else:
            lock_wait_s = parts.settings["sync.lock_wait_s"] if wait_s is None else wait_s
            report = sync(source, tools, lock_wait_s=lock_wait_s)
        if report.embedded or report.reused:
            parts.after_embedding()
        parts.store.maintain(progress)
        return report

    def ensure(self, path: Path, *, embed: bool, progress: Progress) -> Scope:
        """Index a path if it is new or changed, and return the scope to search it by."""
        catalog = self._parts.store.catalog
        source = holder(path, catalog.snapshot().sources)
        if source is not None:
            # What is indexed serves as well while another syncs it, unless that is the first time, or where
            # nothing can be written.
            stale = ""
            try:
                self.sync(source, embed=embed, progress=progress, wait_s=0 if source.synced_at else None)
            except (ReadOnlyStore, StoreBusy) as fault:
                stale = fault.message
            return Scope(source.id, glob_under(source, path), stale)
        return Scope(self.sync(register(path, catalog), embed=embed, progress=progress).source.id, None)

    def watch(
        self, chosen: Collection[str], *, embed: bool, stop: Event, progress: Progress = silent
    ) -> Iterator[SyncReport]:
        """Keep sources current, all or those of the chosen ids, until `stop` is set."""
        path, paths = self._parts.store.place.path, self._parts.settings.paths
        tools = WatchTools(
            sources=lambda: [
                source
                for source in self._parts.store.catalog.snapshot().sources
                if not chosen or source.id in chosen
            ],
            sync=lambda source: self._try_sync(source, embed=embed, progress=progress),
            # If what a sync writes to were watched, it would never end.
            own_folders=[paths.data, paths.cache, *([os.path.dirname(path)] if path else [])],
            rescan_s=self._parts.settings["sync.rescan_s"],
        )
        return watch(tools, stop)

    def _try_sync(self, source: Source, *, embed: bool, progress: Progress) -> SyncReport:
        """Sync a source; a fault that may pass is reported, not raised: the watch will try again soon."""
        try:
            return self.sync_and_report(source, embed=embed, progress=progress)
        except (Unavailable, StoreBusy) as fault:
            return _failed(source, fault.message)


def _failed(source: Source, reason: str) -> SyncReport:
    return SyncReport(source, failed=(Failure(source.path or source.name, reason),))
