"""Confidence for a user's own corpus: ask its judged queries, fit, and say what that changed.

The fit stays near the one that ships: a few dozen queries move it a little, a few hundred as they like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from concord.core.errors import Action, BadValue, Hint
from concord.core.protocols import Progress
from concord.quality.collection import Collection
from concord.quality.evaluate import ask, ask_own
from concord.quality.fit import FOLDS, LEAST, JudgedSet, fit, revised
from concord.quality.metrics import Outcome, Promises, promises
from concord.search.calibration import SHIPPED, Calibration, model_key, shipped_calibration
from concord.search.legs import Tools
from concord.types import Identity


class Refit(Struct, frozen=True):
    """A new calibration, and how well confidence held before and after."""

    calibration: Calibration
    queries: int
    foreign: int
    before: Promises
    after: Promises  # measured on queries that the fit had not seen
    feedback: int = 0  # queries of the user's own that somebody has judged results of
    path: Path | None = None


def refit(
    collection: Collection | None,
    tools: Tools,
    identity: Identity,
    others: Mapping[str, Sequence[str]],
    progress: Progress,
    feedback: Sequence[Outcome] = (),
    near_misses: Sequence[str] = (),
) -> Refit:
    """Fit a calibration to an indexed collection; it can answer neither queries of others nor near misses.

    `feedback` are judged answers of the user's own knowledge base: each counts as much as a query of the
    collection. Without a collection they are all there is.

    Raises:
        BadValue: there are too few judged queries, none of them is answered, or there is no embedding model
            to calibrate.
    """
    judged = len(collection.judged) if collection else len(feedback)
    if judged < LEAST:
        what = f"judge {LEAST} or more: in qrels/*.tsv of a folder, or with {{feedback}}"
        raise BadValue(
            f"{judged} judged queries are too few to calibrate with", hint=Hint(Action.FEEDBACK, what)
        )
    if tools.similarity is None:
        raise BadValue(
            "there is no embedding model to calibrate", hint="set embed.provider to something else than none"
        )
    own = [*(ask_own(collection, tools, progress) if collection else ()), *feedback]
    if not any(any(outcome.relevant) for outcome in own):  # fitted to none, no answer would be trusted again
        raise BadValue(
            f"none of {len(own):,} judged queries finds a relevant document",
            hint="qrels/*.tsv has to name documents by the _id that corpus.jsonl gives them",
        )
    texts = [text for texts in others.values() for text in texts] or off_topic()
    foreign, near = ask(texts, tools, progress), ask(near_misses, tools, progress)
    prior, model, reader = shipped_calibration(identity), model_key(identity), tools.calibration.reader
    asked = JudgedSet(collection.folder.name if collection else "feedback", own, foreign, near)
    unseen: list[Outcome] = []  # each query as a fit to the others judges it
    for fold in range(FOLDS):
        rest = [outcome for at, outcome in enumerate(own) if at % FOLDS != fold]
        unseen += revised(own[fold::FOLDS], fit([asked._replace(own=rest)], model, reader, prior))
    return Refit(
        calibration=fit([asked], model, reader, prior),
        queries=len(own) - len(feedback),
        feedback=len(feedback),
        foreign=len(foreign) + len(near),
        before=promises(own),
        after=promises(unseen),
    )


def off_topic() -> list[str]:
    """Return everyday questions that hardly any one corpus answers."""
    return Path(SHIPPED, "offtopic.txt").read_text(encoding="utf-8").splitlines()
