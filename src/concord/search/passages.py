"""Which texts are read, which repeat, which come? Candidates become passages, these the few to show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from concord.files.state import Files
from concord.search.deadline import Task
from concord.search.fuse import stretched
from concord.text.citations import cite
from concord.text.held import contains, token_set
from concord.text.word_lists import word_list
from concord.types import Chunk, ChunkId, Degraded, Document, Passage, Query, Ranked

if TYPE_CHECKING:
    from concord.store.contract import Store

T = TypeVar("T")

READ_PER_RESULT = 2  # texts read for each result asked for: duplicates, diversity and NOT choose among them
READ_AT_LEAST = 20  # so that asking for fewer results moves none
READ_BY_WORDS = 20  # best by all words, read in addition in case one holds the whole query
VERBATIM_WORDS = 4  # of a query: fewer stand together in many texts about something else, such as links
FILES_MS = 250.0  # how long files may keep silent: they take a millisecond, unless a disk does not answer
# How many such waits in a row, while further files keep answering: the machine is busy, not the disk gone.
FILES_WAITS = 4
UNSEEN = Degraded("files", f"the disk did not answer within {FILES_MS:.0f} ms: files may be gone or changed")
DUPLICATE = 0.95  # word-set similarity from which two passages are one text
# Less word overlap than this is sharing a subject: nDCG@10 is 0.4307 where it counts, 0.4353 where not.
REPETITION = 0.5


class Read(Struct, frozen=True):
    """The passages that were read for a query and may be shown."""

    passages: list[Passage]
    left_out: set[ChunkId]  # chunks that were read and are not to be shown
    deleted: int | None  # how many of these are in deleted files; None if the disk does not answer in time


def read_passages(ranked: Sequence[Ranked], query: Query, store: Store, files: Files) -> Read:
    """Read the best passages whose files exist, and those further down that may hold the whole query.

    What stands in a long passage about other things is far from it in meaning, and found by words.
    """
    passages: list[Passage] = []
    left_out: set[ChunkId] = set()
    deleted = 0
    pool = max(READ_AT_LEAST, query.limit * READ_PER_RESULT)
    for start in range(0, len(ranked), pool):
        few = [*ranked[start : start + pool], *(_by_words(ranked[pool:], query) if not start else ())]
        texts = _without_excluded(_read(few, store, files), query)
        left = unless_disk_hangs(partial(_existing, texts, files), files, [p.document for p in texts])
        passages += texts if left is None else left
        left_out |= {row.chunk_id for row in few} - {passage.chunk.id for passage in passages}
        if left is None:
            return Read(passages, left_out, None)
        deleted += len(texts) - len(left)
        if len({passage.chunk.text for passage in passages}) >= query.limit:
            break
    return Read(passages, left_out, deleted)


def _by_words(ranked: Sequence[Ranked], query: Query) -> list[Ranked]:
    """Return the chunks that have all words and rank best by them, where a whole query says something."""
    if len(query.meaning.split()) < VERBATIM_WORDS:
        return []
    return [row for row in ranked if row.candidate.ranks.get("fts_exact", math.inf) <= READ_BY_WORDS]


def _existing(passages: Sequence[Passage], files: Files) -> list[Passage]:
    return [passage for passage in passages if not files.is_deleted(passage.document)]


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


def _read(few: Sequence[Ranked], store: Store, files: Files) -> list[Passage]:
    """Read the texts of chunks, except those of a source that was added after this search began."""
    stored = store.catalog.read([row.chunk_id for row in few])
    passages = [Passage(row, *stored[row.chunk_id]) for row in few if row.chunk_id in stored]
    return [passage for passage in passages if files.knows(passage.document)]


def _without_excluded(passages: Sequence[Passage], query: Query) -> list[Passage]:
    """Drop passages whose text, title, tags or headings hold an excluded word: vectors know no NOT."""
    if not query.excluded:
        return list(passages)
    return [passage for passage in passages if not is_excluded(passage.chunk, passage.document, query)]


def is_excluded(chunk: Chunk, document: Document, query: Query) -> bool:
    """Whether a passage holds an excluded word."""
    text = indexed(chunk, document) if query.excluded else ""
    return any(contains(text, term) for term in query.excluded)


def indexed(chunk: Chunk, document: Document) -> str:
    """Return all that words find a passage by."""
    return "\n".join((document.title, *chunk.heading, *document.tags, chunk.text))


def collapse(passages: Sequence[Passage], query: Query) -> list[Passage]:
    """Make one of passages that say the same; the best stays and names where the others are."""
    kept: list[Passage] = []
    words_of: list[frozenset[str]] = []
    asked = frozenset(token for word in query.words for token in token_set(word))
    for passage in passages:
        words = token_set(passage.chunk.text)
        least, most = DUPLICATE * len(words), len(words) / DUPLICATE
        for at, others in enumerate(words_of):
            if least <= len(others) <= most and _say_the_same(words, others, asked):
                citation = cite(passage.document, passage.chunk)
                kept[at] = replace(kept[at], also_at=(*kept[at].also_at, citation))
                break
        else:
            kept.append(passage)
            words_of.append(words)
    return kept


def _say_the_same(words: frozenset[str], others: frozenset[str], asked: frozenset[str]) -> bool:
    """Whether two word sets are nearly equal, and what only one has is no number, negation or asked word."""
    bearable = len(words) - DUPLICATE / (1 + DUPLICATE) * (len(words) + len(others))  # a Jaccard of 0.95
    for word in words:
        if word not in others:
            bearable -= 1
            if bearable < 0:  # most texts differ within a few words, where comparing all would take long
                return False
    negations = word_list("negation")
    return not any(
        word in asked or word in negations or any(map(str.isdigit, word)) for word in words ^ others
    )


def jaccard(words: frozenset[str], others: frozenset[str]) -> float:
    """Return the Jaccard similarity of two word sets; 0 where both are empty."""
    shared = len(words & others)
    union = len(words) + len(others) - shared
    return shared / union if union else 0.0


def diversify(
    passages: Sequence[Passage], relevance: Sequence[float], limit: int, *, trade: float, per_document: int
) -> list[Passage]:
    """Choose `limit` passages that say most together; one that moved says from which rank.

    Maximal marginal relevance (Carbonell and Goldstein 1998) picks by λ·relevance − (1 − λ)·similarity
    to what is picked. Relevance is stretched to [0, 1] within the list: a fused score near 0.016 would leave
    λ without meaning. At most `per_document` passages of a document are picked before all others have had
    their turn; 0 sets no such limit.
    """
    worth = stretched(relevance, min(relevance[:READ_AT_LEAST], default=0.0))
    waiting = sorted(range(len(passages)), key=lambda at: -worth[at])
    documents = [passage.document.id for passage in passages]
    counts, most = dict.fromkeys(documents, 0), per_document or len(passages)
    picked: list[int] = []
    words = [token_set(passage.chunk.text) for passage in passages]

    repetition = [0.0] * len(passages)  # of each, with those picked that it was compared with
    compared = [0] * len(passages)

    def repeated(at: int) -> float:
        """Compare with what was picked since the last time: a long list would take its cube otherwise."""
        shared = (jaccard(words[at], words[other]) for other in picked[compared[at] :])
        # Below REPETITION both are only about the same.
        repetition[at] = max([repetition[at], *(share for share in shared if share >= REPETITION)])
        compared[at] = len(picked)
        return repetition[at]

    while waiting and len(picked) < limit:
        allowed = [at for at in waiting if counts[documents[at]] < most]
        if not allowed:
            most += 1
            continue
        best = _pick(allowed, worth, trade, repeated)
        picked.append(best)
        counts[documents[best]] += 1
        waiting.remove(best)
    return [
        passages[was]
        if was + 1 == now
        else replace(passages[was], ranked=replace(passages[was].ranked, moved_from=was + 1))
        for now, was in enumerate(picked, 1)
    ]


def _pick(
    waiting: Sequence[int], worth: Sequence[float], trade: float, repeated: Callable[[int], float]
) -> int:
    best, most = waiting[0], -math.inf
    for at in waiting:
        if trade * worth[at] <= most:
            break  # even if it repeated nothing it would not be better, nor would any after it
        score = trade * worth[at] - (1 - trade) * repeated(at)
        if score > most:  # of equals the first, which was ranked higher
            best, most = at, score
    return best
