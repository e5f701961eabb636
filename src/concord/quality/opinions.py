"""What the opinions on results tell of searching.

`kb calibrate` fits confidence to them beside a collection's own judgements, and `kb eval` tells how search
does on them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from concord.answering.tools import SearchTools
from concord.protocols import Progress
from concord.quality.evaluate import Outcome, ask_one
from concord.types import Feedback, Opinion

FIRST = 10  # results among which a good one is looked for


class Review(NamedTuple):
    """How search does on results that people judged."""

    good: int
    bad: int
    queries: int  # queries with a good result that is still indexed
    found: int  # … whose good result is among the first ten
    first: int  # … whose good result is the first


def judged_outcomes(tools: SearchTools, progress: Progress) -> list[Outcome]:
    """Ask the queries that people gave opinions on, and keep the judged hits of each answer.

    A query with bad opinions alone counts as not answered.
    """
    judged = _by_query(tools.store.journal.feedback())
    outcomes = []
    for done, (query, opinions) in enumerate(judged.items(), 1):
        examined = ask_one(query, tools)
        hits, judgement = examined.answer.hits, examined.judgement
        known = [at for at, hit in enumerate(hits) if hit.document.id in opinions]
        if known:
            kept = replace(judgement, verdicts=tuple(judgement.verdicts[at] for at in known))
            relevant = tuple(opinions[hits[at].document.id] == "good" for at in known)
            outcomes.append(Outcome(query, kept, relevant, examined.answer.search_time_ms))
        progress("asking what was judged", done, len(judged))
    return outcomes


def review(tools: SearchTools, progress: Progress) -> Review:
    """Tell how search does on the opinions that were given."""
    feedback = tools.store.journal.feedback()
    places = []
    for query, opinions in _by_query(feedback).items():
        wanted = {i for i, one in opinions.items() if one == "good" and tools.store.catalog.document(i)}
        if wanted:
            hits = ask_one(query, tools).answer.hits
            places.append(next((hit.rank for hit in hits[:FIRST] if hit.document.id in wanted), None))
    good = sum(one.opinion == "good" for one in feedback)
    found = [place for place in places if place is not None]
    return Review(good, len(feedback) - good, len(places), len(found), found.count(1))


def _by_query(feedback: Sequence[Feedback]) -> Mapping[str, Mapping[str, Opinion]]:
    """Return query → document → opinion; what nobody named a query for says nothing about searching."""
    judged: dict[str, dict[str, Opinion]] = defaultdict(dict)
    for one in feedback:
        if one.query:
            judged[one.query][one.document_id] = one.opinion
    return judged
