"""Words by PostgreSQL's own means keep what the contract says of words, but for scores and stems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from concord.core.config import load_settings
from concord.types import Phrase, Word
from contract import test_words
from contract.stored import EVERYTHING, put
from support.postgres_server import fresh_org, server_url

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.store import PostgresStore

KEPT = """
a_hit_has_every_tag_that_is_asked_for
a_hit_is_as_old_as_is_asked_for
a_hit_is_of_the_type_and_source_that_are_asked_for
a_hit_lies_under_the_path_that_is_asked_for
a_prefix_finds_every_word_that_begins_so
all_of_any_of_and_without_mean_what_they_say
no_text_makes_a_search_fail
superseded_documents_are_found_only_when_asked_for
what_holds_no_word_finds_nothing_and_hinders_nothing
words_are_counted_by_their_stem
"""
globals().update((f"test_{name}", getattr(test_words, f"test_{name}")) for name in KEPT.split())


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    settings = load_settings({"postgres.words": "native"}, {})
    with closing(PostgresStore.open(server_url(), fresh_org(), settings)) as made:
        yield made


def test_a_word_is_found_as_it_is_written_and_a_title_is_worth_half_a_point(store: PostgresStore):
    (named,) = put(store, "docs/a.md", "nothing of the kind", title="How Tokens expire")
    (often,) = put(store, "docs/b.md", "tokens expire; all tokens expire")
    (other,) = put(store, "docs/c.md", "a token expires")
    found = {each.chunk_id: each.score for each in store.words.search(Phrase("tokens expire"), EVERYTHING, 9)}
    assert list(found) == [named, often]
    assert found[named] == 0.5
    assert [each.chunk_id for each in store.words.search(Word("token"), EVERYTHING, 9)][-1] == other


def test_what_is_left_out_stays_out_though_the_title_has_all_words(store: PostgresStore):
    from concord.text.query_language import parse

    put(store, "docs/a.md", "by oauth", title="Token expiry")
    (kept,) = put(store, "docs/b.md", "by password", title="Token expiry")
    match = parse("token expiry -oauth").exact
    assert match is not None
    assert [each.chunk_id for each in store.words.search(match, EVERYTHING, 9)] == [kept]
