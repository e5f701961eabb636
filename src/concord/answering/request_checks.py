"""Does a request make sense? Callers of the library may pass anything: all fields are checked here, once."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from concord.errors import BadValue, did_you_mean, shown
from concord.types import DOCUMENT_TYPES, MODES, DocumentType, Mode, Request

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
MAX_TOP = 1000


class SearchOptions(Struct, frozen=True):
    """The options of a search: as asked for, else as the settings say."""

    mode: Mode
    fusion: str
    limit: int
    deadline_ms: float  # for all stages together
    type: DocumentType | None


def request_of(text: str, options: Mapping[str, Any]) -> Request:
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


def checked_request(request: Request) -> Request:
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
    request = replace(request, tags=as_texts("tags", request.tags), **paths)
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


def search_options(request: Request, settings: Mapping[str, Any]) -> SearchOptions:
    """Return the options of a search, from the request or else from the settings.

    Raises:
        BadValue: a number is outside what is allowed, or there is no such mode, fusion or type.
    """
    deadline_ms, mode = _deadline_ms(request, settings), chosen_mode(request, settings)
    fusion, limit = _fusion(request, mode), _limit(request, settings)
    if request.threshold is not None and math.isnan(request.threshold):  # every comparison with it is false
        raise BadValue("the threshold is not a number", hint="give a fused score such as 0.02")
    return SearchOptions(mode, fusion, limit, deadline_ms, _type(request))


def chosen_mode(request: Request, settings: Mapping[str, Any]) -> Mode:
    """Return the mode to search in.

    Raises:
        BadValue: there is no such mode.
    """
    mode: Mode = request.mode or settings["search.mode"]
    if mode not in MODES:
        raise BadValue(f"there is no mode {mode!r}", hint="one of: " + ", ".join(MODES))
    return mode


def _fusion(request: Request, mode: Mode) -> str:
    from concord.ranking.fuse import FUSION_OF, FUSIONS  # late: who checks a list of names needs no fusion

    fusion = request.fusion or FUSION_OF[mode]
    if fusion not in FUSIONS:
        raise BadValue(f"there is no fusion {fusion!r}", hint="one of: " + ", ".join(sorted(FUSIONS)))
    return fusion


def _limit(request: Request, settings: Mapping[str, Any]) -> int:
    limit: int = settings["search.default_top"] if request.top is None else request.top
    if not 1 <= limit <= MAX_TOP:
        raise BadValue(f"cannot return {limit} results", hint=f"ask for 1 to {MAX_TOP}")
    return limit


def _deadline_ms(request: Request, settings: Mapping[str, Any]) -> float:
    deadline: float = settings["search.deadline_ms"] if request.deadline_ms is None else request.deadline_ms
    if not deadline > 0:
        raise BadValue(f"cannot answer within {deadline:g} ms", hint="give a deadline above 0")
    return deadline


def _type(request: Request) -> DocumentType | None:
    if request.type is not None and request.type not in DOCUMENT_TYPES:
        raise BadValue(
            f"there is no document type {request.type!r}", hint="one of: " + ", ".join(DOCUMENT_TYPES)
        )
    return request.type


def as_texts(name: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
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
    return BadValue(f"{name} cannot be {shown(value)}", hint=f"give {wanted}")
