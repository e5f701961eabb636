"""Which passages may define the name that a query asks for, where very many mention it?

`class Path` stands once in a library that uses Path a thousand times, and no score of its words tells that
passage from the others. So it is looked for as a definition is written: a keyword, then the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.deadline import Deadline
from concord.answering.poll import Poll, merged, poll
from concord.answering.retrieval import Retrieval
from concord.ranking.named.asked_names import asked_names, is_literal
from concord.ranking.plan import DEFINITION
from concord.text.terms import any_of, phrase_match
from concord.types import Candidate, Family, Match, Query

if TYPE_CHECKING:
    from concord.storage import Catalog, LexicalIndex, Store

MOST = 80  # passages that are taken: some that only mention "class path" are shorter, and rank first
KEYWORDS = (
    "class", "def", "func", "function", "fn", "fun", "struct", "enum", "union", "trait", "interface",
    "module", "namespace", "record", "type", "const", "let", "var", "define",
)  # fmt: skip


class _KeywordAndName(Struct):
    """The search for definitions as a strategy: it may fail or be late like any other."""

    index: LexicalIndex
    match: Match
    name: str = DEFINITION
    family: Family = "lexical"

    def candidates(self, query: Query) -> list[Candidate]:
        """Return chunks in which the name follows a keyword."""
        found = self.index.search(self.match, query.filter, MOST)
        return [
            Candidate(one.chunk_id, self.name, self.family, at, one.score) for at, one in enumerate(found, 1)
        ]

    def is_at_hand(self, query: Query) -> bool:
        """Return False: so many phrases take their time."""
        return False


def with_definitions(found: Retrieval, store: Store, deadline: Deadline) -> Retrieval:
    """Add chunks in which the name that the query asks for follows a keyword; most queries ask for none."""
    match = _match(found, store.catalog)
    if match is None:
        return found
    asked = poll([_KeywordAndName(store.lexical, match)], found.query, deadline)
    found = replace(found, poll=merged(found.poll, Poll({}, asked.degraded, asked.timings_ms)))
    likely = [one.chunk_id for one in asked.votes.get(DEFINITION, ())]
    return found.with_votes([one for one in likely if one not in found.ballots.votes], DEFINITION)


def _match(found: Retrieval, catalog: Catalog) -> Match | None:
    """Return what to look for; an ordinary word is a name only if that is asked for, or code was found."""
    asked = [one for one in asked_names(found.query.text) if not one.is_value]
    if not any(one.is_sure or one.is_explicit for one in asked) and not is_literal(found.query):
        asked = asked if asked and _is_in_code(found, catalog) else []
    names = dict.fromkeys(one.name for one in asked)
    phrases = [phrase_match(f"{keyword} {name}") for name in names for keyword in KEYWORDS]
    return any_of([phrase for phrase in phrases if phrase])


def _is_in_code(found: Retrieval, catalog: Catalog) -> bool:
    return "code" in catalog.types_of([*found.ballots.lexical]).values()
