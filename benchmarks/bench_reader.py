"""What reading takes, by the length of passages, how many there are, and threads.

    python -m benchmarks reader

The least of several times counts: on a busy machine the others tell of its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.measure import Row, cost_of, milliseconds, sized
from concord.search.reader_model import ReaderModel, Text

ROUNDS = sized(15, 1)
TOKENS, PASSAGES, THREADS = (128, 256), (1, 3), (1, 2)
QUESTION = "how long is an access token valid after a login?"
AROUND = 14  # tokens of the question and the special ones


def run() -> Iterator[Row]:
    """Yield elapsed and processor time by threads, tokens and passages."""
    for threads in THREADS:
        model = ReaderModel(threads)
        model.warm()
        for tokens in TOKENS:
            for passages in PASSAGES:
                texts = [Text("", "word " * (tokens - AROUND))] * passages
                model.read(QUESTION, texts)
                work = partial(model.read, QUESTION, texts)
                costs = [cost_of(work) for _ in range(ROUNDS)]
                elapsed = milliseconds(1000 * min(cost.elapsed for cost in costs))
                cpu = milliseconds(1000 * min(cost.cpu for cost in costs))
                what = f"{passages} × {tokens} tokens, {threads} thread{'s' * (threads > 1)}"
                yield Row(what, elapsed, f"CPU {cpu}")
