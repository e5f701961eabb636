"""Warm search through the library, beside its parts run by hand: embed the query, two FTS statements, one
vector statement, one after the other, nothing made of what they find.

The ratio is held to its target in processor time: the library asks at once what the baseline asks in turn, so
on an idle machine less time passes than it works, and on a busy one its threads wait for a processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import apsw
import sqlite_vec

from benchmarks.bare import BareModel
from benchmarks.measure import (
    Cost,
    Row,
    at_most,
    await_codes,
    cost_of,
    cpu_ms,
    elapsed_ms,
    in_turn,
    milliseconds,
    p95_ms,
    sized,
)
from benchmarks.synthetic import filled_store, questions
from benchmarks.understood import understood
from concord.knowledge import KnowledgeBase
from concord.store.rows import WEIGHTS
from concord.store.sqlite.file import locate
from concord.store.sqlite.words import to_match

SIZES = sized((10_000, 100_000), (400,))
QUERIES = sized(120, 4)  # more than the library remembers the vectors of
WARM_UP = sized(20, 2)
MOST_PARTS = 1.5
MOST_P95_MS = 30.0
CANDIDATES = 40

_WORDS = """
SELECT rowid, -bm25(kb_chunks_fts, ?, ?, ?, ?) AS score FROM kb_chunks_fts WHERE kb_chunks_fts MATCH ?
ORDER BY score DESC LIMIT ?"""
_NEAREST = "SELECT rowid, distance FROM kb_vectors_1 WHERE embedding MATCH ? AND k = ?"


class Asked(NamedTuple):
    """A query, and what the two FTS statements for it look for."""

    text: str
    exact: str
    loose: str


def run() -> Iterator[Row]:
    """Compare at both sizes."""
    for chunks in SIZES:
        yield from _at(chunks)


def _at(chunks: int) -> Iterator[Row]:
    url = filled_store(chunks)
    with KnowledgeBase.open(store__url=url) as kb:
        kb.warm()
        parts = BareParts(url)
        asked = [_asked(text, kb) for text in questions(QUERIES + WARM_UP)]
        for question in asked[QUERIES:]:
            kb.search(question.text)
            parts.search(question)
        await_codes()
        costs = _compare(asked[:QUERIES], kb, parts)
    what = f"search, {chunks:,} chunks"
    work, bare_work = cpu_ms(costs["ours"]), cpu_ms(costs["bare"])
    yield at_most(f"{what}, cpu", milliseconds(work), milliseconds(bare_work), work / bare_work, MOST_PARTS)
    ours, bare = elapsed_ms(costs["ours"]), elapsed_ms(costs["bare"])
    yield Row(f"{what}, p50", milliseconds(ours), milliseconds(bare), ours / bare)
    slow, bare_slow = p95_ms(costs["ours"]), p95_ms(costs["bare"])
    row = Row(f"{what}, p95", milliseconds(slow), milliseconds(bare_slow), slow / bare_slow)
    limit = MOST_P95_MS if chunks == SIZES[0] else None
    yield row._replace(target=f"< {limit:g} ms", is_met=slow < limit) if limit else row


def _compare(asked: list[Asked], kb: KnowledgeBase, parts: BareParts) -> dict[str, list[Cost]]:
    turns = {"ours": count(), "bare": count()}
    return in_turn(
        len(asked),
        {
            "ours": lambda: cost_of(lambda: kb.search(asked[next(turns["ours"])].text)),
            "bare": lambda: cost_of(lambda: parts.search(asked[next(turns["bare"])])),
        },
    )


def _asked(text: str, kb: KnowledgeBase) -> Asked:
    """Return a query with the MATCH strings that the library would use, frequent words pruned."""
    query = understood(kb, text)
    exact, loose = (to_match(match) if match else None for match in (query.exact, query.loose))
    return Asked(text, exact or '""', loose or '""')


class BareParts:
    """The parts of a search, by hand: one connection, one session, no threads of our own."""

    def __init__(self, url: str) -> None:
        self._connection = apsw.Connection(str(locate(url, "default").path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._model = BareModel()

    def search(self, asked: Asked) -> None:
        """Run all parts."""
        vector = self._model.embed(asked.text)
        for expression in (asked.exact, asked.loose):
            self._connection.execute(_WORDS, (*WEIGHTS, expression, CANDIDATES)).fetchall()
        self._connection.execute(_NEAREST, (vector, CANDIDATES)).fetchall()
