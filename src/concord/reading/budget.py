"""How much is sent? Budgets in tokens, kept by bytes and by a count.

A token is counted as three bytes of UTF-8: English has more than four bytes a token. Numbers, encoded data
and other scripts than Latin have fewer, so what was packed is counted by a tokenizer as well, and packed
anew where that finds more tokens. An answer is measured in every form in which it is sent, and the largest
form decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from concord.core.errors import BadValue, UsageError

T = TypeVar("T")

BYTES_PER_TOKEN = 3
TOKENIZED = 1.2  # of what one tokenizer counts: others may cut finer
LEAST_KEPT = 0.9  # of the room, when it is packed anew: what is around the texts stays as long as it is
ROUNDS = 20
LEAST_EACH = 1_500  # bytes of each of several passages that are read at once, with what is said of it
LEFT_OUT = "no room for {} of these: raise max_tokens, or read them by themselves"


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
