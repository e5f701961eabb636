"""What a long history leaves in the index is what a fresh one would hold, row by row."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase
from concord.core import plugins
from concord.store.sqlite.connections import Connection
from support.other_embedders import TABLE
from support.recorders import age, write
from support.small_library import UNHURRIED, secluded
from torture.library import TOPICS

STEPS = 12
NAMES = ("a.md", "b.md", "sub/c.md", "sub/d.txt", "e.py", "deep/er/f.md", "g.html")
DOCUMENTS = """
SELECT path, type, title, details, file_hash, content_hash, size, superseded_by,
    (SELECT group_concat(tag) FROM (
        SELECT tag FROM kb_document_tags WHERE document = d.key ORDER BY position))
FROM kb_documents AS d ORDER BY path"""
CHUNKS = """
SELECT d.path, c.position, c.start_offset, c.end_offset, c.start_line, c.end_line, c.page, c.heading, c.title,
    c.tags, c.terms, c.content,
    (SELECT group_concat(token) FROM (SELECT token FROM kb_names WHERE chunk = c.id ORDER BY token)),
    (SELECT hex(e.text_hash) || e.crc FROM kb_chunk_vectors AS v JOIN kb_embeddings AS e ON e.id = v.embedding
     WHERE v.chunk = c.id AND v.model = (SELECT value FROM kb_meta WHERE key = 'active_model'))
FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document ORDER BY d.path, c.position"""
LINKS = """
SELECT d.path, c.position, l.kind, l.name, l.target, l.words, t.path
FROM kb_links AS l JOIN kb_chunks AS c ON c.id = l.chunk JOIN kb_documents AS d ON d.key = c.document
LEFT JOIN kb_documents AS t ON t.key = l.document ORDER BY 1, 2, 3, 4, 5"""
WORDS = "SELECT term, doc, cnt FROM kb_chunks_vocab"


def opened(folder: Path, store: str) -> KnowledgeBase:
    return secluded(folder, f"sqlite://{folder}/{store}", **UNHURRIED)


def text(draw: random.Random, name: str) -> str:
    """Return a text of some parts, which may begin like an earlier one, with links to other files."""
    other, topic = draw.choice(NAMES), draw.choice(TOPICS)
    head = (
        f"---\ntags: [{draw.choice(TOPICS)}]\n---\n" if draw.random() < 0.3 and name.endswith(".md") else ""
    )
    parts = [
        f"## {draw.choice(TOPICS).title()} {n}\n\nThe {topic} of `call_{draw.randrange(9)}` waits. "
        + f"See [the other]({other}). " * draw.randrange(3)
        + f"Words about {draw.choice(TOPICS)}. " * draw.choice((1, 5, 80))
        for n in range(draw.randrange(1, 4))
    ]
    return head + f"# {topic.title()}\n\n" + "\n\n".join(parts) + "\n"


class History:
    """A folder that is worked in while its knowledge base is kept current, more or less."""

    def __init__(self, docs: Path, kb: KnowledgeBase, draw: random.Random) -> None:
        self.docs, self.kb, self.draw = docs, kb, draw
        self.tags: tuple[str, ...] = ("first",)

    def edit(self) -> None:
        name = self.draw.choice(NAMES)
        write(self.docs / name, text(self.draw, name), days_old=self.draw.uniform(0.1, 9))

    def move(self) -> None:
        found = [path for path in self.docs.rglob("*") if path.is_file()]
        if found:
            target = self.docs / self.draw.choice(("moved", "sub")) / self.draw.choice(found).name
            target.parent.mkdir(exist_ok=True)
            self.draw.choice(found).replace(target)

    def delete(self) -> None:
        found = [path for path in self.docs.rglob("*") if path.is_file()]
        if len(found) > 1:
            self.draw.choice(found).unlink()

    def touch(self) -> None:
        for path in self.docs.rglob("*"):
            if path.is_file() and self.draw.random() < 0.5:
                age(path, self.draw.uniform(0.1, 9))

    def tag(self) -> None:
        self.tags = (self.draw.choice(TOPICS), "kept")
        self.kb.add(self.docs, tags=self.tags)

    def switch(self) -> None:
        self.kb.sync()
        with suppress(Exception):  # it may be the one that is used, or be added already
            self.kb.models.add("turned", "", "")
        self.kb.models.use(self.draw.choice(("turned", "hashing-256")), force=True)

    def keep(self) -> None:
        kept = self.kb.note(f"A note about {self.draw.choice(TOPICS)}.")
        self.kb.remove_note(kept.id)

    def sync(self) -> None:
        self._synced(lambda: None)

    def _synced(self, disturb: Callable[[], None]) -> None:
        at = self.draw.randrange(1, 12)

        def progress(stage: str, done: int, total: int | None) -> None:
            nonlocal at
            at -= 1
            if at == 0:
                disturb()

        with suppress(KeyboardInterrupt):
            self.kb.sync(embed=self.draw.random() < 0.8, progress=progress)

    def interrupted(self) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        self._synced(interrupt)

    def while_reading(self) -> None:
        self._synced(self.edit)


@pytest.mark.promise("torture.histories")
@pytest.mark.campaign(whole=200, part=4)
def test_the_index_is_what_a_fresh_one_would_be(seed: int, home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(plugins.TABLES, "embedders", {**plugins.TABLES["embedders"], **TABLE})
    draw, docs = random.Random(seed), home / "docs"
    write(docs / "a.md", text(draw, "a.md"))
    with opened(home, "old") as kb:
        kb.add(docs, tags=("first",))
        history = History(docs, kb, draw)
        edits = [history.edit, history.edit, history.edit, history.move, history.delete, history.touch]
        others = [history.tag, history.switch, history.keep, history.interrupted, history.while_reading]
        steps = [*edits, *others, history.sync, history.sync]
        for step in draw.choices(steps, k=STEPS):
            step()
        for path in docs.rglob("*"):
            if path.is_file():
                age(path, draw.uniform(1, 9))
        kb.sync()
        kb.models.use("hashing-256", force=True)
        kb.sync()
        assert kb.stats().pending == 0
    with opened(home, "new") as kb:
        kb.add(docs, tags=history.tags)
    old, new = (rows(home / name / "default.db") for name in ("old", "new"))
    for table, wanted in new.items():
        assert old[table] == wanted, table


def rows(path: Path) -> dict[str, Any]:
    """Return all that an index says, but for ids and times that differ every time."""
    connection = Connection(str(path))
    try:
        tables = {"documents": DOCUMENTS, "chunks": CHUNKS, "links": LINKS, "words": WORDS}
        return {name: connection.rows(statement) for name, statement in tables.items()}
    finally:
        connection.close()
