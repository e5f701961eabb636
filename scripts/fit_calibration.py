"""Fits the calibration that ships for the configured embedding model, from the development sets.

    KB_BENCH_DATA=../shared/data python scripts/fit_calibration.py [SET]...

The sets are indexed and embedded once, in the cache directory; later runs only ask their queries. First comes
how far the model reads scripts other than Latin, for that changes the order of hits; then confidence.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import mean

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.development import QUERIES, SETS, TRAIN, folder, judged, measured, opened, present

from concord.answering.request_checks import search_options
from concord.answering.retrieve import retrieve
from concord.answering.tools import SearchTools
from concord.knowledge import KnowledgeBase
from concord.quality.calibration import SHIPPED, save_calibration, shipped_calibration
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import UNHURRIED_MS, Owners, Run, measure
from concord.quality.fitting import fit
from concord.ranking.agreement import Cuts
from concord.ranking.blend import blend
from concord.ranking.calibrate import Calibration, Logistic, model_key
from concord.text.tokens import latin_share
from concord.types import Identity, Request, silent

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
NOTHING = 0.003  # of nDCG@10: what helps that little in one script may harm in another, as it did in Korean
EMPTY = Logistic((), (), 0.0, (), ())


def main(names: list[str]) -> None:
    """Fit and write the file."""
    chosen = present(names or SETS)
    with opened() as knowledge:
        embedder = knowledge.embedder
        if embedder is None:
            raise SystemExit("embed.provider is none: there is no model to calibrate")
        prior = _with_scripts(knowledge, embedder.identity, chosen)
        sets = [judged(measured(knowledge, name, chosen, TRAIN.get(name), prior)) for name in chosen]
    fitted = replace(fit(sets, prior.model), other_scripts=prior.other_scripts)
    path = save_calibration(fitted, embedder.identity, SHIPPED)
    sys.stdout.write(f"wrote {path.name} from {len(sets)} sets\n")


def _with_scripts(knowledge: KnowledgeBase, identity: Identity, names: list[str]) -> Calibration:
    """Return the calibration there is, with how far the model reads scripts other than Latin fitted anew."""
    known = shipped_calibration(identity) or Calibration(model_key(identity), EMPTY, EMPTY, Cuts())
    collections = [read_collection(folder() / name).sampled(QUERIES) for name in names]
    strange = [one for one in collections if mean(map(latin_share, one.judged.values())) < 0.5]
    if not strange:
        return known
    found = [_by_weight(knowledge, collection) for collection in strange]
    gained = {weight: mean(one[weight] for one in found) for weight in WEIGHTS}
    enough = max(gained.values()) - NOTHING
    return replace(known, other_scripts=min(weight for weight in WEIGHTS if gained[weight] >= enough))


def _by_weight(knowledge: KnowledgeBase, collection: Collection) -> dict[float, float]:
    """Return nDCG@10 for every weight that meaning may have among strange scripts."""
    with knowledge.measuring.indexed_apart(collection, silent) as tools:
        runs = _runs(collection, tools)
    return {weight: measure(collection.qrels, run)["nDCG@10"] for weight, run in runs.items()}


def _runs(collection: Collection, tools: SearchTools) -> dict[float, Run]:
    owners, sources = Owners(tools), tools.store.catalog.sources()
    runs: dict[float, Run] = {weight: {} for weight in WEIGHTS}
    for query_id, text in collection.judged.items():
        request = Request(text, mode="auto", deadline_ms=UNHURRIED_MS)
        found = retrieve(request, search_options(request, tools.settings), tools, sources)
        for weight in WEIGHTS:
            ranked = blend(found.ballots, replace(found.context, model_reads=weight))
            runs[weight][query_id] = owners.documents([one.chunk_id for one in ranked])
    return runs


if __name__ == "__main__":
    main(sys.argv[1:])
