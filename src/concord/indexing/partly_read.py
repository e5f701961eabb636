"""Documents with pages that searches cannot find: pictures of text, which only OCR can read."""

from __future__ import annotations

from collections.abc import Iterable

from concord.outcomes import PartlyRead
from concord.types import Document


def partly_read(documents: Iterable[Document]) -> list[PartlyRead]:
    """Return those of the documents that have pages without text, each once."""
    pdfs = {document.path: document.details for document in documents if document.type == "pdf"}
    return [
        PartlyRead(path, pages, unread)
        for path, details in pdfs.items()
        if isinstance(pages := details.get("pages"), int)
        if isinstance(unread := details.get("pages_without_text"), int)
    ]


def sentence(one: PartlyRead) -> str:
    """Return a sentence that says how many pages of a document hold no text."""
    return f"{one.pages_without_text:,} of {one.pages:,} pages of {one.path} hold no text"
