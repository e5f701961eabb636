"""The first half of a search: understand → ask all strategies → complete their votes with both scores.

What comes out is not in any order yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.deadline import Deadline
from concord.answering.poll import Poll, Polling
from concord.answering.request_checks import Values
from concord.answering.timings import Timings
from concord.answering.tools import SearchTools
from concord.answering.understand import interpret, with_frequencies
from concord.errors import BackendDown, DeadlinePassed, Unavailable
from concord.ranking import rarity
from concord.ranking.ballots import Ballots, merge_votes
from concord.ranking.blend import POOL, are_few, blend
from concord.ranking.context import Context
from concord.ranking.named.asked_names import asked_names, is_literal
from concord.ranking.plan import LEXICAL_STRATEGIES, polled
from concord.text.characters import latin_share
from concord.types import Candidate, ChunkId, Degraded, Filter, Mode, Query, Ranked, Request, Source

if TYPE_CHECKING:
    from concord.answering.cosines import Cosines
    from concord.protocols import Comparison, Strategy
    from concord.ranking.calibrate import Calibration
    from concord.storage import Store
    from concord.text.parse import Dashed

DRAWN_HITS = 3  # that the query is drawn towards: more of them bring in what is wrong
DRAWN_SPREAD = 0.3  # standard deviations by which a hit may be behind the first and count a third of it
COPY = 0.93  # cosine from which a chunk is another version of the first hit
DRAWN_STRENGTH = 0.6  # how strongly they draw it: better on four of five collections of prose
CODE_SEARCH = 0.5  # share of candidates from which a search is one of source code


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
    blended: list[Ranked] | None = None  # the order of `blend`, where it has been made for these ballots
    place: Place | None = None  # where the query points to

    def with_ballots(self, ballots: Ballots) -> Retrieval:
        """Return the same with other ballots."""
        return replace(self, ballots=ballots, blended=None)

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        """What failed or was late so far."""
        return (*self.poll.degraded, *(self.cosines.degraded if self.cosines else ()))


def retrieve(
    request: Request,
    values: Values,
    tools: SearchTools,
    sources: Sequence[Source],
    deadline: Deadline | None = None,
    timings: Timings | None = None,
) -> Retrieval:
    """Understand a request, ask the strategies, and learn both scores of every candidate.

    Raises:
        UsageError: the request cannot be carried out as asked.
        BackendDown: words cannot be searched.
        Unavailable: meaning cannot be searched, and nothing else was asked for.
    """
    deadline, timings = deadline or Deadline(values.deadline_ms), timings or Timings()
    cosines = _cosines(tools, deadline)
    asked = [strategy for strategy in tools.strategies if strategy.family in polled(values.mode)]
    with timings.stage("understand"):
        is_option, is_folder = partial(_is_option, tools.store), partial(_is_folder, tools.store)
        query, parsed = interpret(request, values, tools.settings, sources, is_option, is_folder)
        polling = Polling(deadline)
        polling.ask([one for one in asked if one.family == "semantic"], query)  # while words are counted
        query = with_frequencies(query, parsed, tools.settings, tools.store.lexical)
    at_hand = polling.ask([one for one in asked if one.family != "semantic"], query)
    if cosines:  # what words have found is needed whatever meaning finds, so it is fetched meanwhile
        cosines.foresee([vote.chunk_id for votes in at_hand for vote in votes[: query.candidates]])
    poll = polling.result()
    _refuse_without_words(poll, values.mode)
    if values.mode == "semantic" and query.chunks:
        _refuse_without_meaning(poll, tools.absent)
    with timings.stage("complete"):
        return _with_both_scores(poll, asked, query, cosines, tools, deadline)


def _is_option(store: Store, dashed: Dashed) -> bool:
    from concord.answering.options import is_option  # late: few queries have a dash before a word

    return is_option(dashed, store)


def _is_folder(store: Store, path: str) -> bool:
    return store.catalog.count_documents(Filter(path=f"{path}/**", include_superseded=True)) > 0


def _cosines(tools: SearchTools, deadline: Deadline) -> Cosines | None:
    if tools.similarity is None:
        return None
    from concord.answering.cosines import Cosines  # late: a search by words alone asks for none

    return Cosines(tools.similarity, deadline)


def _with_both_scores(
    poll: Poll,
    asked: Sequence[Strategy],
    query: Query,
    cosines: Cosines | None,
    tools: SearchTools,
    deadline: Deadline,
) -> Retrieval:
    """Return what the strategies found with both scores of every candidate, and what the fusions may know."""
    voted = _voted(poll, query)
    compared = _compared(voted, query, cosines)
    context = _context(query, tools, _code_share(voted, tools))  # while vectors are fetched
    ballots = _completed(poll, voted, compared)
    if ballots.semantic and (more := _found_by_more_effort(ballots, asked, query, poll, deadline)):
        poll, voted = more, _voted(more, query)
        compared = _compared(voted, query, cosines)
        ballots = _completed(poll, voted, compared)
    ballots = _drawn_to_first_hits(ballots, context, compared)
    blended = blend(ballots, context)
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


def _refuse_without_words(poll: Poll, mode: Mode) -> None:
    """Refuse to answer when words cannot be searched: what meaning finds alone would pass for everything.

    And when one search for words failed and nothing was found besides: that would pass for nothing there.
    """
    broken = [one for one in poll.degraded if one.strategy in LEXICAL_STRATEGIES]
    are_all_broken = len(broken) == len(LEXICAL_STRATEGIES)
    if mode != "semantic" and (are_all_broken or (broken and not any(poll.votes.values()))):
        raise BackendDown(
            f"the knowledge base cannot be searched by words: {broken[0].reason}",
            hint="ask again with a longer --deadline-ms; `kb stats` tells whether the store is well",
        )


def _refuse_without_meaning(poll: Poll, absent: Degraded | None) -> None:
    """Refuse to answer when meaning alone was asked for and did not: that would pass for nothing there."""
    mute = next((d for d in (*poll.degraded, absent) if d and d.strategy == "semantic"), None)
    if mute is None:
        return
    message = f"the knowledge base cannot be searched by meaning: {mute.reason}"
    if mute is not absent and "semantic" not in poll.timings_ms:  # asked, and not answered yet
        raise DeadlinePassed(
            message, hint="ask again with a longer --deadline-ms, or by words as well (--mode auto)"
        )
    raise Unavailable(message, hint="ask by words as well (--mode auto)")


def _voted(poll: Poll, query: Query) -> list[Candidate]:
    """Return the votes that count, of all strategies."""
    return [vote for votes in poll.votes.values() for vote in votes[: query.candidates]]


def _compared(voted: Sequence[Candidate], query: Query, cosines: Cosines | None) -> Comparison | None:
    """Compare all candidates; None where nobody looked for meaning, or it found nothing."""
    if cosines is None or all(one.family != "semantic" for one in voted):
        return None
    return cosines.compare(query.meaning, voted)


def _completed(poll: Poll, voted: Sequence[Candidate], compared: Comparison | None) -> Ballots:
    """Merge the votes, and complete them with the scores that candidates have with the other family.

    Word search knows the score of many more chunks than it votes for; of the rest the vectors are compared.
    """
    wanted = {one.chunk_id for one in voted}
    bm25: dict[ChunkId, float] = {}
    for votes in poll.votes.values():
        if votes and votes[0].family == "lexical":
            for vote in [vote for vote in votes if vote.chunk_id in wanted]:  # of a thousand, these few
                bm25[vote.chunk_id] = max(vote.score, bm25.get(vote.chunk_id, 0.0))
    return merge_votes(voted, bm25=bm25, cosine=compared.cosines() if compared else {})


def _unfiltered(
    strategies: Sequence[Strategy],
    query: Query,
    few: Sequence[Candidate],
    cosines: Cosines | None,
    context: Context,
    deadline: Deadline,
) -> Ballots | None:
    """Return what the query finds without its filter, and the few that this leaves: to be compared with.

    The same passage is then thought of alike with and without a filter. That it fails or is late costs
    nothing: the few are compared as those of a small store are.
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
    ballots = _completed(found, [*others, *behind], compared)
    if found.degraded or are_few(ballots):
        return None
    return _drawn_to_first_hits(ballots, context, compared)


