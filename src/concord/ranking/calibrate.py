"""How likely is a hit relevant, and is the answer there? Applies a calibration; `quality/fitting.py` fits it.

A calibration belongs to one embedding model. For any other the score is a stand-in: it rises with cosine and
with BM25's share of what the query could score, orders hits sensibly, and is no probability.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from concord.errors import BadValue
from concord.ranking.agreement import LABELS, Cuts
from concord.ranking.blend import MOSTLY_KNOWN
from concord.ranking.features import (
    ANSWER_FEATURES,
    HIT_FEATURES,
    HitSignals,
    SearchSignals,
    alone,
    answer_features,
    hit_features,
    share_of_bound,
)
from concord.ranking.fuse import FOLLOWING, LEADING
from concord.types import Identity, Json

VERSION = 1
UNFITTED = Cuts()
# The least confidence where the first hit has the whole query word for word, whatever meaning says. Of such
# answers to queries of two words or more, 90 of 100 were right among link texts, and more elsewhere.
VERBATIM_ANSWER = 0.85
# The least relevance of one such hit. It falls with their number: where many pages have the words, 20 of 100
# were right.
VERBATIM_HITS = 0.6
# An answer may promise at most this many times the sum of its hits' probabilities. With 3 one in eight
# questions was refused that a store of ten documents answers.
TOGETHER = 6.0
TEN = 10  # results of a usual answer
HALF_READ = 0.5  # how much of a query a model must read for its nearness to say something
# Share of a query's words that a text must hold where the model cannot read the query. It separates Chinese
# questions that have an answer from those that have none (`python -m benchmarks absent`).
WORDS_ALONE = 0.17
UNREAD_DOUBT = 0.8  # there, this share of the doubt that is allowed elsewhere


class Logistic(Struct, frozen=True):
    """Logistic regression over named, standardised features, with an optional table to correct its output."""

    features: tuple[str, ...]
    coef: tuple[float, ...]
    intercept: float
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    isotonic: tuple[tuple[float, float], ...] = ()  # (probability before, after), rising; linear in between


class Calibration(Struct, frozen=True):
    """What was fitted for one embedding model."""

    model: str  # model_key of the embedder it was fitted with
    hit: Logistic
    answer: Logistic
    cuts: Cuts
    other_scripts: float = 1.0  # how well the model reads scripts other than Latin, from 0 to 1
    usual: tuple[float, float] | None = None  # mean and spread of its cosines where enough is found

    @property
    def is_multilingual(self) -> bool:
        """Whether the model reads other scripts, and so other languages."""
        return self.other_scripts >= HALF_READ


def model_key(identity: Identity) -> str:
    """Return what two embedders must share for a calibration to fit both: everything but the provider."""
    return "/".join([identity.model, str(identity.dimension), identity.prefix_version, identity.metric])


def relevance(calibration: Calibration | None, hit: HitSignals, search: SearchSignals) -> float:
    """Return the probability that a hit is relevant, or its stand-in."""
    fitted = applicable(calibration, hit)
    if fitted is None:
        return search.discount * stand_in(hit.cosine or 0.0, share_of_bound(hit.bm25, search))
    found = probability(fitted.hit, hit_features(hit, search, fitted.hit.features))
    return search.discount * borne_out(hit.coverage, search) * max(found, verbatim_floor(hit, search))


def relevance_alone(
    calibration: Calibration | None, hit: HitSignals, search: SearchSignals, together: float
) -> float:
    """Return a hit's relevance by its own evidence; `together` is the one that counts its document's hits."""
    own = alone(hit)
    return together if own == hit else relevance(calibration, own, search)


def applicable(calibration: Calibration | None, hit: HitSignals) -> Calibration | None:
    """Return the calibration if it applies to a hit: none was fitted to hits without a vector."""
    return None if hit.cosine is None else calibration


def confidence_score(
    calibration: Calibration | None, search: SearchSignals, relevances: Iterable[float] = ()
) -> float:
    """Return the probability that the top results hold the answer, or its stand-in.

    It is at least the best hit's probability, and at most a few times the sum of all.
    """
    if calibration is None:
        first = stand_in(search.first_cosine, share_of_bound(search.first_bm25, search))
        return max([search.discount * first, *relevances])
    found = probability(calibration.answer, answer_features(search, calibration.answer.features))
    found = min(found, _together(relevances := [*relevances]))
    found = max(found, VERBATIM_ANSWER if search.first_closeness == 1 else 0.0)
    return max([search.discount * borne_out(search.coverage, search) * found, *relevances])


def _together(relevances: Sequence[float]) -> float:
    """Return the most that an answer may promise given its hits, since the two are fitted separately."""
    return TOGETHER * math.fsum(relevances) * max(1.0, TEN / len(relevances)) if relevances else 1.0


def verbatim_floor(hit: HitSignals, search: SearchSignals) -> float:
    """Return the least relevance of a hit that has the whole query verbatim: less, the more hits have it."""
    return VERBATIM_HITS / (1 + math.log(max(1, search.verbatim))) if hit.closeness == 1 else 0.0


def borne_out(coverage: float, search: SearchSignals) -> float:
    """Return the share of a probability that words bear out: all of it if the model reads the query.

    To a model that does not, every text in that script is near, and any question would look answered.
    `coverage` is the share of the query's words, by rarity, that the text holds.
    """
    return 1.0 if search.reads >= HALF_READ else min(1.0, coverage / WORDS_ALONE)


def cuts(calibration: Calibration | None) -> Cuts:
    """Return the cuts that labels are measured against."""
    return UNFITTED if calibration is None else calibration.cuts


def is_read(search: SearchSignals) -> bool:
    """Whether the model reads a query's script and its language."""
    return search.reads >= HALF_READ and search.known_words >= MOSTLY_KNOWN


