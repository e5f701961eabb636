"""Plain words, which nearly all queries are: the server sends their postings, and BM25 is worked out here.

SQL takes a microsecond to unnest, weigh, group and sort one posting. To send it and leave the rest to numpy
takes a tenth of that. The formula is that of `match.py`, which has phrases, beginnings and filters too.

numpy is loaded by those who search: it takes a while, and no other command needs it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from concord.backends.columns import WEIGHTS
from concord.backends.postgres.connections import Connection
from concord.backends.postgres.words import COUNT_BITS, LENGTH_BITS, MOST_COUNTED, lexemes
from concord.types import AllOf, AnyOf, Match, Phrase, Scored, Word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Integers = NDArray[np.int64]
    _Floats = NDArray[np.float64]

_K1, _B, _LEAST_IDF = 1.2, 0.75, 1e-6  # as `backends/bm25.py` has them
# A token in more chunks is only counted at first: most searches leave it out. So many are sent in half a
# millisecond.
SENT_WITH_COUNT = 5000
_ALL = 1 << 62

# First a row about all chunks: how many, their tokens, and whether postings may name some that are deleted,
# or superseded. Then one for each token, with the number of its chunks; then the postings of those tokens.
_READ = """
WITH t AS MATERIALIZED (
    SELECT p.term, sum(p.size) - coalesce((
        SELECT g.chunks FROM kb_gone AS g WHERE g.org = %(org)s AND g.term = p.term), 0) AS chunks
    FROM kb_postings AS p WHERE p.org = %(org)s AND p.term = ANY(%(terms)s) GROUP BY p.term)
SELECT NULL, array_send(ARRAY[o.chunks, o.tokens, o.stale, EXISTS (
    SELECT FROM kb_documents AS d WHERE d.org = %(org)s AND d.superseded_by IS NOT NULL)::int]), NULL::bytea
