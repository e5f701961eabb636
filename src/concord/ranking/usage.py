"""The working set as a prior: what was read lately and often is a little likelier to be wanted again.

Denning's working set keeps what was used within a window; here the window fades. The lift is small, so that
it only decides between passages that are about equally good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.ranking import lift
from concord.types import Access, ChunkId, Ranked

# A starting point until somebody has judged a log of their own: half of what a name of the query is worth,
# because a habit says less about a query than its words do.
MOST_LIFT = 0.05
HALF_LIFE_S = 7 * 86_400.0
HALF_TIMES = 3.0  # so many readings count half as much as infinitely many


def habit(access: Access, now: float) -> float:
    """Return how habitually a document is read, from 0 to 1: how often, fading since it was last read."""
    recency = 0.5 ** (max(0.0, now - access.last_at) / HALF_LIFE_S)
    return float(recency * access.times / (access.times + HALF_TIMES))


def lifted(ranked: Sequence[Ranked], habits: Mapping[ChunkId, float]) -> list[Ranked]:
    """Lift each chunk by the habit of reading its document."""
    return lift.lifted(ranked, {chunk_id: MOST_LIFT * share for chunk_id, share in habits.items()})
