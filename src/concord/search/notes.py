"""What else is to be said of an answer? How it was reached, what the query lacks, or why there is no hit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from concord.core.errors import Action, Hint, joined
from concord.core.reports import partly_read, sentence
from concord.search.legs import STEPS, Tools
from concord.search.understand import MAX_EF_SEARCH, unknown_words
from concord.text.scripts import has_unspaced
from concord.text.terms import written
from concord.text.word_lists import is_stop_word
from concord.types import Answer, Filter, Source

if TYPE_CHECKING:
    from concord.search.judge import Step
    from concord.search.pipeline import Examined

MAX_NAMED = 8  # things that a note enumerates
LEAST_LETTERS = 3  # of a word that is reported as absent

STEP_NOTES: dict[Step, str] = {
    "prefix": "nothing holds the words as typed; these passages hold words that begin like them",
    "partial": "nothing holds the words as typed; these passages hold similar words or parts of them, "
    "so check that they are what was meant",
}
CLAMPED = f"was lowered to {MAX_EF_SEARCH}: more costs time and finds nothing more"
ONLY_EXCLUDES = "a query that only excludes has nothing to look for, so it was read as words"
EMPTY = Hint(Action.BEGIN, "the knowledge base is empty: {begin}")
NO_WORD = "there is no word in the query to look for"
NOTHING = "nothing found, not even by parts of words: try other or fewer words"
NO_TIME = "nothing found; similar words could not be looked for in the time allowed (search.partial_ms)"
ALL_SUPERSEDED = Hint(
    Action.INCLUDE_SUPERSEDED,
    "every document has been superseded; {include_superseded} searches those as well",
)
MATCHES_SUPERSEDED = Hint(
    Action.INCLUDE_SUPERSEDED, "all that was found has been superseded; {include_superseded} shows it"
)


def notes(said: Examined, tools: Tools) -> str | None:
    """Return the note on an answer; None where there is nothing to say."""
    found = _on_hits(said) if said.answer.hits else iter([_why_empty(said, tools)])
    return joined("; ", *filter(None, [*found, *_on_what_was_left(said.answer, tools)])) or None


def _on_hits(said: Examined) -> Iterator[str]:
    """Say which words were searched by other forms, and which names and words of the query no text has.

    An absent word may be the very subject, or just another word for it: it costs confidence as the fit says.
    """
    query = said.query
    if said.fallback.step:
        yield STEP_NOTES[said.fallback.step]
    # By meaning alone it does not matter which words there are.
    if {ranked.strategy for ranked in said.candidates.lists} != {"semantic"}:
        for word, forms in query.changes.items():
            typed = next((term for term in query.terms if word in term.split("-")), written(word))
            yield f"searched for {' '.join(map(written, forms))} (typed {typed})"
        if query.absent_names:
            yield f"nothing is called {_enumerated(query.absent_names)}"
        elif not said.fallback.step and (words := [*filter(_says_something, unknown_words(query))]):
            yield f"no text has the word{'s' * (len(words) > 1)} {_enumerated(words)}"
    if query.nothing_wanted and query.chunks:
        yield ONLY_EXCLUDES
    if query.excluded:  # it may do so by mistake: java -Xmx
        quotes = "quoted words are looked for" if query.phrases else "put it in quotes to look for it"
        yield f"texts with {', '.join(query.excluded)} are left out; {quotes}"


def _says_something(word: str) -> bool:
    is_word = word.isalpha() and len(word) >= LEAST_LETTERS or word.isdecimal() and len(word) > LEAST_LETTERS
    return is_word and not is_stop_word(word) and not has_unspaced(word)


def _enumerated(things: Sequence[str]) -> str:
    """Return the first of several things and how many more there are: a pasted page may name hundreds."""
    more = f" and {len(things) - MAX_NAMED} more" if len(things) > MAX_NAMED else ""
    return ", ".join(things[:MAX_NAMED]) + more


def _on_what_was_left(answer: Answer, tools: Tools) -> Iterator[str]:
    """Say which documents found have pages that could not be read, and that an effort was lowered."""
    if unread := partly_read(hit.document for hit in answer.hits):
        more = f", and of {len(unread) - 1} more documents" if len(unread) > 1 else ""
        yield f"{sentence(unread[0])}{more}: what is on them is not found"
    asked, key = answer.request.ef_search, "search.ef_search"
    if (asked or tools.settings[key]) > MAX_EF_SEARCH:
        yield joined(" ", Hint(Action.EF_SEARCH) if asked else key, CLAMPED)


def _why_empty(said: Examined, tools: Tools) -> str:
    """Return why there are no results: the first reason that holds."""
    query, catalog = said.query, tools.store.catalog
    sources = catalog.snapshot().sources
    if not query.chunks:
        return _nothing_stored(sources)
    if left_out := _all_left_out(said):
        return left_out
    if not any(map(str.isalnum, query.text)):
        return NO_WORD
    documents = catalog.count_documents(query.filter)
    if not documents:
        return ALL_SUPERSEDED if query.filter.is_open else _no_document(query.filter, sources, tools)
    if any(failed.strategy in STEPS for failed in said.candidates.degraded):
        return NO_TIME
    if not any(query.frequencies.values()):
        return NOTHING
    if query.excluded:
        return f"everything that was found holds what the query excludes: {', '.join(query.excluded)}"
    if not query.filter.is_open:
        what = "the only document" if documents == 1 else f"any of the {documents:,} documents"
        return f"nothing found in {what} that the filter leaves: {_described(query.filter, sources)}"
    has_superseded = catalog.count_documents(Filter(include_superseded=True)) > documents
    return MATCHES_SUPERSEDED if has_superseded else NOTHING


def _nothing_stored(sources: Sequence[Source]) -> str:
    waiting = [source for source in sources if source.kind != "notes"]
    if not waiting:
        return EMPTY
    names = ", ".join(source.name for source in waiting)
    note = f"nothing is indexed yet of {names}: {{sync}} brings in what can be read and names the rest"
    return joined("", Hint(Action.SYNC, note), _only_like(waiting))


def _only_like(sources: Sequence[Source]) -> str:
    """Return the end of a hint that says of which sources only some files are taken."""
    chosen = [
        f"of {source.name} only files like {', '.join(source.patterns)}"
        for source in sources
        if source.patterns
    ]
    takes_all = f"; {', '.join(chosen)} are taken: {{add_all_files}} takes all"
    return Hint(Action.ADD_ALL_FILES, takes_all) if chosen else ""


def _all_left_out(said: Examined) -> str | None:
    """Return why what was found is not shown; None where nothing was found in the first place."""
    answer, omitted = said.answer, said.answer.omitted
    under, low, deleted = (omitted[why] for why in ("below_threshold", "below_min_score", "deleted"))
    if 0 < answer.total_hits == under:
        best = max(said.candidates.rrf.values())
        what = "1 result was" if under == 1 else f"{under} results were"
        return f"{what} under the threshold of {answer.request.threshold:g}; the best reaches {best:.4f}"
    if low:
        what = "1 result is" if low == 1 else f"all {low} results are"
        return f"{what} under the score of {answer.request.min_score:g} that was asked for"
    if deleted:
        found = f"all {deleted} passages found are in files"
        what = "the only passage found is in a file" if deleted == 1 else found
        return Hint(Action.SYNC, f"{what} deleted since: {{sync}} brings the index up to date")
    return None


def _no_document(filter: Filter, sources: Sequence[Source], tools: Tools) -> str:
    from concord.search.request import about_tags, known_beginnings  # late, as few searches have a filter

    taken = _only_like([source for source in sources if source.id == filter.source_id])
    more = about_tags(filter.tags, sources, tools.store.catalog) if filter.tags else ""
    if filter.path is not None:
        begins = (filter.path.startswith(it.prefix + "/") for it in sources if it.id == filter.source_id)
        if any(begins):
            more += "; .gitignore or .kbignore may leave out what is there, or it holds no text"
        else:
            more += f"; {known_beginnings(sources)}, and a folder is all that lies below it"
    return joined("", f"no document matches the filter: {_described(filter, sources)}", taken, more)


def _described(filter: Filter, sources: Sequence[Source]) -> str:
    from concord.core.values import moment_text  # late: few searches have a filter

    names = {source.id: source.name for source in sources}
    moments = {"since": filter.since, "until": filter.until}
    times = (f"{name} {moment_text(given)}" for name, given in moments.items() if given is not None)
    parts = {
        "tags": ", ".join(filter.tags),
        "type": filter.type,
        "source": filter.source_id and names.get(filter.source_id, "that was removed meanwhile"),
        "path": filter.path,
        "modified": " and ".join(times),
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items() if value)
