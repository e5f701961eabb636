"""Does the file still say what was indexed?"""

from __future__ import annotations

import hashlib
import os

from concord.settled import UNSETTLED_NS
from concord.sources import file_of
from concord.types import Document, Freshness, Source

MAX_HASHED = 1_000_000  # bytes; a larger file whose stat changed is taken as changed, to answer in time


def freshness(document: Document, source: Source) -> Freshness:
    """Compare a document with its file: by size and time first, by content where those differ."""
    path = file_of(source, document.path)
    if path is None:
        return "fresh"
    try:
        now = os.stat(path)
        if now.st_size != document.size:
            return "changed"
        if now.st_mtime_ns == document.mtime_ns:
            return "fresh"
        if now.st_size > MAX_HASHED:
            return "fresh" if now.st_mtime_ns == document.mtime_ns + UNSETTLED_NS else "changed"
        with open(path, "rb") as file:
            same = hashlib.sha256(file.read()).hexdigest() == document.file_hash
    except FileNotFoundError:
        return "deleted"
    except OSError:  # forbidden, or a folder by now: nothing there can be read as the document any more
        return "changed"
    return "fresh" if same else "changed"
