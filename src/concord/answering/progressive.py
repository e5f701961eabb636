"""An answer in two parts: what words find, at once; then the whole, once meaning has been searched too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from msgspec.structs import replace

from concord.ranking.agreement import PRELIMINARY
from concord.types import Answer, Degraded, Mode, Request

Stage = Literal["preliminary", "final"]

PENDING = Degraded("semantic", "still to come: its votes are part of the final answer")
_FOLLOWS = "meaning is searched next, for the final answer"
PENDING_NOTE = f"found by words alone; {_FOLLOWS}"
NOTHING_YET_NOTE = f"words alone find nothing; {_FOLLOWS}"


class Progressive(NamedTuple):
    """An answer, and whether a better one follows."""

    stage: Stage
    answer: Answer


def progressive(request: Request, mode: Mode, ask: Callable[[Request], Answer]) -> Iterator[Progressive]:
    """Yield what words find, then the full answer; only that in a mode that has one kind of strategy.

    The full search begins when it is asked for, so whoever stops after the first part pays for no more.
    """
    if mode in ("auto", "hybrid"):
        yield Progressive("preliminary", _pending(ask(replace(request, mode="fts5")), request, mode))
    yield Progressive("final", ask(request))


def preliminary(answer: Answer) -> Answer:
    """Return an answer that words alone have found, marked as such: nobody knows yet how sure it is."""
    return replace(answer, confidence=PRELIMINARY, answerable=None)


def _pending(answer: Answer, request: Request, mode: Mode) -> Answer:
    note = PENDING_NOTE if answer.hits else NOTHING_YET_NOTE
    if answer.note and answer.hits:  # why words found nothing may not hold for the final answer
        note = f"{answer.note}; {note}"
    return replace(
        preliminary(answer),
        request=request,
        mode=mode,
        degraded=(*answer.degraded, PENDING),
        note=note,
        suggestions=(),
    )
