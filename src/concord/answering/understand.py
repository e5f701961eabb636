"""Request → Query: what the caller typed becomes what the pipeline runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from concord.answering.request_checks import SearchOptions
from concord.ranking.classify import classify
from concord.ranking.entities import entities
from concord.ranking.politeness import without_politeness
from concord.text.parse import Dashed, Parsed, dashed, parse, prune
from concord.text.spellings import other_spellings
from concord.text.terms import loose_words, with_spellings
from concord.types import Filter, Query, Request, Source

if TYPE_CHECKING:
    from concord.storage import LexicalIndex

MOST_SPLIT = 4  # words of a query that are split into parts: the longest
FANOUT = 3  # candidates for each result asked for, so that fusion has room for the tails
# Frequent words are left out of loose matching to save time, not to answer better: on small collections even
# they help (nDCG@10 without and with pruning: 0.370 and 0.353, 0.652 and 0.588). Reading this many postings
# takes less than a millisecond, so no rarer word is left out.
CHEAP = 5000
# Another spelling is looked for unless it is more than this many times rarer than the word as typed. BM25
# gives rare words more weight: a search for "color" would put the one text with "colour" first.
RARER = 4
MAX_EF_SEARCH = 200  # more costs time for recall nobody can measure


def interpret(
    request: Request,
    chosen: SearchOptions,
    settings: Mapping[str, Any],
    sources: Sequence[Source],
    is_option: Callable[[Dashed], bool],
    is_folder: Callable[[str], bool],
) -> tuple[Query, Parsed]:
    """Return the query and its parsed form; the frequencies of its words are added by `with_frequencies`.

    `is_option` tells whether a word with a dash is an option of a command, so that it excludes nothing;
    `is_folder` whether documents lie below a path.

    Raises:
        NotFound: no source of that name, or none that holds the path.
    """
    text = _plain_message(without_politeness(_cleaned(request.text)))
    parsed = parse(text)
    excludes = parsed.excluded or parsed.nothing_wanted
    options = tuple(one.word for one in dashed(text) if is_option(one)) if excludes else ()
    parsed = parse(text, options) if options else parsed
    query = Query(
        text=text,
        terms=parsed.terms,
        phrases=parsed.phrases,
        excluded=parsed.excluded,
        exact=parsed.exact,
        loose=parsed.loose,
        limit=chosen.limit,
        candidates=max(settings["search.candidates"], FANOUT * chosen.limit),
        filter=_filter(request, chosen, sources, is_folder),
        kind=classify(text),
        entities=entities(text),
        words=parsed.words,
        ef_search=min(request.ef_search or settings["search.ef_search"], MAX_EF_SEARCH),
        options=options,
        remaining=" ".join((*parsed.terms, *parsed.phrases)) if parsed.excluded else "",
        nothing_wanted=parsed.nothing_wanted,
    )
    return query, parsed


def _cleaned(text: str) -> str:
    """Return a query without control characters, such as those that colour what a terminal shows.

    Texts are indexed without them, and whoever pastes a red ERROR did not mean its `[31m`.
    """
    if text.isprintable():
        return text
    from concord.text.clean import clean  # late: most queries are one line of plain text

    return clean(text)


def _plain_message(text: str) -> str:
    """Return a pasted error message without the modules of its exception and the quotes around its values.

    Any other query stays as it is.
    """
    if ": " not in text and not any(quote in text for quote in '"“”'):
        return text
    from concord.ranking.messages import with_bare_values, without_modules  # late: few queries are messages

    return with_bare_values(without_modules(text))


def with_frequencies(
    query: Query, parsed: Parsed, settings: Mapping[str, Any], lexical: LexicalIndex
) -> Query:
    """Add the frequencies of a query's words, other spellings of them, and parts of compound words.

    Loose matching leaves out the most frequent words. A word is as frequent as all its spellings together.
    """
    sought = settings["search.prune_share"] if query.filter.is_open else None
    spelt = {word: found for word in parsed.words if (found := other_spellings(word))}
    others = tuple({one: 0 for found in spelt.values() for one in found if one not in parsed.words})
    chunks, frequencies = lexical.frequencies((*parsed.words, *others), sought)
    counted = {one: frequencies.pop(one) for one in others}  # in place: an index may keep more in it
    most = prune_limit(chunks, settings)
    sought_too = {word: _sought_too(found, counted, frequencies[word], most) for word, found in spelt.items()}
    for word, found in spelt.items():
        frequencies[word] = min(chunks, frequencies[word] + sum(counted.get(one, 0) for one in found))
    loose = prune(parsed, lambda word: frequencies.get(word, 0) <= most)
    query = replace(query, loose=loose, chunks=chunks, frequencies=frequencies)
    query = _with_spellings(query, {word: found for word, found in sought_too.items() if found})
    is_partly_known = 0 in frequencies.values() and any(frequencies.values())  # of no known word: the cascade
    return _with_parts(query, lexical, most) if is_partly_known else query


def _sought_too(spellings: Sequence[str], counted: Mapping[str, int], typed: int, most: float) -> list[str]:
    """Return the spellings of a word to look for: neither too frequent nor far rarer than what was typed."""
    return [one for one in spellings if 0 < counted.get(one, 0) <= most and typed <= RARER * counted[one]]


def _with_spellings(query: Query, others: Mapping[str, Sequence[str]]) -> Query:
    """Have a query's words looked for in other spellings, too."""
    if not others:
        return query
    exact, loose = (match and with_spellings(match, others) for match in (query.exact, query.loose))
    return replace(query, exact=exact, loose=loose)