def _code_share(voted: Sequence[Candidate], tools: SearchTools) -> float:
    """Return how many of the candidates are code, where two families voted; of one it makes no difference."""
    if len({one.family for one in voted}) < 2:
        return 0.0
    stored = tools.glance.types if tools.glance else None
    if stored is not None and ("code" not in stored or len(stored) == 1):  # none of them, or all
        return float("code" in stored)
    types = tools.store.catalog.types_of(list({one.chunk_id for one in voted if one.rank <= POOL}))
    return sum(kind == "code" for kind in types.values()) / max(1, len(types))


def _context(query: Query, tools: SearchTools, code_share: float) -> Context:
    """Return what the fusions may know besides the votes."""
    weights = rarity.idfs(query.chunks, query.frequencies)
    return Context(
        query.kind,
        tools.settings["search.rrf_k"],
        max_bm25=rarity.ceiling(weights.values()),
        code_share=code_share,
        rareness=rarity.rareness(query.chunks, query.frequencies),
        model_reads=_readable(query.text, tools.calibration),
        known_words=_known_words(query.meaning, tools),
        is_literal=is_literal(query) or code_share > CODE_SEARCH and _is_name(query),
        usual=tools.calibration.usual if tools.calibration else None,
    )


def _is_name(query: Query) -> bool:
    """Whether a query is one word, which among source code is a name whatever its case."""
    return len(query.text.split()) == 1 and bool(asked_names(query.text))


def _readable(text: str, calibration: Calibration | None) -> float:
    """Return how much of a query the model reads: what is Latin, such as names, in any language."""
    latin = latin_share(text)
    return latin + (1 - latin) * (1.0 if calibration is None else calibration.other_scripts)


def _known_words(text: str, tools: SearchTools) -> float:
    """Return the share of words that the model has whole; 1 for one of many scripts: it says nothing."""
    if tools.similarity is None or tools.calibration is None or tools.calibration.is_multilingual:
        return 1.0
    return tools.similarity.known_words(text)


def _drawn_to_first_hits(ballots: Ballots, context: Context, compared: Comparison | None) -> Ballots:
    """Draw the query towards the first hits and measure again how near every candidate is.

    Among source code the first hits are too often wrong for that to help.
    """
    if compared is None or context.code_share > CODE_SEARCH:
        return ballots
    first = blend(ballots, context)[:DRAWN_HITS]
    weights = {one.chunk_id: math.exp((one.score - first[0].score) / DRAWN_SPREAD) for one in first}
    return replace(ballots, drawn=compared.drawn_cosines(weights, DRAWN_STRENGTH))


def _with_copies(ballots: Ballots, blended: Sequence[Ranked], compared: Comparison | None) -> Ballots:
    """Tell which candidates are copies of the first hit; their order stays the same."""
    if compared is None or not blended:
        return ballots
    alike = compared.likeness(blended[0].chunk_id)
    return replace(ballots, copies={one: cosine for one, cosine in alike.items() if cosine >= COPY})
