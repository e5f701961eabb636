"""Which passages are read and kept? Those in deleted files or with excluded words go, copies become one.

Twice as many are read as results are asked for, and more only if too few of them are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.whole_query import WholeQuery, whole_query
from concord.files.freshness import Files
from concord.ranking import duplicates
from concord.ranking.diversify import STRETCH, mmr
from concord.ranking.named.definitions import defines_missing
from concord.text.citation import cite
from concord.text.contains import contains
from concord.text.terms import written
from concord.types import Chunk, ChunkId, Degraded, Document, Query, Ranked, Survivor
from concord.worker_threads import Task

if TYPE_CHECKING:
    from concord.storage import Store

T = TypeVar("T")

READ_PER_RESULT = 2  # texts read for each result asked for: duplicates, diversity and NOT choose among them
READ_FURTHER = 200  # texts read in addition where none of the best defines the name that was asked for
READ_BY_WORDS = 20  # best by words, read in addition in case one holds the whole query
FILES_MS = 250.0  # how long files may keep silent: they take a millisecond, unless a disk does not answer
# How many such waits in a row, while further files keep answering: the machine is busy, not the disk gone.
FILES_WAITS = 4
UNSEEN = Degraded("files", f"the disk did not answer within {FILES_MS:.0f} ms: files may be gone or changed")


class Passages(Struct, frozen=True):
    """The passages that were read for a query and may be shown."""

    survivors: list[Survivor]
    first: list[Survivor]  # those among the first candidates: the same, however many results are asked for
    left_out: set[ChunkId]  # chunks that were read and are not to be shown
    deleted: int | None  # how many of these are in deleted files; None if the disk does not answer in time


def read_passages(kept: Sequence[Ranked], query: Query, store: Store, files: Files) -> Passages:
    """Read the best passages, and those further down that hold the whole query or define a missing name.

    A message that stands in a long passage about other things is far from it in meaning, and found by words.
    """
    survivors, left_out, deleted = _read_present(kept, query, store, files)
    first = _among_first(kept, survivors)
    unread = _unread(kept, survivors, left_out)
    if (whole := whole_query(query)) and (by_words := _best_by_words(unread, whole)):
        survivors += _read_further(by_words, whole.is_in, query, store, files)
    if is_missing := defines_missing(survivors, query):
        rest = _unread(unread, survivors, left_out)[:READ_FURTHER]
        survivors += _read_further(rest, is_missing, query, store, files)
    return Passages(survivors, first, left_out, deleted)


def _unread(ranked: Sequence[Ranked], survivors: Sequence[Survivor], left_out: set[ChunkId]) -> list[Ranked]:
    read = {one.ranked.chunk_id for one in survivors} | left_out
    return [one for one in ranked if one.chunk_id not in read]


def _best_by_words(ranked: Sequence[Ranked], whole: WholeQuery) -> list[Ranked]:
    """Return the chunks that may hold the whole query: the best of a strategy that would find it."""
    return [
        one
        for one in ranked
        if any(vote.strategy in whole.found_by and vote.rank <= READ_BY_WORDS for vote in one.votes)
    ]


def _read_present(
    kept: Sequence[Ranked], query: Query, store: Store, files: Files
) -> tuple[list[Survivor], set[ChunkId], int | None]:
    """Return the best passages whose files exist, which chunks were left out, and how many files are deleted.

    That number is None where the disk does not answer in time, and then nothing is left out.
    """
    survivors: list[Survivor] = []
    left_out: set[ChunkId] = set()
    deleted = 0
    pool = max(STRETCH, query.limit * READ_PER_RESULT)
    for start in range(0, len(kept), pool):
        few = kept[start : start + pool]
        found = _without_excluded(_read(few, store, files), query)
        left = unless_disk_hangs(partial(_existing, found, files), files, [one.document for one in found])
        survivors += found if left is None else left
        left_out |= {one.chunk_id for one in few} - {one.ranked.chunk_id for one in survivors}
        if left is None:
            return survivors, left_out, None
        deleted += len(found) - len(left)
        if len({survivor.chunk.text for survivor in survivors}) >= query.limit:
            break
    return survivors, left_out, deleted


def _read_further(
    ranked: Sequence[Ranked],
    is_wanted: Callable[[Survivor], bool],
    query: Query,
    store: Store,
    files: Files,
) -> list[Survivor]:
    """Return the passages among these that are wanted."""
    found = [one for one in _without_excluded(_read(ranked, store, files), query) if is_wanted(one)]
    left = unless_disk_hangs(partial(_existing, found, files), files, [one.document for one in found])
    return found if left is None else left


def _among_first(kept: Sequence[Ranked], survivors: Sequence[Survivor]) -> list[Survivor]:
    first = {one.chunk_id for one in kept[:STRETCH]}
    return [survivor for survivor in survivors if survivor.ranked.chunk_id in first]


def _existing(survivors: Sequence[Survivor], files: Files) -> list[Survivor]:
    """Return the passages whose files still exist."""
    return [survivor for survivor in survivors if not files.is_deleted(survivor.document)]


def unless_disk_hangs(look: Callable[[], T], files: Files, documents: Iterable[Document]) -> T | None:
    """Return what `look` finds out about documents' files; None if the disk does not answer in time."""
    if all(map(files.needs_no_disk, documents)):
        return look()
    looking = Task(look)
    for _ in range(FILES_WAITS):
        before = files.answers
        if (found := looking.result(FILES_MS)) is not None or files.answers == before:
            return found
    return None


