"""Why are there no results? The first reason that holds, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from concord.answering.cascade import RUNG_STRATEGIES
from concord.answering.retrieval import Retrieval
from concord.answering.tools import SearchTools
from concord.ranking.fuse import rrf
from concord.types import Answer, Filter, Source

EMPTY = "the knowledge base is empty: index a folder with `kb add PATH`, or search one with `--in PATH`"
NO_WORD = "there is no word in the query to look for"
NOTHING = "nothing found, not even by parts of words: try other or fewer words"
UNEMBEDDED = "nothing found: no passage has a vector yet, by which meaning is found; `kb sync` makes them"
NO_TIME = "nothing found; similar words could not be looked for in the time allowed (search.partial_ms)"
ALL_SUPERSEDED = "every document has been superseded; --include-superseded searches those as well"
IN_THE_QUERY = "a date mentioned in a text belongs in the query"
MATCHES_SUPERSEDED = "all that was found has been superseded; --include-superseded shows it"


def why_empty(answer: Answer, found: Retrieval, tools: SearchTools) -> str:
    """Return why there are no results: the first reason that holds."""
    query, sources = found.query, tools.store.catalog.sources()
    if not query.chunks:
        return _nothing_stored(sources)
    if left_out := _all_left_out(answer, found):
        return left_out
    if not any(map(str.isalnum, query.text)):
        return NO_WORD
    documents = tools.store.catalog.count_documents(query.filter)
    if not documents:
        return ALL_SUPERSEDED if query.filter.is_open else _no_document(query.filter, sources, tools)
    if any(one.strategy in RUNG_STRATEGIES for one in found.poll.degraded):
        return NO_TIME
    if not found.ballots.votes and not any(query.frequencies.values()):
        return NOTHING
    if query.excluded:
        return f"everything that was found holds what the query excludes: {', '.join(query.excluded)}"
    if query.filter.is_open:
        return _why_none_is_near(documents, found, tools)
    what = "the only document" if documents == 1 else f"any of the {documents:,} documents"
    return f"nothing found in {what} that the filter leaves: {_asked(query.filter, sources)}"


def _why_none_is_near(documents: int, found: Retrieval, tools: SearchTools) -> str:
    """Return why nothing was found where words of the query are there, or only meaning was asked."""
    catalog = tools.store.catalog
    if {*found.poll.votes} == {"semantic"} and not catalog.counts().vectors:
        return UNEMBEDDED
    has_superseded = catalog.count_documents(Filter(include_superseded=True)) > documents
    return MATCHES_SUPERSEDED if has_superseded else NOTHING


def _nothing_stored(sources: Sequence[Source]) -> str:
    waiting = [source for source in sources if source.kind != "notes"]
    if not waiting:
        return EMPTY
    names = ", ".join(source.name for source in waiting)
    told = f"nothing is indexed yet of {names}: `kb sync` brings in what can be read and names the rest"
    return told + _only_like(waiting)


def _only_like(sources: Sequence[Source]) -> str:
    """Return the end of a sentence that says of which sources only some files are taken."""
    chosen = [f"of {one.name} only files like {', '.join(one.patterns)}" for one in sources if one.patterns]
    return f"; {', '.join(chosen)} are taken: `kb add PATH --pattern '**'` takes all" if chosen else ""


def _all_left_out(answer: Answer, found: Retrieval) -> str | None:
    """Return why what was found is not shown; None where nothing was found in the first place."""
    if 0 < answer.total_hits == answer.omitted["below_threshold"]:
        return _under_threshold(answer, found)
    return _all_deleted(answer.omitted["deleted"]) if answer.omitted["deleted"] else None


def _under_threshold(answer: Answer, found: Retrieval) -> str:
    under = answer.omitted["below_threshold"]
    best = rrf(found.ballots, found.context.k)[0].score
    what = "1 result was" if under == 1 else f"{under} results were"
    return f"{what} under the threshold of {answer.request.threshold:g}; the best reaches {best:.4f}"


def _all_deleted(count: int) -> str:
    what = "the only passage found is in a file" if count == 1 else f"all {count} passages found are in files"
    return f"{what} deleted since: `kb sync` brings the index up to date"


def _no_document(filter: Filter, sources: Sequence[Source], tools: SearchTools) -> str:
    if filter.since is not None and filter.until is not None and filter.since > filter.until:
        return "no document can match the filter: it begins after it ends"
    asked = [source for source in sources if source.id == filter.source_id]
    more = _only_like(asked) + _which_tags(filter, sources, tools) + _how_paths_begin(filter, sources)
    more += _which_times(filter, tools)
    return f"no document matches the filter: {_asked(filter, sources)}{more}"


def _which_tags(filter: Filter, sources: Sequence[Source], tools: SearchTools) -> str:
    """Return the end of a sentence that names the tags there are, if one that was asked for is unknown."""
    if not filter.tags:
        return ""
    from concord.answering.asked_tags import about_tags  # late, as the others: few searches have a filter

    return about_tags(filter.tags, sources, tools.store.catalog)


def _which_times(filter: Filter, tools: SearchTools) -> str:
    """Say by which time documents are taken, if that of each keeps it out: a date may have been meant."""
    if (filter.since, filter.until) == (None, None):
        return ""
    count = tools.store.catalog.count_documents(replace(filter, since=None, until=None))
    return f"; without the dates, {count:,} would: {IN_THE_QUERY}" if count else ""


def _how_paths_begin(filter: Filter, sources: Sequence[Source]) -> str:
    """Say how paths begin, if the filter has a path: it fits none."""
    if filter.path is None:
        return ""
    from concord.answering.asked_paths import known_beginnings

    return f"; {known_beginnings(sources)}, and a folder is all that lies below it"


def _name(source_id: str, sources: Sequence[Source]) -> str:
    return next((source.name for source in sources if source.id == source_id), "that was removed meanwhile")


def _asked(filter: Filter, sources: Sequence[Source]) -> str:
    """Return a filter in words."""
    said = {
        "tags": ", ".join(filter.tags),
        "type": filter.type,
        "source": filter.source_id and _name(filter.source_id, sources),
        "path": filter.path,
        "modified": (filter.since, filter.until) != (None, None) and " and ".join(_asked_times(filter)),
    }
    return "; ".join(f"{name} {value}" for name, value in said.items() if value)


def _asked_times(filter: Filter) -> Iterator[str]:
    from concord.text.moments import told  # late: few searches are asked for a time

    for name, moment in (("since", filter.since), ("until", filter.until)):
        if moment is not None:
            yield f"{name} {told(moment)}"
