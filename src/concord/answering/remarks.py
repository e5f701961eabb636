"""What is said of an answer besides its hits: which rung it came from, what it lacks, what else to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import starmap

from msgspec.structs import replace

from concord.answering.cascade import Rescue, budget_ms
from concord.answering.deadline import Deadline
from concord.answering.passages import indexed
from concord.answering.retrieval import Retrieval
from concord.answering.tools import SearchTools
from concord.answering.understand import MAX_EF_SEARCH
from concord.errors import StoreError, Unavailable
from concord.indexing.partly_read import partly_read, sentence
from concord.ranking import rarity
from concord.ranking.agreement import Rung
from concord.ranking.blend import MOSTLY_KNOWN
from concord.ranking.calibrate import HALF_READ
from concord.ranking.fuse import rrf
from concord.text.contains import contains
from concord.types import Answer, ChunkId, Query
from concord.worker_threads import run_within

RELATED = 10  # chunks whose documents may be suggested
MOST_NAMED = 8  # things that a note enumerates

RUNG_NOTES: Mapping[Rung, str] = {
    "prefix": "nothing holds the words as typed; these passages hold words that begin like them",
    "partial": "nothing holds the words as typed; these passages hold similar words or parts of them, "
    "so check that they are what was meant",
}
CLAMPED = f"was lowered to {MAX_EF_SEARCH}: more costs time and finds nothing more"
ONLY_EXCLUDES = "a query that only excludes has nothing to look for, so it was read as words"
FOREIGN = "if the query is in another language than the documents, ask in theirs"
MOSTLY_ABSENT = 0.5  # share of a query's words


def with_remarks(
    answer: Answer, rescued: Rescue, missing: Sequence[str], tools: SearchTools, deadline: Deadline
) -> Answer:
    """Return the answer with a note on how it was reached, or why it is empty, and with suggestions.

    `missing` is what the query names and no text holds.
    """
    return replace(
        answer,
        note=_note(answer, rescued, missing, tools, deadline),
        suggestions=_suggested(answer, rescued, tools),
    )


def _note(
    answer: Answer, rescued: Rescue, missing: Sequence[str], tools: SearchTools, deadline: Deadline
) -> str | None:
    rung = RUNG_NOTES.get(rescued.rung) if rescued.rung else None
    notes = [rung if answer.hits else _why_empty(answer, rescued.found, tools)]
    if missing and answer.hits:
        notes.append(f"nothing holds {_enumerated(missing)}")
    elif answer.hits and not rescued.rung:
        found = rescued.found
        notes += _notes_on_absent_words(found, answer, tools, deadline)
        notes.append(_note_on_words_kept_out(found, answer, tools, deadline))
        notes.append(_note_on_names_below(found, answer, tools, deadline))
        notes.append(_note_on_language(found, answer))
    if rescued.found.query.nothing_wanted and rescued.found.query.chunks:
        notes.append(ONLY_EXCLUDES)
    if answer.hits:
        notes += [_note_on_exclusion(rescued.found.query), _note_on_copies(answer, rescued.found.query)]
    notes += [_note_on_unread_pages(answer), _note_on_lowered_effort(answer, tools)]
    return "; ".join(filter(None, notes)) or None


def _notes_on_absent_words(
    found: Retrieval, answer: Answer, tools: SearchTools, deadline: Deadline
) -> Iterator[str]:
    """Say which words and numbers of the query no text has: one may be the very subject.

    Or it is just another word for the subject: in judged collections, questions with such words are answered
    as often as others. So only those that may be names cost confidence (`ranking/absent_names.py`).
    """
    if not _seeks_words(found) or all(map(found.query.frequencies.get, found.query.words)):
        return
    from concord.answering.absent_words import absent_numbers, absent_words  # late: most queries have none
    from concord.ranking.absent_names import is_spelt_otherwise

    texts = [hit.chunk.text for hit in answer.hits]
    if words := [word for word in absent_words(found.query) if not is_spelt_otherwise(word, texts)]:
        yield f"no text has the {_words(words)}"
    if numbers := _looked_up(lambda: absent_numbers(found.query, tools.store.lexical), deadline):
        yield f"no text has the {_words(numbers, 'number')}"


def _note_on_words_kept_out(
    found: Retrieval, answer: Answer, tools: SearchTools, deadline: Deadline
) -> str | None:
    """Say which words of the query stand only in texts that are kept out: these words may matter most.

    Texts are kept out by a filter or, without one, because others have superseded them.
    """
    is_open = found.query.filter.is_open
    if not _seeks_words(found) or is_open and not _may_hide_superseded(found.query, tools):
        return None
    from concord.answering.absent_words import words_elsewhere  # late: few have a filter
    from concord.ranking.absent_names import is_spelt_otherwise

    texts = _texts(answer)
    kept_out = _looked_up(lambda: words_elsewhere(found.query, texts, tools.store.lexical), deadline)
    words = [word for word in kept_out if not is_spelt_otherwise(word, texts)]
    if not words:
        return None
    if is_open:
        return f"only superseded texts have the {_words(words)}; --include-superseded shows them"
    return f"only texts outside the filter have the {_words(words)}"


def _may_hide_superseded(query: Query, tools: SearchTools) -> bool:
    if query.filter.include_superseded:
        return False
    return tools.glance is None or tools.glance.has_superseded


def _note_on_names_below(
    found: Retrieval, answer: Answer, tools: SearchTools, deadline: Deadline
) -> str | None:
    """Say which identifiers of the query the first results lack, though texts below them hold these.

    Or that no text holds an identifier as one name. Such results are near in meaning, and may be about
    something else. They stay where they are: lifting texts for identifiers was measured, and lost more
    answers than it won (`datatalks-faq`, whose questions quote code).
    """
    if not found.query.entities or not found.ballots.lexical:
        return None
    from concord.answering.absent_words import name_apart, names_below  # late: most queries name nothing

    def read(chunk_ids: list[ChunkId]) -> Iterator[str]:
        return starmap(indexed, tools.store.catalog.read(chunk_ids).values())

    texts = _texts(answer)
    if name := name_apart(found.query, texts):
        return f"none of these texts has {name} as one name, only its words"
    names = _looked_up(lambda: names_below(found.query, texts, tools.store.lexical, read), deadline)
    told = f"the first results do not hold {_enumerated(names)}, other texts do: ask for the name alone"
    return told if names else None


def _looked_up(look: Callable[[], list[str]], deadline: Deadline) -> list[str]:
    """Return what a note has to look up; nothing if that fails or is late: the answer does without it."""
    try:
        return run_within(look, deadline.left_ms()) or []
    except (StoreError, Unavailable):
        return []


def _texts(answer: Answer) -> list[str]:
    return [indexed(hit.chunk, hit.document) for hit in answer.hits]


def _words(words: Sequence[str], kind: str = "word") -> str:
    return f"{kind}{'s' * (len(words) > 1)} {_enumerated(words)}"


def _enumerated(things: Sequence[str]) -> str:
    """Return the first of several things and how many more there are: a pasted page may name hundreds."""
    more = f" and {len(things) - MOST_NAMED} more" if len(things) > MOST_NAMED else ""
    return ", ".join(things[:MOST_NAMED]) + more


def _note_on_language(found: Retrieval, answer: Answer) -> str | None:
    """Suggest another language, where neither the model reads the query's language nor do texts have it."""
    asked, context = found.query, found.context
    is_read = context.model_reads >= HALF_READ and context.known_words >= MOSTLY_KNOWN
    if is_read or answer.answerable is not False:
        return None
    return FOREIGN if rarity.unknown(asked.chunks, asked.frequencies) >= MOSTLY_ABSENT else None


