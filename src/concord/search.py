"""Search, top to bottom:

retrieve → cascade → fuse → floor → read text → deleted files → second look (entities, reranker) → usage
→ diversify → judge → present.

Candidates carry no text: it is read once, after fusion, for the few that survive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.cascade import Rescue, rescue
from concord.answering.deadline import Deadline
from concord.answering.judge import JUDGED, Judgement, first_judged, judge
from concord.answering.passages import Passages, diverse, read_passages, reordered
from concord.answering.present import hits_of, with_evidence, with_explanations, with_freshness
from concord.answering.remarks import with_remarks
from concord.answering.request_checks import search_options
from concord.answering.retrieval import Place, Retrieval
from concord.answering.retrieve import retrieve
from concord.answering.second_look import second_look
from concord.answering.timings import Timings
from concord.answering.tools import SearchTools
from concord.files.freshness import Files
from concord.ranking.ballots import without
from concord.ranking.floor import above_floor
from concord.ranking.fuse import Fused, fuse, rrf_scores
from concord.types import Answer, ChunkId, Glance, Json, Ranked, Request, Survivor

if TYPE_CHECKING:
    from concord.storage import Store


class Examined(Struct, frozen=True):
    """An answer, the evidence that its confidence rests on, and the candidates it was made from."""

    answer: Answer
    judgement: Judgement
    retrieved: Retrieval  # before the cascade


class Order(Struct, frozen=True):
    """The candidates in fused order, and which of them are good enough to be read."""

    fused: Fused
    scores: Mapping[ChunkId, float]  # of reciprocal rank fusion, whichever fusion made the order
    wanted: Sequence[Ranked]  # above the caller's threshold
    kept: Sequence[Ranked]  # above our floor as well: their texts are read


def search(request: Request, tools: SearchTools) -> Answer:
    """Answer one request.

    Raises:
        UsageError: the request cannot be carried out as asked.
        StoreError: the store cannot be used.
        BackendDown: words cannot be searched, so there is nothing to answer from.
        Unavailable: meaning cannot be searched, and nothing else was asked for.
    """
    return examine(request, tools).answer


def examine(request: Request, tools: SearchTools) -> Examined:
    """Answer one request, and keep the evidence, by which answers are explained and confidence is fitted."""
    chosen = search_options(request, tools.settings)
    mode, fusion = chosen.mode, chosen.fusion
    timings, deadline = Timings(), Deadline(chosen.deadline_ms)
    glance = tools.glance or _glance_without_space(tools.store)
    retrieved = retrieve(request, chosen, tools, glance.sources, deadline, timings)
    retrieved = _with_definitions(_with_place(retrieved, tools.store), tools.store, deadline)
    tools = _uncalibrated_if_semantic_failed(tools, retrieved)
    with timings.stage("cascade"):
        rescued = rescue(request, mode, fusion, retrieved, tools)
        found = rescued.found
    with timings.stage("fuse"):
        order = _ordered(rescued, fusion, request.threshold)
    with timings.stage("read"):
        files = Files(glance.sources, tools.store.catalog.memo)
        read = read_passages(order.kept, found.query, tools.store, files)
    with timings.stage("rerank"):
        look = second_look(read.survivors, found.query, tools.reranker, deadline.left_ms(), found.place)
        survivors = reordered(read.survivors, look.ranked)
    with timings.stage("usage"):
        survivors, usage = _lifted_by_usage(survivors, tools)
    with timings.stage("diversify"):
        limit = found.query.limit
        judged = max(limit, JUDGED) if look.asked_for else limit  # such a hit is judged among ten
        survivors = diverse(survivors, found.query, judged, tools.settings["search.diversity"])
    with timings.stage("judge"):
        visible, fused = _without_hidden(read.left_out, found, order.fused, fusion)
        judgement = judge(survivors, read.first, visible, fused, look, rescued.rung, tools)
        survivors, judgement = survivors[:limit], first_judged(judgement, limit)
    with timings.stage("present"):
        hits = hits_of(survivors, judgement, rescued, order.scores, glance.sources, tools, look.line_starts)
        if read.deleted is not None:
            hits = with_freshness(hits, files)
        if request.explain:
            hits = with_explanations(hits, judgement, found, fusion, tools, look, usage)
    total, omitted = len(order.fused.ranked), _omitted(order, read)
    answer = Answer(request, mode, hits, total, fusion, tools.org, glance.generation, omitted=omitted)
    answer = with_evidence(answer, judgement, rescued, look, tools, is_disk_mute=read.deleted is None)
    answer = with_remarks(answer, rescued, judgement.missing, tools, deadline)
    took = {**found.poll.timings_ms, **timings.ms}
    answer = replace(answer, timings_ms=took, search_time_ms=timings.total_ms())
    return Examined(answer, judgement, retrieved)


def _glance_without_space(store: Store) -> Glance:
    """Return what a search by words alone has to know before it begins.

    `store.glance()` would also ask the vector store, where that is a server of its own.
    """
    return Glance(store.catalog.generation(), store.catalog.sources())


def _with_place(found: Retrieval, store: Store) -> Retrieval:
    """Add the passage that the query points to, as in `src/app.py:120`."""
    if "." not in found.query.text:
        return found
    from concord.answering.asked_place import with_place  # late: few queries name a file

    return with_place(found, store.catalog)


def _with_definitions(found: Retrieval, store: Store, deadline: Deadline) -> Retrieval:
    """Add passages that may define the name which the query asks for, where very many mention it."""
    if len(found.ballots.lexical) < found.query.candidates:  # every mention is among the candidates
        return found
    from concord.answering.asked_definitions import with_definitions  # late: few words are so frequent

    return with_definitions(found, store, deadline)


def _ordered(rescued: Rescue, fusion: str, threshold: float | None) -> Order:
    """Fuse the candidates into one order, and drop those under the threshold or the floor."""
    found = rescued.found
    fused = fuse(fusion, found.ballots, found.context, found.blended)
    scores = rrf_scores(found.ballots, found.context.k)
    wanted = _above_threshold(fused.ranked, scores, threshold)
    kept = _pointed_at_first(found.place, above_floor(wanted, rescued.floor, scores))
    return Order(fused, scores, wanted, kept)


def _omitted(order: Order, read: Passages) -> dict[str, int]:
    """Return how many candidates are not shown, by reason."""
    return {"deleted": read.deleted or 0, "below_threshold": len(order.fused.ranked) - len(order.wanted)}


def _pointed_at_first(place: Place | None, ranked: Sequence[Ranked]) -> Sequence[Ranked]:
    """Put the passage that the query points to first, so that its text is read."""
    return ranked if place is None else sorted(ranked, key=lambda one: one.chunk_id != place.chunk_id)


def _uncalibrated_if_semantic_failed(tools: SearchTools, found: Retrieval) -> SearchTools:
    """Drop the calibration if the semantic strategy failed: it was fitted to votes of both families."""
    has_failed = any(one.strategy == "semantic" for one in found.poll.degraded)
    return replace(tools, calibration=None) if has_failed else tools


def _above_threshold(
    ranked: Sequence[Ranked], scores: Mapping[ChunkId, float], threshold: float | None
) -> Sequence[Ranked]:
    """Drop candidates under the caller's threshold, which is on RRF's scale whichever fusion was used."""
    return ranked if threshold is None else [one for one in ranked if scores[one.chunk_id] >= threshold]


def _lifted_by_usage(
    survivors: list[Survivor], tools: SearchTools
) -> tuple[list[Survivor], Mapping[ChunkId, Json]]:
    """Lift passages of documents that are read often, if the user wants that; say by how much each."""
    if not tools.settings["usage.enabled"]:
        return survivors, {}
    from concord.answering.usage import lift_by_usage

    lift = lift_by_usage(survivors, tools.store)
    return reordered(survivors, lift.ranked), lift.reasons


def _without_hidden(
    hidden: set[ChunkId], found: Retrieval, fused: Fused, fusion: str
) -> tuple[Retrieval, Fused]:
    """Return the candidates and their order as if those that may not be shown were not stored.

    They are in deleted files or hold an excluded word: nobody sees them, so confidence must not rest on them.
    """
    if not hidden:
        return found, fused
    visible = found.with_ballots(without(found.ballots, hidden))
    return visible, fuse(fusion, visible.ballots, visible.context)
