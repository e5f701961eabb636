"""Roles on PostgreSQL: who owns no table can work all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase
from concord.core.errors import StoreError
from concord.core.reports import Finding, VectorIndexState
from support.kb_command import Kb
from support.postgres_server import fresh_org
from support.recorders import write
from support.small_library import secluded

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from psycopg.conninfo import conninfo_to_dict  # noqa: E402

from concord.store.postgres import vectors  # noqa: E402
from concord.store.postgres.store import PostgresStore  # noqa: E402


def named(kb: KnowledgeBase, check: str) -> list[Finding]:
    return [finding for finding in kb.doctor().findings if finding.fault == check]


def owner_of(url: str) -> str:
    return str(conninfo_to_dict(url)["user"])


@pytest.fixture
def owner(owned: str, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """A knowledge base whose role owns its tables."""
    write(tmp_path / "docs" / "a.md", "# Pumps\n\nThe pump is tested on Mondays.\n")
    with secluded(tmp_path, owned) as made:
        made.add(tmp_path / "docs")
        yield made


@pytest.fixture
def role(owned: str, administrator: Any) -> Iterator[str]:
    """A further role of that database, which may do nothing yet."""
    name = fresh_org().replace("-", "_")
    administrator.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    with psycopg.connect(as_role(owned, "postgres"), autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


@pytest.fixture
def guest(owner: KnowledgeBase, owned: str, role: str) -> str:
    """The URL for a role that may do everything with the tables, and owns none."""
    with psycopg.connect(owned, autocommit=True) as connection:
        connection.execute(
            f"GRANT ALL ON SCHEMA kb_default TO {role};GRANT ALL ON ALL TABLES IN SCHEMA kb_default TO {role}"
        )
    return as_role(owned, role)


def as_role(url: str, role: str) -> str:
    return url.replace(f"{owner_of(url)}:@", f"{role}:@")


def test_whoever_lacks_a_right_is_told_which(owner: KnowledgeBase, owned: str, role: str):
    with pytest.raises(StoreError, match="permission denied for schema kb_default") as refusal:
        PostgresStore.open(as_role(owned, role), "default").catalog.snapshot()
    assert "administrator" in (refusal.value.hint or "")
    with psycopg.connect(owned, autocommit=True) as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA kb_default TO {role}")
    with pytest.raises(StoreError, match="permission denied for table kb_meta"):
        PostgresStore.open(as_role(owned, role), "default")


def test_who_mistypes_an_organisation_is_told_so_and_leaves_nothing_behind(
    owner: KnowledgeBase, owned: str, role: str, kb: Kb
):
    """Whether or not the role may write."""
    with psycopg.connect(owned) as connection:
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA kb_default TO {role}")
    for url in (owned, as_role(owned, role)):
        told = kb("--store", url, "--org", "mistyped", "search", "anything")
        assert told.status == 2
        assert "'mistyped' has nothing" in told.err
    with psycopg.connect(as_role(owned, "postgres")) as connection:
        assert connection.execute("SELECT to_regnamespace('kb_mistyped')").fetchone() == (None,)


@pytest.fixture
def unindexed(guest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    """A knowledge base of that guest, with more vectors than are left without an index."""
    monkeypatch.setattr(vectors, "INDEX_FROM", 1)
    for n in range(3):
        write(tmp_path / "more" / f"{n}.md", f"# Valves\n\nValve {n} is painted on Fridays.\n")
    with secluded(tmp_path, guest) as made:
        made.add(tmp_path / "more")
        yield made


def test_a_missing_index_is_found_and_built_by_who_owns_the_tables(
    unindexed: KnowledgeBase, owner: KnowledgeBase
):
    (finding,) = named(unindexed, "index")
    assert "every search compares all vectors" in finding.message
    assert "by the role that owns the tables" in finding.hint
    assert unindexed.doctor(fix=True).findings == (finding,)
    assert "by the role that owns the tables" in str(index_of(unindexed).absent)
    assert [fixed.fault for fixed in owner.doctor(fix=True).fixed] == ["index"]
    assert unindexed.store.check() == []
    index = index_of(unindexed)
    assert (index.covered, index.absent) == (4, None)
    assert index.size_bytes > 0


def index_of(kb: KnowledgeBase) -> VectorIndexState:
    index = kb.stats().index
    assert index is not None
    return index
