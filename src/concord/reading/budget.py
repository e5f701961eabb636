"""How much is sent? Results packed into a token budget: whole best passages before snippets of weak ones.

A token is counted as three bytes of UTF-8: English has more than four bytes a token. Numbers, encoded data
and other scripts than Latin have fewer, so what was packed is counted by a tokenizer as well, and packed
anew where that finds more tokens. An answer is measured in every form in which it is sent, and the largest
form decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from concord.core.errors import BadValue, UsageError

T = TypeVar("T")

BYTES_PER_TOKEN = 3
TOKENIZED = 1.2  # of what one tokenizer counts: others may cut finer
LEAST_KEPT = 0.9  # of the room, when it is packed anew: what is around the texts stays as long as it is
ROUNDS = 20
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
LEAST_EACH = 1_500  # bytes of each of several passages that are read at once, with what is said of it
LEFT_OUT = "no room for {} of these: raise max_tokens, or read them by themselves"

Size = tuple[int, ...]  # bytes in each form


class Under(NamedTuple):
    """What a passage weighs that comes under a result: with its snippet, and how much its text adds."""

    score: float
    entry: Size
    whole: Size


class Costs(NamedTuple):
    """What everything weighs, in bytes of each form."""

    frame: Size  # all that is sent when there are no results
    entries: Sequence[Size]  # each result with its snippet
    wholes: Sequence[Size | None]  # how much its whole text adds; None if that is not wanted
    scores: Sequence[float] = ()  # of each result, where others come under it
    under: Sequence[Sequence[Under]] = ()  # each result


class Packed(NamedTuple):
    """How many of the results are kept, which of them have their whole text; and of those under them."""

    kept: int
    whole: frozenset[int]
    under: frozenset[tuple[int, int]] = frozenset()  # by the place of the result and their own
    whole_under: frozenset[tuple[int, int]] = frozenset()


class _Room:
    """What is left of a budget, in each form."""

    def __init__(self, max_bytes: int, frame: Size) -> None:
        self._left = [max_bytes - size for size in frame]

    def takes(self, size: Size | None) -> bool:
        """Make room for something if it is wanted and there is any."""
        rest = [have - need for have, need in zip(self._left, size or self._left, strict=True)]
        is_room = size is not None and min(rest) >= 0
        self._left = rest if is_room else self._left
        return is_room


def choose(costs: Costs, max_bytes: int) -> Packed:
    """Choose what fits: the best two whole, then further results in order, then further texts.

    Results are kept from the top without a gap. A text that does not fit is passed over for a shorter one.
    What comes under a result takes its turn by its score.
    """
    room = _Room(max_bytes, costs.frame)
    whole: set[int] = set()
    under: set[tuple[int, int]] = set()
    waiting: list[tuple[float, int, int]] = []
    kept = 0
    for at, entry in enumerate(costs.entries):
        if waiting:
            waiting = _after_turn(waiting, costs.scores[at], costs, room, under)
        if not room.takes(entry):
            break
        kept += 1
        if at < WHOLE_FIRST and room.takes(costs.wholes[at]):
            whole.add(at)
        if costs.under:
            waiting += [(other.score, at, place) for place, other in enumerate(costs.under[at])]
    _after_turn(waiting, -math.inf, costs, room, under)
    whole_under: set[tuple[int, int]] = set()
    for at in range(kept):
        if at >= WHOLE_FIRST and room.takes(costs.wholes[at]):
            whole.add(at)
        mine = sorted(place for place in under if place[0] == at)
        whole_under.update(place for place in mine if room.takes(costs.under[at][place[1]].whole))
    return Packed(kept, frozenset(whole), frozenset(under), frozenset(whole_under))


def _after_turn(
    waiting: list[tuple[float, int, int]],
    least: float,
    costs: Costs,
    room: _Room,
    under: set[tuple[int, int]],
) -> list[tuple[float, int, int]]:
    for score, at, place in sorted(waiting, key=lambda row: (-row[0], row[1:])):
        if score >= least and room.takes(costs.under[at][place].entry):
            under.add((at, place))
    return [row for row in waiting if row[0] < least]


def are_slight(scores: Sequence[float]) -> list[bool]:
    """Return for each result whether it is slight, by the scores of all; the first never is."""
    most = min(SLIGHT, SLIGHT_SHARE * max(scores, default=0.0))
    return [at > 0 and score < most for at, score in enumerate(scores)]


def worth_telling(scores: Sequence[float]) -> list[int]:
    """Return the places of the results worth telling an agent that set no budget, by the scores of all."""
    if max(scores, default=0.0) < LIKELY:
        return list(range(len(scores)))
    slight = [at for at, is_slight in enumerate(are_slight(scores)) if is_slight]
    return sorted({*range(len(scores))}.difference(slight[MOST_SLIGHT:]))


def read_in_turn(
    names: Sequence[str], read: Callable[[str, int], T], size: Callable[[T], int], max_bytes: int
) -> tuple[list[T], list[tuple[str, str]]]:
    """Read each within its share of the room that is left; return also what was not read, and why."""
    read_so_far: list[T] = []
    unread: dict[str, UsageError] = {}
    for at, name in enumerate(names):
        if max_bytes < LEAST_EACH:
            unread[name] = UsageError(LEFT_OUT.format(len(names) - at))
            break
        try:
            read_so_far.append(read(name, max(LEAST_EACH, max_bytes // (len(names) - at))))
            max_bytes -= size(read_so_far[-1])
        except UsageError as fault:
            unread[name] = fault
            max_bytes -= utf8_length(name + fault.message) + LEAST_EACH // 10
    if unread and not read_so_far:
        raise next(iter(unread.values()))
    return read_so_far, [(name, fault.message) for name, fault in unread.items()]


def tokens(text: str) -> int:
    """Return how many tokens a text counts for by its bytes."""
    return -(-utf8_length(text) // BYTES_PER_TOKEN)


def within(
    max_tokens: int,
    make: Callable[[int], T],
    forms: Callable[[T], Iterable[str]],
    count: Callable[[str], int],
) -> T:
    """Return what is made of so many bytes as have no more tokens, in each form, by bytes and by a count."""
    max_bytes = max_tokens * BYTES_PER_TOKEN
    for tried in range(ROUNDS):
        try:
            made = make(max_bytes)
        except BadValue:
            if not tried:
                raise
            break  # nothing is short enough: the shortest will have to do
        written = [*forms(made)]
        most = max(max(tokens(form), math.ceil(TOKENIZED * count(form))) for form in written)
        if most <= max_tokens:
            break
        longest = min(max_bytes, max(map(utf8_length, written)))
        max_bytes = int(longest * max(LEAST_KEPT, max_tokens / most)) - 1
    return made


def utf8_length(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def json_length(value: Any) -> int:
    """Return the bytes of a value as JSON, blanks after commas and colons: no form is longer."""
    return utf8_length(as_json(value))


def as_json(value: Any) -> str:
    """Return a value as JSON in its longest form, with blanks after commas and colons."""
    return json.dumps(value, ensure_ascii=False)


def cut_to_bytes(text: str, most: int) -> str:
    """Return the longest beginning of a text that has at most so many bytes."""
    if utf8_length(text) <= most:
        return text
    return text.encode("utf-8", "replace")[: max(0, most)].decode("utf-8", "ignore")
