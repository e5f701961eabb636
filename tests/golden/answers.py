"""What a search answered, reduced to what has to stay the same."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord import KnowledgeBase
from concord.core.errors import KBError
from concord.types import Answer, Hit
from golden.queries import GoldenQuery

HERE = Path(__file__).parent / "answers"
KEPT_HITS = 10
PLACES = 4  # of scores; they are compared less exactly, see differences.SAME_SCORE
EVERY = 5  # which queries stores other than SQLite are asked: every fifth of each set

Record = Mapping[str, Any]


def ask(knowledge: KnowledgeBase, query: GoldenQuery) -> Record:
    """Ask one query; an error is an answer too."""
    try:
        return record_of(knowledge.search(query.text, **_as_given(query.options)))
    except KBError as fault:
        return {"outcome": type(fault).__name__, "note": str(fault.message)}


def _as_given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}


def record_of(answer: Answer) -> Record:
    """Return what is kept of an answer."""
    hits = answer.hits[:KEPT_HITS]
    return {
        "outcome": "hits" if hits else "none",
        "keys": [f"{hit.document.path}@{hit.chunk.start}" for hit in hits],
        "scores": [round(hit.score, PLACES) for hit in hits],
        "labels": [answer.confidence, answer.query_type, *(hit.confidence for hit in hits)],
        "confidence": None if answer.confidence_score is None else round(answer.confidence_score, PLACES),
        "answerable": answer.answerable,
        "note": _said(answer),
        "total": answer.total_hits,
        "shown": _digest([_shown(hit) for hit in hits]),
    }


def _said(answer: Answer) -> str:
    degraded = [f"degraded: {part.strategy} {part.reason}" for part in answer.degraded]
    return " | ".join([answer.note or "", *answer.suggestions, *answer.searched, *degraded])


def _shown(hit: Hit) -> Sequence[Any]:
    return [hit.snippet, hit.citation, hit.also_at, hit.warnings, hit.found_by]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]


def asked_of(store: str, queries: Sequence[GoldenQuery]) -> list[GoldenQuery]:
    """Return the queries that a kind of store is asked."""
    if store == "sqlite":
        return list(queries)
    return [query for query in queries if (int(query.id.rpartition("-")[2]) - 1) % EVERY == 0]


def read(store: str) -> dict[str, Record]:
    """Return the golden answers of a kind of store, by the id of their query; none before they were made."""
    file = _file(store)
    lines = lzma.decompress(file.read_bytes()).decode().splitlines() if file.exists() else []
    return {row.pop("id"): row for row in map(json.loads, lines)}


def write(store: str, answers: Mapping[str, Record]) -> None:
    _file(store).parent.mkdir(exist_ok=True)
    lines: Iterable[str] = (
        json.dumps({"id": name, **answers[name]}, ensure_ascii=False) for name in sorted(answers)
    )
    _file(store).write_bytes(lzma.compress("\n".join(lines).encode()))


def _file(store: str) -> Path:
    return HERE / f"{store}.jsonl.xz"
