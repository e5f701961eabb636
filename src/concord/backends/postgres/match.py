"""A match in SQL: every part becomes a relation of chunks and their BM25 scores, and parts become a whole.

The formula is FTS5's, as `tests/support/bm25.py` has it: the chunk with all its columns as the
unit of length and of document frequency, a column's weight multiplying how often a token occurs there.

Whatever is looked for is found by its tokens in `kb_postings`. An index for `@@` over the tsvectors would not
be used: under row-level policies PostgreSQL lets only operators that leak nothing go before the policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from concord.backends.postgres.words import COUNT_BITS, LABELS, LENGTH_BITS, MOST_COUNTED, lexemes
from concord.store.columns import WEIGHTS
from concord.store.matches import kept_and_dropped, wanted
from concord.store.sql_values import LAST_CHARACTER
from concord.text.tokens import K1, LEAST_IDF, B
from concord.types import AllOf, Match, Phrase, Without, Word

_MAX_DEPTH = 16  # of nested parts; nothing that a person types comes near
_LONGEST_PHRASE = 256  # tokens; the rest of a longer one could hardly tell two chunks apart

_IDF = (
    "CASE WHEN 2 * {df} < n.chunks THEN ln((n.chunks - {df} + 0.5) / ({df} + 0.5))"
    f" ELSE {LEAST_IDF:g} END"
)
# tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / mean)), divided by tf: a long expression is then read once.
_SATURATED = f"{K1 + 1:g} / (1 + ({K1 * (1 - B):g} + n.slope * {{length}}) / {{tf}})"
_WEIGHTED = " + ".join(
    f"(e.packed >> {COUNT_BITS * at} & {MOST_COUNTED}) * {weight}::float8"
    for at, weight in enumerate(WEIGHTS)
).join("()")
_LENGTH = f"(e.packed >> {LENGTH_BITS})"
_POSTINGS = "CROSS JOIN LATERAL unnest(p.chunks, p.packed) AS e (chunk, packed)"

# In how many chunks a token is: those that were written, without those that were deleted.
DOCUMENT_FREQUENCY = """
SELECT sum(p.size)
    - coalesce((SELECT g.chunks FROM kb_gone AS g WHERE g.org = %(org)s AND g.term = {term}), 0) AS chunks
