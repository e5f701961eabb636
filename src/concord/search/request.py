"""Does the request make sense? Callers of the library may pass anything: all fields are checked here."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from concord.core.errors import BadValue, NotFound, did_you_mean, nearest, shown
from concord.text.tokens import pattern
from concord.types import DOCUMENT_TYPES, MODES, DocumentType, Filter, Mode, Request, Source

if TYPE_CHECKING:
    from concord.store.contract import Catalog

_TEXT = ((str,), "text")
_COUNT = ((int,), "a whole number")
_NUMBER = ((int, float), "a number")
_MOMENT = ((int, float), "seconds since 1970")
_SWITCH = ((bool,), "True or False")
_FIELDS: Mapping[str, tuple[tuple[type, ...], str]] = {  # what each may be, besides None
    "mode": _TEXT,
    "top": _COUNT,
    "threshold": _NUMBER,
    "min_score": _NUMBER,
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
    "rerank": _SWITCH,
}
MAX_TOP = 1000
MAX_PATHS, MAX_TAGS = 4, 10  # shown to whoever has typed another
MAX_READ = 5000  # documents that are looked at for their tags: more would take a second, or longer
_WILDCARD = pattern(r"[*?]")


class Options(Struct, frozen=True):
    """The options of a search: as asked for, else as the settings say."""

    mode: Mode
    fusion: str
    limit: int
    deadline_ms: float  # for all stages together
    type: DocumentType | None

    @property
    def is_blended(self) -> bool:
        """Whether the order is that of `auto`, and not of a fusion that was asked for by name."""
        return self.fusion == "blend"


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


def checked(request: Request) -> Request:
    """Return a request whose fields have the right types; a single tag may be given as text.

    Raises:
        BadValue: a field has another type.
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
        if value is not None and not _has_type(value, kinds):
            raise _refused(name, value, what)
    for name in ("since", "until"):
        if (moment := getattr(request, name)) is not None and not _is_moment(moment):
            raise _refused(name, moment, _MOMENT[1])
    if request.ef_search is not None and request.ef_search < 1:
        raise _refused("ef_search", request.ef_search, "1 or more")
    return request


def options_of(request: Request, settings: Mapping[str, Any]) -> Options:
    """Return the options of a search, from the request or else from the settings.

    Raises:
        BadValue: a number is outside what is allowed, or there is no such mode, fusion or type.
    """
    deadline_ms, mode = _deadline_ms(request, settings), mode_of(request, settings)
    fusion, limit = _fusion(request, mode), _limit(request, settings)
    if request.threshold is not None and math.isnan(request.threshold):  # every comparison with it is false
        raise BadValue("the threshold is not a number", hint="give a fused score such as 0.02")
    return Options(mode, fusion, limit, deadline_ms, _type(request))


def mode_of(request: Request, settings: Mapping[str, Any]) -> Mode:
    """Return the mode to search in.

    Raises:
        BadValue: there is no such mode.
    """
    mode: Mode = request.mode or settings["search.mode"]
    if mode not in MODES:
        raise BadValue(f"there is no mode {mode!r}", hint="one of: " + ", ".join(MODES))
    return mode


def _fusion(request: Request, mode: Mode) -> str:
    from concord.search.fuse import FUSION_OF, FUSIONS  # late: who checks a list of texts needs no fusion

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
    for text in texts:
        if not isinstance(text, str):
            raise _refused(f"one of {name}", text, "text")
    return texts


def _has_type(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a value has one of these types; to Python True is a number."""
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _is_moment(seconds: float) -> bool:
    try:
        return not math.isnan(seconds)
    except OverflowError:  # a whole number that no engine can compare with
        return False


def _refused(name: str, value: object, wanted: str) -> BadValue:
    return BadValue(f"{name} cannot be {shown(value)}", hint=f"give {wanted}")


def filter_of(
    request: Request, options: Options, sources: Sequence[Source], is_folder: Callable[[str], bool]
) -> Filter:
    """Return what a hit must satisfy; `is_folder` says whether documents lie below a path.

    Raises:
        NotFound: no source of that name, or none that holds the path.
    """
    source_id = None
    if request.source:
        from concord.index.sources import find_source  # late: most searches name no source

        source_id = find_source(request.source, sources).id
    return Filter(
        tags=tuple(dict.fromkeys(request.tags)),
        type=options.type,
        source_id=source_id,
        path=None if request.path is None else _glob(request.path, sources, is_folder),
        since=request.since,
        until=request.until,
        include_superseded=request.include_superseded,
    )


def known_beginnings(sources: Sequence[Source]) -> str:
    """Return how citation paths begin, as a hint for whoever has typed a path that fits none."""
    known = [source.prefix if source.kind == "file" else f"{source.prefix}/" for source in sources]
    shown = ", ".join(known[:MAX_PATHS]) + (" …" if len(known) > MAX_PATHS else "")
    return f"paths begin with {shown}" if known else "nothing is indexed yet"


def about_tags(tags: Iterable[str], sources: Iterable[Source], catalog: Catalog) -> str:
    """Return the end of a sentence that names unknown tags and those there are; empty if all are known."""
    unknown = [
        tag for tag in tags if not catalog.count_documents(Filter(tags=(tag,), include_superseded=True))
    ]
    if not unknown:
        return ""
    held = Counter(tag for source in sources for tag in source.tags)
    held.update(tag for document in islice(catalog.documents(), MAX_READ) for tag in document.tags)
    if not held:
        return "; no document has any tag"
    meant = filter(None, (nearest(tag, held) for tag in unknown))
    known = list(dict.fromkeys([*meant, *(tag for tag, _ in held.most_common())]))
    more = " …" if len(known) > MAX_TAGS else ""
    return f"; no document has the tag {', '.join(unknown)}: there are {', '.join(known[:MAX_TAGS])}{more}"


def _glob(path: str, sources: Sequence[Source], is_folder: Callable[[str], bool]) -> str:
    """Return the glob over citation paths that a path stands for; a folder is all that lies below it."""
    is_place = path.startswith(("/", "~/")) and "\0" not in path
    glob = _cited(os.path.expanduser(path), sources) if is_place else path
    while glob.startswith("./"):
        glob = glob[2:].lstrip("/")
    if path and glob in ("", "."):  # where everything is
        return "**"
    if glob.endswith("/"):
        return glob + "**"
    return f"{glob}/**" if not _WILDCARD.search(glob) and is_folder(glob) else glob


def _cited(path: str, sources: Sequence[Source]) -> str:
    """Return the citation path, or the glob, of a place on disk."""
    from concord.index.sources import holder  # late: most paths are no places on disk

    wildcard = _WILDCARD.search(path)
    cut = path.rindex("/", 0, wildcard.start()) if wildcard else len(path.rstrip("/"))
    # Links are resolved, as in the paths of sources, up to the first wildcard.
    place = os.path.realpath(path[:cut] or "/").rstrip("/") + path[cut:]
    source = holder(place, sources)
    if source is None or source.path is None:
        raise NotFound(f"{path} is in no source", hint=known_beginnings(sources))
    return source.path_of(place[len(source.path) :].lstrip("/"))
