"""Why does a hit rank where it does? The arithmetic of votes, boosts, relevance and label as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import asdict

from concord.ranking.agreement import Evidence, Label, agreement, best_label, row
from concord.ranking.ballots import Ballots
from concord.ranking.calibrate import (
    Calibration,
    applicable,
    borne_out,
    contributions,
    relevance,
    verbatim_floor,
)
from concord.ranking.context import Context
from concord.ranking.features import HitSignals, SearchSignals, hit_features
from concord.ranking.fuse import shares, weights
from concord.ranking.share import Share
from concord.types import Candidate, ChunkId, Json


def explain(chunk_id: ChunkId, ballots: Ballots, context: Context, fusion: str) -> dict[str, Json]:
    """Return the arithmetic of a chunk's fused score; a chunk without votes scores 0."""
    votes = ballots.votes.get(chunk_id, ())
    share = shares(fusion, ballots, context).get(chunk_id, Share(0.0, 0.0))
    found = agreement(votes)
    return {
        "fusion": fusion,
        "kind": context.kind,
        "found": bool(votes),
        "strategies": [_vote(one) for one in votes],
        "families": {
            "lexical": _family(ballots.lexical, ballots.bm25, chunk_id, share.lexical),
            "semantic": _family(ballots.semantic, ballots.cosine, chunk_id, share.semantic),
        },
        "weights": asdict(given) if (given := weights(fusion, ballots, context)) else None,
        "factor": share.factor,
        "fused": share.score,
        "agreement": found.agreement,
        "best_rank": found.best_rank or None,
    }


def explain_relevance(
    calibration: Calibration | None, hit: HitSignals, search: SearchSignals
) -> dict[str, Json]:
    """Return how a hit came by its relevance: each feature, its value and what it added to the log-odds."""
    values, fitted = hit_features(hit, search), applicable(calibration, hit)
    parts = contributions(fitted.hit, values) if fitted else {}
    return {
        "relevance": relevance(fitted, hit, search),
        "calibrated": fitted is not None,
        "held": search.discount,
        "least": verbatim_floor(hit, search) if fitted else 0.0,
        "borne_out": borne_out(hit.coverage, search) if fitted else 1.0,
        "intercept": fitted.hit.intercept if fitted else None,
        "features": [
            {"name": name, "value": value, "added": parts.get(name)}
            for name, value in values.items()
            if fitted is None or name in parts
        ],
    }


def explain_label(evidence: Evidence, capped: Label) -> dict[str, Json]:
    """Return which row of the confidence table fits and whether the cap lowered its label."""
    fits = row(evidence)
    is_lower = best_label([capped, fits.label]) != capped  # what was lifted may have a better one
    return {"row": fits.name, "earned": fits.label, "label": capped, "capped": is_lower}


def _vote(one: Candidate) -> dict[str, Json]:
    return {"strategy": one.strategy, "family": one.family, "rank": one.rank, "score": one.score}


def _family(
    ranks: Mapping[ChunkId, int], scores: Mapping[ChunkId, float], chunk_id: ChunkId, added: float
) -> dict[str, Json]:
    return {"rank": ranks.get(chunk_id), "score": scores.get(chunk_id), "added": added}
