"""Plain words, which nearly all queries are: the server sends their postings, and BM25 is worked out here.

SQL takes a microsecond to unnest, weigh, group and sort one posting. To send it and leave the rest to numpy
takes less than a tenth of that, unless there are so many that a network would be busy with them. The formula
is that of `match.py`, which has those, phrases, beginnings and filters too.

numpy is not loaded for a single search: that takes as long as several.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from struct import unpack
from typing import TYPE_CHECKING, Any, NamedTuple

from concord.backends.postgres.connections import Connection
from concord.backends.postgres.rows import array_of
from concord.backends.postgres.words import COUNT_BITS, LENGTH_BITS, MOST_COUNTED, lexemes
from concord.store.columns import WEIGHTS
from concord.text.tokens import K1, B, idfs
from concord.types import AllOf, AnyOf, Match, Phrase, Scored, Word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Integers = NDArray[np.int64]
    _Floats = NDArray[np.float64]

RARE = 5000  # chunks: a token in no more is worth reading at once, whatever share of all they are
MOST_SENT = 20_000  # postings for one query: half a megabyte, 4 ms of a gigabit network

# First a row about all chunks: how many, their tokens, and whether postings may name some that are deleted,
# or superseded. Then one for each token, with the number of its chunks; then the postings of all tokens that
# are sought. Where those are too many, a search for any of them is not for us, and one for all of them begins
# at the rarest: that alone is sent.
_COUNT = """
WITH n AS MATERIALIZED (SELECT chunks, tokens, stale FROM kb_orgs WHERE key = %(org)s),
counted AS (
    SELECT p.term, sum(p.size) AS size, sum(p.size) - coalesce((
        SELECT g.chunks FROM kb_gone AS g WHERE g.org = %(org)s AND g.term = p.term), 0) AS chunks
    FROM kb_postings AS p WHERE p.org = %(org)s AND p.term = ANY(%(terms)s) GROUP BY p.term),
t AS MATERIALIZED (
    SELECT c.term, c.size, c.chunks, w.is_sought, sum(c.size) FILTER (WHERE w.is_sought) OVER () AS total,
        row_number() OVER (ORDER BY c.size, c.term) AS place
    FROM counted AS c CROSS JOIN n
    CROSS JOIN LATERAL (SELECT c.chunks <= greatest(%(rare)s, %(share)s * n.chunks)) AS w (is_sought)
    WHERE c.chunks > 0)
SELECT NULL, array_send(ARRAY[n.chunks, n.tokens, n.stale, EXISTS (
    SELECT FROM kb_documents AS d WHERE d.org = %(org)s AND d.superseded_by IS NOT NULL)::int]), NULL::bytea
FROM n
UNION ALL SELECT t.term, array_send(ARRAY[t.chunks::bigint]), NULL::bytea FROM t
UNION ALL SELECT p.term, array_send(p.chunks), array_send(p.packed)
FROM t JOIN kb_postings AS p ON p.org = %(org)s AND p.term = t.term
WHERE t.is_sought AND CASE t.place WHEN 1 THEN t.size ELSE t.total END <= %(most)s"""

# Of tokens that are too frequent to be sent, the postings of some chunks.
_AMONG = """
SELECT p.term, array_send(array_agg(e.chunk)), array_send(array_agg(e.packed))
FROM kb_postings AS p CROSS JOIN LATERAL unnest(p.chunks, p.packed) AS e (chunk, packed)
JOIN unnest(%(ids)s::bigint[]) AS wanted (id) ON wanted.id = e.chunk
WHERE p.org = %(org)s AND p.term = ANY(%(terms)s) GROUP BY p.term"""

_Row = tuple[str, bytes, bytes]

# An array of bigint as PostgreSQL sends it: five numbers, then each element after its size.
_HEAD_BYTES = 20
_ELEMENT = [("size", ">i4"), ("value", ">i8")]
_ELEMENT_BYTES = 12


def may_score() -> bool:
    """Whether numpy has been loaded, by whomever. Else it takes longer than a search that the server does."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and not getattr(numpy.__spec__, "_initializing", False)


def prepare_to_score() -> None:
    """Have numpy loaded, without waiting for it."""
    threading.Thread(target=importlib.import_module, args=("numpy",), daemon=True).start()


class PlainWords(NamedTuple):
    """Tokens with how often each is asked for, and whether a chunk must hold all of them."""

    times: Counter[str]
    are_together: bool


@lru_cache(maxsize=64)  # asked for what is at hand, then for what is found
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
    slope: float = 0.0  # k1 · b divided by their mean length
    may_be_gone: bool = False  # whether postings may name chunks that were deleted
    may_be_superseded: bool = False  # or whose document has been replaced
    counts: Mapping[str, int] = {}  # token → chunks that hold it
    postings: Mapping[str, Postings] = {}  # of those tokens that are there, but for very frequent ones

    def suffice(self, words: PlainWords) -> bool:
        """Whether a search for these words needs no others."""
        return all(token in self.postings or self.counts.get(token) == 0 for token in words.times)

    def joined(self, other: Tokens) -> Tokens:
        """Return what two readings have told, the other one later."""
        return other._replace(
            counts={**self.counts, **other.counts}, postings={**self.postings, **other.postings}
        )

    def with_postings(self, rows: Sequence[_Row]) -> Tokens:
        """Return the same with the postings in rows."""
        if not rows:
            return self
        return self._replace(postings={**self.postings, **_scored(rows, self)})


