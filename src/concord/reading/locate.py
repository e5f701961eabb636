"""What does a citation say? A citation or an id becomes a part of a document, with neighbours on request."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from posixpath import basename
from typing import NamedTuple

from concord.core.errors import Action, BadValue, Hint, NotFound, shown
from concord.core.places import holder, placed
from concord.core.reports import DocumentSlice
from concord.files.state import Files
from concord.store.contract import Catalog, document_by_id, documents_at, source_by_id
from concord.text.citations import Citation, citation_of, cite, extent, parse_citation, readings
from concord.text.clean import encodable
from concord.types import Chunk, Document, Filter, Level, Source

LISTED = Hint(Action.LIST, "{list} shows what is indexed")
MOST_SHOWN = 200  # characters of a reference: a path may be long
LEAST_OF_ID = 4  # characters of an id that stand for all of it, where no other begins like that
LEAST_ALIKE = 0.75  # of the letters of a name: redis.md is like rediss.md, not like readme.md
MOST_COMPARED = 20_000  # paths: to compare more takes longer than to ask for a list


class Located(NamedTuple):
    """What a reference stands for: a document, its chunks, and the first and last of them that are meant."""

    document: Document
    source: Source
    chunks: Sequence[Chunk]
    first: int
    last: int
    files: Files  # to see what has become of the document's own


def locate(reference: str, catalog: Catalog, *, context: int = 0, level: Level | None = None) -> Located:
    """Find what a citation, a document id or a chunk id stands for, with `context` chunks either side.

    At the level of a section it is all of the section, and all of the document above that.
    """
    document, citation, chunk_id = _resolve(reference, catalog)
    chunks = catalog.chunks(document.id)
    if not chunks:
        raise NotFound(f"{document.path} holds no text", hint=Hint(Action.SYNC, "{sync} may index it anew"))
    is_whole = level in ("document", "outline")
    meant = list(range(len(chunks))) if is_whole else _meant(chunks, citation, chunk_id)
    if not meant:
        raise _nothing_there(reference, citation, chunks)
    begin, end = section_around(chunks, meant[0], meant[-1]) if level == "section" else (meant[0], meant[-1])
    first, last = max(0, begin - context), min(len(chunks) - 1, end + context)
    source = source_by_id(catalog, document.source_id)
    return Located(document, source, chunks, first, last, Files([source]))


def section_around(chunks: Sequence[Chunk], first: int, last: int) -> tuple[int, int]:
    """Return the first and the last of all chunks that stand under the headings of these two."""
    while first and chunks[first - 1].heading == chunks[first].heading:
        first -= 1
    while last + 1 < len(chunks) and chunks[last + 1].heading == chunks[last].heading:
        last += 1
    return first, last


def find_document(reference: str, catalog: Catalog) -> Document:
    """Return the document that a citation, a path or a document id names; a bare number names none."""
    return _resolve(reference, catalog, are_numbers_chunks=False)[0]


def slice_of(located: Located) -> DocumentSlice:
    """Return the text that was located, with where it is and whether the file still says so."""
    document, source, chunks, first, last, files = located
    part = chunks[first : last + 1]
    text, lines = joined(part), (part[0].start_line, max(chunk.end_line for chunk in part))
    start, end = part[0].start_column, max(part, key=attrgetter("end")).end_column
    if len(part) == len(chunks) or start is None and end is None:  # whole lines
        columns: tuple[int | None, int | None] = (None, None)
    else:
        columns = (start or 1, end or len(text) - text.rfind("\n") - 1)
    pages = [chunk.pages for chunk in part if chunk.pages]
    reach = (pages[0][0], pages[-1][1]) if pages else None
    return DocumentSlice(
        document=document,
        source=source,
        text=text,
        citation=citation_of(document.path, reach, lines, columns),
        start_line=lines[0],
        end_line=lines[1],
        start_column=columns[0],
        end_column=columns[1],
        pages=reach,
        heading=part[0].heading,
        freshness=files.freshness(document),
        before=cite(document, chunks[first - 1]) if first else None,
        after=cite(document, chunks[last + 1]) if last + 1 < len(chunks) else None,
    )


def joined(chunks: Sequence[Chunk]) -> str:
    """Return the text that neighbouring chunks cover, each character of it once and each line on its own."""
    text, furthest = chunks[0].text, chunks[0]
    for chunk in chunks[1:]:
        text += gap(furthest, chunk) + chunk.text[max(0, furthest.end - chunk.start) :]
        furthest = max(furthest, chunk, key=attrgetter("end"))
    return text


def gap(before: Chunk, chunk: Chunk) -> str:
    """Return the white space between a chunk and the one that reaches furthest before it."""
    room = max(0, chunk.start - before.end)
    # The lines of a text are those of the file, unless it was taken out of HTML or the like.
    if any(part.end_line - part.start_line != part.text.count("\n") for part in (before, chunk)):
        return "\n" * min(2, room)
    return "\n" * min(room, chunk.start_line - before.end_line) or " " * room


def _resolve(
    reference: str, catalog: Catalog, *, are_numbers_chunks: bool = True
) -> tuple[Document, Citation, int | None]:
    reference = reference.strip()
    # Bytes that are no text are no name of anything.
    if reference == encodable(reference):
        if document := document_by_id(catalog, reference):
            return document, Citation(document.path), None
        is_chunk = are_numbers_chunks and reference.isdecimal() and len(reference) < 19
        if is_chunk and (read := catalog.read([int(reference)])):
            ((chunk, document),) = read.values()
            return document, Citation(document.path), chunk.id
        for citation in readings(reference):
            if documents := _documents_at(citation.path, catalog):
                document = _only(documents, citation.path)
                _check_order(reference, citation)
                return document, citation, None
        is_id = len(reference) >= LEAST_OF_ID and set(reference) <= set("0123456789abcdef")
        if is_id and (held := [known for known in catalog.documents() if known.id.startswith(reference)]):
            document = _only(held, reference)
            return document, Citation(document.path), None
    from difflib import get_close_matches  # late: nearly everything that is asked for is there

    path, by_name = parse_citation(reference).path, dict[str, str]()
    if catalog.count_documents(Filter(include_superseded=True)) <= MOST_COMPARED:
        by_name = {basename(document.path).casefold(): document.path for document in catalog.documents()}
    near = get_close_matches(basename(path).casefold(), by_name, 1, LEAST_ALIKE)
    hint = f"did you mean {by_name[near[0]]}?" if near else LISTED
    raise NotFound(f"nothing indexed is called {shown(path, MOST_SHOWN)}", hint=hint)


def _documents_at(path: str, catalog: Catalog) -> list[Document]:
    """Find documents by citation path, by the end of one, or by where their file is."""
    if documents := documents_at(catalog, path):
        return documents
    try:
        file = Path(placed(Path(path).expanduser())).resolve()
    except (OSError, RuntimeError, ValueError):  # nobody's home, a loop of links, no name for a file at all
        return []
    source = holder(file, catalog.snapshot().sources)
    if source is None or source.path is None:
        return []
    return documents_at(catalog, source.path_of(file.relative_to(source.path).as_posix()))


def _only(documents: Sequence[Document], path: str) -> Document:
    if len(documents) > 1:
        some = ", ".join(document.path for document in documents[:5])
        raise BadValue(
            f"{shown(path, MOST_SHOWN)} fits {len(documents)} documents", hint=f"say which: {some}"
        )
    return documents[0]


def _check_order(reference: str, citation: Citation) -> None:
    if citation.is_reversed:
        pages, lines = citation.pages and citation.pages[::-1], (citation.lines or (0, 0))[::-1]
        meant = citation_of(citation.path, pages, lines, (citation.columns or (None, None))[::-1])
        raise BadValue(f"{shown(reference, MOST_SHOWN)} ends before it begins", hint=meant)


def _meant(chunks: Sequence[Chunk], citation: Citation, chunk_id: int | None) -> list[int]:
    """Return which of the chunks a reference stands for; all of them for a path.

    Of lines and columns, the chunk with exactly these, else every chunk that shares something with them.
    """
    numbered = list(enumerate(chunks))
    if chunk_id is not None:
        return [at for at, chunk in numbered if chunk.id == chunk_id]
    if citation.pages:
        first, last = citation.pages
        return [at for at, c in numbered if c.pages and c.pages[0] <= last and c.pages[1] >= first]
    begin, end = citation.extent
    exact = [at for at, chunk in numbered if extent(chunk) == (begin, end)]
    return exact or [at for at, c in numbered if extent(c)[0] <= end and extent(c)[1] >= begin]


def _nothing_there(reference: str, citation: Citation, chunks: Sequence[Chunk]) -> NotFound:
    """Return the error for a citation of lines or pages that are not there, with those that are."""
    pages = sorted({page for chunk in chunks for page in chunk.pages or ()})
    if citation.pages and pages:
        reach = (
            f"has text on pages {pages[0]}-{pages[-1]}" if len(pages) > 1 else f"has text on page {pages[0]}"
        )
    else:
        reach = f"has lines 1-{chunks[-1].end_line}"
    return NotFound(f"{shown(reference, MOST_SHOWN)} holds no text", hint=f"{citation.path} {reach}")
