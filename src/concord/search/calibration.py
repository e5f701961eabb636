"""Evidence → probability: the fitted model of an embedding model, and where it is kept.

Two heads, each a logistic regression over named features: `hit` (is this passage relevant?) and `answer` (do
the results hold the answer?). Each was fitted once for every kind of evidence: with meaning (`hybrid`) and by
words alone (`words`), which know no embedding model, and each of the two with what the reader says as well.
`quality/fit.py` fits them.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import DecodeError, Struct, ValidationError, convert, field, json
from msgspec.structs import replace

from concord.core.config import Paths
from concord.core.errors import Action, BadValue, Hint
from concord.types import Identity

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 2
SHIPPED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data")
SHIPPED_WORDS = "calibration-granite-embedding-30m-english_384__cosine.json"  # its words head fits any model
HALF_READ = 0.5  # how much of a query a model must read for its nearness to say something

# Which evidence a hit is judged by.
Evidence = Literal["words", "hybrid", "words+reader", "hybrid+reader"]
READ = "+reader"  # ends what is judged by the reader as well

# What the heads may know of a passage, and of an answer by its first; `judge.py` computes them.
FEATURES = (
    "cosine",  # of query and passage
    "z",  # blended z-score; below 20 candidates pulled to the model's usual cosines
    "coverage",  # idf share of the query's words that title or passage hold
    "document_cosine",  # the best among this and better passages of its document, and so are the next two
    "document_z",
    "document_coverage",
    "bm25_ratio",  # BM25 ÷ the best of the search
    "unknown",  # share of the query's words that nothing holds, after their forms were tried
    "name",  # 1: it holds the asked name, 0: none asked, −1: asked and nowhere in the store
    "words",  # logarithm of 1 + how many words the query has
    "rareness",  # of the query's words, from 0 to 1
    "reader",  # the reader's log-odds that the passage answers; only of those that it has read
    "asked_reader",  # the same where the query is worded as a question, else 0: there it says more
)
# And of the whole search.
OF_SEARCH = (
    "top_cosine",  # of the nearest candidate: where cosines become strong or weak is fitted by it
    "fall",  # share of the first BM25 that is lost by the tenth
    "best_reader",  # the highest of `reader` among the passages that were read
    "best_asked_reader",  # and of `asked_reader`
)


class Head(Struct, frozen=True):
    """Logistic regression over named, standardised features, with an optional table to correct its output."""

    features: tuple[str, ...]
    coef: tuple[float, ...]
    intercept: float
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    isotonic: tuple[tuple[float, float], ...] = ()  # (probability before, after), rising; linear in between


class Heads(Struct, frozen=True):
    """What was fitted for one kind of evidence."""

    hit: Head
    answer: Head
    answerable: float  # least confidence score of an answer that is called answerable


class Cuts(Struct, frozen=True):
    """Where cosine becomes strong, and how probable a label must be."""

    strong: float | None = None  # not fitted, no cosine is strong: what is differs from model to model
    weak: float = 0.5
    hit: Mapping[str, float] = field(default_factory=dict)  # label → least score
    answer: Mapping[str, float] = field(default_factory=dict)  # label → least confidence score


class ReaderCuts(Struct, frozen=True):
    """What the reader's log-odds mean for an embedding model's hits."""

    settled: float | None = None  # from which on further passages are not read, and no more is believed
    sure: float = 2.5  # from which on the words that it points at are shown as the answer


class Calibration(Struct, frozen=True):
    """What was fitted for one embedding model."""

    model: str  # `model_key` of the embedder that it was fitted with; empty: words alone are calibrated
    heads: Mapping[str, Heads]  # by Evidence
    cuts: Cuts
    other_scripts: float = 1.0  # how well the model reads scripts other than Latin, from 0 to 1
    usual: tuple[float, float] | None = None  # mean and spread of its cosines where enough is found
    version: int = VERSION
    reader: ReaderCuts = ReaderCuts()

    @property
    def is_multilingual(self) -> bool:
        """Whether the model reads other scripts, and so other languages."""
        return self.other_scripts >= HALF_READ


UNFITTED = Calibration("", {}, Cuts())


def probability(head: Head, features: Mapping[str, float]) -> float:
    """Return a head's probability for the features of one passage or search."""
    odds = head.intercept + math.fsum(contributions(head, features).values())
    raw = 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))
    table = head.isotonic
    at = bisect_right(table, raw, key=lambda point: point[0])
    if at in (0, len(table)):
        return table[max(0, at - 1)][1] if table else raw
    (x0, y0), (x1, y1) = table[at - 1], table[at]
    return y0 + (y1 - y0) * (raw - x0) / (x1 - x0)


