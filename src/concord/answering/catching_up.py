"""Reading one's own writes: a search waits until the store has reached the generation the caller has seen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.answering.deadline import Deadline
from concord.answering.request_checks import search_options
from concord.answering.tools import SearchTools
from concord.search import search
from concord.types import Answer, Degraded, Request

if TYPE_CHECKING:
    from concord.storage import Catalog

WAITING_SHARE = 0.5  # of the time that the search has: the rest is for searching
FIRST_LOOK_S, LONGEST_LOOK_S = 0.002, 0.05  # between two looks: a commit takes milliseconds, a sync seconds


def search_when_caught_up(request: Request, tools: SearchTools) -> Answer:
    """Answer a request once the store has the generation it asks for, or say in the answer that it has not.

    Waiting and searching together take no longer than searching may.

    Raises:
        UsageError: the request cannot be carried out as asked.
        StoreError: the store cannot be used.
    """
    deadline = Deadline(search_options(request, tools.settings).deadline_ms)
    wanted = request.min_generation or 0
    reached = _wait(tools.store.catalog, wanted, Deadline(deadline.ms * WAITING_SHARE))
    left_ms = max(1.0, deadline.left_ms())
    tools = replace(tools, glance=None)  # it was taken before the wait
    answer = replace(search(replace(request, deadline_ms=left_ms), tools), request=request)
    return answer if reached >= wanted else _behind(answer, reached, wanted)


def _behind(answer: Answer, reached: int, wanted: int) -> Answer:
    reason = (
        f"the index is at generation {reached}, not yet at {wanted}: what was changed since may be missing"
    )
    return replace(
        answer,
        degraded=(*answer.degraded, Degraded("generation", reason)),
        note=f"{answer.note}; {reason}" if answer.note else reason,
    )


def _wait(catalog: Catalog, wanted: int, deadline: Deadline) -> int:
    """Return the generation that was reached in time."""
    pause = FIRST_LOOK_S
    while (reached := catalog.generation()) < wanted and (left_ms := deadline.left_ms()):
        time.sleep(min(pause, left_ms / 1000))
        pause = min(2 * pause, LONGEST_LOOK_S)
    return reached
