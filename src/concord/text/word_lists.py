"""Word lists by name, of several languages: `data/words.json`, read once, late."""

from __future__ import annotations

from functools import cache
from pkgutil import get_data

from msgspec import json


@cache
def word_list(name: str) -> frozenset[str]:
    """Return a list of `data/words.json`, in lower case."""
    return frozenset(_lists()[name].split())


@cache
def _lists() -> dict[str, str]:
    lists: dict[str, str] = json.decode(get_data("concord", "data/words.json") or b"{}")
    return lists


def listed(words: str) -> frozenset[str]:
    """Return words that are written with white space between them."""
    return frozenset(words.split())
