"""Opinions on results: kept as evidence. `quality/opinions.py` asks what they tell of searching.

They never move a result.
"""

from __future__ import annotations

from concord.errors import BadValue
from concord.reading import locate, passage_of
from concord.storage import Catalog, Journal
from concord.types import Feedback, Opinion


def give_feedback(
    reference: str, opinion: Opinion, query: str, catalog: Catalog, journal: Journal, now: float
) -> Feedback:
    """Keep what somebody thinks of a result.

    Raises:
        NotFound: nothing of that name is indexed.
        BadValue: it is no opinion.
    """
    if opinion not in ("good", "bad"):
        raise BadValue(f"{opinion!r} is no opinion", hint="good or bad")
    located = locate(reference, catalog)
    citation = passage_of(located).citation
    feedback = Feedback(located.document.id, citation, opinion, " ".join(query.split()), now)
    journal.record_feedback(feedback)
    return feedback