def _seeks_words(found: Retrieval) -> bool:
    """Whether words were looked for: in a search by meaning alone it does not matter which there are."""
    return {*found.poll.votes} != {"semantic"}


def _lacks_words(found: Retrieval) -> bool:
    """Whether some words of the query were found, and others stand in no chunk."""
    return bool(found.ballots.lexical) and not all(map(found.query.frequencies.get, found.query.words))


def _note_on_exclusion(query: Query) -> str | None:
    """Say what the query excludes, because it may do so by mistake: java -Xmx."""
    if not query.excluded:
        return None
    quotes = "quoted words are looked for" if query.phrases else "put it in quotes to look for it"
    return f"texts with {', '.join(query.excluded)} are left out; {quotes}"


def _note_on_unread_pages(answer: Answer) -> str | None:
    """Say that a document that was found has pages which could not be read: more may stand on these."""
    unread = partly_read(hit.document for hit in answer.hits)
    more = f", and of {len(unread) - 1} more documents" if len(unread) > 1 else ""
    return f"{sentence(unread[0])}{more}: what is on them is not found" if unread else None


def _note_on_lowered_effort(answer: Answer, tools: SearchTools) -> str | None:
    asked, key = answer.request.ef_search, "search.ef_search"
    name, effort = ("--ef-search", asked) if asked else (key, tools.settings[key])
    return f"{name} {CLAMPED}" if effort > MAX_EF_SEARCH else None


def _note_on_copies(answer: Answer, query: Query) -> str | None:
    """Say that there may be more results, where copies took some of the candidates' places."""
    copies = sum(len(hit.also_at) for hit in answer.hits)
    if not copies or len(answer.hits) == query.limit or answer.total_hits < query.candidates:
        return None
    return f"copies of these texts took {copies} of the places looked at: a larger --top looks further"


def _suggested(answer: Answer, rescued: Rescue, tools: SearchTools) -> tuple[str, ...]:
    """Return suggestions for an answer that is empty, guessed from parts of words, or unlikely to be right.

    And for any query with a word that no text has, because it may be mistyped. Without a calibration, an
    answer is taken for unlikely if it holds none of the words.
    """
    found = rescued.found
    is_likely = bool(found.ballots.lexical) if answer.answerable is None else answer.answerable
    is_sound = answer.hits and is_likely and rescued.rung != "partial"
    if is_sound and (rescued.rung or not _lacks_words(found)) or not found.query.chunks:
        return ()
    from concord.answering.absent_words import unknown_words  # late: most answers need none
    from concord.answering.suggest import suggested_words, suggestions

    # Where files are gone, the nearest documents are those that were just left out: not worth a suggestion.
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
    from concord.answering.why_empty import why_empty  # late: most answers have results

    return why_empty(answer, found, tools)
