"""Whoever types a name wants to see where it is explained: is that what comes first?

    python -m benchmarks lookup

Names are those of releases, definitions, options and settings that are found on this machine (`lookups.py`);
right is a hit that holds a line where the name is explained.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator, Sequence

from benchmarks.development import opened
from benchmarks.lookups import LookUp, looked_up, sources
from benchmarks.measure import Row, absent, sized
from benchmarks.synthetic import SEED, cache_folder
from concord.knowledge import KnowledgeBase
from concord.quality.evaluate import UNHURRIED_MS
from concord.types import Hit

GOALS = {
    "versions": 0.95,
    "definitions": 0.97,
    "options": 0.93,
    "qualified names": 0.9,
    "keys of settings": 0.9,
    "options of manual pages": 0.9,
}  # share of look-ups whose first hit is right
NAMES = sized(60, 2)  # of each kind


def run() -> Iterator[Row]:
    """Yield how often the right lines come first."""
    texts = sources()
    corpus = cache_folder().absolute() / sized("lookups", "lookups-small")
    shutil.rmtree(corpus, ignore_errors=True)
    for path, text in texts.items():
        (corpus / path).parent.mkdir(parents=True, exist_ok=True)
        (corpus / path).write_text(text, encoding="utf-8")
    with opened(store__url=f"sqlite://{os.environ['KB_HOME']}/{corpus.name}") as knowledge:
        knowledge.add(corpus)
        for kind, made in looked_up(texts).items():
            if made:
                yield _first(kind, random.Random(SEED).sample(made, min(NAMES, len(made))), knowledge)
            else:
                yield absent(kind, "this machine has no file of the kind")


def _first(kind: str, asked: Sequence[LookUp], knowledge: KnowledgeBase) -> Row:
    """Return how often the first hit is right; in the cache is a list of those that are not."""
    answers = [
        (question, knowledge.search(question.query, deadline_ms=UNHURRIED_MS).hits) for question in asked
    ]
    missed = [one for one, hits in answers if not any(_is_right(hit, one) for hit in hits[:1])]
    listed = "".join(f"{question.query}\t{question.file}:{min(question.lines)}\n" for question in missed)
    (cache_folder() / f"missed {kind}.txt").write_text(listed, encoding="utf-8")
    share, goal = 1 - len(missed) / len(asked), GOALS[kind]
    within = sum(any(_is_right(hit, one) for hit in hits[:5]) for one, hits in answers) / len(asked)
    n = f"n {len(asked)}, within five {within:.3f}"
    return Row(f"{kind}: right first", f"{share:.3f}", n, target=f"≥ {goal:g}", is_met=share >= goal)


def _is_right(hit: Hit, wanted: LookUp) -> bool:
    lines = range(hit.chunk.start_line, hit.chunk.end_line + 1)
    return hit.document.path.endswith(f"/{wanted.file}") and not wanted.lines.isdisjoint(lines)
