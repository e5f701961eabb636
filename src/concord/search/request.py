"""Does the request make sense? Callers of the library may pass anything: all fields are checked here."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

from concord.core.errors import BadValue, NotFound, did_you_mean, nearest
from concord.core.values import as_texts, refused
from concord.text.tokens import pattern
from concord.types import DOCUMENT_TYPES, MODES, DocumentType, Filter, Group, Mode, Request, Source

if TYPE_CHECKING:
    from concord.store.contract import Catalog

_KINDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "True or False"}
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
    group: Group = "passage"

    @property
    def is_blended(self) -> bool:
        """Whether the order is that of `auto`, and not of a fusion that was asked for by name."""
        return self.fusion == "blend"


def request_of(text: str, options: Mapping[str, Any]) -> Request:
    """Return the request of a query and its options."""
    known = Request.__struct_fields__[1:]
    for name in options:
        if name not in known:
            otherwise = f"one of: {', '.join(known)}"
            raise BadValue(f"a search has no option {name!r}", hint=did_you_mean(name, known, otherwise))
    return Request(text, **options)


def checked(request: Request) -> Request:
    """Return a request whose fields have the right types; a single tag may be given as text."""
    if not isinstance(request.text, str):
        raise refused("the query", request.text, "text")
    given = {name: value for name, value in asdict(request).items() if value is not None}
    given["tags"] = as_texts("tags", request.tags)
    for name in ("source", "path"):
        if isinstance(given.get(name), os.PathLike):
            given[name] = os.fspath(given[name])
    try:
        request = convert(given, Request)
    except ValidationError as fault:  # "Expected `int | null`, got `str` - at `$.top`"
        said, name = str(fault), str(fault).rpartition("$.")[2].rstrip("`")
        if name == "mode" and isinstance(given[name], str):
            _check("mode", given[name], MODES)
        kinds = (word for kind, word in _KINDS.items() if f"`{kind}" in said)
        raise refused(name, given[name], next(kinds, "something else")) from fault
    for name in ("since", "until"):
        if math.isnan(getattr(request, name) or 0.0):
            raise refused(name, getattr(request, name), "seconds since 1970")
    if request.ef_search is not None and request.ef_search < 1:
        raise refused("ef_search", request.ef_search, "1 or more")
    return request


def options_of(request: Request, settings: Mapping[str, Any]) -> Options:
    """Return the options of a search, from the request or else from the settings."""
    from concord.search.fuse import FUSION_OF, FUSIONS  # late: who checks a list of texts needs no fusion

    mode = mode_of(request, settings)
    fusion: str = request.fusion or FUSION_OF[mode]
    limit: int = settings["search.default_top"] if request.top is None else request.top
    deadline_ms = settings["search.deadline_ms"] if request.deadline_ms is None else request.deadline_ms
    _check("fusion", fusion, sorted(FUSIONS))
    if request.type is not None:
        _check("document type", request.type, DOCUMENT_TYPES)
    if not 1 <= limit <= MAX_TOP:
        raise BadValue(f"cannot return {limit} results", hint=f"ask for 1 to {MAX_TOP}")
    if not deadline_ms > 0:
        raise BadValue(f"cannot answer within {deadline_ms:g} ms", hint="give a deadline above 0")
    if request.threshold is not None and math.isnan(request.threshold):  # every comparison with it is false
        raise BadValue("the threshold is not a number", hint="give a fused score such as 0.02")
    group: Group = request.group or ("section" if request.max_tokens else "passage")
    return Options(mode, fusion, limit, deadline_ms, group)


def mode_of(request: Request, settings: Mapping[str, Any]) -> Mode:
    """Return the mode to search in."""
    mode: Mode = request.mode or settings["search.mode"]
    _check("mode", mode, MODES)
    return mode


def _check(kind: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise BadValue(f"there is no {kind} {name!r}", hint="one of: " + ", ".join(known))


def filter_of(request: Request, sources: Sequence[Source], catalog: Catalog) -> Filter:
    """Return what a hit must satisfy."""
    source_id = None
    if request.source:
        from concord.core.places import find_source  # late: most searches name no source

        source_id = find_source(request.source, sources).id
    return Filter(
        tags=tuple(dict.fromkeys(request.tags)),
        type=cast("DocumentType | None", request.type),  # options_of has checked it
        source_id=source_id,
        path=None if request.path is None else _glob(request.path, sources, catalog),
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


def _glob(path: str, sources: Sequence[Source], catalog: Catalog) -> str:
    """Return the glob over citation paths that a path stands for; a folder is all that lies below it."""
    is_place = path.startswith(("/", "~/")) and "\0" not in path
    glob = _cited(os.path.expanduser(path), sources) if is_place else path
    while glob.startswith("./"):
        glob = glob[2:].lstrip("/")
    if path and glob in ("", "."):  # where everything is
        return "**"
    if glob.endswith("/"):
        return glob + "**"
    below = Filter(path=f"{glob}/**", include_superseded=True)
    return f"{glob}/**" if not _WILDCARD.search(glob) and catalog.count_documents(below) else glob


def _cited(path: str, sources: Sequence[Source]) -> str:
    """Return the citation path, or the glob, of a place on disk."""
    from concord.core.places import holder  # late: most paths are no places on disk

    wildcard = _WILDCARD.search(path)
    cut = path.rindex("/", 0, wildcard.start()) if wildcard else len(path.rstrip("/"))
    # Links are resolved, as in the paths of sources, up to the first wildcard.
    place = os.path.realpath(path[:cut] or "/").rstrip("/") + path[cut:]
    source = holder(place, sources)
    if source is None or source.path is None:
        raise NotFound(f"{path} is in no source", hint=known_beginnings(sources))
    return source.path_of(place[len(source.path) :].lstrip("/"))
