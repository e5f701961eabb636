"""Embedding through `add`, everything included, beside onnxruntime alone on the same texts.

The baseline is handed what we work out: texts cut into chunks, tokenised, sorted by length, padded, in
batches of the best size. Both run the same file with the same options and threads, in one process, in turn.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bare import BareModel
from benchmarks.measure import Cost, Row, at_least, cost_of, cpu_ms, elapsed_ms, in_turn, sized
from benchmarks.synthetic import write_markdown
from concord.embed.bundled import BundledEmbedder
from concord.knowledge import KnowledgeBase
from concord.text.document import embeddable_text

FILES = sized(8, 1)
ROUNDS = sized(5, 1)
LEAST = 0.85


def run() -> Iterator[Row]:
    """Embed the same small tree by both, round by round."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        write_markdown(tree, FILES)
        adding = Adding(tree, Path(folder, "store"))
        texts = adding.texts()
        bare = BareModel()
        inputs = bare.tokenised(texts)
        costs = in_turn(
            ROUNDS,
            {"ours": adding.cost, "bare": lambda: cost_of(lambda: [bare.run(*batch) for batch in inputs])},
        )
    for clock, name in ((cpu_ms, "cpu s"), (elapsed_ms, "s")):
        ours, theirs = (len(texts) / clock(costs[which]) * 1000 for which in ("ours", "bare"))
        row = at_least(
            f"embedding through `kb add`, {len(texts)} chunks",
            f"{ours:.1f} chunks/{name}",
            f"{theirs:.1f} chunks/{name}",
            ours / theirs,
            LEAST,
        )
        yield row if clock is cpu_ms else row._replace(target="", is_met=None)


class Adding:
    """Adds the tree to a new store each time, with a model that is warm."""

    def __init__(self, tree: Path, store: Path) -> None:
        self._tree = tree
        self._store = store

    def cost(self) -> Cost:
        """Add and return what it took; opening, loading the model and closing are not counted."""
        shutil.rmtree(self._store, ignore_errors=True)
        with KnowledgeBase.open(store__url=f"sqlite://{self._store}") as kb:
            embedder = kb.embedder
            assert embedder is not None
            embedder.warm()
            embedder.token_starts("")
            return cost_of(lambda: kb.add(self._tree))

    def texts(self) -> list[str]:
        """Return what is embedded for the tree."""
        with KnowledgeBase.open(store__url=f"sqlite://{self._store}") as kb:
            kb.add(self._tree, embed=False)
            waiting = kb.store.models.index(BundledEmbedder.identity).pending(0, 1 << 20)
        return [embeddable_text(pending.title, pending.heading, pending.text) for pending in waiting]
