"""What is said of an answer: which rung it came from, why it is empty, and what else could be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from concord.answering.cascade import RUNG_STRATEGIES, Rescue, budget_ms
from concord.answering.retrieval import Retrieval
from concord.answering.tools import SearchTools
from concord.answering.understand import MAX_EF_SEARCH
from concord.indexing.partly_read import partly_read, sentence
from concord.ranking import rarity
from concord.ranking.agreement import Rung
from concord.ranking.blend import MOSTLY_KNOWN
from concord.ranking.calibrate import HALF_READ
from concord.ranking.fuse import rrf
from concord.text.contains import contains
from concord.types import Answer, Filter, Query, Source
from concord.worker_threads import run_within

RELATED = 10  # chunks whose documents may be suggested

RUNG_NOTES: Mapping[Rung, str] = {
    "prefix": "nothing holds the words as typed; these passages hold words that begin like them",
    "partial": "nothing holds the words as typed; these passages hold similar words or parts of them, "
    "so check that they are what was meant",
}
EMPTY = "the knowledge base is empty: index a folder with `kb add PATH`, or search one with `--in PATH`"
NO_WORD = "there is no word in the query to look for"
NOTHING = "nothing found, not even by parts of words: try other or fewer words"
UNEMBEDDED = "nothing found: no passage has a vector yet, by which meaning is found; `kb sync` makes them"
NO_TIME = "nothing found; similar words could not be looked for in the time allowed (search.partial_ms)"
ALL_SUPERSEDED = "every document has been superseded; --include-superseded searches those as well"
CLAMPED = f"was taken down to {MAX_EF_SEARCH}: more costs time and finds nothing more"
ONLY_EXCLUDES = "what only excludes leaves nothing to look for, so the query was read as words"
FOREIGN = "if the query is in another language than the documents, ask in theirs"
MOSTLY_ABSENT = 0.5  # share of a query's words
MATCHES_SUPERSEDED = "all that was found has been superseded; --include-superseded shows it"


def with_remarks(answer: Answer, rescued: Rescue, unheld: Sequence[str], tools: SearchTools) -> Answer:
    """Return the answer with a note on how it was reached, or why it is empty, and with suggestions.

    `unheld` is what the query names and no text holds.
    """
    return replace(
        answer,
        note=_note(answer, rescued, unheld, tools),
        suggestions=_suggested(answer, rescued, tools),
    )


def _note(answer: Answer, rescued: Rescue, unheld: Sequence[str], tools: SearchTools) -> str | None:
    rung = RUNG_NOTES.get(rescued.rung) if rescued.rung else None
    notes = [rung if answer.hits else _why_empty(answer, rescued.found, tools)]
    if unheld and answer.hits:
        notes.append(f"nothing holds {', '.join(unheld)}")
    elif answer.hits and not rescued.rung:
        notes += [_absent(rescued.found, answer), _foreign(rescued.found, answer)]
    if rescued.found.query.nothing_wanted and rescued.found.query.chunks:
        notes.append(ONLY_EXCLUDES)
    if answer.hits:
        notes += [_what_is_excluded(rescued.found.query), _crowded(answer, rescued.found.query)]
    notes += [_what_is_unread(answer), _what_is_clamped(answer, tools)]
    return "; ".join(filter(None, notes)) or None


def _absent(found: Retrieval, answer: Answer) -> str | None:
    """Say which words of the query no text has: they may be the subject, or another word for it.

    Confidence stays as it is: judged questions with such words are answered as often as others.
    """
    if not _lacks_words(found):
        return None
    from concord.answering.suggest import absent_words, is_spelt_otherwise  # late: most queries have none

    texts = [hit.chunk.text for hit in answer.hits]
    words = [word for word in absent_words(found.query) if not is_spelt_otherwise(word, texts)]
    return f"no text has the word{'s' * (len(words) > 1)} {', '.join(words)}" if words else None


def _foreign(found: Retrieval, answer: Answer) -> str | None:
    """Say that another language may help, where the model does not read the query's and no text speaks it."""
    asked, context = found.query, found.context
    is_read = context.model_reads >= HALF_READ and context.known_words >= MOSTLY_KNOWN
    if is_read or answer.answerable is not False:
        return None
    return FOREIGN if rarity.unknown(asked.chunks, asked.frequencies) >= MOSTLY_ABSENT else None


