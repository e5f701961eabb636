"""How well a reader tells answers from near misses, and points at them.

    python -m training.evaluate ../shared/data/squad2-dev [--onnx FILE] [--torch FILE] [--limit N]

Of a set that has `unanswerable.jsonl` the articles that are kept from training: each question with the
paragraph that it was written about. AUROC of answering, F1 of spans where there is an answer.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import torch
from tokenizers import Tokenizer

from training.examples import Example, Row, batch_of, row_of, tokenizer
from training.model import Reader

SHIPPED = Path(__file__).parent.parent / "src/concord/data/reader"
LONGEST, SIZE = 30, 16
Network = Callable[[Any, Any, Any], Sequence[Any]]


class Question(NamedTuple):
    """A question with a passage, and the answers that people gave; none where it holds none."""

    example: Example
    answers: Sequence[str]


class Figures(NamedTuple):
    """What was measured."""

    questions: int
    auroc: float
    f1: float


def questions(folder: Path, limit: int | None = None) -> list[Question]:
    """Return the questions about articles that are kept from training, with the paragraphs they are about."""
    held = {row["_id"]: f"{row['title']}\n\n{row['text']}" for row in _rows(folder / "corpus.jsonl")}
    about = dict(_relevant(folder))
    own = [row for row in _rows(folder / "queries.jsonl") if row["kept_from_training"]]
    near = [row for row in _rows(folder / "unanswerable.jsonl") if row["kept_from_training"]]
    found = [Question(Example(q["text"], held[about[q["_id"]]], (), 1, "own"), q["answers"]) for q in own]
    found += [Question(Example(q["text"], held[q["near"]], (), 0, "near"), ()) for q in near]
    return random.Random(0).sample(found, min(limit or len(found), len(found)))


def measured(network: Network, asked: Sequence[Question], tokens: Tokenizer) -> Figures:
    """Return how a network does on some questions."""
    chance = random.Random(0)
    logits, scores = dict[int, float](), list[float]()
    for begin in range(0, len(asked), SIZE):
        some = asked[begin : begin + SIZE]
        rows = [row_of(one.example, tokens, chance) for one in some]
        known = [(one, row) for one, row in zip(some, rows, strict=True) if row]
        batch = batch_of([row for _, row in known])
        start, end, answers = (np.asarray(made) for made in network(batch.ids, batch.mask, batch.types))
        for at, (one, row) in enumerate(known):
            logits[begin + at] = float(answers[at])
            if one.example.label:
                said = _span(one.example.passage, row, start[at], end[at])
                scores.append(max(f1(said, answer) for answer in one.answers))
    sides = ([logits[at] for at, one in enumerate(asked) if one.example.label == side] for side in (1, 0))
    return Figures(len(asked), auroc(*sides), mean(scores or [0.0]))


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how likely a positive case scores above a negative one, ties counting half."""
    above = np.sign(np.subtract.outer(np.array(positive), np.array(negative)))
    return float((above.mean() + 1) / 2) if above.size else 0.5


def f1(said: str, meant: str) -> float:
    """Return how far the words of two answers agree, as SQuAD measures it."""
    ours, theirs = _words(said), _words(meant)
    return 2 * (ours & theirs).total() / max(1, ours.total() + theirs.total())


def of_torch(reader: Reader) -> Network:
    """Return a network that runs in torch."""

    def run(*given: torch.Tensor) -> Sequence[Any]:
        with torch.no_grad():
            return [made.float().numpy() for made in reader.eval()(*given)]

    return run


def of_onnx(path: Path) -> Network:
    """Return a network that runs as the product runs it."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = ("input_ids", "attention_mask", "token_type_ids")

    def run(*given: torch.Tensor) -> Sequence[Any]:
        feed = dict(zip(names, (one.numpy() for one in given), strict=True))
        return list(session.run(["start", "end", "answerable"], feed))

    return run


def _span(passage: str, row: Row, start: np.ndarray, end: np.ndarray) -> str:
    inside = slice(row.first, row.first + len(row.offsets))
    allowed = np.triu(np.tri(len(row.offsets), k=LONGEST - 1, dtype=bool))
    sums = np.where(allowed, start[inside, None] + end[None, inside], -1e9)
    first, last = divmod(int(sums.argmax()), len(row.offsets))
    return passage[row.offsets[first][0] : row.offsets[last][1]]


def _words(text: str) -> Counter[str]:
    plain = re.sub(r"[^\w\s]", "", text.lower())
    return Counter(re.sub(r"\b(?:a|an|the)\b", " ", plain).split())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _relevant(folder: Path) -> Iterator[tuple[str, str]]:
    for path in (folder / "qrels").glob("*.tsv"):
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            query, document, _ = line.split("\t")
            yield query, document


def main() -> None:
    """Measure a network, by default the one that ships."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--onnx", type=Path, default=SHIPPED / "reader-int8.onnx")
    parser.add_argument("--torch", type=Path)
    parser.add_argument("--limit", type=int)
    given = parser.parse_args()
    network = of_onnx(given.onnx)
    if given.torch:
        reader = Reader()
        reader.load_state_dict(torch.load(given.torch))
        network = of_torch(reader)
    tokens = tokenizer(SHIPPED / "tokenizer.json")
    found = measured(network, questions(given.folder, given.limit), tokens)
    print(f"{found.questions} questions: AUROC {found.auroc:.3f}, F1 of spans {found.f1:.3f}")


if __name__ == "__main__":
    main()
