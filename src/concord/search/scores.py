"""What are both scores of every candidate? Ranked lists become rows.

Word search knows the score of many more chunks than it proposes; of the others the vectors are compared. The
query is then moved towards its first hits (pseudo-relevance feedback) and compared once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.core.errors import reason_of
from concord.search import blend
from concord.search.blend import MOSTLY_KNOWN, POOL, Context
from concord.search.classify import is_sure_name
from concord.search.deadline import Deadline, run_within
from concord.search.fuse import Candidates
from concord.search.legs import NAMES, STRATEGIES, Tools
from concord.search.retrieve import Retrieved
from concord.text.tokens import idfs, latin_share
from concord.text.word_lists import shows_english
from concord.types import Candidate, ChunkId, Degraded, Leg, Query, RankedList

if TYPE_CHECKING:
    from concord.search.legs import Comparison

FEEDBACK_HITS = 3  # that the query is moved towards: more of them bring in what is wrong
FEEDBACK_LAG = 0.1  # of a cosine, for each standard deviation by which a hit is behind the first
FEEDBACK_STRENGTH = 0.7  # of a hit, where the query counts 1
CODE_SEARCH = 0.5  # share of code among the candidates from which on a search is one of source code

_ORDER = {name: place for place, name in enumerate(STRATEGIES)}


def complete_scores(retrieved: Retrieved, query: Query, tools: Tools, deadline: Deadline) -> Candidates:
    """Return all candidates with both their scores, and what a fusion may know besides."""
    rows = merge(retrieved.lists, query.candidates, retrieved.names)
    comparison, failed = _comparison(retrieved.lists, rows, query, tools, deadline)
    if comparison:
        near = comparison.cosines()
        rows = [
            row if row.semantic_rank or row.chunk_id not in near else replace(row, cosine=near[row.chunk_id])
            for row in rows
        ]
    context = _context(rows, query, tools)
    if comparison and context.code_share <= CODE_SEARCH:
        rows = _with_feedback(rows, comparison, context)
    return Candidates(rows, context, retrieved.lists, (*retrieved.degraded, *failed))


def merge(
    lists: Sequence[RankedList], candidates: int, names: Mapping[ChunkId, float] | None = None
) -> list[Candidate]:
    """Return a row for every chunk that a strategy proposes, in order of chunk id."""
    ranks: dict[ChunkId, dict[str, int]] = {}
    for ranked in sorted(lists, key=lambda ranked: _ORDER.get(ranked.strategy, len(_ORDER))):
        for rank, row in enumerate(ranked.found[:candidates], 1):
            ranks.setdefault(row.chunk_id, {}).setdefault(ranked.strategy, rank)
    bm25, lexical = _of_leg(lists, "lexical", candidates)
    cosine, semantic = _of_leg(lists, "semantic", candidates)
    names = names or {}
    return [
        Candidate(
            chunk_id,
            own,
            lexical.get(chunk_id),
            semantic.get(chunk_id),
            bm25.get(chunk_id),
            cosine.get(chunk_id),
            name_score=names.get(chunk_id, 0.0),
        )
        for chunk_id, own in sorted(ranks.items())
    ]


def _of_leg(
    lists: Sequence[RankedList], leg: Leg, candidates: int
) -> tuple[dict[ChunkId, float], dict[ChunkId, int]]:
    """Return the best score and the rank of each chunk in a leg.

    Ranks are by the best rank in any of its lists, ties by score. Each has one chunk: of two that are first
    in their lists, the lesser becomes second. A rank that the lists leave open stays open, so ranks come
    through unchanged from a single list. Names have no BM25, and a place in this leg only by their words.
    """
    scores: dict[ChunkId, float] = {}
    best: dict[ChunkId, int] = {}
    for ranked in lists:
        if ranked.leg != leg or ranked.strategy == NAMES:
            continue
        own = {row.chunk_id: row.score for row in ranked.found}
        scores = own | {chunk_id: max(score, own.get(chunk_id, score)) for chunk_id, score in scores.items()}
        for rank, row in enumerate(ranked.found[:candidates], 1):
            best[row.chunk_id] = min(rank, best.get(row.chunk_id, rank))
    ranks: dict[ChunkId, int] = {}
    last = 0
    for rank, _, chunk_id in sorted((rank, -scores[chunk_id], chunk_id) for chunk_id, rank in best.items()):
        last = ranks[chunk_id] = max(rank, last + 1)
    return scores, ranks


def _comparison(
    lists: Sequence[RankedList], rows: Sequence[Candidate], query: Query, tools: Tools, deadline: Deadline
) -> tuple[Comparison | None, tuple[Degraded, ...]]:
    """Compare all candidates with the query; None where meaning was not searched, or found nothing."""
    similarity = tools.similarity
    if similarity is None or not any(ranked.found for ranked in lists if ranked.leg == "semantic"):
        return None, ()

    def compare() -> Comparison:
        return similarity.compare(query.meaning, similarity.fetch([row.chunk_id for row in rows]))

    try:
        compared = run_within(compare, deadline.left_ms())
    except Exception as error:  # whatever an engine raises is reported in the answer
        return None, (Degraded("semantic", reason_of(error)),)
    return compared, () if compared else (Degraded("semantic", f"no answer within {deadline.ms:g} ms"),)


def _context(rows: Sequence[Candidate], query: Query, tools: Tools) -> Context:
    # What is one identifier or option, or a quotation, is to be found as it stands.
    is_name = query.type == "entity" or is_sure_name(query.text)
    code_share = 0.0  # matters only where both legs found something
    if any(row.lexical_rank for row in rows) and any(row.semantic_rank for row in rows):
        first = [row.chunk_id for row in rows if any(rank <= POOL for rank in row.ranks.values())]
        types = tools.store.catalog.document_types(first)
        code_share = sum(type == "code" for type in types.values()) / max(1, len(types))
    latin, calibration = latin_share(query.text), tools.calibration
    # Of a question about enzymes or Kubernetes a model may have hardly a word whole, and reads its English.
    known_words = 1.0
    if tools.similarity and not calibration.is_multilingual and not shows_english(query.meaning.split()):
        known_words = tools.similarity.vectors.known_words(query.meaning)
    return Context(
        type=query.type,
        k=tools.settings["search.rrf_k"],
        max_bm25=blend.max_bm25(idfs(query.chunks, query.frequencies).values()),
        rareness=blend.rareness(query.chunks, query.frequencies),
        code_share=code_share,
        model_reads=latin + (1 - latin) * calibration.other_scripts,
        known_words=known_words,
        is_verbatim=query.type == "exact_quote" or is_name and len(query.text.split()) == 1,
        usual=calibration.usual,
    )


def is_read(context: Context) -> bool:
    """Whether the model reads a query's script and its language."""
    return context.model_reads >= 0.5 and context.known_words >= MOSTLY_KNOWN


def _with_feedback(rows: Sequence[Candidate], comparison: Comparison, context: Context) -> list[Candidate]:
    """Move the query towards each of its first hits, and measure how near every candidate is to the nearest.

    Towards their mean (Rocchio 1971), a question about two subjects would be moved away from the one that is
    not found first: recall@5 of two questions in one is .03 lower on three of four sets. Among source code
    the first hits are too often wrong for this to help.
    """
    scores = {chunk_id: given.score for chunk_id, given in blend.blend(rows, context).items()}
    counts = {row.chunk_id: len(row.ranks) for row in rows}
    first = sorted(scores, key=lambda i: (-scores[i], -counts[i], i))[:FEEDBACK_HITS]
    behind = {i: FEEDBACK_LAG * (scores[first[0]] - scores[i]) for i in first}
    near = comparison.feedback_cosines(behind, FEEDBACK_STRENGTH)
    return [replace(row, feedback_cosine=near.get(row.chunk_id)) for row in rows]
