"""What PostgreSQL is given of words ready made, tsvectors and postings, is what it would make of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.errors import BadValue
from concord.store.columns import Columns
from concord.types import Piece, Word
from contract.stored import EVERYTHING, document, put
from support.postgres_server import server_url
from support.stores import postgres_store

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.backends.postgres import segment  # noqa: E402
from concord.backends.postgres.segment import Growing, Segment  # noqa: E402
from concord.backends.postgres.store import PostgresStore  # noqa: E402
from concord.backends.postgres.words import LABELS, lexemes  # noqa: E402

TEXTS = st.lists(
    st.sampled_from(["the", "running", "Ünder", "δέλτα", "日本", "null", "it's", "x" * 300, "ü" * 900])
).map(" ".join)
COLUMNS = st.builds(Columns, TEXTS, TEXTS | st.text(), TEXTS, TEXTS)


store = pytest.fixture(postgres_store)


def new_segment(chunks: Iterable[tuple[int, Columns]]) -> Segment:
    return Growing(chunks).whole()


def text_form(columns: Columns) -> str:
    """A tsvector as one would write it down."""
    places = defaultdict[str, list[str]](list)
    position = 1
    for label, text in zip(LABELS, columns, strict=True):
        tokens = lexemes(text)
        for at, token in enumerate(tokens, position):
            places[token].append(f"{at}{label}")
        position += len(tokens) + 1
    return " ".join(f"'{token}':{','.join(found)}" for token, found in places.items())


def differing(chunks: Sequence[Columns]) -> list[tuple[Any, ...]]:
    """The tsvectors that are not what PostgreSQL makes of their text form."""
    words = new_segment(enumerate(chunks)).indexed(0, len(chunks)).words
    with psycopg.connect(server_url()) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            """SELECT made, written FROM unnest(%s, %s::text[]) AS given (made, written)
            WHERE made IS DISTINCT FROM written::tsvector""",
            (words, list(map(text_form, chunks))),
        ).fetchall()
        return rows


@given(st.lists(COLUMNS, min_size=1, max_size=4))
@settings(max_examples=60)
def test_a_tsvector_is_what_its_text_form_says(chunks: list[Columns]):
    assert differing(chunks) == []


def test_a_tsvector_leaves_out_what_postgresql_cannot_keep():
    many = " ".join(["often"] * 300)
    far = " ".join(f"w{number}" for number in range(16_380))
    assert differing([Columns("title", many, many, ""), Columns("", far, "end end", "end")]) == []


@given(st.lists(COLUMNS, min_size=1, max_size=9), st.integers(0, 9))
@settings(max_examples=60)
def test_some_chunks_of_a_segment_have_the_tsvectors_that_they_have_by_themselves(
    chunks: list[Columns], start: int
):
    start = min(start, len(chunks) - 1)
    together = new_segment(enumerate(chunks)).indexed(start, len(chunks))
    assert together == new_segment(enumerate(chunks[start:])).indexed(0, len(chunks) - start)


def test_tokens_are_in_the_order_of_a_tsvector_or_the_server_would_sort_them():
    words = " ".join(f"{letter}{number}" for number in range(30, 0, -1) for letter in "qéa日")
    new_segment([(1, Columns("", "later first", "", ""))])
    for text in (words, f"zz aa b {words} later"):  # of new words, and of such among known ones
        made = new_segment([(1, Columns("", text, "", ""))]).indexed(0, 1).words.items
        tokens = tokens_of(made)
        assert len(tokens) > 100
        assert tokens == sorted(tokens)


def tokens_of(tsvector: bytes) -> list[bytes]:
    """Return the tokens of one in the form in which it is sent, after its length."""
    found, at = list[bytes](), 8
    while at < len(tsvector):
        end = tsvector.index(b"\0", at)
        found.append(tsvector[at:end])
        at = end + 3 + 2 * int.from_bytes(tsvector[end + 1 : end + 3])
    return found


@given(st.lists(COLUMNS, min_size=1, max_size=9), st.integers(1, 9))
@settings(max_examples=60)
def test_postings_count_every_token_of_every_chunk_by_column(columns: list[Columns], at_once: int):
    expected: dict[str, dict[int, list[int]]] = defaultdict(dict)
    chunks = list(zip(range(7, 100, 3), columns, strict=False))
    for chunk_id, texts in chunks:
        counted = [Counter(lexemes(text)) for text in texts]
        length = sum(map(Counter.total, counted))
        for token in set().union(*counted):
            expected[token][chunk_id] = [*(times[token] for times in counted), length]
    made = new_segment(chunks)
    assert unpacked(made, at_once) == expected
    assert made.tokens == sum(len(lexemes(text)) for one in columns for text in one)


def unpacked(one: Segment, at_once: int) -> dict[str, dict[int, list[int]]]:
    found: dict[str, dict[int, list[int]]] = {}
    for part in one.postings(at_once):
        postings = zip(part.chunks.tolist(), part.packed.tolist(), strict=True)
        starts, lengths, texts = part.terms
        for start, length, size in zip(starts, lengths, part.sizes.tolist(), strict=True):
            term = texts[start : start + length].tobytes().decode()
            assert [*found, term] == sorted([*found, term])
            found[term] = {
                chunk: [*(packed >> 8 * at & 255 for at in range(4)), packed >> 32]
                for chunk, packed in islice(postings, size)
            }
    return found


@given(st.lists(COLUMNS, min_size=1, max_size=9), st.integers(1, 3), st.integers(0, 9))
@settings(max_examples=60)
def test_a_segment_that_grew_while_others_were_made_is_what_it_is_by_itself(
    columns: list[Columns], at_once: int, steps: int
):
    chunks = list(enumerate(columns))
    alone = new_segment(chunks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "_LISTED", at_once)
        growing = Growing(chunks)
        for _ in range(steps):
            growing.grow()
            new_segment([(1, Columns("", "words that nobody else has", "", ""))])
        grown = growing.whole()
    assert unpacked(grown, 9) == unpacked(alone, 9)
    assert grown.indexed(0, len(chunks)) == alone.indexed(0, len(chunks))


def test_more_words_than_a_chunk_can_have_are_refused_and_nothing_of_their_group_is_stored(
    store: PostgresStore,
):
    put(store, "docs/before.md", "before")
    endless = " ".join(f"{number:x}q" for number in range(200_000))
    before = store.catalog.counts()
    with pytest.raises(BadValue, match="too large"):
        store.catalog.put_documents(
            [
                (document("docs/fine.md"), [Piece("fine", 0, 4, 1, 1)]),
                (document("docs/endless.md"), [Piece(endless, 0, len(endless), 1, 1)]),
            ]
        )
    assert store.catalog.counts() == before
    put(store, "docs/after.md", "after")
    assert len(store.lexical.search(Word("after"), EVERYTHING, 10)) == 1
