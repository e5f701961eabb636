"""Confidence for a user's own corpus: ask its judged queries, fit, and tell what that changed.

If a calibration ships for the model, the fit stays near it: a few dozen queries move it a little, a few
hundred as far as they like. The figures of the new fit were measured on queries that it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from concord.answering.tools import SearchTools
from concord.errors import BadValue
from concord.protocols import Progress
from concord.quality.calibration import SHIPPED, shipped_calibration
from concord.quality.collection import Collection
from concord.quality.evaluate import Outcome, ask, ask_own
from concord.quality.fitting import FOLDS, JudgedSet, fit, revised
from concord.quality.reliability import Promises, promises
from concord.ranking.calibrate import Calibration, model_key
from concord.types import Identity

LEAST = 50  # judged queries: with fewer, what was measured could as well be chance


class Refit(Struct, frozen=True):
    """A new calibration, and how well confidence held before and after."""

    calibration: Calibration
    queries: int
    foreign: int
    before: Promises
    after: Promises
    feedback: int = 0  # queries of the user's own that somebody has judged results of
    path: Path | None = None


def refit(
    collection: Collection,
    tools: SearchTools,
    identity: Identity,
    others: Mapping[str, Sequence[str]],
    progress: Progress,
    feedback: Sequence[Outcome] = (),
) -> Refit:
    """Fit a calibration to an indexed collection; queries of others are what it cannot answer.

    `feedback` are judged answers of the user's own knowledge base: each counts as much as a query of the
    collection.

    Raises:
        BadValue: there are too few judged queries, none of them is answered, or there is no embedding model
            to calibrate.
    """
    _check(collection, tools)
    own = [*_answered(ask_own(collection, tools, progress)), *feedback]
    texts = [text for texts in others.values() for text in texts] or off_topic()
    foreign = ask(texts, tools, progress)
    prior, model = shipped_calibration(identity), model_key(identity)
    return Refit(
        calibration=fit([JudgedSet(collection.folder.name, own, foreign)], model, prior),
        queries=len(own) - len(feedback),
        feedback=len(feedback),
        foreign=len(foreign),
        before=_promises(own),
        after=_promises(_cross_fitted(own, foreign, model, prior)),
    )


def off_topic() -> list[str]:
    """Return everyday questions that hardly any one corpus answers."""
    return (SHIPPED / "offtopic.txt").read_text(encoding="utf-8").splitlines()


def _check(collection: Collection, tools: SearchTools) -> None:
    judged = len(collection.judged)
    if judged < LEAST:
        raise BadValue(
            f"{judged} judged queries are too few to calibrate with",
            hint=f"judge {LEAST} or more: qrels/*.tsv names queries and their relevant documents",
        )
    if tools.similarity is None:
        raise BadValue(
            "there is no embedding model to calibrate", hint="set embed.provider to something else than none"
        )


def _answered(own: Sequence[Outcome]) -> Sequence[Outcome]:
    """Check that some query is answered: fitted to none, no answer would ever be trusted again."""
    if not any(any(one.relevant) for one in own):
        raise BadValue(
            f"none of {len(own):,} judged queries finds a relevant document",
            hint="qrels/*.tsv has to name documents by the _id that corpus.jsonl gives them",
        )
    return own


def _cross_fitted(
    own: Sequence[Outcome], foreign: Sequence[Outcome], model: str, prior: Calibration | None
) -> list[Outcome]:
    """Return each query as a fit to the others judges it."""
    judged: list[Outcome] = []
    for fold in range(FOLDS):
        rest = [one for at, one in enumerate(own) if at % FOLDS != fold]
        fitted = fit([JudgedSet("", rest, foreign)], model, prior)
        judged += revised(own[fold::FOLDS], fitted)
    return judged


def _promises(outcomes: Sequence[Outcome]) -> Promises:
    return promises([(one.judgement, one.relevant) for one in outcomes])
