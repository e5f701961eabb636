"""What stands in scans and pictures: read once all else is searchable, one file after the other.

Each is stored as soon as it is read, so an interrupted run goes on where it was. One in which no words are
seen is remembered as a file without text, until it changes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from concord.core.errors import BadValue, ExtractionError, MissingExtra, NotIndexable, UnknownName
from concord.core.protocols import (
    BINARY,
    NO_TEXT_LAYER,
    PICTURE_EXTENSIONS,
    Embedder,
    PictureReader,
    Progress,
)
from concord.files.opening import read_unchanging
from concord.files.state import Textless
from concord.files.walk import Found
from concord.index.batch import Tally
from concord.index.reading import ReadFile, ReadLimits, new_document
from concord.store.contract import Catalog
from concord.text.chunk import chunk
from concord.types import FileState, Source

_LEFT_OUT = (NotIndexable, ExtractionError, MissingExtra, UnknownName, BadValue)


def may_show_text(name: str, reason: str) -> bool:
    """Whether a file that was left out for a reason may show text."""
    is_picture = name.rpartition(".")[2].lower() in PICTURE_EXTENSIONS
    return reason == NO_TEXT_LAYER or (reason == BINARY and is_picture)


class PictureTools(NamedTuple):
    """What pictures are read and stored with."""

    pictures: PictureReader
    catalog: Catalog
    tokenizer: Embedder
    limits: ReadLimits
    progress: Progress


def read_pictures(
    source: Source, waiting: Sequence[Found], tools: PictureTools, tally: Tally, textless: Textless
) -> None:
    """Read files of a source that show text and hold none, or not on all pages."""
    states = tools.catalog.file_states(source.id)
    for done, found in enumerate(waiting):
        tools.progress("pictures", done, len(waiting))
        path = source.path_of(found.relative)
        try:
            _read(source, found, states.get(path), tools, tally)
        except _LEFT_OUT as fault:
            if path not in states:
                tally.withdraw(path)
                tally.add_skipped(path, fault.message)
                textless.add(found, fault.message)
    tools.progress("pictures", len(waiting), len(waiting))


def _read(source: Source, found: Found, state: FileState | None, tools: PictureTools, tally: Tally) -> None:
    read_at, path = time.time(), source.path_of(found.relative)
    data = read_unchanging(found, tools.limits.max_bytes)
    if data is None:  # it is gone
        return
    extracted = tools.pictures.read(data, found.path.name, tools.progress)
    pieces = chunk(extracted, tools.tokenizer.token_starts, tools.limits.chunk)
    read = ReadFile(path, found, read_at, hashlib.sha256(data).hexdigest())
    document = new_document(source, read, extracted)
    if state:
        document = replace(document, id=state.document_id)
    tools.catalog.put_documents([(document, pieces)])
    tally.withdraw(path)
    tally.counts["added"] += state is None
    tally.counts["chunks"] += len(pieces)
