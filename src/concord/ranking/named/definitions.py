"""A name whose definition a query asks for: which passages define it, in code, settings or a manual?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concord.ranking.named.asked_names import AskedName, asked_names, is_literal
from concord.ranking.named.entries import Entry, entry_lift, share_in_place
from concord.ranking.named.kinds import Kind, Lifted, ReadPassages
from concord.ranking.named.options import asked_option
from concord.text.contains import contains
from concord.text.symbols import defined_at
from concord.types import ChunkId, Query, Survivor


def defining(survivors: Sequence[Survivor], query: Query) -> dict[ChunkId, Entry]:
    """Return the passages that define a name which the query asks for."""
    found: dict[ChunkId, Entry] = {}
    for asked in _names(survivors, query):
        found |= {one.ranked.chunk_id: _entry(one, asked) for one in survivors if _defines(one, asked, query)}
    return found


def defines_missing(survivors: Sequence[Survivor], query: Query) -> Callable[[Survivor], bool] | None:
    """Return a test for passages that define a missing name: one asked for that none of these defines.

    None if no name is missing. An ordinary word is a name only if code or settings are among the passages, or
    if the query asks where it is defined.
    """
    names = _names(survivors, query)
    if not any(asked.is_sure or asked.is_value or asked.is_explicit for asked in names):
        names = names if any(map(_has_names, survivors)) else ()
    missing = [one for one in names if not any(_defines(survivor, one, query) for survivor in survivors)]
    return (lambda one: any(_defines(one, asked, query) for asked in missing)) if missing else None


def _names(survivors: Sequence[Survivor], query: Query) -> tuple[AskedName, ...]:
    """Return the names that a query asks for; none if prose has the query just as it was typed.

    A query that clearly asks for a value wants the line that sets it, whatever prose says.
    """
    names = asked_names(query.text)
    if (
        not names
        or " " not in query.text
        or any(one.is_sure or one.is_value and not one.said for one in names)
    ):
        return names
    words = names[0].said or query.meaning
    prose = (one.chunk.text for one in survivors if not _has_names(one))
    return () if any(contains(text, words) for text in prose) else names


def _defines(survivor: Survivor, asked: AskedName, query: Query) -> bool:
    """Whether a passage defines a name; an ordinary word is defined by code or settings alone."""
    in_words = asked.is_sure or is_literal(query)
    return (in_words or _has_names(survivor)) and _is_definition(survivor, asked)


def _has_names(survivor: Survivor) -> bool:
    return survivor.document.type in ("code", "data")


def _entry(survivor: Survivor, asked: AskedName) -> Entry:
    return Entry(entry_lift(asked.owners, survivor), _defining_line(survivor, asked))


def _is_definition(survivor: Survivor, asked: AskedName) -> bool:
    """Whether a passage defines a name: in code, under the name as a heading, or in an entry for it.

    If the query has words beside the name, the passage's title, path or headings must have all of them.
    """
    if asked.beside and share_in_place(asked.beside, survivor) < 1:
        return False
    return _is_under(survivor, asked) or _defining_line(survivor, asked) is not None


def _is_under(survivor: Survivor, asked: AskedName) -> bool:
    """Whether a passage stands under a heading that is the name, or begins a page that is called so."""
    from concord.text.heading_names import is_heading_of  # late: few queries ask for a name
    from concord.text.headings import heading_words

    if survivor.document.type in ("code", "data") or asked.is_value:
        return False
    begun = [heading_words(survivor.document.title)] if survivor.chunk.index == 0 else []
    above = [*survivor.chunk.heading[-1:], *begun]
    return any(is_heading_of(asked.name, asked.owner, heading) for heading in above)


def _defining_line(survivor: Survivor, asked: AskedName) -> int | None:
    """Return where in a passage the line begins that defines a name, gives it its value or explains it."""
    from concord.text.assignments import assigned_at, set_at  # late: few queries ask for a name

    text, name, kind = survivor.chunk.text, asked.name, survivor.document.type
    if kind == "code":
        found = None if asked.is_value else defined_at(name, text)
        return assigned_at(name, text) if found is None else found
    if kind == "data":
        return set_at(name, text)
    return None if asked.is_value else _explained_at(survivor, asked)


def _explained_at(survivor: Survivor, asked: AskedName) -> int | None:
    """Return where the line begins that is an entry for a name.

    Many texts have an entry for `run`; that of `subprocess.run` stands in a place about subprocess.
    """
    from concord.text.heading_names import headed_at  # late: few queries ask for a name
    from concord.text.headings import MARKDOWN_TYPES
    from concord.text.term_lines import explained_at

    text, kind = survivor.chunk.text, survivor.document.type
    if kind in MARKDOWN_TYPES and (headed := headed_at(asked.name, asked.owner, text)) is not None:
        return headed
    at = explained_at(asked.name, text, is_page=kind == "html")
    is_elsewhere = asked.is_qualified and not share_in_place(asked.owners, survivor)
    return None if is_elsewhere else at


def _lift(lifted: Lifted, read: ReadPassages) -> Lifted:
    """Lift passages that define a name, unless the query asks for an option: that has entries of its own."""
    marked = lifted.marked((one for one in read.defining if one not in lifted.asked_for), "definition")
    return marked if asked_option(read.query) else marked.by_entries(read.defining)


KIND = Kind(lift=_lift)
