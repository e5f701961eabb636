"""Fits the calibration that ships for the configured embedding model, from the development sets.

    KB_BENCH_DATA=../shared/data python scripts/fit_calibration.py [SET]...

The sets are indexed and embedded once, in the cache directory; later runs only ask their queries.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.development import SETS, TRAIN, judged, measured, present

from concord.calibration import SHIPPED, save_calibration
from concord.fitting import fit
from concord.knowledge import KnowledgeBase
from concord.ranking.calibrate import model_key


def main(names: list[str]) -> None:
    """Fit and write the file."""
    chosen = present(names or SETS)
    with KnowledgeBase.open() as knowledge:
        embedder = knowledge.embedder
        if embedder is None:
            raise SystemExit("embed.provider is none: there is no model to calibrate")
        identity = embedder.identity
        sets = [judged(measured(knowledge, name, chosen, TRAIN.get(name))) for name in chosen]
    path = save_calibration(fit(sets, model_key(identity)), identity, SHIPPED)
    sys.stdout.write(f"wrote {path.name} from {len(sets)} sets\n")


if __name__ == "__main__":
    main(sys.argv[1:])
