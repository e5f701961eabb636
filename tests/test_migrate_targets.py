"""Where everything may be copied to, and where not: a store onto itself, or to where nothing lasts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concord import KnowledgeBase, Note
from concord.cli.main import main
from concord.core.config import load_settings
from concord.core.errors import BadValue
from support.recorders import write
from support.small_library import secluded

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from psycopg.conninfo import conninfo_to_dict  # noqa: E402

SPELT = {
    "another scheme": "postgres://{name}:secret@:5432/{name}?host={host}",
    "options": "postgresql:///{name}?user={name}&password=secret&port=5432&host={host}",
    "another path": "postgresql://{name}@/{name}?host={host}/.",
    "an administrator": "postgresql://postgres:secret@/{name}?host={host}",
}


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[KnowledgeBase]:
    """A knowledge base in a file."""
    with secluded(tmp_path, f"sqlite://{tmp_path}/here") as made:
        made.note(Note("The pump is tested on Mondays.", title="Pump"))
        yield made


@pytest.fixture
def ours(owned: str, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """A knowledge base on a server."""
    write(tmp_path / "docs" / "a.md", "The pump is tested on Mondays.\n")
    with secluded(tmp_path, owned) as made:
        made.note(Note("The pump is painted on Fridays.", title="Paint"))
        made.add(tmp_path / "docs")
        yield made


def spelt(kb: KnowledgeBase, how: str) -> str:
    place = conninfo_to_dict(kb.settings.store_url)
    return SPELT[how].format(name=place["dbname"], host=place["host"])


def memos(kb: KnowledgeBase) -> list[str]:
    return [kb.store.catalog.sync_state(source.id) for source in kb.store.catalog.snapshot().sources]


def is_refused_as_itself(kb: KnowledgeBase, url: str) -> bool:
    """Whether nothing is copied there, nothing is written, and no password is told."""
    before = memos(kb)
    with pytest.raises(BadValue, match="this store itself") as refusal:
        kb.migrate(url)
    assert "secret" not in f"{refusal.value} {refusal.value.hint}"
    assert memos(kb) == before
    return "unfinished" not in "".join(before)


@pytest.mark.promise("D.migrate.refuses")
@pytest.mark.parametrize("how", SPELT)
def test_rows_on_a_server_are_not_copied_onto_themselves_however_they_are_spelt(
    ours: KnowledgeBase, how: str
):
    assert is_refused_as_itself(ours, spelt(ours, how))


@pytest.fixture
def here(mine: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How a command names the knowledge base in a file."""
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    monkeypatch.setenv("KB_HOME", str(tmp_path))
    return ["--store", mine.settings.store_url]


def test_what_one_person_has_becomes_a_teams(here: list[str], owned: str, capsys: pytest.CaptureFixture[str]):
    url = owned.replace(":@", ":secret@")
    assert main([*here, "migrate", "--to", url, "--to-org", "team"]) == 0
    said = capsys.readouterr()
    assert "KB_ORG=team" in said.err
    assert "secret" not in said.out + said.err
    for org, status in (("team", 0), ("default", 2)):
        assert main(["--store", url, "--org", org, "search", "pump"]) == status
    assert main([*here, "migrate", "--to-org", "team"]) == 2


def test_the_password_of_a_store_that_is_refused_is_not_shown(
    ours: KnowledgeBase, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("KB_HOME", str(tmp_path))
    url = spelt(ours, "another scheme")
    assert main(["--store", ours.settings.store_url, "migrate", "--to", url, "--json"]) == 2
    said = capsys.readouterr()
    assert "this store itself" in said.err
    assert "secret" not in said.out + said.err


@pytest.mark.parametrize("setting", ["store.url", "vectors.url"])
def test_what_is_no_url_is_not_repeated_because_it_may_hold_a_password(tmp_path: Path, setting: str):
    given = {setting: "host=db password=secret dbname=kb"}
    with (
        KnowledgeBase(load_settings(given, {"KB_HOME": str(tmp_path)})) as kb,
        pytest.raises(BadValue, match=setting) as refusal,
    ):
        kb.stats()
    assert "secret" not in f"{refusal.value} {refusal.value.hint}"