FROM kb_postings AS p WHERE p.org = %(org)s AND p.term = {term}"""

# Every relation reads `n`: how many chunks the organisation has, and k1 · b divided by their mean length.
STATISTICS = f"""n AS MATERIALIZED (
    SELECT chunks::float8 AS chunks, {K1 * B:g}::float8 * chunks / greatest(tokens, 1) AS slope, stale
    FROM kb_orgs WHERE key = %(org)s)"""

# Tokens that are there, with their weight; and the chunks of the rarest of them, where only a chunk that
# holds all of them counts: the others' postings are then passed by without being scored, and not even read
# where one of the tokens is nowhere.
_TERMS = f"""t{{at}} AS MATERIALIZED (
    SELECT w.term, d.chunks, w.times * {_IDF.format(df="d.chunks")} AS idf
    FROM n CROSS JOIN unnest(%(terms{{at}})s::text[], %(times{{at}})s::float8[]) AS w (term, times)
    CROSS JOIN LATERAL ({DOCUMENT_FREQUENCY.format(term="w.term")}) AS d WHERE d.chunks > 0)"""
_RAREST = """r{at} AS MATERIALIZED (
    SELECT e.chunk FROM (SELECT term FROM t{at} ORDER BY chunks LIMIT 1) AS rare
    JOIN kb_postings AS p ON p.org = %(org)s AND p.term = rare.term
    CROSS JOIN LATERAL unnest(p.chunks) AS e (chunk)
    WHERE (SELECT count(*) FROM t{at}) = cardinality(%(terms{at})s::text[]))"""
_WORDS = f"""
SELECT e.chunk, t.idf * {_SATURATED.format(tf=_WEIGHTED, length=_LENGTH)} AS score
FROM n CROSS JOIN t{{at}} AS t JOIN kb_postings AS p ON p.org = %(org)s AND p.term = t.term {_POSTINGS}"""
_WORDS_TOGETHER = _WORDS + " JOIN r{at} AS r ON r.chunk = e.chunk"

_SCORED = f"""
SELECT f.chunk, {_IDF.format(df="f.df")} * {_SATURATED.format(tf="f.tf", length="f.length")} AS score
FROM n CROSS JOIN ({{found}}) AS f"""

_PREFIX = _SCORED.format(
    found=f"""
    SELECT e.chunk, sum({_WEIGHTED}) AS tf, min({_LENGTH}) AS length, count(*) OVER () AS df
    FROM kb_postings AS p {_POSTINGS} JOIN kb_chunks AS c ON c.org = %(org)s AND c.id = e.chunk
    WHERE p.org = %(org)s AND p.term >= %(from{{at}})s AND p.term < %(to{{at}})s GROUP BY e.chunk"""
)

# The chunks that hold a phrase: of those that hold all its tokens, the ones in which these stand together.
_HOLDERS = """
SELECT c.id AS chunk, c.length, c.words FROM (
    SELECT e.chunk FROM t{at} AS t JOIN kb_postings AS p ON p.org = %(org)s AND p.term = t.term
    CROSS JOIN LATERAL unnest(p.chunks) AS e (chunk) JOIN r{at} AS r ON r.chunk = e.chunk
    GROUP BY e.chunk HAVING count(*) = cardinality(%(terms{at})s::text[])
) AS h JOIN kb_chunks AS c ON c.org = %(org)s AND c.id = h.chunk WHERE c.words @@ %(query{at})s::tsquery"""
# Where each token stands, moved back by its place in the phrase: a place that all of them share is an
# occurrence of the whole.
_PHRASE = _SCORED.format(
    found=f"""
    SELECT o.chunk, sum((ARRAY{list(WEIGHTS)}::float8[])[strpos('{LABELS}', o.label)]) AS tf,
        min(o.length) AS length, count(*) OVER () AS df
    FROM (
        SELECT c.chunk, c.length, s.at - t.at AS start, min(s.label) AS label
        FROM ({_HOLDERS}) AS c CROSS JOIN LATERAL unnest(c.words) AS l
        JOIN unnest(%(phrase{{at}})s::text[], %(last{{at}})s::boolean[])
            WITH ORDINALITY AS t (term, is_begun, at)
            ON CASE WHEN t.is_begun THEN starts_with(l.lexeme, t.term) ELSE l.lexeme = t.term END
        CROSS JOIN LATERAL unnest(l.positions, l.weights) AS s (at, label)
        GROUP BY c.chunk, c.length, start HAVING count(*) = cardinality(%(phrase{{at}})s::text[])
    ) AS o GROUP BY o.chunk"""
)
UNSCORED = f"SELECT h.chunk, 0 AS score FROM ({_HOLDERS}) AS h"  # of a phrase whose chunks are only counted

_ANY = "SELECT u.chunk, sum(u.score) AS score FROM ({parts}) AS u GROUP BY u.chunk"
_ALL = _ANY + " HAVING count(*) = {size}"
_WITHOUT = """SELECT k.chunk, k.score FROM ({keep}) AS k
WHERE NOT EXISTS (SELECT 1 FROM ({drop}) AS x WHERE x.chunk = k.chunk)"""


class Relation:
    """The SQL of a match, what it reads, and the values that it names, gathered part by part."""

    def __init__(self, match: Match, phrase: str = _PHRASE) -> None:
        self._phrase = phrase
        self.values: dict[str, Any] = {}
        self._read = [STATISTICS]
        self.sql = self._render(match, _MAX_DEPTH)  # None when there is nothing to find

    @property
    def reads(self) -> str:
        """What stands before the statement in which the SQL is."""
        return "WITH " + ", ".join(self._read)

    def _render(self, match: Match, depth: int) -> str | None:
        if isinstance(match, Word | Phrase):
            return self._joined((match,), _ANY, depth)
        if depth == 0:
            return self._joined(wanted(match), _ANY, 1)
        if isinstance(match, Without):
            return self._without(match, depth)
        return self._joined(match.parts, _ALL if isinstance(match, AllOf) else _ANY, depth)

    def _joined(self, parts: Sequence[Match], template: str, depth: int) -> str | None:
        """Return the parts as one; plain words, which are most of them, are read together."""
        words: Counter[str] = Counter()
        relations: list[str] = []
        for part in parts:
            if isinstance(part, Word | Phrase):
                tokens = lexemes(part.text)
                if len(tokens) == 1 and not _is_begun(part):
                    words[tokens[0]] += 1
                elif tokens:
                    relations.append(self._leaf(tokens, _is_begun(part)))
            elif rendered := self._render(part, depth - 1):
                relations.append(rendered)
        if words:
            relations.append(self._words(words, _WORDS_TOGETHER if template is _ALL else _WORDS))
        if not relations:
            return None
        size = len(relations) - bool(words) + len(words)
        union = " UNION ALL ".join(f"({relation})" for relation in relations)
        return relations[0] if size == 1 else template.format(parts=union, size=size)

    def _words(self, words: Counter[str], template: str) -> str:
        return template.format(at=self._terms(words, template is _WORDS_TOGETHER))

    def _leaf(self, tokens: list[str], is_begun: bool) -> str:
        if len(tokens) == 1:
            start = tokens[0]
            return _PREFIX.format(at=self._named(**{"from": start, "to": start + LAST_CHARACTER}))
        tokens = tokens[:_LONGEST_PHRASE]
        last = [False] * (len(tokens) - 1) + [is_begun]
        whole = Counter(tokens[:-1] if is_begun else tokens)
        query = to_tsquery(tokens, is_begun)
        return self._phrase.format(at=self._terms(whole, True, phrase=tokens, last=last, query=query))

    def _terms(self, words: Counter[str], are_together: bool, **values: Any) -> int:
        """Have tokens looked up, and with them the chunks of the rarest."""
        at = self._named(terms=list(words), times=list(map(float, words.values())), **values)
        self._read += [_TERMS.format(at=at), *([_RAREST.format(at=at)] if are_together else [])]
        return at

    def _without(self, match: Without, depth: int) -> str | None:
        keep, dropped = kept_and_dropped(match)
        kept, drop = self._render(keep, depth - 1), self._joined(dropped, _ANY, depth)
        return _WITHOUT.format(keep=kept, drop=drop) if kept and drop else kept

    def _named(self, **values: Any) -> int:
        """Keep the values of a part under names of their own; return the number in these names."""
        at = len(self.values)
        self.values.update({f"{name}{at}": value for name, value in values.items()})
        return at


def to_tsquery(tokens: Sequence[str], is_begun: bool = False) -> str:
    """Return tokens next to each other in tsquery's own form; with `is_begun`, the last is a beginning."""
    quoted = [f"'{token}'" for token in tokens]  # a token holds neither quote nor backslash
    return " <-> ".join(quoted) + (":*" if is_begun else "")


def _is_begun(leaf: Word | Phrase) -> bool:
    return isinstance(leaf, Word) and leaf.prefix
