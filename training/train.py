"""Trains the reader further, from the one that ships.

    python -m training.train EXAMPLES OUT [--epochs 1] [--limit N] [--frozen 4] [--threads 2]

In bf16; AdamW with warm-up and linear decay. The same seed and examples give the same batches.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as functional

from training.evaluate import SHIPPED
from training.examples import Batch, batches, read, tokenizer
from training.model import Reader, started_from

BATCH, RATE, HEAD_RATE, WARM_UP, DECAY, LONGEST_STEP = 32, 6e-5, 5e-4, 0.04, 0.01, 1.0
HEADS = ("span", "mix", "ans")
SEED, EVERY = 11, 20  # batches between two lines


def main() -> None:
    """Train, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--frozen", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--start", type=Path, default=SHIPPED / "reader-int8.onnx")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(SEED)
    reader = started_from(given.start)
    reader.freeze(given.frozen)
    train(reader, given.examples, given.epochs, given.limit)
    torch.save(reader.state_dict(), given.out)
    print(f"wrote {given.out}")


def train(reader: Reader, path: Path, epochs: int, limit: int | None) -> None:
    """Train on the examples of a file, or on some of them."""
    examples, tokens = read(path), tokenizer(SHIPPED / "tokenizer.json")
    examples = random.Random(SEED).sample(examples, min(limit or len(examples), len(examples)))
    whole, seen, began = epochs * len(examples), 0, time.monotonic()
    optimizer = optimizer_of(reader)
    for epoch in range(epochs):
        for number, batch in enumerate(batches(examples, tokens, BATCH, SEED + epoch)):
            loss = step(reader, optimizer, batch, pace(seen / whole))
            seen += len(batch.label)
            if number % EVERY == 0:
                print(f"{seen} of {whole}: loss {loss:.3f}, {seen / (time.monotonic() - began):.1f} a second")


def optimizer_of(reader: Reader) -> torch.optim.AdamW:
    """Return an optimizer in which the heads, which know least, learn fastest."""
    named = [(name, one) for name, one in reader.named_parameters() if one.requires_grad]
    body = [one for name, one in named if not name.startswith(HEADS)]
    heads = [one for name, one in named if name.startswith(HEADS)]
    groups = [{"params": body, "peak": RATE}, {"params": heads, "peak": HEAD_RATE}]
    return torch.optim.AdamW(groups, lr=RATE, weight_decay=DECAY)


def pace(done: float) -> float:
    """Return what part of its peak a rate has, once so much of the training is done."""
    return max(0.01, min(done / WARM_UP, (1 - done) / (1 - WARM_UP)))


def step(reader: Reader, optimizer: torch.optim.AdamW, batch: Batch, share: float) -> float:
    """Learn from a batch, and return its loss."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * share
    reader.train()
    with torch.autocast("cpu", torch.bfloat16):
        start, end, answers = (made.float() for made in reader(batch.ids, batch.mask, batch.types))
    spans = functional.cross_entropy(start, batch.start, reduction="none")
    spans = (spans + functional.cross_entropy(end, batch.end, reduction="none")) / 2 * batch.has_span
    loss = spans.sum() / batch.has_span.sum().clamp(min=1.0)
    loss = loss + functional.binary_cross_entropy_with_logits(answers, batch.label)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(reader.parameters(), LONGEST_STEP)
    optimizer.step()
    return float(loss.detach())


if __name__ == "__main__":
    main()
