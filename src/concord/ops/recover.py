"""What comes back out of a damaged store? What exists nowhere else: notes, and which folders were indexed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from msgspec import ValidationError
from msgspec.structs import replace

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, KBError, NotFound
from concord.core.reports import Recovery
from concord.index.notes import KeptNote, NoteTools, note_of, store_notes, text_of
from concord.store.contract import Salvage, Store
from concord.types import Document


class RecoverTools(NamedTuple):
    """What a recovery works with."""

    store: Callable[[], Store]
    salvage: Callable[[], Salvage]
    reopened: Callable[[], NoteTools]  # closes the store first


class _Copy(NamedTuple):
    """A note as one of several places has it; the best compares as the greatest."""

    is_whole: bool
    changed_at: float
    kept: KeptNote


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
    # The best copy of each note: one that is whole before all others, then the newest.
    copies = [*_copies(salvage.logged, are_whole=True), *_copies(salvage.scanned, are_whole=False)]
    best = {copy.kept.id: copy for copy in sorted(copies, key=lambda copy: copy[:2])}
    if not best and not salvage.sources:
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
    store_notes([copy.kept for copy in best.values()], notes)
    uncertain = sum(not copy.is_whole for copy in best.values())
    return Recovery(len(best), uncertain, sources, moved_to, time.monotonic() - started)


def restore_notes(salvage: Salvage, tools: NoteTools) -> int:
    """Put notes that are kept beside a store into it, unless it has newer ones; return how many."""
    known = {kept.id: kept.mtime_ns for kept in tools.store.catalog.documents() if kept.type == "note"}
    copies = _copies(salvage.logged, are_whole=True)
    newer = [copy.kept for copy in copies if copy.changed_at >= known.get(copy.kept.id, 0) / 1e9]
    done = store_notes(newer, tools)
    return done.added + done.changed


def _is_damaged(store: Callable[[], Store]) -> bool:
    """Whether a store cannot be opened or mended; a disk that fails just now says nothing of it."""
    try:
        findings = store().check()
    except CorruptStore:
        return True
    return any(finding.fault == "integrity" and not finding.is_repairable for finding in findings)


def _copies(notes: Iterable[Document], *, are_whole: bool) -> Iterator[_Copy]:
    """Yield copies of notes: whole if their text is what was hashed, or if that is known already."""
    for note in notes:
        with suppress(ValidationError, KBError):
            given = note_of(note)
            digest = hashlib.sha256(text_of(given).encode()).hexdigest()
            changed_at = note.mtime_ns / 1e9
            kept = KeptNote(note.id, given, changed_at, note.superseded_by)
            yield _Copy(are_whole or digest == note.content_hash, changed_at, kept)


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
