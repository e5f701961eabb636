"""The stores below a search: the same answers from each, and what SQLite's tables hold."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from concord.types import MODES
from searching.pages import opened, plant
from support.recorders import write


@pytest.mark.promise("A.search.same-everywhere")
@pytest.mark.parametrize("mode", MODES)
def test_memory_and_sqlite_give_the_same_answers(tmp_path: Path, mode: str):
    plant(tmp_path / "docs")
    dice = random.Random(7)
    vocabulary = ["deploy", "git", "page", "install", "staging", "zebra", "quick", "brown", "fox", "minute"]
    for n in range(60):
        words = " ".join(dice.choices([*vocabulary, *(f"w{k}" for k in range(90))], k=dice.randint(5, 30)))
        write(tmp_path / "docs" / "more" / f"{n}.md", f"# Page {n}\n\n{words}.\n")
    queries = [
        "deploy",
        "install git",
        '"quick brown"',
        "git -install",
        "page 7",
        "386",
        "zebra w7 w8",
        "where?",
    ]
    with opened("memory", tmp_path) as one, opened("sqlite", tmp_path) as two:
        for kb in (one, two):
            kb.add(tmp_path / "docs")
        for query in queries:
            seen = [
                [
                    (hit.citation, round(hit.score, 4), hit.found_by)
                    for hit in kb.search(query, mode=mode).hits
                ]
                for kb in (one, two)
            ]
            assert seen[0] == seen[1], query
