"""What the strategies found: both scores of every candidate, and what the fusions may know besides.

Word search knows the score of many more chunks than it votes for; of the others the vectors are compared. The
query is then moved towards its first hits (pseudo-relevance feedback, Rocchio 1971) and compared once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.deadline import Deadline
from concord.answering.poll import Poll, Polling
from concord.answering.tools import SearchTools
from concord.ranking import rarity
from concord.ranking.ballots import Ballots, merge_votes, with_votes
from concord.ranking.blend import POOL, Basis, are_few, blend, blend_basis
from concord.ranking.context import Context
from concord.ranking.named.asked_names import asked_names, is_literal
from concord.text.characters import latin_share
from concord.text.stopwords import shows_english
from concord.types import Candidate, ChunkId, Degraded, Filter, Query, Ranked, Scored, Votes

if TYPE_CHECKING:
    from concord.answering.cosines import Cosines
    from concord.protocols import Comparison, Strategy
    from concord.ranking.calibrate import Calibration

FEEDBACK_HITS = 3  # that the query is moved towards: more of them bring in what is wrong
FEEDBACK_SPREAD = 0.3  # standard deviations by which a hit may be behind the first and count a third of it
FEEDBACK_STRENGTH = 0.6  # how far it is moved: better on four of five collections of prose
COPY = 0.93  # cosine from which a chunk is another version of the first hit
CODE_SEARCH = 0.5  # share of code among the candidates from which on a search is one of source code


class Place(Struct, frozen=True):
    """What stands where a query points to: a passage, and the line of its file if one is named."""

    chunk_id: ChunkId
    line: int | None = None


class Retrieval(Struct, frozen=True):
    """What the strategies found, before any of it is put in order."""

    query: Query
    poll: Poll
    ballots: Ballots
    context: Context
    cosines: Cosines | None = None
    blended: list[Ranked] | None = None  # the order of `blend`, if it was made for these ballots
    place: Place | None = None  # where the query points to

    def with_ballots(self, ballots: Ballots) -> Retrieval:
        """Return the same with other ballots."""
        return replace(self, ballots=ballots, blended=None)

    def with_votes(self, chunk_ids: Iterable[ChunkId], strategy: str) -> Retrieval:
        """Return the same with chunks that were looked for in another way, behind what words have found."""
        last, ballots = self.query.candidates + 1, self.ballots
        votes = [Candidate(chunk_id, strategy, "lexical", last, 0.0) for chunk_id in chunk_ids]
        if not votes:
            return self
        near: Mapping[ChunkId, float] = {}
        if self.cosines and ballots.semantic:
            near = self.cosines.compare(self.query.meaning, votes).cosines()
        feedback = {**ballots.feedback, **near} if ballots.feedback else {}
        added = with_votes(ballots, votes, cosine=near)
        return self.with_ballots(replace(added, feedback=feedback, copies=ballots.copies))

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        """What failed or was late so far."""
        return (*self.poll.degraded, *(self.cosines.degraded if self.cosines else ()))


def completed(
    poll: Poll,
    asked: Sequence[Strategy],
    query: Query,
    cosines: Cosines | None,
    context: Context,
    tools: SearchTools,
    deadline: Deadline,
) -> Retrieval:
    """Return what the strategies found, with both scores of every candidate and what the fusions may know.

    `context` is what they may know before anything is found.
    """
    voted = _voted(poll, query)
    compared = _compared(voted, query, cosines)
    context = _with_code_share(context, query, _code_share(voted, tools))  # while vectors are fetched
    ballots = _merged_votes(poll, voted, compared)
    if ballots.semantic and (more := _found_by_more_effort(ballots, asked, query, poll, deadline)):
        poll, voted = more, _voted(more, query)
        compared = _compared(voted, query, cosines)
        ballots = _merged_votes(poll, voted, compared)
    basis = blend_basis(ballots, context)
    ballots = _with_feedback(ballots, context, compared, basis)
    blended = blend(ballots, context, basis)
    ballots = _with_copies(ballots, blended, compared)
    if compared and not query.filter.is_open and are_few(ballots):
        others = _unfiltered(asked, query, voted, cosines, context, deadline)
        context = replace(context, unfiltered=others)
    return Retrieval(query, poll, ballots, context, cosines, blended)


def _found_by_more_effort(
    ballots: Ballots, asked: Sequence[Strategy], query: Query, poll: Poll, deadline: Deadline
) -> Poll | None:
    from concord.answering.index_misses import has_missed, search_harder  # late: by words nothing is missed

    return search_harder(asked, query, poll, deadline) if has_missed(ballots) else None


def _voted(poll: Poll, query: Query) -> list[Candidate]:
    """Return the votes that count, of all strategies."""
    return [vote for votes in poll.votes.values() for vote in votes[: query.candidates]]


def _compared(voted: Sequence[Candidate], query: Query, cosines: Cosines | None) -> Comparison | None:
    """Compare all candidates; None where meaning was not searched, or found nothing."""
    if cosines is None or all(one.family != "semantic" for one in voted):
        return None
    return cosines.compare(query.meaning, voted)


def _merged_votes(poll: Poll, voted: Sequence[Candidate], compared: Comparison | None) -> Ballots:
    """Merge the votes, and complete them with the scores that candidates have with the other family.

    Word search knows the score of many more chunks than it votes for; of the rest the vectors are compared.
    """
    wanted = {one.chunk_id for one in voted}
    bm25: dict[ChunkId, float] = {}
    for votes in poll.votes.values():
        if votes and votes[0].family == "lexical":
            known: Sequence[Candidate | Scored] = votes.scored if isinstance(votes, Votes) else votes
            for one in [one for one in known if one.chunk_id in wanted]:  # of a thousand, these few
                bm25[one.chunk_id] = max(one.score, bm25.get(one.chunk_id, 0.0))
    return merge_votes(voted, bm25=bm25, cosine=compared.cosines() if compared else {})


def _unfiltered(
    strategies: Sequence[Strategy],
    query: Query,
    few: Sequence[Candidate],
    cosines: Cosines | None,
    context: Context,
    deadline: Deadline,
) -> Ballots | None:
    """Return what the query finds without its filter, with the few that the filter leaves among them.

    Compared with these, a passage gets the same relevance with and without the filter. If this fails or is
    late, the few are judged as those of a small store are.
    """
    if not deadline.left_ms():
        return None
    polling = Polling(deadline)
    polling.ask(strategies, replace(query, filter=Filter(include_superseded=query.filter.include_superseded)))
    found = polling.result()
    others = _voted(found, query)
    known = {one.chunk_id for one in others}
    behind = [replace(one, rank=one.rank + query.candidates) for one in few if one.chunk_id not in known]
    compared = _compared([*others, *behind], query, cosines)
    ballots = _merged_votes(found, [*others, *behind], compared)
    if found.degraded or are_few(ballots):
        return None
    return _with_feedback(ballots, context, compared)


def _code_share(voted: Sequence[Candidate], tools: SearchTools) -> float:
    """Return the share of the candidates that are code; it only matters where both families voted."""
    if len({one.family for one in voted}) < 2:
        return 0.0
    stored = tools.glance.types if tools.glance else None
    if stored is not None and ("code" not in stored or len(stored) == 1):  # none of them, or all
        return float("code" in stored)
    types = tools.store.catalog.types_of(list({one.chunk_id for one in voted if one.rank <= POOL}))
    return sum(kind == "code" for kind in types.values()) / max(1, len(types))


def context_of(query: Query, tools: SearchTools) -> Context:
    """Return what the fusions may know besides the votes, before there are any."""
    weights = rarity.idfs(query.chunks, query.frequencies)
    return Context(
        query.kind,
        tools.settings["search.rrf_k"],
        max_bm25=rarity.ceiling(weights.values()),
        rareness=rarity.rareness(query.chunks, query.frequencies),
        model_reads=_readable(query.text, tools.calibration),
        known_words=_known_words(query.meaning, tools),
        is_literal=is_literal(query),
        usual=tools.calibration.usual if tools.calibration else None,
    )


def _with_code_share(context: Context, query: Query, code_share: float) -> Context:
    """Return what the fusions may know among candidates of which such a share is code."""
    if not code_share:
        return context
    is_literal = context.is_literal or code_share > CODE_SEARCH and _is_name(query)
    return replace(context, code_share=code_share, is_literal=is_literal)


def _is_name(query: Query) -> bool:
    """Whether a query is one word, which among source code is a name whatever its case."""
    return len(query.text.split()) == 1 and bool(asked_names(query.text))


def _readable(text: str, calibration: Calibration | None) -> float:
    """Return how much of a query the model reads: all that is Latin, of other scripts what was fitted."""
    latin = latin_share(text)
    return latin + (1 - latin) * (1.0 if calibration is None else calibration.other_scripts)


def _known_words(text: str, tools: SearchTools) -> float:
    """Return the share of words that the model has whole; 1 where it reads the language in any case.

    Of a question about enzymes or Kubernetes a model may have hardly a word whole, and reads its English.
    """
    if tools.similarity is None or tools.calibration is None or tools.calibration.is_multilingual:
        return 1.0
    return 1.0 if shows_english(text.split()) else tools.similarity.known_words(text)


def _with_feedback(
    ballots: Ballots, context: Context, compared: Comparison | None, basis: Basis | None = None
) -> Ballots:
    """Move the query towards its first hits and measure again how near every candidate is.

    This is pseudo-relevance feedback. Among source code the first hits are too often wrong for it to help.
    """
    if compared is None or context.code_share > CODE_SEARCH:
        return ballots
    first = blend(ballots, context, basis)[:FEEDBACK_HITS]
    weights = {one.chunk_id: math.exp((one.score - first[0].score) / FEEDBACK_SPREAD) for one in first}
    return replace(ballots, feedback=compared.feedback_cosines(weights, FEEDBACK_STRENGTH))


def _with_copies(ballots: Ballots, blended: Sequence[Ranked], compared: Comparison | None) -> Ballots:
    """Tell which candidates are copies of the first hit; their order stays the same."""
    if compared is None or not blended:
        return ballots
    alike = compared.likeness(blended[0].chunk_id)
    return replace(ballots, copies={one: cosine for one, cosine in alike.items() if cosine >= COPY})