class ReadWords(dict[str, int]):
    """How many chunks hold each word, and what was read besides to tell: a search need not read it again."""

    def __init__(self, counts: Mapping[str, int], tokens: Tokens) -> None:
        super().__init__(counts)
        self.tokens = tokens


def count_tokens(connection: Connection, org: int, tokens: Sequence[str], share: float | None) -> Tokens:
    """Count tokens; read the postings of those that are rare, or in at most such a share of all chunks."""
    most = 0 if share is None else MOST_SENT
    values = {"org": org, "terms": tokens, "share": share or 0.0, "rare": RARE, "most": most}
    (_, about, _), *rows = connection.cursor(binary=True).execute(_COUNT, values).fetchall()
    chunks, length, stale, superseded = unpack(">20x4xq4xq4xq4xq", about)
    counts = dict.fromkeys(tokens, 0)
    counts |= {term: int.from_bytes(sent[-8:], "big") for term, sent, packed in rows if packed is None}
    slope = K1 * B * chunks / max(length, 1)
    known = Tokens(chunks, slope, stale > 0, superseded > 0, counts)
    return known.with_postings([row for row in rows if row[2] is not None])


def completed(words: PlainWords, tokens: Tokens, connection: Connection, org: int) -> Tokens | None:
    """Return what was read, with what searching for these words needs besides; None where that is too much.

    A frequent word that must stand beside others is looked for only in the chunks that hold those.
    """
    unread = [token for token in words.times if tokens.counts[token] and token not in tokens.postings]
    if not unread:
        return tokens
    rest = Counter({token: times for token, times in words.times.items() if token not in unread})
    if not rest or not words.are_together:
        return None
    others = _holders(PlainWords(rest, True), tokens).chunks.tolist()
    if len(others) > RARE:
        return None
    values = {"org": org, "terms": unread, "ids": array_of(others)}
    return tokens.with_postings(
        connection.cursor(binary=True).execute(_AMONG, values).fetchall() if others else []
    )


def best(words: PlainWords, tokens: Tokens, limit: int) -> list[Scored]:
    """Return the best chunks that hold any of the words, or all, best first; ties by chunk id."""
    import numpy as np

    chunks, scores = _holders(words, tokens)
    if limit < len(scores):
        is_best = scores >= np.partition(scores, -limit)[-limit]
        chunks, scores = chunks[is_best], scores[is_best]
    order = np.lexsort((chunks, -scores))[:limit]
    return list(map(Scored, chunks[order].tolist(), scores[order].tolist()))


def _holders(words: PlainWords, tokens: Tokens) -> Postings:
    """Return the chunks that hold any of the words, or all, with their scores."""
    import numpy as np

    known = tokens.postings
    held = [(known[token], times) for token, times in words.times.items() if token in known]
    if not held or (words.are_together and len(held) < len(words.times)):
        return Postings(np.empty(0, np.int64), np.empty(0))
    chunks = np.concatenate([one.chunks for one, _ in held])
    scores = np.concatenate([one.scores * times if times > 1 else one.scores for one, times in held])
    if len(held) > 1:
        chunks, place = _numbered(chunks)
        scores = np.bincount(place, weights=scores)
        if words.are_together:
            is_whole = np.bincount(place) == len(held)
            chunks, scores = chunks[is_whole], scores[is_whole]
    return Postings(chunks, scores)


def _numbered(chunks: _Integers) -> tuple[_Integers, _Integers]:
    """Return different chunks in order, and of each given one which of them it is.

    So does `np.unique`. But the chunks of a token are in order already, and a stable sort, which makes use of
    that, takes a fifth of the time.
    """
    import numpy as np

    order = chunks.argsort(kind="stable")
    ascending = chunks[order]
    is_new = np.ones(len(chunks), bool)
    is_new[1:] = ascending[1:] != ascending[:-1]
    place = np.empty(len(chunks), np.int64)
    place[order] = is_new.cumsum() - 1
    return ascending[is_new], place


def _scored(rows: Sequence[_Row], tokens: Tokens) -> dict[str, Postings]:
    """Return the postings in rows; all are worked out together."""
    import numpy as np

    rows = sorted(rows)  # those of a token side by side
    sizes = [(len(held) - _HEAD_BYTES) // _ELEMENT_BYTES for _, held, _ in rows]
    chunks, packed = _values([held for _, held, _ in rows]), _values([one for _, _, one in rows])
    times: Any = sum((packed >> COUNT_BITS * at & MOST_COUNTED) * weight for at, weight in enumerate(WEIGHTS))
    rarities = idfs(tokens.chunks, tokens.counts)
    rarity = np.repeat([rarities[token] for token, _, _ in rows], sizes)
    scores = rarity * (K1 + 1) / (1 + (K1 * (1 - B) + tokens.slope * (packed >> LENGTH_BITS)) / times)
    ends = {token: end for (token, _, _), end in zip(rows, accumulate(sizes), strict=True)}
    spans = zip(ends, (0, *ends.values()), ends.values(), strict=False)
    return {token: Postings(chunks[start:end], scores[start:end]) for token, start, end in spans}


def _values(sent: Iterable[bytes]) -> _Integers:
    """Return the elements of arrays, one array after the other."""
    import numpy as np

    elements = np.frombuffer(b"".join([one[_HEAD_BYTES:] for one in sent]), _ELEMENT)
    return elements["value"].astype(np.int64)
