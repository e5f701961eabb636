"""What comes back out of a damaged store? What exists nowhere else: notes, and which folders were indexed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import ValidationError
from msgspec.structs import replace

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, KBError, NotFound
from concord.core.reports import Recovery
from concord.index.notes import KeptNote, NoteTools, note_of, store_notes, text_of
from concord.store.contract import Catalog, Salvage, Store
from concord.types import Document, Source


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
    copies = _best(salvage)
    _check_not_empty(salvage, copies)
    moved_to = _moved_away(salvage.path)
    notes = tools.reopened()
    sources = _restored(salvage.sources, notes.store.catalog)
    store_notes([copy.kept for copy in copies.values()], notes)
    uncertain = sum(not copy.is_whole for copy in copies.values())
    return Recovery(len(copies), uncertain, sources, moved_to, time.monotonic() - started)


def restore_notes(salvage: Salvage, tools: NoteTools) -> int:
    """Put notes that are kept beside a store into it, unless it has newer ones; return how many."""
    known = {kept.id: kept.mtime_ns for kept in tools.store.catalog.documents() if kept.type == "note"}
    copies = (copy for note in salvage.logged if (copy := _copy(note, is_whole=True)))
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


def _best(salvage: Salvage) -> dict[str, _Copy]:
    """Return the best copy of each note: one that is whole before all others, then the newest."""
    copies = [copy for note in salvage.logged if (copy := _copy(note, is_whole=True))]
    copies += [copy for note in salvage.scanned if (copy := _copy(note, is_whole=False))]
    return {copy.kept.id: copy for copy in sorted(copies, key=lambda copy: copy[:2])}


def _copy(note: Document, *, is_whole: bool) -> _Copy | None:
    """Return a copy of a note; whole if its text is what was hashed, or if that is known already."""
    try:
        given = note_of(note)
        text = text_of(given)
    except (ValidationError, KBError):
        return None
    is_whole = is_whole or hashlib.sha256(text.encode()).hexdigest() == note.content_hash
    changed_at = note.mtime_ns / 1e9
    return _Copy(is_whole, changed_at, KeptNote(note.id, given, changed_at, note.superseded_by))


def _check_not_empty(salvage: Salvage, copies: Collection[str]) -> None:
    if not copies and not salvage.sources:
        raise NotFound(
            f"nothing of a store can be read from {salvage.path}",
            hint=Hint(Action.ADD, "restore it from a backup, or move it away and run {add} again"),
        )


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


def _restored(sources: Sequence[Source], catalog: Catalog) -> list[str]:
    """Make known again which folders were indexed; return their names. Their files were not read yet."""
    names = []
    for source in sources:
        with suppress(BadValue):  # two of a name: of one that was changed, perhaps
            catalog.put_source(replace(source, synced_at=None))
            names.append(source.name)
    return names
