"""Examples: a question, a passage, whether it answers and with which words; and batches of them as tokens.

A file of examples has one JSON object a line: `q`, `ctx`, `label` (0 or 1), `spans` ([start, end] of answers
in `ctx`, empty where not known) and `src`, where it comes from.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer

WINDOW, QUESTION = 256, 48  # tokens, as the product has them
CLS, SEP = 101, 102
CHARACTERS = (600, 1100)  # of a passage: a window of that many around the answer, the longer one in LONG
LONG = 0.3
POOL = 4096  # examples that are sorted by length together, so that little is padding


class Example(NamedTuple):
    """One line of a file."""

    question: str
    passage: str
    spans: Sequence[Sequence[int]]
    label: int
    source: str


class Row(NamedTuple):
    """An example as tokens; `start` and `end` are 0 where no word answers, None where it is not known."""

    ids: list[int]
    first: int  # where the passage begins
    offsets: list[tuple[int, int]]
    start: int | None
    end: int | None
    label: int


class Batch(NamedTuple):
    """Rows of one length."""

    ids: torch.Tensor
    mask: torch.Tensor
    types: torch.Tensor
    start: torch.Tensor
    end: torch.Tensor
    has_span: torch.Tensor
    label: torch.Tensor


def read(path: Path) -> list[Example]:
    """Return the examples of a file, which may be compressed."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        lines = map(json.loads, file)
        return [Example(row["q"], row["ctx"], row["spans"], row["label"], row["src"]) for row in lines]


def tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer that the product uses."""
    loaded: Tokenizer = Tokenizer.from_file(str(path))
    loaded.no_padding()
    loaded.no_truncation()
    return loaded


def row_of(example: Example, tokens: Tokenizer, chance: random.Random) -> Row | None:
    """Return an example as tokens, long passages as a window; None where the window lost the answer."""
    passage, spans = _window(example, chance)
    asked = tokens.encode(example.question, add_special_tokens=False).ids[:QUESTION]
    body = tokens.encode(passage, add_special_tokens=False)
    room, first = WINDOW - len(asked) - 3, len(asked) + 2
    ids, offsets = body.ids[:room], body.offsets[:room]
    start, end = _place(spans, offsets, first) if spans else (None, None)
    if example.label and example.spans and start is None:
        return None
    if not example.label:
        start = end = 0
    return Row([CLS, *asked, SEP, *ids, SEP], first, offsets, start, end, example.label)


def _window(example: Example, chance: random.Random) -> tuple[str, list[tuple[int, int]]]:
    passage, width = example.passage, CHARACTERS[chance.random() < LONG]
    spans = [(a, b) for a, b in example.spans]
    if len(passage) <= width or (example.label and not spans):
        return passage, spans
    middle = chance.choice(spans)[0] if spans else chance.randrange(len(passage))
    begin = max(0, min(middle - chance.randrange(width // 10, width * 7 // 10), len(passage) - width))
    begin = passage.find(" ", begin) + 1 if begin else 0
    inside = [(a - begin, b - begin) for a, b in spans if a >= begin and b <= begin + width]
    return passage[begin : begin + width], inside


def _place(
    spans: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]], first: int
) -> tuple[int | None, int | None]:
    for begin, end in spans:
        inside = [at for at, (a, b) in enumerate(offsets) if b > begin and a < end]
        if inside and offsets[-1][1] >= end:
            return first + inside[0], first + inside[-1]
    return None, None


def batches(examples: Sequence[Example], tokens: Tokenizer, size: int, seed: int) -> Iterator[Batch]:
    """Yield all examples in batches of like length, in an order that the seed decides."""
    chance = random.Random(seed)
    order = chance.sample(range(len(examples)), len(examples))
    for begin in range(0, len(order), POOL):
        rows = [row_of(examples[at], tokens, chance) for at in order[begin : begin + POOL]]
        known = sorted(filter(None, rows), key=lambda row: len(row.ids))
        groups = [known[at : at + size] for at in range(0, len(known), size)]
        chance.shuffle(groups)
        yield from map(batch_of, groups)


def batch_of(rows: Sequence[Row]) -> Batch:
    """Return rows as tensors."""
    length = max(len(row.ids) for row in rows)
    ids, mask, types = (torch.zeros((len(rows), length), dtype=torch.long) for _ in range(3))
    for at, row in enumerate(rows):
        ids[at, : len(row.ids)] = torch.tensor(row.ids)
        mask[at, : len(row.ids)] = 1
        types[at, row.first : len(row.ids)] = 1
    start, end = (torch.tensor([value or 0 for value in values]) for values in _ends(rows))
    has_span = torch.tensor([float(row.start is not None) for row in rows])
    return Batch(ids, mask, types, start, end, has_span, torch.tensor([float(row.label) for row in rows]))


def _ends(rows: Sequence[Row]) -> tuple[list[int | None], list[int | None]]:
    return [row.start for row in rows], [row.end for row in rows]
