"""Knowledge bases for tests: of a few notes in memory, or empty, wherever a test wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from concord import KnowledgeBase, Note
from concord.core.config import load_settings
from concord.core.protocols import Strategy
from concord.search.calibration import UNFITTED, Calibration, Cuts, Head, Heads
from concord.search.legs import ExactWords, RelaxedWords, Semantic, Tools
from concord.search.request import options_of
from concord.search.understand import understand
from concord.types import Candidate, Chunk, ChunkId, Document, Passage, Query, Ranked, Request
from contract.stored import vectors_of

# A busy machine must not fail a test.
UNHURRIED = {"search__prefix_ms": 60_000, "search__partial_ms": 60_000}

NOTES = {
    "Kubernetes": "A Kubernetes deployment rolls out containers one after the other.",
    "Login": "Authentication issues a token after login, and the token expires in an hour.",
    "Pool": "The database connection pool is limited to ten connections.",
    "Backup": "Backups are written every night and kept for a month.",
}


def opened(place: Path | str, **settings: Any) -> KnowledgeBase:
    """Return the knowledge base in the store of a URL, or in SQLite below a folder, embedded by hashing."""
    url = place if isinstance(place, str) else f"sqlite://{place}/store"
    return KnowledgeBase.open(**{"store__url": url, "embed__provider": "hashing", **settings})


def secluded(home: Path, url: str, **settings: Any) -> KnowledgeBase:
    """Return one that has its home in a folder and heeds no variable of the environment."""
    given = {"store__url": url, "embed__provider": "hashing", "reader__enabled": False, **settings}
    dotted = {key.replace("__", "."): value for key, value in given.items()}
    return KnowledgeBase(load_settings(dotted, {"KB_HOME": str(home)}))


def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """Lend a knowledge base in a store of the kind that a fixture's parameter names."""
    with opened("memory://" if request.param == "memory" else tmp_path) as made:
        yield made


def library(notes: dict[str, str] | None = None, **settings: Any) -> KnowledgeBase:
    """Return a knowledge base that holds these notes by title, tagged `ops`, or the usual ones."""
    given = {"store__url": "memory://", "embed__provider": "hashing", **UNHURRIED, **settings}
    knowledge = KnowledgeBase.open(**given)
    for title, text in (NOTES if notes is None else notes).items():
        knowledge.note(Note(text, title=title, tags=("ops",)))
    return knowledge


def titles(answer: Any) -> list[str]:
    """Return the titles of the documents that an answer's hits are from."""
    return [hit.document.title for hit in answer.hits]


def fitted(answerable: float) -> Calibration:
    """A calibration that gives every answer a probability of one half."""
    flat = Head(("top_cosine",), (0.0,), 0.0, (0.0,), (1.0,))
    hit = replace(flat, features=("cosine",))
    return Calibration("hashing", {"hybrid": Heads(hit, flat, answerable)}, Cuts(strong=0.9, weak=0.1))


def tools(kb: KnowledgeBase, calibration: Calibration = UNFITTED) -> Tools:
    """Return what a search of a knowledge base works with, and a calibration."""
    store = kb.store
    assert kb.embedder is not None
    semantic = Semantic(vectors_of(store), kb.embedder)
    strategies: list[Strategy] = [ExactWords(store.words), RelaxedWords(store.words), semantic]
    return Tools(store, strategies, kb.settings, "default", semantic, calibration)


def ranked(*scores: float) -> list[Ranked]:
    """Return chunks 1, 2, … with these scores."""
    return [Ranked(Candidate(chunk_id, {}), score) for chunk_id, score in enumerate(scores, 1)]


def passages(rows: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Passage]:
    """Return ranked chunks as if their texts had been read, each from a document of its own."""
    return [
        Passage(row, Chunk(row.chunk_id, f"d{at}", at, text, 0, len(text), 1, 1), _document(at))
        for at, row in enumerate(rows)
        for text in [texts[row.chunk_id]]
    ]


def _document(at: int) -> Document:
    return Document(f"d{at}", "s", f"docs/{at}.md", "markdown", "")


def understood(kb: KnowledgeBase, text: str) -> Query:
    """Return a query as a search understands it, without asking anybody for an answer."""
    request, tools = Request(text, mode="auto"), Tools(kb.store, (), kb.settings, kb.org)
    return understand(request, options_of(request, kb.settings), tools, ())
