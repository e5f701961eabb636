"""What is asked for? Request → Query: words are counted, given other forms if unknown, and names recognised.

Understanding searches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from concord.search.classify import classify, entities
from concord.search.legs import Tools
from concord.search.request import Options, filter_of
from concord.text.names import Asked, asked_names
from concord.text.query_language import Parsed, dashed, parse, prune
from concord.text.similar import forms_of
from concord.text.terms import all_of, any_of, loose_words, word_match, written
from concord.types import AllOf, AnyOf, Match, Query, Request, Source, Without, Word

if TYPE_CHECKING:
    from concord.store.contract import WordIndex

FANOUT = 3  # candidates for each result asked for, so that fusion has room for the tails
# Frequent words are left out of loose matching to save time, not to answer better: on small collections even
# they help (nDCG@10 without and with pruning: 0.370 and 0.353, 0.652 and 0.588). Reading this many postings
# takes less than a millisecond, so no rarer word is left out.
CHEAP = 5000
MAX_EF_SEARCH = 200  # more costs time for recall nobody can measure
MAX_UNKNOWN = 4  # words of one query that are looked up: who mistypes more has pasted something


def understand(request: Request, options: Options, tools: Tools, sources: Sequence[Source]) -> Query:
    """Return what a search runs."""
    settings, index, text = tools.settings, tools.store.words, request.text
    if not text.isprintable():  # texts are indexed without control characters, and pasted ones may colour
        from concord.text.clean import clean  # late: most queries are one line of plain text

        text = clean(text)
    filter = filter_of(request, sources, tools.store.catalog)
    parsed = _parsed(text, index)
    words = _counted(parsed, tools)
    names = asked_names(text)
    meaning = " ".join((*parsed.terms, *parsed.phrases)) if parsed.excluded else text
    return Query(
        text=text,
        meaning=_respelt(meaning, words.changes),
        terms=parsed.terms,
        phrases=parsed.phrases,
        excluded=parsed.excluded,
        exact=parsed.exact and with_forms(parsed.exact, words.changes, all_of),
        loose=words.loose,
        limit=options.limit,
        candidates=max(settings["search.candidates"], FANOUT * options.limit),
        filter=filter,
        type=classify(text),
        entities=entities(text),
        words=words.searched,
        frequencies=words.frequencies,
        chunks=words.chunks,
        names=names.tokens,
        absent_names=_absent(names, words.changes, index),
        changes=words.changes,
        dropped=parsed.dropped,
        ef_search=min(request.ef_search or settings["search.ef_search"], MAX_EF_SEARCH),
        nothing_wanted=parsed.nothing_wanted,
    )


class _Words(NamedTuple):
    searched: tuple[str, ...]
    frequencies: Mapping[str, int]
    chunks: int
    changes: Mapping[str, tuple[str, ...]]
    loose: Match | None


def _counted(parsed: Parsed, tools: Tools) -> _Words:
    """Count the words, give unknown ones their forms, and leave the most frequent out of loose matching."""
    index, model = tools.store.words, tools.similarity
    chunks, frequencies = index.frequencies(parsed.words)
    quoted = {word for phrase in parsed.phrases for word in loose_words(phrase)}  # asked for as they are
    unknown = [word for word in parsed.words if not frequencies.get(word) and word not in quoted]
    changes: dict[str, tuple[str, ...]] = {}
    if chunks and unknown:
        is_word = model.vectors.is_word if model else lambda word: False
        changes = forms_of(unknown, lambda words: index.frequencies(words)[1], index.similar_words, is_word)
        held = index.frequencies([form for forms in changes.values() for form in forms])[1] if changes else {}
        frequencies = {word: count for word, count in frequencies.items() if word not in changes} | held
    most = prune_limit(chunks, tools.settings["search.prune_share"])
    loose = prune(parsed, lambda word: frequencies.get(word, 0) <= most)
    searched = dict.fromkeys(form for word in parsed.words for form in changes.get(word, (word,)))
    added = {  # parts of identifiers are looked for in any case
        word: tuple(form for form in forms if form not in parsed.words and frequencies[form] <= most)
        for word, forms in changes.items()
    }
    return _Words(tuple(searched), frequencies, chunks, changes, loose and with_forms(loose, added, any_of))


def with_forms(
    match: Match, changes: Mapping[str, tuple[str, ...]], join: Callable[[Sequence[Match]], Match | None]
) -> Match:
    """Return a match in which unknown words are also looked for by their forms.

    `join` says whether all parts of a word must be there, or any of them.
    """
    if isinstance(match, Word) and not match.prefix and match.text in changes:
        forms = join([form for text in changes[match.text] if (form := word_match(text))])
        return AnyOf((match, forms)) if forms else match
    if isinstance(match, AllOf | AnyOf):
        return type(match)(tuple(with_forms(part, changes, join) for part in match.parts))
    if isinstance(match, Without):
        return Without(with_forms(match.keep, changes, join), match.drop)
    return match


def _respelt(text: str, changes: Mapping[str, tuple[str, ...]]) -> str:
    """Return a text with corrected words put right; what was only taken apart stays as typed."""
    corrected = {written(word).casefold(): forms[0] for word, forms in changes.items() if len(forms) == 1}
    if not corrected:
        return text
    return " ".join(corrected.get(word.casefold().strip(".,;:!?"), word) for word in text.split())


def prune_limit(chunks: int, share: float) -> float:
    """Return how many of all chunks may hold a word for it to take part in loose matching."""
    return max(CHEAP, chunks * share)


def _parsed(text: str, index: WordIndex) -> Parsed:
    """Parse a query; a word with a dash is an option, and excludes nothing, if a chunk defines it as one."""
    parsed = parse(text)
    if not (parsed.excluded or parsed.nothing_wanted):
        return parsed
    words = dashed(text)
    held = index.name_frequencies([f"-{word.lower()}" for word in words])
    options = [word for word in words if held.get(f"-{word.lower()}")]
    return parse(text, options) if options else parsed


def _absent(names: Asked, changes: Mapping[str, tuple[str, ...]], index: WordIndex) -> tuple[str, ...]:
    """Return the asked names that no chunk defines or mentions, of those that can only be names.

    What is searched by other forms, as FY2022 by 2022, was no name.
    """
    defined = index.name_frequencies(names.sure) if names.sure else {}
    changed = {word.lower() for word in changes}
    absent = [name for name in names.sure if not defined.get(name) and name not in changed]
    mentioned = index.frequencies(absent)[1] if absent else {}
    return tuple(name for name in absent if not mentioned.get(name))


def unknown_words(query: Query) -> list[str]:
    """Return the words of a query that no chunk holds in any form, at most the longest few."""
    unknown = [word for word in query.words if not query.frequencies.get(word)]
    chosen = sorted(unknown, key=len)[-MAX_UNKNOWN:]
    return [word for word in unknown if word in chosen]
