"""The first half of a search: understand → ask all strategies → complete their votes with both scores.

The candidates are not in any order yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from concord.answering.deadline import Deadline
from concord.answering.poll import Poll, Polling
from concord.answering.request_checks import SearchOptions
from concord.answering.retrieval import Retrieval, completed, context_of
from concord.answering.timings import Timings
from concord.answering.tools import SearchTools
from concord.answering.understand import interpret, with_frequencies
from concord.errors import BackendDown, DeadlinePassed, Unavailable
from concord.ranking.plan import LEXICAL_STRATEGIES, polled
from concord.types import Degraded, Filter, Mode, Request, Source

if TYPE_CHECKING:
    from concord.answering.cosines import Cosines
    from concord.storage import Store
    from concord.text.parse import Dashed


def retrieve(
    request: Request,
    chosen: SearchOptions,
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
    deadline, timings = deadline or Deadline(chosen.deadline_ms), timings or Timings()
    cosines = _cosines(tools, deadline)
    asked = [strategy for strategy in tools.strategies if strategy.family in polled(chosen.mode)]
    with timings.stage("understand"):
        is_option, is_folder = partial(_is_option, tools.store), partial(_is_folder, tools.store)
        query, parsed = interpret(request, chosen, tools.settings, sources, is_option, is_folder)
        polling = Polling(deadline)
        polling.ask([one for one in asked if one.family == "semantic"], query)  # while words are counted
        query = with_frequencies(query, parsed, tools.settings, tools.store.lexical)
    at_hand = polling.ask([one for one in asked if one.family != "semantic"], query)
    if cosines:  # vectors of lexical candidates are needed in any case, so they are fetched meanwhile
        cosines.foresee([vote.chunk_id for votes in at_hand for vote in votes[: query.candidates]])
    context = context_of(query, tools)  # while meaning is searched
    poll = polling.result()
    _refuse_without_words(poll, chosen.mode)
    if chosen.mode == "semantic" and query.chunks:
        _refuse_without_meaning(poll, tools.absent)
    with timings.stage("complete"):
        return completed(poll, asked, query, cosines, context, tools, deadline)


def _is_option(store: Store, dashed: Dashed) -> bool:
    from concord.answering.dashes import is_option  # late: few queries have a dash before a word

    return is_option(dashed, store)


def _is_folder(store: Store, path: str) -> bool:
    return store.catalog.count_documents(Filter(path=f"{path}/**", include_superseded=True)) > 0


def _cosines(tools: SearchTools, deadline: Deadline) -> Cosines | None:
    if tools.similarity is None:
        return None
    from concord.answering.cosines import Cosines  # late: a search by words alone asks for none

    return Cosines(tools.similarity, deadline)


def _refuse_without_words(poll: Poll, mode: Mode) -> None:
    """Refuse to answer if words cannot be searched: what meaning finds alone would pass for all there is.

    Also if one lexical strategy failed and the others found nothing: the store would seem to hold nothing.
    """
    broken = [one for one in poll.degraded if one.strategy in LEXICAL_STRATEGIES]
    are_all_broken = len(broken) == len(LEXICAL_STRATEGIES)
    if mode != "semantic" and (are_all_broken or (broken and not any(poll.votes.values()))):
        raise BackendDown(
            f"the knowledge base cannot be searched by words: {broken[0].reason}",
            hint="ask again with a longer --deadline-ms; `kb stats` tells whether the store is well",
        )


def _refuse_without_meaning(poll: Poll, absent: Degraded | None) -> None:
    """Refuse to answer if meaning alone was asked for and failed: the store would seem to hold nothing."""
    mute = next((d for d in (*poll.degraded, absent) if d and d.strategy == "semantic"), None)
    if mute is None:
        return
    message = f"the knowledge base cannot be searched by meaning: {mute.reason}"
    if mute is not absent and "semantic" not in poll.timings_ms:  # asked, and not answered yet
        raise DeadlinePassed(
            message, hint="ask again with a longer --deadline-ms, or by words as well (--mode auto)"
        )
    raise Unavailable(message, hint="ask by words as well (--mode auto)")
