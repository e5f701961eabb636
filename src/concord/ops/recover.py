"""What comes back out of a damaged store? What exists nowhere else: notes, and which folders were indexed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from msgspec import ValidationError
from msgspec.structs import replace

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, NotFound
from concord.core.reports import Recovery
from concord.index.notes import KeptNote, NoteTools, note_of, store_notes
from concord.store.contract import Salvage, Store


class RecoverTools(NamedTuple):
    """What a recovery works with."""

    store: Callable[[], Store]
    salvage: Callable[[], Salvage]
    reopened: Callable[[], NoteTools]  # closes the store first


def recover(tools: RecoverTools) -> Recovery:
    """Bring back what a store has lost; one that is damaged is moved away first, and a new one is begun.

    Raises:
        NotFound: there is nothing to bring back.
        BackendDown: the disk fails, or the damaged file cannot be moved away.
    """
    started = time.monotonic()
    salvage, is_damaged = tools.salvage(), _is_damaged(tools.store)
    if not is_damaged:
        restored = restore_notes(salvage, tools.reopened())
        return Recovery(restored, 0, [], None, time.monotonic() - started)
    kept = [*_kept(salvage)]
    if not kept and not salvage.sources:
        raise NotFound(
            f"nothing of a store can be read from {salvage.path}",
            hint=Hint(Action.ADD, "restore it from a backup, or move it away and run {add} again"),
        )
    moved_to = _moved_away(salvage.path)
    notes = tools.reopened()
    sources = []
    for source in salvage.sources:  # their files are read by the next sync
        with suppress(BadValue):  # two of a name: of one that was changed, perhaps
            notes.store.catalog.put_source(replace(source, synced_at=None))
            sources.append(source.name)
    store_notes(kept, notes)
    return Recovery(len(kept), 0, sources, moved_to, time.monotonic() - started)


def restore_notes(salvage: Salvage, tools: NoteTools) -> int:
    """Put notes that are kept beside a store into it, unless it has newer ones; return how many."""
    known = {note.id: note.mtime_ns for note in tools.store.catalog.documents() if note.type == "note"}
    newer = [kept for kept in _kept(salvage) if kept.changed_at >= known.get(kept.id, 0) / 1e9]
    done = store_notes(newer, tools)
    return done.added + done.changed


def _is_damaged(store: Callable[[], Store]) -> bool:
    """Whether a store cannot be opened or mended; a disk that fails just now says nothing of it."""
    try:
        findings = store().check()
    except CorruptStore:
        return True
    return any(finding.fault == "integrity" and not finding.is_repairable for finding in findings)


def _kept(salvage: Salvage) -> Iterator[KeptNote]:
    for note in salvage.notes:
        with suppress(ValidationError):  # of another version, perhaps
            yield KeptNote(note.id, note_of(note), note.mtime_ns / 1e9, note.superseded_by)


def _moved_away(path: str) -> str:
    """Give a damaged file, and its log, another name; nothing of it is deleted."""
    target = f"{path}-damaged-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        for ending in ("-wal", "-shm", ""):  # the file itself last: what is interrupted can be done again
            if os.path.exists(path + ending):
                os.rename(path + ending, target + ending)
    except OSError as fault:
        raise BackendDown(
            f"{path} cannot be moved away: {fault.strerror}", hint="check that its folder may be written"
        ) from fault
    return target