def _lacks_words(found: Retrieval) -> bool:
    """Whether some words of the query were found, and others are nowhere."""
    return bool(found.ballots.lexical) and not all(map(found.query.frequencies.get, found.query.words))


def _what_is_excluded(query: Query) -> str | None:
    """Say what was left out, because a query may exclude something by mistake: java -Xmx."""
    if not query.excluded:
        return None
    quotes = "what is in quotes is looked for" if query.phrases else "in quotes it would be looked for"
    return f"left out is what holds {', '.join(query.excluded)}; {quotes}"


def _what_is_unread(answer: Answer) -> str | None:
    """Say that more may stand in a document that was found, where pages of it could not be read."""
    unread = partly_read(hit.document for hit in answer.hits)
    more = f", and of {len(unread) - 1} more documents" if len(unread) > 1 else ""
    return f"{sentence(unread[0])}{more}: what is on them is not found" if unread else None


def _what_is_clamped(answer: Answer, tools: SearchTools) -> str | None:
    asked, key = answer.request.ef_search, "search.ef_search"
    name, effort = ("--ef-search", asked) if asked else (key, tools.settings[key])
    return f"{name} {CLAMPED}" if effort > MAX_EF_SEARCH else None


def _crowded(answer: Answer, query: Query) -> str | None:
    """Say that there may be more results where copies filled the places that were looked at."""
    copies = sum(len(hit.also_at) for hit in answer.hits)
    if not copies or len(answer.hits) == query.limit or answer.total_hits < query.candidates:
        return None
    return f"copies of these texts took {copies} of the places looked at: a larger --top looks further"


def _suggested(answer: Answer, rescued: Rescue, tools: SearchTools) -> tuple[str, ...]:
    """Return suggestions for an answer that needs them: empty, guessed from parts of words, or unlikely.

    And for any query with a word that no text has, because it may be mistyped.

    With a model that nobody fitted, an answer that holds none of the words is taken for unlikely.
    """
    found = rescued.found
    is_likely = bool(found.ballots.lexical) if answer.answerable is None else answer.answerable
    is_sound = answer.hits and is_likely and rescued.rung != "partial"
    if is_sound and (rescued.rung or not _lacks_words(found)) or not found.query.chunks:
        return ()
    from concord.answering.suggest import (  # late: most answers need none
        suggested_words,
        suggestions,
        unknown_words,
    )

    # Where files are gone, what is nearest is what was just left out: nothing to send anybody to.
    titles = () if answer.hits or answer.omitted["deleted"] else _titles(found, tools)
    words = None
    if unknown_words(found.query):
        words = run_within(
            lambda: suggested_words(found.query, rescued.near, tools.store.lexical),
            budget_ms(answer.request, "search.partial_ms", tools),
        )
    return suggestions(found.query.text, words or {}, titles)


def _titles(found: Retrieval, tools: SearchTools) -> tuple[str, ...]:
    from concord.answering.suggest import related_titles

    nearest = [one.chunk_id for one in rrf(found.ballots, found.context.k)[:RELATED]]
    excluded = found.query.excluded
    return related_titles(
        nearest, tools.store.catalog, lambda title: not any(contains(title, term) for term in excluded)
    )


def _why_empty(answer: Answer, found: Retrieval, tools: SearchTools) -> str:
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
    return f"no document matches the filter: {_asked(filter, sources)}{more}"


def _which_tags(filter: Filter, sources: Sequence[Source], tools: SearchTools) -> str:
    """Say which tags there are, where one that was asked for is none of them."""
    if not filter.tags:
        return ""
    from concord.answering.asked_tags import about_tags

    return about_tags(filter.tags, sources, tools.store.catalog)


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
