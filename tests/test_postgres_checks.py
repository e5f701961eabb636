"""`kb doctor` on PostgreSQL: each kind of damage is found, named and put right without losing anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from concord.types import AnyOf, Phrase, Word
from contract.stored import EVERYTHING, embed, faults, put, unit, vectors_of
from support.postgres_server import fresh_org, in_schema, server_url

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.store import PostgresStore

MATCHES = (
    Word("shared"),
    Word("w", prefix=True),
    Phrase("shared words"),
    AnyOf((Word("title"), Word("ops"))),
)


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    """Three documents, one of them deleted again, with a vector for every chunk but one."""
    with closing(PostgresStore.open(server_url(), fresh_org())) as made:
        for n in range(3):
            put(
                made,
                f"docs/{n}.md",
                f"shared words {n} " + "shared " * n,
                "tail",
                title="Title",
                tags=("ops",),
            )
        made.catalog.delete_documents(["docs/1.md"])
        waiting = vectors_of(made).pending(0, 3)
        embed(made, [(each.chunk_id, unit(each.chunk_id, 1, 0, 0)) for each in waiting])
        yield made


def found(store: PostgresStore) -> list[Any]:
    return [store.words.search(match, EVERYTHING, 99) for match in MATCHES]


DAMAGE = {
    "words": "DELETE FROM kb_postings WHERE term = 'share'",
    "vectors": "INSERT INTO kb_vectors_1 VALUES (999, '[1,0,0,0]')",
    "lost-vectors": "DELETE FROM kb_vectors_1 WHERE id = 1",
    "damaged-vectors": "UPDATE kb_vectors_1 SET embedding = '[1,0,0,0.001]' WHERE id = 1",
    "superseded": "UPDATE kb_documents SET superseded_by = 'nowhere' WHERE id = 'docs/2.md'",
}
WAITING = {"lost-vectors", "damaged-vectors"}  # after which a chunk waits for another vector


def test_a_sound_store_has_no_findings(store: PostgresStore):
    assert faults(store) == []


@pytest.mark.parametrize("check", DAMAGE)
def test_damage_is_found_and_put_right(store: PostgresStore, check: str):
    before = found(store)
    in_schema(store, DAMAGE[check])
    findings = faults(store)
    assert check in {finding.fault for finding in findings}
    assert all(finding.is_repairable and "doctor --fix" in finding.hint for finding in findings)
    store.repair(findings)
    assert faults(store) == []
    assert found(store) == before
    assert len(vectors_of(store).pending(0, 9)) == 1 + (check in WAITING)


def test_building_the_words_anew_changes_no_score(store: PostgresStore):
    before = found(store)
    in_schema(store, "DELETE FROM kb_postings")
    store.repair(faults(store))
    assert found(store) == before
    put(store, "docs/new.md", "shared again")
    assert len(found(store)[0]) == len(before[0]) + 1
    assert faults(store) == []
