"""Which documents mention each other, and which have been replaced? Known once a sync has stored its files.

What a document links to is stored with it. Mentions depend on two documents: the words of one, the title of
the other. So documents that were stored wait: their texts are searched for all titles, and all other texts
for theirs. A title that stands in too many chunks says nothing, and is not kept.

A note supersedes what its author names. Files say it in their text (`text/document.py`): a sync compares
what all files of a source say with what the catalog has. So it does not matter which file was read first,
which has gone since, or whether a run was interrupted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.protocols import Progress
from concord.index.documents import UPDATED_AT_ONCE, WHOLE_DOCUMENTS
from concord.store.contract import Catalog, Select, Store
from concord.text.document import declares, successors
from concord.text.links import Named
from concord.text.tokens import folded
from concord.types import ChunkId, Filter, Phrase, Source, silent

COMMON_SHARE = 0.01  # of all chunks: a title in more of them says nothing of any
COMMON_FROM = 20  # chunks: in a small collection no title is too common below that
MOST_MENTIONED = 64  # titles in one chunk: what has more is a list of titles
_SEARCHED_SHARE = 0.05  # titles a chunk from which on reading all texts costs less than searching each title
_ALIKE = 4  # phrases are searched by stems: of so many times the limit some may be mentions
_EVERYTHING = Filter(include_superseded=True)


class Mentions:
    """Finds titles in texts."""

    def __init__(self, titles: Iterable[Named]) -> None:
        self._by_opening: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)  # in words
        self._first: set[str] = set()
        for called in titles:
            self._first.add(called.name.partition(" ")[0])
            self._by_opening[called.opening][called.name] = called.title
            self._lengths[called.opening].add(called.name.count(" ") + 1)

    def drop(self, names: Iterable[str]) -> None:
        """Look for some titles no more."""
        for name in names:
            self._by_opening.get(Named(name, name).opening, {}).pop(name, None)

    def within(self, text: str, tokens: Sequence[str]) -> set[str]:
        """Return the titles in a text, of titles within each other the longest; no more than count."""
        found: set[str] = set()
        end = 0
        # Few words begin a title: they are picked out first, because every text is read word by word.
        first = self._first
        for at in [at for at, word in enumerate(tokens) if word in first]:
            if at >= end and len(found) < MOST_MENTIONED and (name := self._at(text, tokens, at)):
                found.add(name)
                end = at + name.count(" ") + 1
        return found

    def _at(self, text: str, tokens: Sequence[str], at: int) -> str:
        """Return the longest title that begins at a token; empty if none does."""
        opening = " ".join(tokens[at : at + 2])
        for length in sorted(self._lengths.get(opening, ()), reverse=True):
            name = " ".join(tokens[at : at + length])
            if name in self._by_opening[opening]:
                return name
        title = self._by_opening.get(tokens[at], {}).get(tokens[at], "")
        return tokens[at] if title and is_name(title) and title in text else ""


def is_name(title: str) -> bool:
    """Whether a title of one word is seen to be one in a text: by its capital, a digit or a mark in it."""
    return not (title.isalpha() and title.islower())


def find_mentions(store: Store, progress: Progress = silent) -> None:
    """Find the titles that waiting documents mention, and the texts that mention theirs."""
    chunks = store.catalog.count().chunks
    limit = max(COMMON_FROM, int(COMMON_SHARE * chunks))
    titles = [*store.links.titles(new=True), *store.links.revived(limit)]
    if len(titles) > _SEARCHED_SHARE * chunks:
        store.links.await_all()
    else:
        for called in titles:
            _search(called, store, limit)
    _read_waiting(store, limit, progress)


def _search(called: Named, store: Store, limit: int) -> None:
    """Find the chunks that mention one document."""
    most = _ALIKE * limit
    found = store.words.search(Phrase(called.name), _EVERYTHING, most + 1)
    if len(found) > most:
        store.links.drop_common({called.name: len(found)})
        return
    mentions = Mentions([called])
    texts = store.catalog.read([scored.chunk_id for scored in found])
    held = {id: mentions.within(chunk.text, folded(chunk.text)) for id, (chunk, _) in texts.items()}
    _keep({id: names for id, names in held.items() if names}, store, limit)


def _read_waiting(store: Store, limit: int, progress: Progress) -> None:
    """Read the documents that wait, and find what they mention."""
    titles: Mentions | None = None
    done = 0
    while group := store.links.waiting(WHOLE_DOCUMENTS):
        texts = {
            chunk.id: (chunk.text, folded(chunk.text)) for id in group for chunk in store.catalog.chunks(id)
        }
        if len(group) < WHOLE_DOCUMENTS and titles is None:
            mentions = Mentions(
                store.links.titles_opening(list(_openings(tokens for _, tokens in texts.values())))
            )
        else:
            mentions = titles = titles or Mentions(store.links.titles())
        found = {
            id: names for id, (text, tokens) in texts.items() if (names := mentions.within(text, tokens))
        }
        mentions.drop(_keep(found, store, limit))
        store.links.done(group)
        done += len(group)
        progress("links", done, None)


def _openings(texts: Iterable[Sequence[str]]) -> set[str]:
    """Return all words of texts, and all pairs of neighbours: every title in them begins so."""
    return {part for tokens in texts for part in (*tokens, *map(" ".join, pairwise(tokens)))}


def _keep(found: Mapping[ChunkId, Iterable[str]], store: Store, limit: int) -> list[str]:
    """Store mentions; return the titles that stand in too many chunks, which are not kept."""
    if not found:
        return []
    counts = store.links.put_mentions(found)
    common = {name: count for name, count in counts.items() if count > limit}
    if common:
        store.links.drop_common(common)
    return list(common)


def settle_supersession(source: Source, catalog: Catalog) -> bool:
    """Mark documents as superseded, as the files of a source say; return whether any file says so."""
    documents = list(catalog.documents(Select(source_id=source.id)))
    own, wanted = {None, *(document.id for document in documents)}, successors(documents, source.prefix)
    changed = {  # what a note supersedes stays so
        document.id: document.superseded_by
        for document in documents
        if document.superseded_by != wanted.get(document.id) and document.superseded_by in own
    }
    for ids in batched(changed, UPDATED_AT_ONCE):
        # As they are now: somebody may have changed them since they were read, or superseded them by a note.
        current = catalog.documents(Select(ids))
        catalog.update_documents(
            [
                replace(document, superseded_by=wanted.get(document.id))
                for document in current
                if document.superseded_by == changed[document.id]
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
