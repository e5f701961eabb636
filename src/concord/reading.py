"""Reading a passage: a citation or an id becomes the text it stands for, with its neighbours on request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from concord.errors import BadValue, NotFound, shown
from concord.files.freshness import Files
from concord.outcomes import Passage
from concord.sources import holder
from concord.storage import Catalog
from concord.text.citation import Citation, cite, page_span, parse_citation, parse_place
from concord.text.clean import encodable
from concord.types import Chunk, Document, Source

_LISTED = "`kb list SOURCE` shows what is indexed"
_SHOWN = 200  # characters of a reference: a path may be long


class Located(NamedTuple):
    """What a reference stands for: a document, its chunks, and the first and last of them that are meant."""

    document: Document
    source: Source
    chunks: Sequence[Chunk]
    first: int
    last: int
    files: Files  # to see what has become of the document's own


def read_passage(reference: str, catalog: Catalog, *, context: int, whole: bool) -> Passage:
    """Return what a citation, a document id or a chunk id stands for, with `context` chunks either side.

    Raises:
        NotFound: nothing of that name is indexed, or the document has no such lines.
        BadValue: the name fits several documents, or the lines end before they begin.
    """
    return passage_of(locate(reference, catalog, context=context, whole=whole))


def locate(reference: str, catalog: Catalog, *, context: int = 0, whole: bool = False) -> Located:
    """Find what a reference stands for, with `context` chunks either side.

    Raises:
        NotFound: nothing of that name is indexed, or the document has no such lines.
        BadValue: the name fits several documents, or the lines end before they begin.
    """
    document, citation, chunk_id = _resolve(reference, catalog)
    chunks = catalog.chunks_of(document.id)
    if not chunks:
        raise NotFound(f"{document.path} holds no text", hint="`kb sync` may index it anew")
    meant = list(range(len(chunks))) if whole else _meant(chunks, citation, chunk_id)
    if not meant:
        raise _nothing_there(reference, citation, document, chunks)
    first, last = max(0, meant[0] - context), min(len(chunks) - 1, meant[-1] + context)
    source = next(s for s in catalog.sources() if s.id == document.source_id)
    return Located(document, source, chunks, first, last, Files([source], catalog.memo))


def find_document(reference: str, catalog: Catalog) -> Document:
    """Return the document that a citation, a path or a document id names; a bare number names none.

    Raises:
        NotFound: nothing of that name is indexed.
        BadValue: the name fits several documents.
    """
    return _resolve(reference, catalog, are_numbers_chunks=False)[0]


def joined(chunks: Sequence[Chunk]) -> str:
    """Return the text that neighbouring chunks cover, each character of it once and each line on its own."""
    text, furthest = chunks[0].text, chunks[0]
    for chunk in chunks[1:]:
        text += gap(furthest, chunk) + chunk.text[max(0, furthest.end - chunk.start) :]
        furthest = max(furthest, chunk, key=_end)
    return text


def gap(before: Chunk, chunk: Chunk) -> str:
    """Return the white space between a chunk and the one that reaches furthest before it."""
    room = max(0, chunk.start - before.end)
    if not (_has_own_lines(before) and _has_own_lines(chunk)):
        return "\n" * min(2, room)
    return "\n" * min(room, chunk.start_line - before.end_line) or " " * room


def _has_own_lines(chunk: Chunk) -> bool:
    """Whether the lines of its text are those of the file; what is taken out of HTML has others."""
    return chunk.end_line - chunk.start_line == chunk.text.count("\n")


def _end(chunk: Chunk) -> int:
    return chunk.end


def passage_of(located: Located) -> Passage:
    """Return the text that was located, with where it is and whether the file still says so."""
    document, source, chunks, first, last, files = located
    part = chunks[first : last + 1]
    reach = [chunk.pages for chunk in part if chunk.pages]
    pages = (reach[0][0], reach[-1][1]) if reach else None
    where = page_span(*pages) if pages else f"{part[0].start_line}-{max(c.end_line for c in part)}"
    return Passage(
        document=document,
        source=source,
        text=joined(part),
        citation=f"{document.path}:{where}",
        start_line=part[0].start_line,
        end_line=max(c.end_line for c in part),
        pages=pages,
        heading=part[0].heading,
        freshness=files.freshness(document),
        before=cite(document, chunks[first - 1]) if first else None,
        after=cite(document, chunks[last + 1]) if last + 1 < len(chunks) else None,
    )


def _resolve(
    reference: str, catalog: Catalog, *, are_numbers_chunks: bool = True
) -> tuple[Document, Citation, int | None]:
    reference = reference.strip()
    if reference != encodable(reference):  # bytes that are no text: nothing is kept under such a name
        raise NotFound(f"nothing indexed is called {shown(reference, _SHOWN)}", hint=_LISTED)
    if document := catalog.document(reference):
        return document, Citation(document.path), None
    is_chunk = are_numbers_chunks and reference.isdecimal() and len(reference) < 19
    if is_chunk and (read := catalog.read([int(reference)])):
        ((chunk, document),) = read.values()
        return document, Citation(document.path), chunk.id
    for citation in _readings(reference):
        if found := _documents_at(citation.path, catalog):
            document = _only(found, citation.path)
            _check_order(reference, citation)
            return document, citation, None
    raise _not_found(parse_citation(reference).path, catalog)


def _readings(reference: str) -> list[Citation]:
    """Return what a reference may mean, the likeliest first: the name of a file can end like a citation."""
    known = [parse_citation(reference), Citation(reference), parse_place(reference)]
    return list(dict.fromkeys(one for one in known if one))


def _check_order(reference: str, citation: Citation) -> None:
    first, last = citation.lines or citation.pages or (0, 0)
    if first > last:
        page = "p" if citation.pages else ""
        raise BadValue(
            f"{shown(reference, _SHOWN)} ends before it begins", hint=f"{citation.path}:{page}{last}-{first}"
        )


def _documents_at(path: str, catalog: Catalog) -> list[Document]:
    """Find documents by citation path, by the end of one, or by where their file is."""
    if found := catalog.documents_at(path):
        return found
    try:
        file = Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # nobody's home, a loop of links, no name for a file at all
        return []
    source = holder(file, catalog.sources())
    if source is None or source.path is None:
        return []
    return catalog.documents_at(source.path_of(file.relative_to(source.path).as_posix()))


def _only(found: Sequence[Document], path: str) -> Document:
    if len(found) > 1:
        some = ", ".join(document.path for document in found[:5])
        raise BadValue(f"{shown(path, _SHOWN)} fits {len(found)} documents", hint=f"say which: {some}")
    return found[0]


def _not_found(path: str, catalog: Catalog) -> NotFound:
    """Return that nothing is called so, and what may be meant: a folder's documents, or a like name."""
    from concord.nearby_names import inside, like, paths_to_compare  # late: mostly something is called so

    known = paths_to_compare(catalog)
    if within := inside(path, known):
        return NotFound(
            f"{shown(path, _SHOWN)} is a folder", hint=f"name a document of it, such as {', '.join(within)}"
        )
    near = like(path, known)
    hint = f"did you mean {' or '.join(near)}?" if near else _LISTED
    return NotFound(f"nothing indexed is called {shown(path, _SHOWN)}", hint=hint)