def _with_parts(query: Query, lexical: LexicalIndex, most: float) -> Query:
    """Have words that no chunk holds looked for loosely by their parts: `timezone` as `time` and `zone`.

    nDCG@10 of the 129 questions with such a word in five judged collections is .900 with it, .881 without.
    """
    from concord.text.compounds import likeliest, splits  # late: most queries have no such word

    quoted = {word for phrase in query.phrases for word in loose_words(phrase)}  # asked for as they are
    missing = (word for word in query.words if not query.frequencies.get(word) and word not in quoted)
    unknown = sorted(missing, key=len)[-MOST_SPLIT:]
    pairs = {word: list(splits(word)) for word in unknown}
    parts = {part for found in pairs.values() for pair in found for part in pair}
    if query.loose is None or not parts:
        return query
    held = lexical.frequencies([*parts])[1]
    known = {part for part in parts if held[part]}
    chosen = {word: pair for word, found in pairs.items() if (pair := likeliest(found, known))}
    sought = {word: [part for part in pair if held[part] <= most] for word, pair in chosen.items()}
    return replace(query, loose=with_spellings(query.loose, sought))


def prune_limit(chunks: int, settings: Mapping[str, Any]) -> float:
    """Return how many of all chunks may hold a word for it to take part in loose matching."""
    share: float = settings["search.prune_share"]
    return max(CHEAP, chunks * share)


def _filter(
    request: Request, chosen: SearchOptions, sources: Sequence[Source], is_folder: Callable[[str], bool]
) -> Filter:
    return Filter(
        tags=tuple(dict.fromkeys(request.tags)),
        type=chosen.type,
        source_id=_source_id(request.source, sources),
        path=_glob(request.path, sources, is_folder),
        since=request.since,
        until=request.until,
        include_superseded=request.include_superseded,
    )


def _source_id(name: str | None, sources: Sequence[Source]) -> str | None:
    if not name:
        return None
    from concord.sources import find_source  # late: most searches name no source

    return find_source(name, sources).id


def _glob(path: str | None, sources: Sequence[Source], is_folder: Callable[[str], bool]) -> str | None:
    if path is None:
        return None
    from concord.answering.asked_paths import asked_glob  # late: most searches name no path

    return asked_glob(path, sources, is_folder)
