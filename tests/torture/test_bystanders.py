"""A vector, a posting or a row is damaged: other answers stay as they were, or say that they cannot."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from concord import KnowledgeBase
from concord.core.errors import KBError
from concord.store.sqlite.connections import Connection
from support.scratch import scratch
from torture.library import TOPICS, build, copied, database, opened

DIMENSION_BYTES = 256 * 4
QUERIES = [(topic, mode) for topic in TOPICS for mode in ("fts5", "semantic")]
Answers = dict[tuple[str, str], list[str] | None]  # None where it is said that something is missing


@pytest.fixture(scope="module")
def library() -> Iterator[tuple[Path, Answers]]:
    with scratch() as name:
        build(Path(name))
        with opened(Path(name)) as kb:
            before = asked(kb)
        yield Path(name), before


def asked(kb: KnowledgeBase) -> Answers:
    """Return which passages are found, in order."""
    return {(text, mode): _found(kb, text, mode) for text, mode in QUERIES}


def _found(kb: KnowledgeBase, text: str, mode: str) -> list[str] | None:
    try:
        answer = kb.search(f"the {text} waits", mode=mode, top=8)
    except KBError:
        return None
    return None if answer.degraded else [hit.citation for hit in answer.hits]


def damage(connection: Connection, draw: random.Random) -> int:
    """Damage one vector, posting or row; return the chunk that it belongs to, 0 where that is not known."""
    (chunk,) = draw.choice(connection.rows("SELECT id FROM kb_chunks"))
    kind = draw.choice(("vector", "posting", "row"))
    if kind == "vector":
        used = "SELECT embedding FROM kb_chunk_vectors WHERE chunk = :c"
        embedding = connection.value(used, {"c": chunk})
        place = "SELECT chunk_id, chunk_offset FROM kb_vectors_1_rowids WHERE rowid = :e"
        ((block, offset),) = connection.rows(place, {"e": embedding})
        _spoil(connection, "kb_vectors_1_vector_chunks00", "vectors", block, draw, offset * DIMENSION_BYTES)
    elif kind == "posting":
        (block,) = draw.choice(connection.rows("SELECT id FROM kb_chunks_fts_data WHERE id > 10"))
        _spoil(connection, "kb_chunks_fts_data", "block", block, draw)
        return 0
    else:
        connection.execute("DROP TRIGGER kb_chunks_updated")
        connection.execute("UPDATE kb_chunks SET content = 'spoiled', terms = '' WHERE id = ?", (chunk,))
    return int(chunk)


def _spoil(
    connection: Connection, table: str, column: str, row: int, draw: random.Random, start: int | None = None
) -> None:
    """Replace some bytes of a value: those of one vector, or any few."""
    with connection.blob_open("main", table, column, row, True) as blob:
        blob.seek(draw.randrange(blob.length()) if start is None else start + 4 * draw.randrange(200))
        blob.write(draw.choice((b"\xff", b"\x00", draw.randbytes(1))))


@pytest.mark.promise("torture.bystanders")
@pytest.mark.campaign(whole=200, part=5, may_lose=5)
def test_other_answers_stay_as_they_were(seed: int, library: tuple[Path, Answers], home: Path):
    folder = copied(library[0], home)
    connection = Connection(str(database(folder)))
    connection.load_vec0()
    victim = damage(connection, random.Random(seed))
    connection.close()
    with opened(folder) as kb:
        path = kb.store.catalog.read([victim])[victim][1].path if victim else None
        found = asked(kb)
        named = [finding.fault for finding in kb.doctor().findings if finding.fault != "disk"]
    for query, before in library[1].items():
        now = found[query]
        if now is not None and now != before:
            others = [citation for citation in before or () if path is None or not citation.startswith(path)]
            kept = [citation for citation in now if citation in others]
            assert kept == others, f"{query}: {before} became {now}; {named}"
