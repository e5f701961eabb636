"""The floor under an answer: candidates that every strategy ranks too low are dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.types import ChunkId, Ranked

RESCUE_FLOOR = 0.0001  # where a rung of the cascade has found something


def above_floor(ranked: Sequence[Ranked], minimum: float, scores: Mapping[ChunkId, float]) -> list[Ranked]:
    """Drop candidates that score below the floor, unless that would leave none.

    The floor is on the RRF scale, and so are `scores`, whichever fusion made the order.
    """
    kept = [one for one in ranked if scores[one.chunk_id] >= minimum]
    return kept or list(ranked)
