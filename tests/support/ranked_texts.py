"""Texts to compare, and chunks of them with their scores."""

from __future__ import annotations

from hypothesis import strategies as st

from concord.ranking.duplicates import Likeness, word_set
from concord.types import Ranked

FOX = "the quick brown fox jumps over the lazy dog near the river bank"
WHALE = "a blue whale sings slowly below cold arctic waters all winter long"


def ranked(*scores: float) -> list[Ranked]:
    return [Ranked(chunk_id, score, ()) for chunk_id, score in enumerate(scores, start=1)]


def sets(*texts: str) -> dict[int, frozenset[str]]:
    return {chunk_id: word_set(text) for chunk_id, text in enumerate(texts, start=1)}


def alike(*texts: str) -> Likeness:
    return Likeness(sets(*texts))


def ids(found: list[Ranked]) -> list[int]:
    return [one.chunk_id for one in found]


TEXTS = st.lists(st.text(alphabet="ab cd,中文", max_size=20), min_size=1, max_size=8)