def contributions(head: Head, features: Mapping[str, float]) -> dict[str, float]:
    """Return what each feature adds to the log-odds."""
    rows = zip(head.features, head.coef, head.mean, head.scale, strict=True)
    return {name: coef * (features[name] - mean) / (scale or 1.0) for name, coef, mean, scale in rows}


def find_calibration(identity: Identity | None, paths: Paths) -> Calibration:
    """Return a model's calibration: the user's own, else the shipped one, else that of words alone."""
    if identity is not None and (own := _find(paths.data, identity) or _find(SHIPPED, identity)):
        return own
    return for_words(_load(os.path.join(SHIPPED, SHIPPED_WORDS)) or UNFITTED)


def for_words(calibration: Calibration) -> Calibration:
    """Return what of a calibration holds without its embedding model."""
    if "words" not in calibration.heads:
        return UNFITTED
    cuts = replace(calibration.cuts, strong=None, weak=UNFITTED.cuts.weak)
    heads = {name: heads for name, heads in calibration.heads.items() if name in ("words", f"words{READ}")}
    return replace(calibration, model="", heads=heads, cuts=cuts, other_scripts=1.0, usual=None)


def save_calibration(calibration: Calibration, identity: Identity, folder: Path) -> Path:
    """Write a calibration where `find_calibration` looks for it, whole or not at all; return the file.

    Raises:
        BadValue: the folder cannot be written to.
    """
    from concord.core.filesystem import replace_file  # late: a search only reads

    path = folder / file_name(identity)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # a store may be made in it later
        replace_file(path, json.format(json.encode(calibration), indent=1) + b"\n")
    except OSError as error:
        raise BadValue(
            f"cannot write {path}: {error}", hint=Hint(Action.HOME, "make room, or set {home} elsewhere")
        ) from error
    return path


def model_key(identity: Identity) -> str:
    """Return what two embedders must share for a calibration to fit both: everything but the provider."""
    return "/".join([identity.model, str(identity.dimension), identity.prefix_version, identity.metric])


def file_name(identity: Identity) -> str:
    """Return the name of the file that holds a model's calibration."""
    safe = "".join(c if c.isalnum() or c in "-." else "_" for c in model_key(identity))
    return f"calibration-{safe}.json"


def shipped_calibration(identity: Identity) -> Calibration | None:
    """Return the calibration that ships for a model, if one does."""
    return _find(SHIPPED, identity)


def _find(folder: str, identity: Identity) -> Calibration | None:
    found = _load(os.path.join(folder, file_name(identity)))
    return found if found and found.model == model_key(identity) else None


def _load(path: str) -> Calibration | None:
    """Return what a file holds now: servers run for days, and others fit anew meanwhile."""
    try:
        with open(path, "rb") as file:
            return parsed(json.decode(file.read()))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadValue(f"cannot read {path}: {error}", hint="mend or remove the file") from error
    except DecodeError as error:
        raise _malformed(f"in {path} is not JSON ({error})") from error


def parsed(data: object) -> Calibration:
    """Return a calibration from parsed JSON.

    Raises:
        BadValue: it is not of this form, or names features that this version does not compute.
    """
    try:
        calibration = convert(data, Calibration, strict=False)
    except ValidationError as error:
        raise _malformed(f"is incomplete or malformed ({error})") from error
    if calibration.version != VERSION:
        raise _malformed(f"is of version {calibration.version}, not {VERSION}")
    for heads in calibration.heads.values():
        for head, known in ((heads.hit, FEATURES), (heads.answer, FEATURES + OF_SEARCH)):
            if strange := sorted({*head.features}.difference(known)):
                raise _malformed(f"names features that this version does not compute: {', '.join(strange)}")
            if not len(head.features) == len(head.coef) == len(head.mean) == len(head.scale):
                raise _malformed("has not one coefficient, mean and scale for each feature")
    return calibration


def _malformed(what: str) -> BadValue:
    hint = Hint(Action.CALIBRATE, "fit it anew with {calibrate}, or remove it")
    return BadValue(f"the calibration {what}", hint=hint)