FROM kb_orgs AS o WHERE o.key = %(org)s
UNION ALL SELECT t.term, array_send(ARRAY[t.chunks::bigint]), NULL::bytea FROM t WHERE t.chunks > 0
UNION ALL SELECT p.term, array_send(p.chunks), array_send(p.packed)
FROM t JOIN kb_postings AS p ON p.org = %(org)s AND p.term = t.term
WHERE t.chunks BETWEEN 1 AND %(most)s"""

# An array of bigint as PostgreSQL sends it: five numbers, then each element after its size.
_HEAD_BYTES = 20
_ELEMENT = [("size", ">i4"), ("value", ">i8")]
_ELEMENT_BYTES = 12


class PlainWords(NamedTuple):
    """Tokens with how often each is asked for, and whether a chunk must hold all of them."""

    times: Counter[str]
    are_together: bool


def plain_words(match: Match) -> PlainWords | None:
    """Return the words of a match that is nothing else."""
    times: Counter[str] = Counter()
    for part in match.parts if isinstance(match, AllOf | AnyOf) else (match,):
        if not isinstance(part, Word | Phrase) or (isinstance(part, Word) and part.prefix):
            return None
        tokens = lexemes(part.text)
        if len(tokens) > 1:
            return None
        times.update(tokens)
    return PlainWords(times, isinstance(match, AllOf))


class Postings(NamedTuple):
    """The chunks that hold a token, and what it adds to the score of each."""

    chunks: _Integers
    scores: _Floats


class Tokens(NamedTuple):
    """What was read of some tokens."""

    chunks: int = 0  # in the organisation
    may_be_gone: bool = False  # whether postings may name chunks that were deleted
    may_be_superseded: bool = False  # or whose document has been replaced
    counts: Mapping[str, int] = {}  # token → chunks that hold it
    postings: Mapping[str, Postings] = {}  # of those tokens that are there, but for very frequent ones

    def unread(self, words: PlainWords) -> list[str]:
        """Return the tokens that must be read before words can be searched for."""
        times = words.times
        unread = [token for token in times if self.counts.get(token, 1) and token not in self.postings]
        if unread and words.are_together:
            rest = Counter({token: times[token] for token in times if token not in unread})
            if rest and not best(PlainWords(rest, True), self, 1):
                return []  # no chunk holds even the others
        return unread

    def joined(self, other: Tokens) -> Tokens:
        """Return what two readings have told, the other one later."""
        return other._replace(
            counts={**self.counts, **other.counts}, postings={**self.postings, **other.postings}
        )


class ReadWords(dict[str, int]):
    """How many chunks hold each word, and what was read besides to tell: a search need not read it again."""

    def __init__(self, counts: Mapping[str, int], tokens: Tokens) -> None:
        super().__init__(counts)
        self.tokens = tokens


def read_tokens(connection: Connection, org: int, tokens: Sequence[str], most: int = _ALL) -> Tokens:
    """Read tokens, with the postings of those that are in at most so many chunks."""
    values = {"org": org, "terms": tokens, "most": most}
    (_, about, _), *rows = connection.cursor(binary=True).execute(_READ, values).fetchall()
    chunks, length, stale, superseded = _values([about]).tolist()
    counts = dict.fromkeys(tokens, 0)
    counts |= {term: int.from_bytes(sent[-8:], "big") for term, sent, packed in rows if packed is None}
    sent = sorted(row for row in rows if row[2] is not None)
    idf = {token: _idf(chunks, count) for token, count in counts.items()}
    postings = _scored(sent, idf, _K1 * _B * chunks / max(length, 1)) if sent else {}
    return Tokens(chunks, stale > 0, superseded > 0, counts, postings)


def best(words: PlainWords, tokens: Tokens, limit: int) -> list[Scored]:
    """Return the best chunks that hold any of the words, or all, best first; ties by chunk id."""
    import numpy as np

    held = [
        (tokens.postings[token], times) for token, times in words.times.items() if token in tokens.postings
    ]
    if not held or (words.are_together and len(held) < len(words.times)):
        return []
    chunks = np.concatenate([one.chunks for one, _ in held])
    scores = np.concatenate([one.scores * times if times > 1 else one.scores for one, times in held])
    if len(held) > 1:
        chunks, place, number = np.unique(chunks, return_inverse=True, return_counts=True)
        scores = np.bincount(place, weights=scores)
        if words.are_together:
            is_whole = number == len(held)
            chunks, scores = chunks[is_whole], scores[is_whole]
    if limit < len(scores):
        is_best = scores >= np.partition(scores, -limit)[-limit]
        chunks, scores = chunks[is_best], scores[is_best]
    order = np.lexsort((chunks, -scores))[:limit]
    return list(map(Scored, chunks[order].tolist(), scores[order].tolist()))


def _scored(
    rows: Sequence[tuple[str, bytes, bytes]], idf: Mapping[str, float], slope: float
) -> dict[str, Postings]:
    """Return the postings in rows, those of a token side by side; all are worked out together."""
    import numpy as np

    sizes = [(len(held) - _HEAD_BYTES) // _ELEMENT_BYTES for _, held, _ in rows]
    chunks, packed = _values([held for _, held, _ in rows]), _values([one for _, _, one in rows])
    times: Any = sum((packed >> COUNT_BITS * at & MOST_COUNTED) * weight for at, weight in enumerate(WEIGHTS))
    rarity = np.repeat([idf[token] * (_K1 + 1) for token, _, _ in rows], sizes)
    scores = rarity / (1 + (_K1 * (1 - _B) + slope * (packed >> LENGTH_BITS)) / times)
    ends: dict[str, int] = {}
    for (token, _, _), end in zip(rows, accumulate(sizes), strict=True):
        ends[token] = end
    spans = zip(ends, (0, *ends.values()), ends.values(), strict=False)
    return {token: Postings(chunks[start:end], scores[start:end]) for token, start, end in spans}


def _idf(chunks: int, count: int) -> float:
    return math.log((chunks - count + 0.5) / (count + 0.5)) if 2 * count < chunks else _LEAST_IDF


def _values(sent: Iterable[bytes]) -> _Integers:
    """Return the elements of arrays, one array after the other."""
    import numpy as np

    elements = np.frombuffer(b"".join([one[_HEAD_BYTES:] for one in sent]), _ELEMENT)
    return elements["value"].astype(np.int64)
