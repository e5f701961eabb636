"""Which files of a source have been replaced by others of it? What they say of themselves is made true.

Notes supersede what they were told to. Files say it in their text (`text/successors.py`): whoever syncs them
compares what all of them say with what the catalog has, so that it does not matter which was read first,
which has gone since, or whether a run was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from concord.batches import batched
from concord.sources import RELABELLED_AT_ONCE
from concord.storage import Catalog
from concord.text.successors import declares, successors
from concord.types import Document, Source


def settle_supersession(source: Source, catalog: Catalog) -> bool:
    """Have documents superseded as the files of their source say; return whether any of them says so."""
    documents = list(catalog.documents(source.id))
    wanted = successors(documents, source.prefix)
    for group in batched(_changed(documents, wanted), RELABELLED_AT_ONCE):
        catalog.update_documents(group)
    return any(declares(document.details) for document in documents)


def _changed(documents: Sequence[Document], wanted: Mapping[str, str]) -> Iterator[Document]:
    """Yield those that are superseded otherwise than they should be; what a note supersedes stays so."""
    own = {document.id for document in documents}
    for document in documents:
        now, then = document.superseded_by, wanted.get(document.id)
        if now != then and (now is None or now in own):
            yield replace(document, superseded_by=then)
