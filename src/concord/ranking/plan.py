"""Which strategies does a mode ask, and how much does each family count for a kind of query?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from concord.types import Family, Mode, QueryKind

LEXICAL_STRATEGIES = ("fts_exact", "fts_relaxed")
STRATEGIES = (*LEXICAL_STRATEGIES, "semantic")  # the order in which they are always named
DEFINITION = "fts_definition"  # votes for chunks in which a name follows a keyword: `class Path`


class Weights(Struct, frozen=True):
    """How much each family counts."""

    semantic: float
    lexical: float


EQUAL = Weights(1.0, 1.0)

# Meaning matters more the less exactly the query says what the text must say.
WEIGHTS: Mapping[QueryKind, Weights] = MappingProxyType(
    {
        "exact_quote": Weights(semantic=0.1, lexical=0.9),
        "entity": Weights(semantic=0.4, lexical=0.6),
        "conceptual": Weights(semantic=0.8, lexical=0.2),
        "factual": Weights(semantic=0.5, lexical=0.5),
        "exploratory": Weights(semantic=0.7, lexical=0.3),
    }
)

_POLLED: Mapping[Mode, tuple[Family, ...]] = MappingProxyType(
    {
        "auto": ("lexical", "semantic"),
        "hybrid": ("lexical", "semantic"),
        "semantic": ("semantic",),
        "fts5": ("lexical",),
    }
)


def polled(mode: Mode) -> tuple[Family, ...]:
    """Return the families whose strategies a mode asks."""
    return _POLLED[mode]


def is_ours(strategy: str) -> bool:
    """Whether a name is that of our own strategies or rungs, and of no installed package's."""
    return strategy in STRATEGIES or strategy.startswith("fts_")


def multipliers(kind: QueryKind) -> Weights:
    """Return a kind's weights scaled to average 1, so that equal ones leave reciprocal ranks as they are."""
    weights = WEIGHTS[kind]
    return Weights(2 * weights.semantic, 2 * weights.lexical)
