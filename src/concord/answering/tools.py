"""What does a search work with? The adapters that are open, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from concord.errors import BadValue

if TYPE_CHECKING:
    from concord.protocols import Reranker, Similarity, Strategy
    from concord.ranking.calibrate import Calibration
    from concord.storage import Store
    from concord.types import Degraded, Glance, Request


class SearchTools(Struct, frozen=True):
    """What a search works with."""

    store: Store
    strategies: Sequence[Strategy]
    settings: Mapping[str, Any]
    org: str
    similarity: Similarity | None = None  # of chunks that the semantic strategy did not vote for
    calibration: Calibration | None = None
    reranker: Reranker | None = None
    glance: Glance | None = None  # if somebody has had one already
    absent: Degraded | None = None  # why meaning is not among the strategies, where it should be


def deadline_ms(request: Request, settings: Mapping[str, Any]) -> float:
    """Return how long the strategies may take together.

    Raises:
        BadValue: no time at all.
    """
    deadline: float = settings["search.deadline_ms"] if request.deadline_ms is None else request.deadline_ms
    if not deadline > 0:
        raise BadValue(f"cannot answer within {deadline:g} ms", hint="give a deadline above 0")
    return deadline
