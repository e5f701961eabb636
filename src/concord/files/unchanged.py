"""Are the files of a source as they were indexed? Their states tell as a rule, their content where not."""

from __future__ import annotations

import hashlib

from concord.files.file_times import may_be_another
from concord.files.memos import read_memo
from concord.files.mounts import check_disk
from concord.files.opening import open_of_source
from concord.files.textless import Textless
from concord.files.walk import Found, Skipped, walk_source
from concord.storage import Catalog
from concord.types import FileState, Source


def is_as_indexed(found: Found, state: FileState) -> bool:
    """Whether size and times say for sure that a file holds what was indexed."""
    is_same = (state.size, state.mtime_ns) == (found.size, found.mtime_ns)
    return is_same and not may_be_another(found.ctime_ns, state.indexed_at)


def is_unchanged(source: Source, catalog: Catalog, max_bytes: int) -> bool:
    """Whether all files of a source are as they were indexed, and no others are there; writes nothing.

    Raises:
        Unreadable: the source is gone, cannot be read or has lost its disk.
    """
    memo, known = read_memo(catalog.memo(source.id)), catalog.file_states(source.id)
    check_disk(source, known, memo)
    textless = Textless(memo)
    for found in walk_source(source, max_bytes):
        if isinstance(found, Skipped):
            continue
        state = known.pop(source.path_of(found.relative), None)
        is_same = textless.reason(found) if state is None else _holds_the_same(found, state)
        if not is_same:
            return False
    return not known


def _holds_the_same(found: Found, state: FileState) -> bool:
    """Whether a file holds what was indexed; it is read if size and times do not tell."""
    if is_as_indexed(found, state) or found.size != state.size:
        return found.size == state.size
    try:
        with open(found.path, "rb", opener=open_of_source) as file:
            return hashlib.sha256(file.read()).hexdigest() == state.file_hash
    except OSError:
        return False
