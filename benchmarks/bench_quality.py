"""Search quality and confidence on the development sets, beside what they are to be compared with.

    KB_BENCH_DATA=../shared/data python -m benchmarks quality

Rankings are those of the program as it is. Confidence is measured leave-one-set-out: each set is judged by a
calibration that was fitted to the other sets alone. Sets that are not there are named and left out, and
KB_BENCH_SETS (names, separated by commas) chooses among them; the first run embeds their documents. An error
of calibration stands beside the one that chance would give true probabilities; hits of one query are not
independent, so that theirs is the least it can be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import mean

from benchmarks.development import SETS, TRAIN, folder, judged, measured, opened, present, strangers
from benchmarks.measure import Row, absent, at_least
from concord.cli.output import table
from concord.quality.evaluate import MODES, Evaluation
from concord.quality.fit import JudgedSet, fit, revised
from concord.quality.metrics import (
    Answerability,
    LabelPrecision,
    Outcome,
    Promises,
    Reliability,
    answerability,
    promises,
)
from concord.search.calibration import ReaderCuts

LEGS = ("bm25", "semantic")
# nDCG@10 of auto at 9482f1c: KB_BENCH_QUERIES=600 python -m benchmarks quality
TODAY = {
    "scifact": 0.7608,
    "cranfield": 0.4547,
    "cosqa-dev": 0.6374,
    "k8s-anchor": 0.7110,
    "datatalks-faq": 0.9179,
    "xquad-en": 0.9821,
    "xquad-de": 0.9495,
    "xquad-zh": 0.9623,
}
LOST = 0.002  # of a set's figure, at most; of their mean nothing
LEAST_SHARE, AVERAGE_SHARE = 0.99, 1.06  # of the better single leg
ECE, AUROC, FOREIGN_REFUSED, OWN_REFUSED, TOP_THREE = 0.05, 0.95, 0.90, 0.05, 0.85
FEWEST_SETS = 3  # to fit on what is left when one is left out
LEAST_CASES = 50  # of a label, for its precision to be compared with others'


def run() -> Iterator[Row]:
    """Print both tables and yield the figures that were promised."""
    wanted = os.environ.get("KB_BENCH_SETS", ",".join(SETS)).split(",")
    chosen = present(wanted)
    if not chosen:
        yield absent("search quality", f"no development set in {folder()}")
        return
    with opened() as knowledge:
        tested = {name: measured(knowledge, name, chosen) for name in chosen}
        train = {
            name: measured(knowledge, name, chosen, TRAIN[name]) if name in TRAIN else tested[name]
            for name in chosen
        }
    yield from rankings(tested)
    if len(chosen) >= FEWEST_SETS:
        yield from confidence(
            {name: judged(one) for name, one in tested.items()},
            {name: judged(one) for name, one in train.items()},
        )


def rankings(tested: Mapping[str, Evaluation]) -> Iterator[Row]:
    """Print nDCG@10 of every mode; yield how `auto` compares with the better single leg."""
    found = {name: {mode: one.measures[mode]["nDCG@10"] for mode in MODES} for name, one in tested.items()}
    better = {name: max(values[leg] for leg in LEGS) for name, values in found.items()}
    share = {name: values["auto"] / better[name] for name, values in found.items()}
    rows = [
        (
            name,
            f"{one.queries:,}",
            *(f"{found[name][mode]:.4f}" for mode in MODES),
            f"{share[name]:.3f}",
            f"{one.latency_ms['p50']:.1f}",
            f"{one.latency_ms['p95']:.1f}",
        )
        for name, one in tested.items()
    ]
    heads = ("nDCG@10 of", "queries", *MODES, "auto ÷ better leg", "p50 ms", "p95 ms")
    print(table(heads, rows), flush=True)
    for name in tested:
        auto = found[name]["auto"]
        yield at_least(f"{name}: auto", f"{auto:.4f}", f"{better[name]:.4f}", share[name], LEAST_SHARE)
        if name in TODAY:
            yield _kept_up(f"{name}: auto", auto, TODAY[name], LOST)
    known = [name for name in tested if name in TODAY]
    if known:
        means = mean(found[name]["auto"] for name in known), mean(TODAY[name] for name in known)
        yield _kept_up("mean of the sets: auto", *means, 0.0)
    yield at_least("average of the sets", "auto", "better leg", mean(share.values()), AVERAGE_SHARE)


def _kept_up(what: str, auto: float, today: float, lost: float) -> Row:
    least = round(today - lost, 4)
    return Row(what, f"{auto:.4f}", f"{today:.4f}", target=f"≥ {least:g}", is_met=round(auto, 4) >= least)


def confidence(tested: Mapping[str, JudgedSet], train: Mapping[str, JudgedSet]) -> Iterator[Row]:
    """Print and yield how confidence holds on each set under a calibration fitted to the others."""
    kept: dict[str, Promises] = {}
    known: dict[str, Answerability] = {}
    everything: list[Outcome] = []
    for name, held in tested.items():
        others = [train[other] for other in train if other != name]
        fitted = fit(others, "left out", ReaderCuts())
        own, foreign = revised(held.own, fitted), revised(held.foreign, fitted)
        kept[name] = promises(own)
        known[name] = answerability(
            [question.verdict for question in own if any(question.relevant)],
            [question.verdict for question in foreign],
        )
        everything += own
    kept["all together"] = promises(everything)
    _print_promises(kept)
    _print_strange(tested, train)
    for of in ("hit", "answer"):
        rows = [(name, _labels(getattr(one, f"{of}_labels"))) for name, one in kept.items()]
        print("\n" + table((f"{of}s by label, left out", "precision (n)"), rows), flush=True)
    print()
    for name, one in kept.items():
        yield from _reliability(name, one)
    for name, answers in known.items():
        yield from _answerability(name, answers)


def _print_promises(kept: Mapping[str, Promises]) -> None:
    rows = [(name, *_promises(one.confidence_score), *_promises(one.score)) for name, one in kept.items()]
    heads = ("left out", "answers promised", "came true", "hits promised", "came true")
    print("\n" + table(heads, rows), flush=True)


def _print_strange(tested: Mapping[str, JudgedSet], train: Mapping[str, JudgedSet]) -> None:
    """Print the errors on sets whose translations are left out of the fit, too: ground of a stranger kind."""
    rows = []
    for name, held in tested.items():
        others = [path.name for path in strangers(name, [*train])]
        if FEWEST_SETS <= len(others) < len(train) - 1:
            sets = [train[other] for other in others]
            kept = promises(revised(held.own, fit(sets, "left out", ReaderCuts())))
            rows.append((name, f"{kept.confidence_score.ece:.3f}", f"{kept.score.ece:.3f}"))
    if rows:
        heads = ("left out with its kin", "ECE of confidence_score", "ECE of score")
        print("\n" + table(heads, rows), flush=True)


def _reliability(name: str, kept: Promises) -> Iterator[Row]:
    for what, one in (("confidence_score", kept.confidence_score), ("score", kept.score)):
        beside = f"n {one.n:,}, {one.ece_by_chance:.3f} by chance"
        yield Row(
            f"{name}: ECE of {what}", f"{one.ece:.3f}", beside, target=f"≤ {ECE:g}", is_met=one.ece <= ECE
        )
    for what, labels in (("hits", kept.hit_labels), ("answers", kept.answer_labels)):
        is_falling = precision_falls(labels)
        yield Row(f"{name}: labels of {what}", "fall" if is_falling else "do not fall", is_met=is_falling)
    best = next((label for label in kept.answer_labels if label.label == "very_high"), None)
    if best:
        yield _at_least(f"{name}: P(relevant in top 3 | very_high)", best.precision, best.n, TOP_THREE)


def precision_falls(labels: Sequence[LabelPrecision]) -> bool:
    """Whether precision never rises from a label to the next lower one, of those with enough cases."""
    known = [label.precision for label in labels if label.n >= LEAST_CASES]
    return all(above >= below for above, below in pairwise(known))


def _answerability(name: str, found: Answerability) -> Iterator[Row]:
    yield _at_least(f"{name}: AUROC, own or foreign", found.auroc, found.own + found.foreign, AUROC)
    yield _at_least(f"{name}: foreign refused", found.foreign_flagged, found.foreign, FOREIGN_REFUSED)
    yield _at_most(f"{name}: own answered refused", found.own_flagged, found.own, OWN_REFUSED)


def _at_most(what: str, value: float, n: int, limit: float) -> Row:
    return Row(what, f"{value:.3f}", f"n {n:,}", target=f"≤ {limit:g}", is_met=value <= limit)


def _at_least(what: str, value: float, n: int, limit: float) -> Row:
    return Row(what, f"{value:.3f}", f"n {n:,}", target=f"≥ {limit:g}", is_met=value >= limit)


def _promises(found: Reliability) -> tuple[str, str]:
    promised = sum(part.n * part.promised for part in found.bins) / max(1, found.n)
    true = sum(part.n * part.true for part in found.bins) / max(1, found.n)
    return f"{promised:.3f}", f"{true:.3f}"


def _labels(found: Sequence[LabelPrecision]) -> str:
    return ", ".join(f"{hit.label} {hit.precision:.2f} ({hit.n:,})" for hit in found)
