"""`kb doctor` on PostgreSQL: each kind of damage is found, named and put right without losing anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from concord.types import AnyOf, Phrase, Word
from contract.stored import EVERYTHING, embed, faults, put, unit
from support.postgres_server import fresh_org, server_url

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.backends.postgres.store import PostgresStore  # noqa: E402

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
        waiting = made.vectors.pending(0, 3)
        embed(made, [(each.chunk_id, unit(each.chunk_id, 1, 0, 0)) for each in waiting])
        yield made


def found(store: PostgresStore) -> list[Any]:
    return [store.lexical.search(match, EVERYTHING, 99) for match in MATCHES]


DAMAGE = {
    "chunks": "UPDATE kb_chunks SET document = 'nowhere' WHERE org = {org} AND id = 1",
    "words": "DELETE FROM kb_postings WHERE org = {org} AND term = 'share'",
    "counter": "UPDATE kb_orgs SET chunks = chunks + 1 WHERE key = {org}",
    "types": "UPDATE kb_orgs SET types = '{{note}}' WHERE key = {org}",
    "vectors": "INSERT INTO kb_vectors_4 VALUES ({org}, 1, 999, '[1,0,0,0]')",
    "lost-vectors": "DELETE FROM kb_vectors_4 WHERE org = {org} AND chunk = 1",
    "superseded": "UPDATE kb_documents SET superseded_by = 'nowhere' WHERE org = {org} AND id = 'docs/2.md'",
    "pending": "INSERT INTO kb_pending VALUES ({org}, 1, 1), ({org}, 1, 999)",
}


def test_a_sound_store_has_no_findings(store: PostgresStore):
    assert faults(store) == []


@pytest.mark.parametrize("check", DAMAGE)
def test_damage_is_found_and_put_right(store: PostgresStore, check: str):
    before, counts = found(store), store.catalog.counts()
    with psycopg.connect(server_url(), autocommit=True) as administrator:
        administrator.execute(DAMAGE[check].format(org=store.org))
    findings = faults(store)
    assert check in {finding.fault for finding in findings}
    assert all(finding.is_repairable and "repair" in finding.hint for finding in findings)
    store.repair(findings)
    assert faults(store) == []
    if check == "chunks":
        assert store.catalog.counts().chunks == counts.chunks - 1
    else:
        assert found(store) == before
        assert len(store.vectors.pending(0, 9)) == 1 + (check == "lost-vectors")


def test_building_the_words_anew_changes_no_score(store: PostgresStore):
    before = found(store)
    with psycopg.connect(server_url(), autocommit=True) as administrator:
        administrator.execute("DELETE FROM kb_postings WHERE org = %s", (store.org,))
    store.repair(faults(store))
    assert found(store) == before
    put(store, "docs/new.md", "shared again")
    assert len(found(store)[0]) == len(before[0]) + 1
    assert faults(store) == []
