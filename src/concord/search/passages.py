"""Which texts are read, what lifts one, which repeat, which come? Candidates become passages, these hits.

Lifted is a passage in which the query's words stand close, one that mentions its names, one in frequent use.
A boost is a share of the range of all scores, so that it means the same whichever fusion made them.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from concord.core.errors import BackendDown, StoreBusy
from concord.files.state import Files
from concord.search.blend import rareness, smoothed_idfs
from concord.search.classify import mentions
from concord.search.deadline import run_within
from concord.search.fuse import stretched
from concord.text.citations import cite
from concord.text.held import contains, held_words, neighbours, token_set
from concord.text.names import line_of
from concord.text.tokens import idfs, pattern
from concord.text.word_lists import significant, word_list
from concord.types import Access, Chunk, ChunkId, Degraded, Document, Passage, Query, Ranked

if TYPE_CHECKING:
    from concord.store.contract import Journal, Store

T = TypeVar("T")

READ_PER_RESULT = 2  # texts read for each result asked for: duplicates, diversity and NOT choose among them
READ_AT_LEAST = 20  # so that asking for fewer results moves none
READ_BY_WORDS = 20  # best by all words, read in addition in case one holds the whole query
VERBATIM_WORDS = 4  # of a query: fewer stand together in many texts about something else, such as links
FILES_MS = 1000.0  # how long files may keep silent: they take a millisecond, unless a disk does not answer
UNSEEN = Degraded("files", f"the disk did not answer within {FILES_MS:.0f} ms: files may be gone or changed")
DUPLICATE = 0.95  # word-set similarity from which two passages are one text
# Less word overlap than this is sharing a subject: nDCG@10 is 0.4307 where it counts, 0.4353 where not.
REPETITION = 0.5

# Shares of the range of scores. The first two were chosen on collections of questions, which they hardly
# change, and on pairs of rare words that had to be found where they stand together (`benchmarks lookup`).
NEIGHBOURS = 0.2  # for a text in which all neighbours of the query stand close
VERBATIM = 1.6  # on top of it, for one that has the whole query in its order, if all its words are rare
NAMED = 2.0  # for a chunk that defines what the query names: more than all others together
COVERAGE = 0.05  # for a text that holds all words of the query; less among code, where names say more
ENTITY = 0.1  # lifts a mention past near ties, not past a clear lead
USAGE = 0.05  # a starting point until somebody has judged a log of their own
HALF_LIFE_S = 7 * 86_400.0
HALF_TIMES = 3.0  # so many readings count half as much as infinitely many
# The share of a question all of whose significant words stand in their order: just below 1, which only
# queries without stop words reach.
SUBJECT = 0.99
MAX_PAIRS = 16  # that are looked for: more of a pasted page would take time and not improve the order
SENTENCE_WORDS = 3  # two words, one of them a stop word, stand in a text in their order by chance
MAX_WORDS = 64  # of a query that are looked for in a text: more could hardly tell two places apart
_WORD = pattern(r"[^\W_]+")


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
    read: set[ChunkId] = set()
    left_out: set[ChunkId] = set()
    deleted = 0
    pool = max(READ_AT_LEAST, query.limit * READ_PER_RESULT)
    for start in range(0, len(ranked), pool):
        few = [row for row in ranked[start : start + pool] if row.chunk_id not in read]
        if not start and len(query.meaning.split()) >= VERBATIM_WORDS:
            few += [
                row
                for row in ranked[pool:]
                if row.candidate.ranks.get("fts_exact", math.inf) <= READ_BY_WORDS
            ]
        texts = _read(few, query, store, files)

        def existing(texts: Sequence[Passage] = texts) -> list[Passage]:
            return [passage for passage in texts if not files.is_deleted(passage.document)]

        left = unless_disk_hangs(existing, files, [passage.document for passage in texts])
        passages += texts if left is None else left
        read |= {row.chunk_id for row in few}
        left_out = read - {passage.chunk.id for passage in passages}
        if left is None:
            return Read(passages, left_out, None)
        deleted += len(texts) - len(left)
        if len({passage.chunk.text for passage in passages}) >= query.limit:
            break
    return Read(passages, left_out, deleted)


def unless_disk_hangs(look: Callable[[], T], files: Files, documents: Iterable[Document]) -> T | None:
    """Return what `look` finds out about documents' files; None if the disk does not answer in time."""
    if all(map(files.needs_no_disk, documents)):
        return look()
    return run_within(look, FILES_MS)


def _read(few: Sequence[Ranked], query: Query, store: Store, files: Files) -> list[Passage]:
    """Read the texts of chunks, but of none with an excluded word: vectors know no NOT.

    Nor those of a source that was added after this search began.
    """
    stored = store.catalog.read([row.chunk_id for row in few])
    passages = (Passage(row, *stored[row.chunk_id]) for row in few if row.chunk_id in stored)
    return [
        passage
        for passage in passages
        if files.knows(passage.document) and not is_excluded(passage.chunk, passage.document, query)
    ]


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


