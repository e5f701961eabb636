"""Which results of an answer are sent, and with how much text? What fits into all forms it is sent in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from concord.text.json_safe import JsonObject

# An agent that can read the two best passages in full seldom has to ask again; what is further down tells
# more as several snippets than as a third whole passage.
WHOLE_FIRST = 2
# A result is slight, hardly an answer beside a better one, if its score is below this share of the best score
# and below this number. It is shown by its snippet alone.
SLIGHT_SHARE = 0.1
SLIGHT = 0.05
# Beside a result with a score of at least LIKELY, only so many slight ones are told. On five judged
# collections, 24 of 3,423 slight results were relevant, and 1,195 of 4,077 others.
LIKELY = 0.5
MOST_SLIGHT = 3
NUMBER_BYTES = 30  # of how many results are left out, and of what joins that to another note
ITSELF = -1  # as a place under a result: the result


class Form(NamedTuple):
    """How many bytes everything takes in a form; a result or a passage with its text, if it has one."""

    frame: Callable[[JsonObject], int]  # all of an answer that is sent when there are no results
    result: Callable[[JsonObject], int]  # without the passages under it
    under: Callable[[JsonObject], int]  # a passage under a result
    whole: Callable[[JsonObject], int]


class _Part(NamedTuple):
    """A result or a passage under one, without its text and with it."""

    at: int  # which result
    place: int  # under it
    turn: float  # parts take their turns by it
    bare: JsonObject
    full: JsonObject | None  # None where the text is not wanted

    @property
    def is_result(self) -> bool:
        """Whether it is a result, and under none."""
        return self.place == ITSELF


class _Room:
    """What is left of a budget, in each form."""

    def __init__(self, forms: Sequence[Form], left: list[int]) -> None:
        self._forms, self._left = forms, left

    def takes(self, part: _Part, *, with_text: bool = False) -> bool:
        """Make room for a part, or for its text as well, if there is any."""
        rest = []
        for form, left in zip(self._forms, self._left, strict=True):
            size = form.result if part.is_result else form.under
            rest.append(left - (size(part.full or {}) - size(part.bare) if with_text else size(part.bare)))
        if min(rest) >= 0:
            self._left = rest
        return min(rest) >= 0


def pack(
    wire: JsonObject, forms: Sequence[Form], max_bytes: int, left_out: str, *, keeps_best: bool = False
) -> JsonObject:
    """Return what fits of an answer: the best two whole, then further results in order, then further texts.

    Results are kept from the top without a gap; a text that does not fit is passed over for a shorter one.
    What comes under a result takes its turn by its score. Links come last. `left_out` tells of results that
    did not fit; with `keeps_best` the first comes even if it does not.
    """
    results, spare = wire["results"], len(left_out) + NUMBER_BYTES
    room = _Room(forms, [max_bytes - spare - form.frame(wire) for form in forms])
    kept = _kept(_parts(results), room, keeps_best=keeps_best)
    packed = {
        **wire,
        "results": kept,
        "returned": len(kept),
        "note": with_left_out(wire["note"], left_out, len(results) - len(kept)),
        "linked": [],
        "agreement_scores": agreement_scores(kept) if wire["agreement_scores"] else {},
    }
    sent = {result["citation"] for result in kept}
    for row in wire["linked"]:
        longer = {**packed, "linked": [*packed["linked"], row]}
        if row["via"] in sent and all(form.whole(longer) <= max_bytes for form in forms):
            packed = longer
    return packed


def _parts(results: Sequence[JsonObject]) -> list[_Part]:
    """Return the results and what is worth telling of what comes under them, in the order of their turns."""
    under = [other for result in results for other in result["more"] or ()]
    least = _slight_score([*(row["passage_score"] for row in results), *(row["score"] for row in under)])
    falling = accumulate((result["score"] for result in results), min)
    parts = []
    for at, (result, score) in enumerate(zip(results, falling, strict=True)):
        bare = {**result, "text": None, "more": None if result["more"] is None else []}
        is_slight = at > 0 and result["passage_score"] < least
        full = None if is_slight or result["text"] is None else {**bare, "text": result["text"]}
        parts.append(_Part(at, ITSELF, score, bare, full))
        for place, other in enumerate(result["more"] or ()):
            if other["score"] >= least:
                full = None if other["text"] is None else other
                parts.append(_Part(at, place, min(score, other["score"]), {**other, "text": None}, full))
    return sorted(parts, key=lambda part: (-part.turn, part.at, part.place))


def _kept(parts: Sequence[_Part], room: _Room, *, keeps_best: bool) -> list[JsonObject]:
    """Return the results that are sent, with texts and what comes under them as far as there is room."""
    sent: dict[tuple[int, int], JsonObject] = {}
    waiting: list[_Part] = []
    for part in parts:
        before = (part.at - 1 if part.is_result else part.at, ITSELF)
        is_best = part.is_result and part.at == 0
        if (is_best or before in sent) and (room.takes(part) or is_best and keeps_best):
            sent[part.at, part.place] = part.bare
            is_early = part.is_result and part.at < WHOLE_FIRST
            if part.full and is_early and room.takes(part, with_text=True):
                sent[part.at, part.place] = part.full
            else:
                waiting.append(part)
    for part in sorted(waiting, key=lambda part: (part.at, part.place)):
        if part.full and room.takes(part, with_text=True):
            sent[part.at, part.place] = part.full
    return _assembled(sent)


def _assembled(sent: Mapping[tuple[int, int], JsonObject]) -> list[JsonObject]:
    """Return results with what comes under them, from parts by place."""
    kept: list[JsonObject] = []
    for (_, place), part in sorted(sent.items(), key=lambda item: item[0]):
        if place == ITSELF:
            kept.append(part)
        else:
            kept[-1] = {**kept[-1], "more": [*kept[-1]["more"], part]}
    return kept


def _slight_score(scores: Sequence[float]) -> float:
    """Return below which score a result is slight, by the scores of all."""
    return min(SLIGHT, SLIGHT_SHARE * max(scores, default=0.0))


def worth_telling(scores: Sequence[float]) -> list[int]:
    """Return the places of the results worth telling an agent that set no budget, by the scores of all."""
    if max(scores, default=0.0) < LIKELY:
        return list(range(len(scores)))
    slight = [at for at, score in enumerate(scores) if score < _slight_score(scores)]
    return [at for at in range(len(scores)) if at not in slight[MOST_SLIGHT:]]


def agreement_scores(results: Iterable[JsonObject]) -> dict[str, float]:
    """Return how far strategies agree on each of some results, by its chunk."""
    return {hit["chunk_id"]: hit["agreement"] for hit in results if hit["agreement"] is not None}


def with_left_out(note: str | None, sentence: str, left_out: int) -> str | None:
    """Return a note that tells how many results did not fit, if any did not."""
    if not left_out or not sentence:
        return note
    said = sentence.format("1 more result" if left_out == 1 else f"{left_out} more results")
    return f"{note}; {said}" if note else said
