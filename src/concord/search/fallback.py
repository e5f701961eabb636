"""What if words find nothing? Two looser searches with time limits, and suggestions of what else to ask.

`prefix` looks for words that begin like those typed, `partial` for words near them and for their parts. A
step adds a ranked list under a name of its own; the search goes on from there as ever, and a note says so.
Every suggestion is a query to try as it stands. Words and titles come from the store that was searched, and
only from what the filter lets through. They are shown outside of any quotation, so a title that reads like an
order, or comes from an untrusted source, is not suggested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.search.deadline import Deadline, run_within
from concord.search.fuse import FALLBACK_FLOOR, Candidates, fuse
from concord.search.judge import Step, is_answerable
from concord.search.legs import STEPS, Tools
from concord.search.request import Options
from concord.search.retrieve import LEGS, Retrieved, ask
from concord.search.scores import complete_scores
from concord.search.understand import MAX_UNKNOWN, unknown_words
from concord.text.held import contains
from concord.text.injection import warnings_about
from concord.text.scripts import MARKS, characters, has_unspaced, is_form
from concord.text.similar import MIN_LETTERS, MIN_PART, distance, is_mistyped
from concord.text.terms import any_of, word_match, written
from concord.text.terms import searched as searched_words
from concord.text.tokens import folded, pattern, stem
from concord.types import Leg, Match, Query, RankedList, Request, Without, Word

if TYPE_CHECKING:
    from concord.search.pipeline import Examined
    from concord.store.contract import Catalog, WordIndex

SIMILAR_WORDS = 5  # that are asked for, for each word of the query
LOOKUP_SHARE = 0.6  # of the partial step's time is for finding words; the rest is for searching with them
MAX_BEGINNINGS = 8  # words looked for by their beginnings: each reads all that begin so
LONGEST_COMPOUND = 32  # letters of a word that is taken apart: the number of its parts grows with the square
MAX_SUGGESTIONS, MAX_TITLES = 5, 3
MAX_TEXT, MAX_TITLE = 200, 80  # characters of a query that is suggested put right, and of a title
RELATED = 10  # chunks whose documents may be suggested
_WORD = pattern(rf"(?:[^\W_]|[{MARKS}])+")


class Fallback(Struct, frozen=True):
    """Which step found something, if one was needed, and what it looked for."""

    floor: float
    step: Step | None = None
    searched: tuple[str, ...] = ()  # words, or prefix*


class _LooserWords(Struct):
    """A fallback step as a strategy: it may fail or be late like any other."""

    step: Step
    name: str
    index: WordIndex
    match: Callable[[Query], Match | None]
    budget_ms: float
    leg: Leg = "lexical"
    searched: tuple[str, ...] = ()  # known once it has searched

    def search(self, query: Query) -> RankedList:
        match = self.match(query)
        self.searched = tuple(searched_words(match)) if match else ()
        found = self.index.search(match, query.filter, query.candidates) if match else []
        return RankedList(self.name, self.leg, found)


def with_fallback(
    candidates: Candidates,
    retrieved: Retrieved,
    query: Query,
    request: Request,
    options: Options,
    tools: Tools,
) -> tuple[Candidates, Fallback]:
    """Try the steps in turn when words have found nothing and meaning nothing that can be relied on."""
    floor: float = tools.settings["search.floor"]
    if not _needs_words(candidates, query, options, tools):
        return candidates, Fallback(floor)
    for step in _steps(request, tools):
        found = ask([step], query, Deadline(step.budget_ms))
        candidates = replace(candidates, degraded=(*candidates.degraded, *found.degraded))
        if any(ranked.found for ranked in found.lists):
            joined = replace(retrieved, lists=[*retrieved.lists, *found.lists], degraded=candidates.degraded)
            more = complete_scores(joined, query, tools, Deadline(options.deadline_ms))
            return more, Fallback(min(floor, FALLBACK_FLOOR), step.step, step.searched)
    return candidates, Fallback(floor)


def _budget_ms(request: Request, step: Step, tools: Tools) -> float:
    allowed: float = tools.settings[f"search.{step}_ms"]
    return allowed if request.deadline_ms is None else min(allowed, request.deadline_ms)


def _needs_words(candidates: Candidates, query: Query, options: Options, tools: Tools) -> bool:
    """Whether there are words to look for, none was found, and meaning found nothing to rely on."""
    has_found = any(row.lexical_rank or row.name_score for row in candidates.rows)
    if "lexical" not in LEGS[options.mode] or has_found or not query.words or not query.chunks:
        return False
    if not candidates.rows:
        return query.filter.is_open or tools.store.catalog.count_documents(query.filter) > 0
    return not is_answerable(fuse(options.fusion, candidates), candidates, query, tools.calibration)


def _steps(request: Request, tools: Tools) -> Iterator[_LooserWords]:
    index, (prefix, partial) = tools.store.words, STEPS
    yield _LooserWords("prefix", prefix, index, _prefix_match, _budget_ms(request, "prefix", tools))
    whole_ms = _budget_ms(request, "partial", tools)
    yield _LooserWords(
        "partial", partial, index, lambda q: _partial_match(q, index, whole_ms * LOOKUP_SHARE), whole_ms
    )


def _prefix_match(query: Query) -> Match | None:
    words = [word for word in query.words if len(word) >= MIN_LETTERS and not has_unspaced(word)]
    found: list[Match] = []
    for word in sorted(words, key=len, reverse=True)[:MAX_BEGINNINGS]:
        if match := word_match(word, prefix=True):
            found.append(match)
        root = stem("".join(folded(word)))
        if len(root) >= MIN_LETTERS and stem(root) == root:  # an engine would stem databs to datab
            found.append(Word(root, prefix=True))
    return _allowed(query, found)


def _partial_match(query: Query, index: WordIndex, budget_ms: float) -> Match | None:
    """Return a match of the known words nearest to each of the query's, or else of the parts of it."""
    deadline = Deadline(budget_ms)
    found: list[Match] = []
    for word in sorted(query.words, key=len, reverse=True)[:MAX_UNKNOWN]:
        if not deadline.left_ms():
            break
        if has_unspaced(word):
            found += [Word(character, prefix=True) for character in characters(word)]
        else:
            like = _nearest(word, index.similar_words(word, SIMILAR_WORDS)) or _known_parts(word, index)
            found += [match for known in like if (match := word_match(known))]
    return _allowed(query, found)


