"""Which words do scans and pictures show? Read after a sync, which nobody waits for meanwhile.

A page takes seconds, so others may sync the source while it is read: its lock is held only to store one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from concord.core.errors import StoreBusy
from concord.core.protocols import PictureReader
from concord.core.reports import Failure
from concord.files.state import Textless, read_memo, write_memo
from concord.files.walk import Found
from concord.index.documents import BAD_FILE, ReadFile, SyncTools, Tally, prepared, read_file
from concord.index.lock import as_stored, begin_anew, sync_lock
from concord.types import Extracted, Source


def read_pictures(
    shown: Mapping[Found, str | None], source: Source, tools: SyncTools, tally: Tally, lock_wait_s: float
) -> bool:
    """Read what files show, if somebody can; return whether anything was looked at.

    `shown` says why a file was left out, if it was. Where another sync is in the way for too long, the next
    one goes on.
    """
    reader = tools.pictures() if shown else None
    if reader is None:
        left_out = ((found, reason) for found, reason in shown.items() if reason)
        tally.skipped += [Failure(source.path_of(found.relative), reason) for found, reason in left_out]
        return False
    with suppress(StoreBusy):
        for done, found in enumerate(shown):
            tools.progress("pictures", done, len(shown))
            read, extracted, reason = _seen(found, source, reader, tools)
            with sync_lock(source.id, tools.store, tools.progress, lock_wait_s):
                source = as_stored(source, tools.store.catalog)
                _store(found, read, extracted, reason, source, tools, tally)
        tools.progress("pictures", len(shown), len(shown))
    return True


def _seen(
    found: Found, source: Source, reader: PictureReader, tools: SyncTools
) -> tuple[ReadFile | None, Extracted | None, str]:
    """Return a file, what it shows, and why that is nothing if it is."""
    read = None
    try:
        read = read_file(source, found, None, tools.limits.max_bytes)
        if read:
            return read, reader.read(read.data, found.path.name, tools.progress), ""
    except BAD_FILE as fault:
        return read, None, fault.message
    return None, None, ""


def _store(
    found: Found,
    read: ReadFile | None,
    extracted: Extracted | None,
    reason: str,
    source: Source,
    tools: SyncTools,
    tally: Tally,
) -> None:
    """Store what a file shows, if it is as it was; without words it is left out until it changes."""
    catalog = tools.store.catalog
    begin_anew(source.id, catalog)
    memo = read_memo(catalog.sync_state(source.id))
    path = source.path_of(found.relative)
    state = catalog.file_states(source.id).get(path)
    textless = Textless(memo)
    if reason and state is None:
        tally.skipped.append(Failure(path, reason))
        textless.add(found, reason)
    if read and extracted and (state is None or state.file_hash == read.file_hash):
        try:
            known = read._replace(known=state)
            tally.add(prepared(source, known, extracted, tools, "pictures" if state else "added"))
            tally.store()
        except BAD_FILE as fault:
            tally.failed.append(Failure(path, fault.message))
    left = [relative for relative in memo.scans if relative != found.relative]
    changed = replace(memo, scans=left, textless=memo.textless | textless.met)
    catalog.put_sync_state(source.id, write_memo(changed))
