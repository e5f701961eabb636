"""Which passages may define the name that a query asks for, where very many mention it?

`class Path` stands once in a library that uses Path a thousand times, and no score of its words tells that
passage from the others. It is looked for as such a line is written, by a keyword and the name.
"""

from __future__ import annotations

from concord.answering.retrieval import Retrieval
from concord.ranking.named.asked_names import asked_names
from concord.storage import LexicalIndex
from concord.text.terms import any_of, phrase_match

STRATEGY = "definition"  # what such a passage is found by
MOST = 20  # passages that may be definitions
KEYWORDS = (
    "class", "def", "func", "function", "fn", "fun", "struct", "enum", "union", "trait", "interface",
    "module", "namespace", "record", "type", "const", "let", "var", "define",
)  # fmt: skip


def with_definitions(found: Retrieval, index: LexicalIndex) -> Retrieval:
    """Return what was found with passages that have the name behind a keyword; most queries ask for none."""
    names = dict.fromkeys(one.name for one in asked_names(found.query.text) if not one.is_value)
    phrases = [phrase_match(f"{keyword} {name}") for name in names for keyword in KEYWORDS]
    match = any_of([phrase for phrase in phrases if phrase])
    if match is None:
        return found
    likely = [one.chunk_id for one in index.search(match, found.query.filter, MOST)]
    return found.with_votes([one for one in likely if one not in found.ballots.votes], STRATEGY)
