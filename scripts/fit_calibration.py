"""Fits the calibration that ships for the configured embedding model, from the development sets.

    KB_BENCH_DATA=../shared/data python scripts/fit_calibration.py [--reader] [SET]...

With --reader only what is judged by the reader as well is fitted anew, and all else stays as it ships.
The sets are indexed and embedded once, in the cache directory; later runs only ask their queries. First comes
how far the model reads scripts other than Latin, for that changes the order of hits; then confidence. What is
printed was measured leave-one-set-out: each set is judged by a fit to the others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.development import BY_HAND, QUERIES, SETS, folder, opened, present
from benchmarks.judging import believing, judged_sets, left_out_table, reader_cuts

from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import UNHURRIED_MS, Owners
from concord.quality.fit import fit
from concord.quality.metrics import Run, measure
from concord.search.calibration import (
    READ,
    SHIPPED,
    Calibration,
    Cuts,
    ReaderCuts,
    model_key,
    save_calibration,
    shipped_calibration,
)
from concord.search.deadline import Deadline
from concord.search.fuse import fuse
from concord.search.legs import Tools
from concord.search.request import options_of
from concord.search.retrieve import retrieve
from concord.search.scores import complete_scores
from concord.search.understand import understand
from concord.text.tokens import latin_share
from concord.types import Identity, Request, silent

READER = "--reader"
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
NOTHING = 0.003  # of nDCG@10: what helps that little in one script may harm in another, as it did in Korean


def main(names: Sequence[str]) -> None:
    """Fit and write the file, and print how well it holds on sets that it does not know."""
    if "--help" in names:
        raise SystemExit(__doc__)
    is_partial = READER in names
    chosen = present([name for name in names if name != READER] or (*SETS, BY_HAND))
    if not chosen:
        raise SystemExit("there is no set to fit to, so the calibration stays as it is")
    with opened() as knowledge:
        embedder = knowledge.embedder
        if embedder is None:
            raise SystemExit("embed.provider is none: there is no model to calibrate")
        known = shipped_calibration(embedder.identity) if is_partial else None
        prior = known or _with_scripts(knowledge, embedder.identity, chosen)
        prior = replace(prior, reader=ReaderCuts())  # so that all is read
        sets = [held for name in chosen for held in judged_sets(knowledge, name, chosen, prior)]
    cuts = reader_cuts(sets)
    sets = believing(sets, cuts)
    fitted = replace(fit(sets, prior.model, cuts), other_scripts=prior.other_scripts)
    if known:
        fitted = with_reader_of(known, fitted)
    sys.stdout.write(left_out_table(sets, prior.model, cuts) + "\n")
    path = save_calibration(fitted, embedder.identity, Path(SHIPPED))
    sys.stdout.write(f"wrote {path.name} from {len(chosen)} sets\n")


def with_reader_of(known: Calibration, fitted: Calibration) -> Calibration:
    """Return a calibration with the heads of another one that the reader is heard by."""
    heads = {name: heads for name, heads in fitted.heads.items() if READ in name}
    return replace(known, heads={**known.heads, **heads}, reader=fitted.reader)


def _with_scripts(knowledge: KnowledgeBase, identity: Identity, names: Sequence[str]) -> Calibration:
    """Return the calibration there is, with how far the model reads scripts other than Latin fitted anew."""
    known = shipped_calibration(identity) or Calibration(model_key(identity), {}, Cuts())
    collections = [read_collection(folder() / name).sampled(QUERIES) for name in names]
    strange = [held for held in collections if mean(map(latin_share, held.judged.values())) < 0.5]
    if not strange:
        return known
    by_set = [_by_weight(knowledge, collection) for collection in strange]
    gained = {weight: mean(figures[weight] for figures in by_set) for weight in WEIGHTS}
    enough = max(gained.values()) - NOTHING
    return replace(known, other_scripts=min(weight for weight in WEIGHTS if gained[weight] >= enough))


def _by_weight(knowledge: KnowledgeBase, collection: Collection) -> dict[float, float]:
    """Return nDCG@10 for every weight that meaning may have among strange scripts."""
    with knowledge.measuring.indexed_apart(collection, silent) as tools:
        runs = _runs(collection, tools)
    return {weight: measure(collection.qrels, run)["nDCG@10"] for weight, run in runs.items()}


def _runs(collection: Collection, tools: Tools) -> dict[float, Run]:
    owners, sources = Owners(tools), tools.store.catalog.snapshot().sources
    runs: dict[float, Run] = {weight: {} for weight in WEIGHTS}
    for query_id, text in collection.judged.items():
        request, deadline = Request(text, mode="auto", deadline_ms=UNHURRIED_MS), Deadline(UNHURRIED_MS)
        options = options_of(request, tools.settings)
        query = understand(request, options, tools, sources)
        retrieved = retrieve(query, options.mode, tools, deadline)
        candidates = complete_scores(retrieved, query, tools, deadline)
        for weight in WEIGHTS:
            context = replace(candidates.context, model_reads=weight)
            ranked = fuse(options.fusion, replace(candidates, context=context))
            runs[weight][query_id] = owners.documents([row.chunk_id for row in ranked])
    return runs


if __name__ == "__main__":
    main(sys.argv[1:])
