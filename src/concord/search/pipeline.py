"""How is a question answered? Read it from top to bottom: find, judge, show, and each stage is one file.

Understanding searches nothing, fusion happens once, the judge looks up nothing. Candidates carry no text: it
is read once, after fusion, for the few that are left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from concord.core.errors import Action, Hint, joined
from concord.files.state import Files
from concord.search.calibration import Calibration, for_words
from concord.search.deadline import Deadline, Stages
from concord.search.fallback import Fallback, suggestions, with_fallback
from concord.search.fuse import Candidates, above_floor, fuse
from concord.search.grouping import Groups, grouped
from concord.search.judge import PRELIMINARY, Verdict, judge
from concord.search.legs import Tools
from concord.search.notes import notes
from concord.search.passages import UNSEEN, Read, boost, collapse, diversify, read_passages
from concord.search.present import answer_of, linked, present
from concord.search.reader import by_reading, loading, read_answers
from concord.search.request import Options, options_of
from concord.search.rerank import rerank
from concord.search.retrieve import retrieve
from concord.search.scores import complete_scores
from concord.search.understand import understand
from concord.types import Answer, Degraded, Hit, Mode, Passage, Query, Ranked, Request

if TYPE_CHECKING:
    from concord.store.contract import Snapshot

WAITING_SHARE = 0.5  # of the time that a search has, to wait for a generation: the rest is for searching
FIRST_LOOK_S, LONGEST_LOOK_S = 0.002, 0.05  # between two looks: a commit takes milliseconds, a sync seconds


class Examined(Struct, frozen=True):
    """An answer and the evidence behind it, by which it is explained and confidence is fitted."""

    answer: Answer
    verdict: Verdict  # on all passages that were read
    shown: Verdict  # on those that are shown, in their order
    candidates: Candidates
    query: Query
    fallback: Fallback


class _Search(NamedTuple):
    """A search under way: what was asked for, and what it is answered with."""

    request: Request
    options: Options
    tools: Tools
    snapshot: Snapshot
    files: Files
    deadline: Deadline
    stages: Stages


class _Found(NamedTuple):
    """The passages that were read, best first, and how they were found."""

    query: Query
    candidates: Candidates
    fallback: Fallback
    ranked: Sequence[Ranked]  # all candidates
    below_threshold: int  # how many of them
    read: Read
    passages: Sequence[Passage]
    degraded: Sequence[Degraded]  # what had no part in it


def search(request: Request, tools: Tools) -> Answer:
    """Answer one request; one with `min_generation` waits until the store has reached it."""
    if request.min_generation is not None:
        return _search_at_generation(request, tools)
    return examine(request, tools).answer


def examine(request: Request, tools: Tools) -> Examined:
    """Answer one request, and keep the evidence."""
    options = options_of(request, tools.settings)
    stages, deadline = Stages(), Deadline(options.deadline_ms)
    snapshot = tools.snapshot or tools.store.catalog.snapshot()
    files = Files(snapshot.sources)
    search = _Search(request, options, tools, snapshot, files, deadline, stages)
    found = _find(search)
    verdict = _judge(found, search)
    examined = _show(verdict, found, search)
    if request.explain:
        from concord.search.explain import with_explanations  # late: few searches are explained

        return with_explanations(examined, options.fusion, tools.calibration)
    return examined


def _find(search: _Search) -> _Found:
    """Find candidates by words and by meaning, put them in one order, and read the best."""
    request, options, tools, snapshot, files, deadline, stages = search
    with stages("understand"):
        query = understand(request, options, tools, snapshot.sources)
        loading(query, tools)
    with stages("retrieve"):
        retrieved = retrieve(query, options.mode, tools, deadline)
    with stages("complete"):
        candidates = complete_scores(retrieved, query, tools, deadline)
    with stages("fallback"):
        candidates, fallback = with_fallback(candidates, retrieved, query, request, options, tools)
    with stages("fuse"):
        ranked = fuse(options.fusion, candidates)
        least = -math.inf if request.threshold is None else request.threshold
        wanted = [row for row in ranked if candidates.rrf[row.chunk_id] >= least]
    with stages("read"):
        kept = above_floor(wanted, candidates.rrf, fallback.floor)
        read = read_passages(kept, query, tools.store, files)
    with stages("boost"):
        journal = tools.store.journal if tools.settings["usage.enabled"] else None
        passages = boost(collapse(read.passages, query), query, journal, by_name=not options.is_blended)
    with stages("rerank"):
        passages, late = rerank(passages, query, tools.reranker, deadline.left_ms())
    with stages("reader"):
        passages, unread = read_answers(passages, query, tools, deadline, reranks=request.rerank)
    stages.ms = {**retrieved.timings_ms, **stages.ms}
    degraded = (*candidates.degraded, *late, *unread)
    below = len(ranked) - len(wanted)
    return _Found(query, candidates, fallback, ranked, below, read, passages, degraded)


def _judge(found: _Found, search: _Search) -> Verdict:
    """Judge the passages that were read; in `auto` the reader has a say in their order first."""
    request, options, passages = search.request, search.options, found.passages
    visible, calibration = found.candidates.without(found.read.left_out), _calibration(found, search.tools)

    def judged(passages: Sequence[Passage], *, falls: bool = False) -> Verdict:
        return judge(passages, visible, found.query, calibration, found.fallback.step, falls=falls)

    with search.stages("judge"):
        if (request.rerank or options.is_blended) and passages and passages[0].reading:
            bare = judged([replace(passage, reading=None) for passage in passages])
            passages = by_reading(passages, bare, across_documents=request.rerank)
        verdict = judged(passages, falls=options.is_blended)
        return verdict.only(()) if _is_noise(verdict, visible, search) else verdict


def _calibration(found: _Found, tools: Tools) -> Calibration:
    """Return what to judge by: what was fitted to both legs does not hold for one."""
    has_failed = any(part.strategy == "semantic" for part in found.candidates.degraded)
    return for_words(tools.calibration) if has_failed else tools.calibration


def _is_noise(verdict: Verdict, candidates: Candidates, search: _Search) -> bool:
    """Whether meaning alone found something in `auto`, no word of the query is known, and it is unlikely."""
    is_known = any(row.lexical_rank or row.name_score for row in candidates.rows)
    is_likely = verdict.confidence_score >= search.tools.settings["search.least_score"]
    return search.options.is_blended and verdict.head is not None and not is_known and not is_likely


def _show(verdict: Verdict, found: _Found, search: _Search) -> Examined:
    """Choose what says most together, show it as hits, and say what else there is to say."""
    request, options, tools, snapshot, files, _, stages = search
    query, candidates, fallback = found.query, found.candidates, found.fallback
    with stages("diversify"):
        least = -math.inf if request.min_score is None else request.min_score
        enough = verdict.only(row for row in verdict.judged if row.score >= least)
        groups = grouped(enough, options.group, query, tools)
        chosen = _chosen(groups, query, options, tools)
    with stages("present"):
        seen = None if found.read.deleted is None else files
        searched, sources = fallback.searched, snapshot.sources
        hits = present(chosen, groups, enough, query, candidates, searched, seen, sources, tools)
    with stages("links"):
        beside = linked(hits, enough.judged, query, files, sources, tools)
    omitted = {
        "deleted": found.read.deleted or 0,
        "below_threshold": found.below_threshold,
        "below_min_score": len(verdict.judged) - len(enough.judged),
    }
    answer = replace(_answer(found, chosen, search), hits=hits, linked=beside, omitted=omitted)
    answer = replace(answer, strategies_matched=_matched(hits, tools))
    examined = Examined(answer, verdict, chosen, candidates, query, fallback)
    note, suggested = notes(examined, tools), suggestions(examined, tools)
    took = {"timings_ms": stages.ms, "search_time_ms": stages.total_ms()}
    return replace(examined, answer=replace(answer, note=note, suggestions=suggested, **took))


def _answer(found: _Found, chosen: Verdict, search: _Search) -> Answer:
    """Return an answer without its hits: how far to trust it, and what had no part in it."""
    query, tools = found.query, search.tools
    return Answer(
        request=search.request,
        mode=search.options.mode,
        hits=(),
        total_hits=len(found.ranked),
        fusion=search.options.fusion,
        org=tools.org,
        generation=search.snapshot.generation,
        query_type=query.type,
        confidence=chosen.label,
        confidence_score=chosen.confidence_score,
        answerable=chosen.answerable,
        answer=answer_of(chosen, tools.calibration.reader),
        calibrated=chosen.head is not None,
        degraded=_degraded(found, tools),
        searched=(
            *(form for forms in query.changes.values() for form in forms),
            *found.fallback.searched,
        ),
    )


def _chosen(groups: Groups, query: Query, options: Options, tools: Tools) -> Verdict:
    """Choose what is shown: passages that say most together, few of each document in `auto`."""
    judged = groups.leads.judged
    if options.group == "document":
        return groups.leads.only(judged[: query.limit])
    passages = [row.passage for row in judged]
    chosen = diversify(
        passages,
        [passage.ranked.score for passage in passages],
        query.limit,
        trade=tools.settings["search.diversity"],
        per_document=tools.settings["search.per_document"] if options.is_blended else 0,
    )
    by_id = {row.passage.chunk.id: row for row in judged}
    return groups.leads.only(replace(by_id[passage.chunk.id], passage=passage) for passage in chosen)


def _matched(hits: Sequence[Hit], tools: Tools) -> tuple[str, ...]:
    found_by = {name for hit in hits for name in hit.found_by}
    known = [strategy.name for strategy in tools.strategies if strategy.name in found_by]
    return (*known, *sorted(found_by.difference(known)))


def _degraded(found: _Found, tools: Tools) -> tuple[Degraded, ...]:
    return (
        *found.degraded,
        *([UNSEEN] if found.read.deleted is None else []),
        *_without_vectors(found.candidates, found.query, tools),
        *([tools.absent] if tools.absent else []),
    )


def _without_vectors(candidates: Candidates, query: Query, tools: Tools) -> list[Degraded]:
    """Say that words alone speak for what was found, because vectors are yet to be made, or were lost."""
    # A missing cosine means a missing vector only where meaning was searched and vectors could be fetched.
    lists = {ranked.strategy for ranked in candidates.lists}
    failed = any(part.strategy == "semantic" for part in candidates.degraded)
    if "semantic" not in lists or failed or not any(map(str.isalnum, query.meaning)):
        return []
    waiting = sum(row.cosine is None for row in candidates.rows)
    if candidates.rows and not waiting:
        return []
    what = "1 passage found has" if waiting == 1 else f"{waiting} passages found have"
    counts = tools.store.catalog.count()
    pending = counts.chunks - counts.vectors
    if not candidates.rows:
        said = f"{pending:,} of {counts.chunks:,} passages have no vector yet: {{sync}} makes them"
        return [Degraded("vectors", Hint(Action.SYNC, said))] if pending > 0 else []
    if pending > 0:
        in_all = f" ({pending:,} of {counts.chunks:,} in all)" if pending > waiting else ""
        return [Degraded("vectors", Hint(Action.SYNC, f"{what} no vector yet{in_all}: {{sync}} makes them"))]
    return [Degraded("vectors", Hint(Action.DOCTOR, f"{what} no vector any more: {{doctor}} looks for them"))]


def _search_at_generation(request: Request, tools: Tools) -> Answer:
    """Answer once the store has the generation asked for, or say that it has not.

    Waiting and searching together take no longer than searching may.
    """
    deadline = Deadline(options_of(request, tools.settings).deadline_ms)
    waiting = Deadline(deadline.ms * WAITING_SHARE)
    wanted, pause = request.min_generation or 0, FIRST_LOOK_S
    while (reached := tools.store.catalog.snapshot().generation) < wanted and (left := waiting.left_ms()):
        time.sleep(min(pause, left / 1000))
        pause = min(2 * pause, LONGEST_LOOK_S)
    hurried = replace(request, deadline_ms=max(1.0, deadline.left_ms()), min_generation=None)
    tools = replace(tools, snapshot=None)  # it was taken before the wait
    answer = replace(examine(hurried, tools).answer, request=request)
    if reached >= wanted:
        return answer
    reason = (
        f"the index is at generation {reached}, not yet at {wanted}: what was changed since may be missing"
    )
    note = joined("; ", answer.note, reason) if answer.note else reason
    return replace(answer, degraded=(*answer.degraded, Degraded("generation", reason)), note=note)


PENDING = Degraded("semantic", "still to come: it is part of the final answer")
_FOLLOWS = "meaning is searched next, for the final answer"


class Progressive(NamedTuple):
    """An answer, and whether a better one follows."""

    stage: Literal["preliminary", "final"]
    answer: Answer


def progressive(request: Request, mode: Mode, ask: Callable[[Request], Answer]) -> Iterator[Progressive]:
    """Yield what words find, then the full answer; only that in a mode that has one leg.

    The full search begins when it is asked for, so whoever stops after the first part pays for no more.
    """
    if mode in ("auto", "hybrid"):
        answer = preliminary(ask(replace(request, mode="fts5")))
        note = f"found by words alone; {_FOLLOWS}" if answer.hits else f"words alone find nothing; {_FOLLOWS}"
        if answer.note and answer.hits:  # why words found nothing may not hold for the final answer
            note = joined("; ", answer.note, note)
        degraded = (*answer.degraded, PENDING)
        yield Progressive(
            "preliminary",
            replace(answer, request=request, mode=mode, degraded=degraded, note=note, suggestions=()),
        )
    yield Progressive("final", ask(request))


def preliminary(answer: Answer) -> Answer:
    """Return an answer that words alone have found, marked as such: nobody knows yet how sure it is."""
    return replace(answer, confidence=PRELIMINARY, answerable=None, answer=None)
