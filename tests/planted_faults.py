"""`python -m tests.planted_faults [WORDS]`: does the net catch faults? All or those with these words.

The net is the golden answers (a sample, on SQLite) and the floors of quality. Each fault is planted alone in
a copy of the sources, and the net runs until something fails. Faults are data: when code moves, rewrite the
table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
NET = ("tests/test_golden.py", "tests/test_quality_floor.py", "-k", "sqlite or near_the_top")


class Fault(NamedTuple):
    """A spoiled line: where it is, what it says and what it would say."""

    name: str
    file: str  # below src/concord
    old: str
    new: str


FAULTS = (
    Fault("a pool of nine", "ranking/blend.py", "POOL = 39", "POOL = 9"),
    Fault("the least weight of meaning", "ranking/blend.py", "LEAST_SEMANTIC = 0.1", "LEAST_SEMANTIC = 0.6"),
    Fault("no lead counts", "ranking/blend.py", "MOST_LEAD = 1.6, 1.5", "MOST_LEAD = 1.6, 0.0"),
    Fault("scattered words", "ranking/blend.py", "MOST_SCATTERED = 0.3", "MOST_SCATTERED = 1.0"),
    Fault("other languages", "ranking/blend.py", "MOSTLY_KNOWN = 0.42", "MOSTLY_KNOWN = 0.0"),
    Fault("literal gain", "ranking/blend.py", "LITERAL_GAIN = 3.0", "LITERAL_GAIN = 0.0"),
    Fault(
        "the legs are swapped",
        "ranking/blend.py",
        "Share((1 - weight) * words[chunk_id], weight * meaning[chunk_id])",
        "Share(weight * words[chunk_id], (1 - weight) * meaning[chunk_id])",
    ),
    Fault("other scripts", "ranking/blend.py", "weight * context.model_reads *", "weight *"),
    Fault("the sign of the margin", "ranking/blend.py", "- numbers.margin", "+ numbers.margin"),
    Fault("rare words", "ranking/context.py", "rare: float = 0.7", "rare: float = 0.0"),
    Fault("among code", "ranking/context.py", "code: float = 0.9", "code: float = 0.5"),
    Fault("the weight of z-scores", "ranking/context.py", "SEMANTIC_WEIGHT = 0.6", "SEMANTIC_WEIGHT = 0.2"),
    Fault("agreement bonus", "ranking/fuse.py", "AGREEMENT_BONUS = 0.2", "AGREEMENT_BONUS = 0.0"),
    Fault("who leads", "ranking/fuse.py", "FOLLOWING = 0.7, 0.3", "FOLLOWING = 0.3, 0.7"),
    Fault("the k of RRF", "settings.py", '"search.rrf_k",\n        60', '"search.rrf_k",\n        1'),
    Fault(
        "weights of conceptual queries",
        "ranking/plan.py",
        '"conceptual": Weights(semantic=0.8, lexical=0.2)',
        '"conceptual": Weights(semantic=0.2, lexical=0.8)',
    ),
    Fault("the sign of MMR", "ranking/diversify.py", "- (1 - trade) * nearest", "+ (1 - trade) * nearest"),
    Fault("what repeats", "ranking/diversify.py", "REPETITION = 0.5", "REPETITION = 0.1"),
    Fault(
        "the lambda of MMR",
        "settings.py",
        '"search.diversity",\n        0.7',
        '"search.diversity",\n        1.0',
    ),
    Fault("copies are not collapsed", "ranking/duplicates.py", "DUPLICATE = 0.95", "DUPLICATE = 1.01"),
    Fault("proximity", "ranking/proximity.py", "NEIGHBOURS = 0.2", "NEIGHBOURS = 0.0"),
    Fault("the whole query", "ranking/proximity.py", "VERBATIM = 1.6", "VERBATIM = 0.0"),
    Fault("rareness of words", "ranking/rarity.py", "COMMON = 0.3", "COMMON = 0.0"),
    Fault("smoothing", "ranking/rarity.py", "OTHERS = 20 ", "OTHERS = 2000 "),
    Fault("columns of BM25", "backends/columns.py", "WEIGHTS = (2.0,", "WEIGHTS = (1.0,"),
    Fault("feedback", "answering/retrieval.py", "FEEDBACK_STRENGTH = 0.6", "FEEDBACK_STRENGTH = 0.0"),
    Fault("hits of feedback", "answering/retrieval.py", "FEEDBACK_HITS = 3", "FEEDBACK_HITS = 10"),
    Fault("the floor", "settings.py", '"search.floor",\n        0.001', '"search.floor",\n        0.02'),
    Fault(
        "isotonic table", "ranking/calibrate.py", "return _straightened(raw, model.isotonic)", "return raw"
    ),
    Fault("the cap", "ranking/agreement.py", "return _capped(given, relevance, cuts.hit)", "return given"),
    Fault(
        "confidence of quotations", "ranking/calibrate.py", "VERBATIM_ANSWER = 0.85", "VERBATIM_ANSWER = 0.0"
    ),
    Fault(
        "stop words are kept",
        "text/stopwords.py",
        "    plain = [_plain(word) for word in words]\n    stop",
        "    plain = [_plain(word) + '.' for word in words]\n    stop",
    ),
    Fault(
        "phrases are their first word",
        "text/expression.py",
        "return phrase_match(token.text)",
        "return word_match(token.text.split()[0])",
    ),
    Fault("excluded words", "answering/passages.py", "if not query.excluded:", "if query is not None:"),
    Fault("filter by tags", "backends/sqlite/filters.py", "if filter.tags:", "if len(filter.tags) > 1:"),
    Fault("mentioned names", "ranking/entities.py", "ENTITY_BOOST = 0.1", "ENTITY_BOOST = 0.0"),
    Fault(
        "polite phrases",
        "ranking/politeness.py",
        "return _without_opening(_without_thanks(text))",
        "return text",
    ),
    Fault("releases", "ranking/named/versions.py", "UNDER_LIFT = 0.3", "UNDER_LIFT = 0.0"),
    Fault("entries of options", "ranking/named/options.py", "ENTRY_BOOST = 1.6", "ENTRY_BOOST = 0.0"),
    Fault("definitions", "ranking/named/entries.py", "DEFINITION_BOOST = 1.1", "DEFINITION_BOOST = 0.0"),
    Fault("named places", "answering/second_look.py", "POINTED_AT_BOOST = 3.0", "POINTED_AT_BOOST = 0.0"),
    Fault("missing things", "ranking/missing.py", "LITTLE, MOSTLY = 0.2, 0.4", "LITTLE, MOSTLY = 2.0, 4.0"),
    Fault("absent names", "ranking/missing.py", "MOSTLY_NAMED = 0.35, 0.55", "MOSTLY_NAMED = 3.5, 5.5"),
    Fault("similar words", "answering/cascade.py", "SIMILAR_WORDS = 5", "SIMILAR_WORDS = 1"),
    Fault("the first hit of an answer", "answering/judge.py", "FIRST_SHARE = 0.25", "FIRST_SHARE = 0.0"),
    Fault(
        "fewer candidates",
        "settings.py",
        '"search.candidates",\n        40',
        '"search.candidates",\n        10',
    ),
)


def main(words: Sequence[str]) -> int:
    """Plant the faults one after the other; the exit status is 1 if one is missed."""
    chosen = [fault for fault in FAULTS if all(word in fault.name for word in words)]
    caught = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        sources = Path(shutil.copytree(SOURCES, Path(name) / "src"))
        if first := failure(sources):
            print(f"the net fails without any fault: {first}")
            return 1
        for fault in chosen:
            first = planted(fault, sources)
            caught += first is not None
            print(f"{'caught' if first else 'MISSED'}  {fault.name}: {first or fault.file}", flush=True)
    print(f"{caught} of {len(chosen)} faults are caught")
    return 0 if caught == len(chosen) else 1


def planted(fault: Fault, sources: Path) -> str | None:
    """Return the first failure that a fault leads to, if it leads to one."""
    file = sources / "concord" / fault.file
    sound = file.read_text(encoding="utf-8")
    if sound.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.file} does not hold {fault.old!r} once")
    file.write_text(sound.replace(fault.old, fault.new), encoding="utf-8")
    try:
        return failure(sources)
    finally:
        file.write_text(sound, encoding="utf-8")


def failure(sources: Path) -> str | None:
    """Run the net over sources; return the test that fails first, or None."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", *NET]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8")
    if run.returncode == 0:
        return None
    lines = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0] if lines else (run.stdout + run.stderr)[-300:]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