def boost(
    passages: Sequence[Passage], query: Query, journal: Journal | None = None, *, by_name: bool = False
) -> list[Passage]:
    """Return the passages, each with its closeness, in their boosted order.

    The journal knows how often documents were read, if the user wants that to count. `by_name` is for fusions
    that know ranks alone, and not what a chunk defines.
    """
    accesses = journal.accesses(list({p.document.id for p in passages})) if journal else {}
    close, worths = closeness_in(query), smoothed_idfs(query.chunks, query.frequencies)
    has_words = any(passage.ranked.candidate.lexical_rank for passage in passages)
    passages = [
        replace(p, closeness=close(p) if has_words else 0.0, coverage=_coverage(p, worths)) for p in passages
    ]
    rare = rareness(query.chunks, query.frequencies)
    # Of the first few, so that asking for more moves none; those that have an asked name are far ahead.
    few = passages[:READ_AT_LEAST]
    scores = [p.ranked.score for p in few if not p.ranked.candidate.name_score] or [0.0]
    reach, now = (max(scores) - min(scores)) or 1.0, time.time()  # where all are equal, a boost counts
    prose = sum(passage.document.type != "code" for passage in few) if has_words else 0

    def boosted(passage: Passage) -> float:
        share = NEIGHBOURS * passage.closeness + (VERBATIM * rare if passage.closeness == 1 else 0.0)
        share += ENTITY if mentions(query.entities, passage.chunk.text) else 0.0
        access = accesses.get(passage.document.id)
        share += USAGE * habit(access, now) if access else 0.0
        share += COVERAGE * prose / max(1, len(few)) * passage.coverage
        share += NAMED * passage.ranked.candidate.name_score if by_name else 0.0
        return passage.ranked.score + reach * share

    scored = [replace(p, ranked=replace(p.ranked, score=boosted(p))) for p in passages]
    # Best first; ties as in `fuse`.
    return sorted(scored, key=lambda p: (-p.ranked.score, -len(p.ranked.candidate.ranks), p.chunk.id))


def _coverage(passage: Passage, worths: Mapping[str, float]) -> float:
    held = held_words(worths, passage.chunk.text)
    if len(held) < len(worths):
        held |= held_words(worths.keys() - held, passage.document.title)
    total = math.fsum(worths.values())
    return math.fsum(worths[word] for word in held) / total if total else 0.0


def closeness_in(query: Query) -> Callable[[Passage], float]:
    """Return what tells how close a query's words stand in a passage, from 0 to 1: all of it, in order."""
    weights = idfs(query.chunks, query.frequencies)
    words = [pair for pair in pairwise(query.words[: MAX_PAIRS + 1]) if pair[0] != pair[1]]
    pairs = {pair: min(weights.get(word, 0.0) for word in pair) for pair in words}
    in_order, total = tuple(pairs), sum(pairs.values()) or 1.0
    typed = query.meaning.split()
    is_bare, is_question = len(significant(typed)) == len(typed), is_sentence(query)
    asked = token_set(query.meaning)

    def close(passage: Passage) -> float:
        text, title = passage.chunk.text, passage.document.title
        # Its words need not stand close: "node is not the leader" has three others between them.
        if is_question and token_set(text).issuperset(asked) and contains(text, query.meaning):
            return 1.0
        near = neighbours(text, in_order)
        if len(near) < len(pairs):
            near += [pair for pair in neighbours(title, in_order) if pair not in near]
        if near and len(near) == len(pairs):
            return 1.0 if is_bare else SUBJECT
        return sum(pairs[pair] for pair in near) / total

    return close


def is_sentence(query: Query) -> bool:
    """Whether a query is a whole sentence of some words: no text has all of it in its order by chance."""
    typed = query.meaning.split()
    return len(typed) >= SENTENCE_WORDS and len(significant(typed)) < len(typed)


def habit(access: Access, now: float) -> float:
    """Return how habitually a document is read, from 0 to 1: how often, fading since it was last read."""
    recency = 0.5 ** (max(0.0, now - access.last_at) / HALF_LIFE_S)
    return float(recency * access.times / (access.times + HALF_TIMES))


def record_reading(document_id: str, journal: Journal) -> None:
    """Count that a document was read."""
    with suppress(StoreBusy, BackendDown):  # reading must not fail because counting does
        journal.record_access([document_id], time.time())


def line_to_show(passage: Passage, query: Query) -> int | None:
    """Return where the line begins that the snippet shows: that of the asked name, or of the whole query."""
    if passage.ranked.candidate.name_score:
        text, type = passage.chunk.text, passage.document.type
        lines = (line_of(name, type, text) for name in query.names)
        return next((line for line in lines if line is not None), None)
    if passage.closeness < 1 or not is_sentence(query):
        return None
    words = _WORD.findall(query.meaning)[:MAX_WORDS]
    form = r"[\W_]+".join(map(re.escape, words))
    match = re.search(rf"(?<![^\W_]){form}(?![^\W_])", passage.chunk.text, re.IGNORECASE)
    return match.start() if match else None


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

    while waiting and len(picked) < limit:
        allowed = [at for at in waiting if counts[documents[at]] < most]
        if not allowed:
            most += 1
            continue
        best, score = allowed[0], -math.inf
        for at in allowed:
            if trade * worth[at] <= score:
                break  # even if it repeated nothing it would not be better, nor would any after it
            # With what was picked since the last time: a long list would take its cube otherwise.
            shared = (jaccard(words[at], words[other]) for other in picked[compared[at] :])
            # Below REPETITION both are only about the same.
            repetition[at] = max([repetition[at], *(share for share in shared if share >= REPETITION)])
            compared[at] = len(picked)
            own = trade * worth[at] - (1 - trade) * repetition[at]
            if own > score:  # of equals the first, which was ranked higher
                best, score = at, own
        picked.append(best)
        counts[documents[best]] += 1
        waiting.remove(best)
    return [
        passages[was]
        if was + 1 == now
        else replace(passages[was], ranked=replace(passages[was].ranked, moved_from=was + 1))
        for now, was in enumerate(picked, 1)
    ]