def _read(few: Sequence[Ranked], store: Store, files: Files) -> list[Survivor]:
    """Read the texts of chunks, except those of a source that was added after this search began."""
    passages = store.catalog.read([one.chunk_id for one in few])
    found = [Survivor(one, *passages[one.chunk_id]) for one in few if one.chunk_id in passages]
    return [survivor for survivor in found if files.knows(survivor.document)]


def _without_excluded(survivors: Sequence[Survivor], query: Query) -> list[Survivor]:
    """Drop passages whose text, title, tags or headings hold an excluded word: vectors know no NOT."""
    if not query.excluded:
        return list(survivors)
    texts = ((survivor, indexed(survivor.chunk, survivor.document)) for survivor in survivors)
    return [one for one, text in texts if not any(contains(text, term) for term in query.excluded)]


def indexed(chunk: Chunk, document: Document) -> str:
    """Return all that words find a passage by."""
    return "\n".join((document.title, *chunk.heading, *document.tags, chunk.text))


def reordered(survivors: Sequence[Survivor], ranked: Sequence[Ranked]) -> list[Survivor]:
    """Return the passages in another order, each as it is ranked there."""
    by_id = {survivor.ranked.chunk_id: survivor for survivor in survivors}
    return [replace(by_id[one.chunk_id], ranked=one) for one in ranked]


def diverse(survivors: Sequence[Survivor], query: Query, limit: int, trade: float) -> list[Survivor]:
    """Collapse passages that say the same, then choose `limit` of them that say most together (MMR)."""
    texts = {s.chunk.id: s.chunk.text for s in survivors}
    words = {chunk_id: duplicates.word_set(text) for chunk_id, text in texts.items()}
    likeness, asked = duplicates.Likeness(words), frozenset(map(written, query.words))
    collapsed = duplicates.collapse(
        [s.ranked for s in survivors],
        likeness,
        lambda one, other: duplicates.says_the_same(texts[one], texts[other], asked),
    )
    chosen = mmr([one.ranked for one in collapsed], likeness, limit, trade)
    elsewhere = {one.ranked.chunk_id: one.duplicates for one in collapsed}
    by_id = {s.ranked.chunk_id: s for s in survivors}
    return [
        replace(survivor, also_at=tuple(cited(by_id[i]) for i in elsewhere[survivor.ranked.chunk_id]))
        for survivor in reordered(survivors, chosen)
    ]


def cited(survivor: Survivor) -> str:
    """Return where a passage is to be found."""
    return cite(survivor.document, survivor.chunk)