def _meant(chunks: Sequence[Chunk], citation: Citation, chunk_id: int | None) -> list[int]:
    """Return which of the chunks a reference stands for; all of them for a path."""
    if chunk_id is not None:
        return [i for i, chunk in enumerate(chunks) if chunk.id == chunk_id]
    if citation.pages:
        return _on_pages(chunks, *citation.pages)
    return _holding(chunks, *citation.lines) if citation.lines else list(range(len(chunks)))


def _nothing_there(
    reference: str, citation: Citation, document: Document, chunks: Sequence[Chunk]
) -> NotFound:
    """Return the error for a citation of lines or pages that are not there, with those that are."""
    fault, extent = "points past the text", f"lines 1-{chunks[-1].end_line}"
    if citation.pages and chunks[-1].pages:
        known = document.details.get("pages")
        last = max(chunks[-1].pages[1], known if isinstance(known, int) else 0)
        fault = "holds no text" if citation.pages[0] <= last else fault
        whole, read = _run(1, last), _pages_with_text(chunks)
        extent = f"pages {whole}" if read == whole else f"pages {whole}, text on {read}"
    return NotFound(f"{shown(reference, _SHOWN)} {fault}", hint=f"{citation.path} has {extent}")


def _pages_with_text(chunks: Sequence[Chunk]) -> str:
    """Return the pages that chunks are on, as runs: 1-3, 7."""
    runs: list[tuple[int, int]] = []
    for first, last in (chunk.pages for chunk in chunks if chunk.pages):
        if runs and first <= runs[-1][1] + 1:
            first, last = runs[-1][0], max(runs.pop()[1], last)
        runs.append((first, last))
    return ", ".join(_run(*run) for run in runs)


def _run(first: int, last: int) -> str:
    return f"{first}-{last}" if first < last else str(first)


def _on_pages(chunks: Sequence[Chunk], first: int, last: int) -> list[int]:
    """Return the chunks that hold something of these pages."""
    reach = ((i, chunk.pages) for i, chunk in enumerate(chunks))
    return [i for i, pages in reach if pages and pages[0] <= last and pages[1] >= first]


def _holding(chunks: Sequence[Chunk], first: int, last: int) -> list[int]:
    """Return the chunk with exactly these lines, else every chunk that shares a line with them.

    A line longer than a chunk is in several chunks, and any of them may be meant.
    """
    exact = [i for i, chunk in enumerate(chunks) if (chunk.start_line, chunk.end_line) == (first, last)]
    return exact or [i for i, c in enumerate(chunks) if c.start_line <= last and c.end_line >= first]