def _allowed(query: Query, found: Sequence[Match]) -> Match | None:
    """Return a match of any of these that still leaves out what the query excludes."""
    match = any_of(found)
    return Without(match, query.dropped) if match and query.dropped else match


def _nearest(word: str, like: Sequence[tuple[str, int]]) -> list[str]:
    """Return the words with the fewest edits; with others, farther hits would mix into the order."""
    plain = "".join(folded(word))
    apart = {known: distance(plain, "".join(folded(known)), 2) for known, _ in like}
    least = min((edits for edits in apart.values() if edits is not None), default=None)
    return [known for known, edits in apart.items() if edits == least]


def _known_parts(word: str, index: WordIndex) -> list[str]:
    """Return the longest known words within a word, if together they make up half of it."""
    plain = "".join(folded(word))
    size = len(plain)
    if not 2 * MIN_PART <= size <= LONGEST_COMPOUND or is_form(plain):
        return []
    spans = [(a, b) for a in range(size) for b in range(a + MIN_PART, size + 1)]
    _, holding = index.frequencies([plain[a:b] for a, b in spans])
    chosen: list[tuple[int, int]] = []
    for a, b in sorted(spans, key=lambda span: span[0] - span[1]):
        if holding[plain[a:b]] and all(b <= start or a >= end for start, end in chosen):
            chosen.append((a, b))
    return [plain[a:b] for a, b in chosen] if 2 * sum(b - a for a, b in chosen) >= size else []


def suggestions(found: Examined, tools: Tools) -> tuple[str, ...]:
    """Return other queries worth trying, the likeliest first: the query put right, known words, titles.

    If the query is one word, any known word like it may help; if it is several, only those that a word was
    mistyped for. An address or a path (ann@shop.example) is several words, though no space is in it.
    """
    if not _wants_suggestions(found):
        return ()
    answer, query = found.answer, found.query
    texts: list[str] = []
    if unknown_words(query):
        budget_ms = _budget_ms(answer.request, "partial", tools)
        like: Mapping[str, Sequence[str]] = (
            run_within(lambda: _words_like(query, tools.store.words), budget_ms) or {}
        )
        meant = {word: next((known for known in like[word] if is_mistyped(word, known)), "") for word in like}
        text = " ".join(query.text.split())
        if any(meant.values()) and len(query.text) <= MAX_TEXT:
            texts.append(_WORD.sub(lambda match: _put_right(match[0], meant), text))
        is_single = len(_WORD.findall(query.text)) == 1
        texts += [word for words in like.values() for word in words] if is_single else meant.values()
    # Where files are gone, the nearest documents are those that were just left out: not worth a suggestion.
    if not answer.hits and not answer.omitted["deleted"]:
        texts += _related_titles(query, found.candidates, tools.store.catalog)
    different = {query.text.casefold(): ""}
    for text in texts:
        different.setdefault(text.casefold(), text)
    return tuple(filter(None, different.values()))[:MAX_SUGGESTIONS]


def _wants_suggestions(found: Examined) -> bool:
    """Whether an answer is empty, guessed from parts of words, unlikely to be right, or lacks a word."""
    answer, query, fallback = found.answer, found.query, found.fallback
    has_words = any(row.lexical_rank for row in found.candidates.rows)
    is_likely = has_words if answer.answerable is None else answer.answerable
    is_sound = bool(answer.hits) and is_likely and fallback.step != "partial"
    lacks_words = has_words and not all(map(query.frequencies.get, query.words))
    return bool(query.chunks) and not (is_sound and (fallback.step or not lacks_words))


def _words_like(query: Query, index: WordIndex) -> dict[str, list[str]]:
    """Return each word of the query that no chunk holds, with words like it that the filter lets through."""

    def is_found(word: str) -> bool:
        match = word_match(word)
        return match is not None and bool(index.search(match, query.filter, 1))

    return {
        written(word): [
            written(known) for known, _ in index.similar_words(word, SIMILAR_WORDS) if is_found(known)
        ]
        for word in unknown_words(query)
    }


def _put_right(typed: str, meant: Mapping[str, str]) -> str:
    forms = (typed, typed.lower(), "".join(folded(typed)))
    return next((meant[form] for form in forms if meant.get(form)), typed)


def _related_titles(query: Query, candidates: Candidates, catalog: Catalog) -> list[str]:
    scores = candidates.rrf
    nearest = sorted(scores, key=lambda chunk_id: (-scores[chunk_id], chunk_id))[:RELATED]
    trusted = {source.id for source in catalog.snapshot().sources if source.trust == "trusted"}
    read = catalog.read(nearest)
    documents = (read[chunk_id][1] for chunk_id in nearest if chunk_id in read)
    titles = dict.fromkeys(
        " ".join(document.title.split())
        for document in documents
        if document.source_id in trusted
        and 0 < len(document.title) <= MAX_TITLE
        and not warnings_about("", document.title)
        and not any(contains(document.title, term) for term in query.excluded)
    )
    return [*titles][:MAX_TITLES]
