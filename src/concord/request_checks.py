"""Is a request made of what it should be? Whoever calls the library may pass anything; nobody asks again."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from concord.errors import BadValue, did_you_mean
from concord.types import Request

_TEXT = ((str,), "text")
_COUNT = ((int,), "a whole number")
_NUMBER = ((int, float), "a number")
_MOMENT = ((int, float), "seconds since 1970")
_SWITCH = ((bool,), "True or False")
_FIELDS: Mapping[str, tuple[tuple[type, ...], str]] = {  # what each may be, besides "did not say"
    "mode": _TEXT,
    "top": _COUNT,
    "threshold": _NUMBER,
    "type": _TEXT,
    "source": _TEXT,
    "path": _TEXT,
    "since": _MOMENT,
    "until": _MOMENT,
    "include_superseded": _SWITCH,
    "fusion": _TEXT,
    "ef_search": _COUNT,
    "deadline_ms": _NUMBER,
    "max_tokens": _COUNT,
    "min_generation": _COUNT,
    "explain": _SWITCH,
}
_SHOWN = 60  # characters of a value that is refused


def requested(text: str, options: Mapping[str, Any]) -> Request:
    """Return the request of a query and its options.

    Raises:
        BadValue: there is no such option.
    """
    known = ("tags", *_FIELDS)
    for name in options:
        if name not in known:
            otherwise = f"one of: {', '.join(known)}"
            raise BadValue(f"a search has no option {name!r}", hint=did_you_mean(name, known, otherwise))
    return Request(text, **options)


def checked(request: Request) -> Request:
    """Return a request whose fields are of the kinds they are said to be; one tag may be given as text.

    Raises:
        BadValue: one of them is not.
    """
    if not isinstance(request.text, str):
        raise _refused("the query", request.text, "text")
    paths = {
        name: os.fspath(value)
        for name in ("source", "path")
        if isinstance(value := getattr(request, name), os.PathLike)
    }
    request = replace(request, tags=several("tags", request.tags), **paths)
    for name, (kinds, what) in _FIELDS.items():
        value = getattr(request, name)
        if value is not None and not _is_one(value, kinds):
            raise _refused(name, value, what)
    for name in ("since", "until"):
        if (moment := getattr(request, name)) is not None and not _is_moment(moment):
            raise _refused(name, moment, _MOMENT[1])
    if request.ef_search is not None and request.ef_search < 1:
        raise _refused("ef_search", request.ef_search, "1 or more")
    return request


def several(name: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return a tuple of texts; a single text is one of them, not its letters.

    Raises:
        BadValue: something else than text is among them.
    """
    if isinstance(given, str):
        return (given,)
    try:
        texts = tuple(given or ())
    except TypeError:
        raise _refused(name, given, "a list of texts") from None
    for one in texts:
        if not isinstance(one, str):
            raise _refused(f"one of {name}", one, "text")
    return texts


def _is_one(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a value is of one of these kinds; to Python True is a number."""
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _is_moment(seconds: float) -> bool:
    try:
        return not math.isnan(seconds)
    except OverflowError:  # a whole number that no engine can compare with
        return False


def _refused(name: str, value: object, wanted: str) -> BadValue:
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
    return BadValue(f"{name} cannot be {shown}", hint=f"give {wanted}")
