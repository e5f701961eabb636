"""Queries over the frozen corpora, as they were made once from the texts and by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
FILE = HERE / "queries.jsonl"
JUDGED = HERE / "judged.txt"


class GoldenQuery(NamedTuple):
    """One query: its set and number, its text, and the options of the search."""

    id: str
    text: str
    options: Mapping[str, Any]

    @property
    def set(self) -> str:
        return self.id.rpartition("-")[0]


def written() -> list[GoldenQuery]:
    """Return the queries of the file."""
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return [GoldenQuery(row.pop("id"), row.pop("text"), row) for row in rows]


def judged() -> dict[str, list[str]]:
    """Return the documents that answer each judged query."""
    lines = JUDGED.read_text(encoding="utf-8").splitlines()
    rows = (line.split(" => ") for line in lines if " => " in line)
    return {text: paths.split(", ") for text, paths in rows}
