"""Search quality and confidence on the development sets, beside what they are to be compared with.

    KB_BENCH_DATA=../shared/data python -m benchmarks.bench_quality [SET]...

Rankings are those of the program as it is. Confidence is measured leave-one-set-out: each set is judged by a
calibration that was fitted to the other sets alone. Sets that are not there are named and left out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import mean

from benchmarks.development import SETS, TRAIN, judged, measured, present
from concord.cli.output import table
from concord.evaluate import MODES, Evaluation, Outcome
from concord.fitting import JudgedSet, fit, revised
from concord.knowledge import KnowledgeBase
from concord.reliability import LabelPrecision, Trust, answerability, falls, trust

LEGS = ("bm25", "semantic")


def main(names: list[str]) -> None:
    chosen = present(names or SETS)
    with KnowledgeBase.open() as knowledge:
        tested = {name: measured(knowledge, name, chosen) for name in chosen}
        train = {
            name: measured(knowledge, name, chosen, TRAIN[name]) if name in TRAIN else tested[name]
            for name in chosen
        }
    print(rankings(list(tested.values())))
    if len(chosen) >= 3:
        print(confidence({n: judged(e) for n, e in tested.items()}, {n: judged(e) for n, e in train.items()}))


def rankings(evaluations: Sequence[Evaluation]) -> str:
    """Return nDCG@10 of every mode, and of `auto` as a share of the better single leg."""
    rows, shares = [], []
    for one in evaluations:
        found = {mode: one.measures[mode]["nDCG@10"] for mode in MODES}
        shares.append(found["auto"] / max(found[leg] for leg in LEGS))
        rows.append(
            (
                one.name,
                f"{one.queries:,}",
                *(f"{found[mode]:.4f}" for mode in MODES),
                f"{shares[-1]:.3f}",
                f"{one.latency_ms['p50']:.1f}",
                f"{one.latency_ms['p95']:.1f}",
            )
        )
    heads = ("set", "queries", *MODES, "auto ÷ better leg", "p50 ms", "p95 ms")
    least, average = min(shares), mean(shares)
    told = f"auto ÷ better leg: least {least:.3f} (to reach 0.99), average {average:.3f} (to reach 1.06)"
    return f"nDCG@10\n{table(heads, rows)}\n{told}\n"


def confidence(tested: dict[str, JudgedSet], train: dict[str, JudgedSet]) -> str:
    """Return how confidence holds on each set under a calibration fitted to the others."""
    rows, labels, everything = [], [], []
    for name, held in tested.items():
        fitted = fit([train[other] for other in train if other != name], "left out")
        own, foreign = revised(held.own, fitted), revised(held.foreign, fitted)
        kept = _trust(own)
        everything += own
        rows.append((name, *_row(kept, own, foreign)))
        labels.append((name, *_labels(kept.hit_labels), *_labels(kept.answer_labels)))
    heads = (
        "left out",
        "ECE confidence_score",
        "n",
        "ECE score",
        "hits",
        "P(top 3 | very_high)",
        "n",
        "AUROC",
        "foreign refused",
        "own refused",
        "labels fall",
    )
    pooled = _trust(everything)
    told = (
        f"all sets together: ECE of confidence_score {pooled.confidence_score.ece:.3f}, of score "
        f"{pooled.score.ece:.3f} (to reach 0.05)\n"
        f"hits by label: {', '.join(_labels(pooled.hit_labels))}\n"
        f"answers by label, right in their top 3: {', '.join(_labels(pooled.answer_labels))}\n"
    )
    per_set = "\n".join(": ".join((row[0], ", ".join(row[1:]))) for row in labels)
    return (
        f"confidence, leave-one-set-out\n{table(heads, rows)}\n{told}\nlabels, hits then answers\n{per_set}\n"
    )


def _row(kept: Trust, own: Sequence[Outcome], foreign: Sequence[Outcome]) -> tuple[str, ...]:
    answered = [one.judgement for one in own if any(one.relevant)]
    known = answerability(answered, [one.judgement for one in foreign])
    best = next((one for one in kept.answer_labels if one.label == "very_high"), None)
    return (
        f"{kept.confidence_score.ece:.3f}",
        f"{kept.confidence_score.n:,}",
        f"{kept.score.ece:.3f}",
        f"{kept.score.n:,}",
        f"{best.precision:.3f}" if best else "-",
        f"{best.n:,}" if best else "0",
        f"{known.auroc:.3f}",
        f"{known.foreign_flagged:.1%}",
        f"{known.own_flagged:.1%}",
        "yes" if falls(kept.hit_labels) and falls(kept.answer_labels) else "no",
    )


def _labels(found: Sequence[LabelPrecision]) -> list[str]:
    return [f"{one.label} {one.precision:.2f} (n {one.n:,})" for one in found]


def _trust(outcomes: Sequence[Outcome]) -> Trust:
    return trust([(one.judgement, one.relevant) for one in outcomes])


if __name__ == "__main__":
    main(sys.argv[1:])
