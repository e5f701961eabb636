"""Which files of a source have been replaced by others? What files say of this is written to the catalog.

A note supersedes what its author names. Files say it in their text (`text/document.py`): a sync compares
what all files of a source say with what the catalog has. So it does not matter which file was read first,
which has gone since, or whether a run was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from concord.core.batches import batched
from concord.index.batch import UPDATED_AT_ONCE
from concord.store.contract import Catalog, Select
from concord.text.document import declares, successors
from concord.types import Document, Source


def settle_supersession(source: Source, catalog: Catalog) -> bool:
    """Mark documents as superseded, as the files of a source say; return whether any file says so."""
    documents = list(catalog.documents(Select(source_id=source.id)))
    wanted = successors(documents, source.prefix)
    for group in batched(_to_change(documents, wanted), UPDATED_AT_ONCE):
        # As they are now: somebody may have changed them since they were read, or superseded them by a note.
        wanted_of = {read.id: (read.superseded_by, new) for read, new in group}
        current = [
            (document, *wanted_of[document.id]) for document in catalog.documents(Select([*wanted_of]))
        ]
        catalog.update_documents(
            [
                replace(document, superseded_by=new)
                for document, old, new in current
                if document.superseded_by == old
            ]
        )
    return any(declares(document.details) for document in documents)


def release_superseded(source: Source, catalog: Catalog, document_ids: Sequence[str]) -> None:
    """Bring back the documents of a source that some others superseded, before these others are deleted.

    Deleting a document passes what it superseded on to its own successor. That may be a note, and no file
    could undo it.
    """
    superseded = (Select(source_id=source.id, superseded_by=document_id) for document_id in document_ids)
    freed = [document for select in superseded for document in catalog.documents(select)]
    for group in batched(freed, UPDATED_AT_ONCE):
        catalog.update_documents([replace(document, superseded_by=None) for document in group])


def _to_change(
    documents: Sequence[Document], wanted: Mapping[str, str]
) -> Iterator[tuple[Document, str | None]]:
    """Yield documents with another successor than wanted, and the wanted one; a note's claims stay."""
    own = {document.id for document in documents}
    for document in documents:
        now, then = document.superseded_by, wanted.get(document.id)
        if now != then and (now is None or now in own):
            yield document, then
