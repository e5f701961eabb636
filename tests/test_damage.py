"""Damage done to a SQLite file behind the program's back: found, told apart, and repaired where it can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from concord.core.errors import CorruptStore
from concord.store.contract import Select
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.migrations import PAGE_BYTES
from concord.store.sqlite.store import SQLiteStore
from contract.stored import embed, file_of, put, unit

WORDS = ("alpha", "beta", "gamma", "delta")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store of four chunks, each with a vector, that nobody has open."""
    store = SQLiteStore.open(f"sqlite://{tmp_path}", "default")
    for at, word in enumerate(WORDS):
        (chunk_id,) = put(store, f"docs/{word}.md", f"{word} and some more words")
        embed(store, [(chunk_id, unit(1, at, 0, 0))])
    assert store.check() == []
    path = Path(file_of(store))
    store.close()
    return path


@pytest.fixture
def reopened(file: Path) -> Iterator[Callable[[], SQLiteStore]]:
    stores: list[SQLiteStore] = []

    def open_again() -> SQLiteStore:
        stores.append(SQLiteStore.open(f"sqlite://{file}", "default"))
        return stores[-1]

    yield open_again
    for store in stores:
        store.close()


def harm(file: Path, *statements: str) -> None:
    """Run statements past every rule that the program keeps."""
    connection = Connection(str(file))
    connection.load_vec0()
    connection.pragma("foreign_keys", False)
    for statement in statements:
        connection.execute(statement)
    connection.close()


EVERY_PATH = {f"docs/{word}.md" for word in WORDS}
FORGET_WORDS = """INSERT INTO kb_chunks_fts (kb_chunks_fts, rowid, title, content, tags, terms)
SELECT 'delete', id, title, content, tags, terms FROM kb_chunks WHERE id = 2"""


@pytest.mark.parametrize(
    ("statements", "checks", "message"),
    [
        ([FORGET_WORDS], ["words"], "lacks 1 chunks"),
        (
            ["UPDATE kb_chunks_fts_data SET block = zeroblob(8) WHERE id > 10"],
            ["words"],
            "does not match the chunks",
        ),
        (
            ["DROP TRIGGER kb_chunks_updated", "UPDATE kb_chunks SET content = 'omega' WHERE id = 2"],
            ["words"],
            "does not match the chunks",
        ),
        (["DROP TABLE kb_vectors_1"], ["lost-vectors"], "4 chunks that have lost"),
        (
            ["DELETE FROM kb_documents WHERE id = 'docs/beta.md'"],
            ["chunks"],
            "1 chunks that belong to no document",
        ),
        (
            [
                "DELETE FROM kb_vectors_1 WHERE rowid = 3",
                FORGET_WORDS,
                "UPDATE kb_meta SET value = 0 WHERE key = 'chunks'",
            ],
            ["words", "counter", "lost-vectors"],
            "lacks 1 chunks",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and len(value) == 1 else "",
)
def test_what_is_out_of_step_is_found_and_put_right(
    file: Path,
    reopened: Callable[[], SQLiteStore],
    statements: list[str],
    checks: list[str],
    message: str,
):
    harm(file, *statements)
    store = reopened()
    before = store.catalog.snapshot().generation
    findings = store.check()
    assert [finding.fault for finding in findings] == checks
    assert message in findings[0].message
    assert all(finding.is_repairable and "doctor --fix" in finding.hint for finding in findings)
    store.repair(findings)
    assert store.check() == []
    assert store.catalog.snapshot().generation > before


LACKS_AN_ENTRY = [
    "DROP INDEX kb_documents_source",
    "CREATE INDEX kb_documents_source ON kb_documents (source, path) WHERE key <> 2",
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE key <> 2', '') WHERE name = 'kb_documents_source'",
]


def rewrite_page(file: Path, root_of: str, old: bytes, new: bytes) -> None:
    """Replace text in the first page of a table or an index, past all that SQLite keeps in step."""
    root = root_page(file, root_of)
    with open(file, "r+b") as raw:
        raw.seek((root - 1) * PAGE_BYTES)
        page = raw.read(PAGE_BYTES)
        assert old in page
        raw.seek((root - 1) * PAGE_BYTES)
        raw.write(page.replace(old, new))


def listed(store: SQLiteStore) -> set[str]:
    """Return the documents that an index of sources leads to."""
    (source,) = store.catalog.snapshot().sources
    return {document.path for document in store.catalog.documents(Select(source_id=source.id))}


@pytest.mark.promise("doctor.finds", "doctor.fixes")
@pytest.mark.parametrize("damage", ["lacks an entry", "has a wrong entry"])
def test_an_index_that_does_not_match_its_table_is_found_and_built_anew(
    file: Path, reopened: Callable[[], SQLiteStore], damage: str
):
    if damage == "lacks an entry":
        harm(file, *LACKS_AN_ENTRY)
    else:
        rewrite_page(file, "kb_documents_source", b"docs/beta.md", b"docs/zeta.md")
    store = reopened()
    (finding,) = store.check()
    assert (finding.fault, finding.is_repairable) == ("integrity", True)
    assert "row 2 missing from index kb_documents_source" in finding.message
    assert "doctor --fix" in finding.hint
    store.repair([finding])
    assert store.check() == []
    assert listed(store) == EVERY_PATH


@pytest.mark.parametrize(
    "table",
    ["kb_documents", "kb_chunks", "kb_chunks_fts_data", "kb_document_tags", "kb_chunks_document"],
)
def test_a_damaged_page_is_found_and_nothing_pretends_to_mend_it(file: Path, table: str):
    overwrite_root_page(file, table)
    try:
        store = SQLiteStore.open(f"sqlite://{file}", "default")
    except CorruptStore:
        return  # as good: doctor reports what opening it raises
    try:
        (finding,) = store.check()
        assert (finding.fault, finding.is_repairable) == ("integrity", False)
        assert "damaged" in finding.message
        assert "backup" in finding.hint
        assert "recover" in finding.hint
    finally:
        store.close()


def root_page(file: Path, name: str) -> int:
    """Return where a table or an index begins, after everything has been written back to the file itself."""
    connection = apsw.Connection(str(file))
    connection.pragma("wal_checkpoint", "truncate")
    root: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).get
    connection.close()
    return root


def overwrite_root_page(file: Path, table: str) -> None:
    """Write noise where a table begins."""
    root = root_page(file, table)
    with open(file, "r+b") as raw:
        raw.seek((root - 1) * PAGE_BYTES)
        raw.write(b"\xa5" * 512)