def cuts_for(cuts: Cuts, search: SearchSignals) -> Cuts:
    """Return the cuts for a search: if the model cannot read the query, an answer needs a higher score.

    To such a model every text in that language is near, so that a question without an answer looks answered.
    """
    if is_read(search) or cuts.answerable is None:
        return cuts
    return replace(cuts, answerable=1 - UNREAD_DOUBT * (1 - cuts.answerable))


def stand_in(cosine: float, bm25_share: float) -> float:
    """Return 0.7 of the greater and 0.3 of the lesser, both clipped to [0, 1]: monotone in each."""
    low, high = sorted(min(1.0, max(0.0, value)) for value in (cosine, bm25_share))
    return LEADING * high + FOLLOWING * low


def probability(model: Logistic, features: Mapping[str, float]) -> float:
    """Return the model's probability for one set of features."""
    odds = model.intercept + math.fsum(contributions(model, features).values())
    raw = 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))
    return _straightened(raw, model.isotonic)


def contributions(model: Logistic, features: Mapping[str, float]) -> dict[str, float]:
    """Return what each feature adds to the log-odds."""
    rows = zip(model.features, model.coef, model.mean, model.scale, strict=True)
    return {name: coef * (features[name] - mean) / (scale or 1.0) for name, coef, mean, scale in rows}


def load(data: Json) -> Calibration:
    """Read a calibration from parsed JSON.

    Raises:
        BadValue: it is not of this form, or names features that this version does not compute.
    """
    try:
        if data["version"] != VERSION:
            raise _malformed(f"is of version {data['version']!r}, not {VERSION}")
        return Calibration(
            model=str(data["model"]),
            hit=_logistic(data["hit"], HIT_FEATURES.keys()),
            answer=_logistic(data["answer"], ANSWER_FEATURES.keys()),
            cuts=_cuts(data["cuts"]),
            other_scripts=_number(data.get("other_scripts", 1.0)),
            usual=None if data.get("usual") is None else _pair(data["usual"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise _malformed(f"is incomplete or malformed ({type(fault).__name__}: {fault})") from fault


def dump(calibration: Calibration) -> dict[str, Json]:
    """Return a calibration as JSON values; `load` reads it back."""
    cuts, usual = calibration.cuts, calibration.usual
    return {
        "version": VERSION,
        "model": calibration.model,
        "hit": _dumped(calibration.hit),
        "answer": _dumped(calibration.answer),
        "cuts": {
            "strong": cuts.strong if math.isfinite(cuts.strong) else None,
            "weak": cuts.weak,
            "hit": dict(cuts.hit),
            "answer": dict(cuts.answer),
            "answerable": cuts.answerable,
        },
        "other_scripts": calibration.other_scripts,
        "usual": usual and list(usual),
    }


def _dumped(model: Logistic) -> dict[str, Json]:
    return {
        "features": list(model.features),
        "coef": list(model.coef),
        "intercept": model.intercept,
        "mean": list(model.mean),
        "scale": list(model.scale),
        "isotonic": [list(point) for point in model.isotonic] or None,
    }


def _straightened(raw: float, table: tuple[tuple[float, float], ...]) -> float:
    if not table:
        return raw
    at = bisect_right(table, raw, key=lambda point: point[0])
    if at in (0, len(table)):
        return table[max(0, at - 1)][1]
    (x0, y0), (x1, y1) = table[at - 1], table[at]
    return y0 + (y1 - y0) * (raw - x0) / (x1 - x0)


def _logistic(data: Json, known: Collection[str]) -> Logistic:
    model = Logistic(
        features=tuple(map(str, data["features"])),
        coef=_numbers(data["coef"]),
        intercept=_number(data["intercept"]),
        mean=_numbers(data["mean"]),
        scale=_numbers(data["scale"]),
        isotonic=tuple((_number(x), _number(y)) for x, y in data.get("isotonic") or ()),
    )
    strange = [name for name in model.features if name not in known]
    if strange:
        raise _malformed(f"names features that this version does not compute: {', '.join(strange)}")
    if not len(model.features) == len(model.coef) == len(model.mean) == len(model.scale):
        raise _malformed("has not one coefficient, mean and scale a feature")
    if list(model.isotonic) != sorted(model.isotonic) or [y for _, y in model.isotonic] != sorted(
        y for _, y in model.isotonic
    ):
        raise _malformed("has an isotonic table that does not rise")
    return model


def _cuts(data: Json) -> Cuts:
    strong, answerable = data["strong"], data.get("answerable")
    return Cuts(
        strong=math.inf if strong is None else _number(strong),
        weak=_number(data["weak"]),
        hit=_caps(data.get("hit") or {}),
        answer=_caps(data.get("answer") or {}),
        answerable=None if answerable is None else _number(answerable),
    )


def _pair(data: Json) -> tuple[float, float]:
    mean, spread = _numbers(data)
    return mean, spread


def _caps(data: Json) -> dict[str, float]:
    strange = [name for name in data if name not in LABELS]
    if strange:
        raise _malformed(f"caps labels that do not exist: {', '.join(map(str, strange))}")
    return {name: _number(least) for name, least in data.items()}


def _numbers(values: Json) -> tuple[float, ...]:
    return tuple(map(_number, values))


def _number(value: Json) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise _malformed(f"holds {value!r} where a number belongs")
    return number


def _malformed(what: str) -> BadValue:
    return BadValue(f"the calibration {what}", hint="fit it anew with `kb calibrate`, or remove it")
