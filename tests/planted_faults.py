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
    Fault("a pool of nine", "search/blend.py", "POOL = 39", "POOL = 9"),
    Fault("the least weight of meaning", "search/blend.py", "LEAST_SEMANTIC = 0.1", "LEAST_SEMANTIC = 0.6"),
    Fault("no lead counts", "search/blend.py", "MOST_LEAD = 1.6, 1.5", "MOST_LEAD = 1.6, 0.0"),
    Fault("scattered words", "search/blend.py", "MOST_SCATTERED = 0.3", "MOST_SCATTERED = 1.0"),
    Fault("other languages", "search/blend.py", "MOSTLY_KNOWN = 0.42", "MOSTLY_KNOWN = 0.0"),
    Fault("gain of quotations", "search/blend.py", "VERBATIM_GAIN = 3.0", "VERBATIM_GAIN = 0.0"),
    Fault("gain of names", "search/blend.py", "NAME_GAIN = 12.0", "NAME_GAIN = 0.0"),
    Fault(
        "the legs are swapped",
        "search/blend.py",
        "Contribution((1 - weight) * lexical, weight * semantic, gain=gain)",
        "Contribution(weight * lexical, (1 - weight) * semantic, gain=gain)",
    ),
    Fault("other scripts", "search/blend.py", "weight *= context.model_reads", "weight *= 1.0"),
    Fault("the sign of the margin", "search/blend.py", "FLAT - MARGIN", "FLAT + MARGIN"),
    Fault("rare words", "search/blend.py", "RARE = 0.7", "RARE = 0.0"),
    Fault("among code", "search/blend.py", "CODE = 0.9", "CODE = 0.5"),
    Fault("rareness of words", "search/blend.py", "COMMON = 0.3", "COMMON = 0.0"),
    Fault("smoothing", "search/blend.py", "SMOOTHING = 20 ", "SMOOTHING = 2000 "),
    Fault("few candidates", "search/blend.py", "FEW = 20 ", "FEW = 200 "),
    Fault("agreement bonus", "search/fuse.py", "AGREEMENT_BONUS = 0.2", "AGREEMENT_BONUS = 0.0"),
    Fault("who leads", "search/fuse.py", "FOLLOWING = 0.7, 0.3", "FOLLOWING = 0.3, 0.7"),
    Fault("the k of RRF", "core/settings.py", '"search.rrf_k", 60,', '"search.rrf_k", 1,'),
    Fault(
        "weights of conceptual queries",
        "search/blend.py",
        '"conceptual": Weights(semantic=0.8, lexical=0.2)',
        '"conceptual": Weights(semantic=0.2, lexical=0.8)',
    ),
    Fault(
        "the sign of MMR", "search/passages.py", "- (1 - trade) * repetition", "+ (1 - trade) * repetition"
    ),
    Fault("what repeats", "search/passages.py", "REPETITION = 0.5", "REPETITION = 0.1"),
    Fault("copies are not collapsed", "search/passages.py", "DUPLICATE = 0.95", "DUPLICATE = 1.01"),
    Fault("excluded words", "search/passages.py", 'if query.excluded else ""', 'if not query else ""'),
    Fault("passages that are read", "search/passages.py", "READ_AT_LEAST = 20", "READ_AT_LEAST = 5"),
    Fault(
        "the lambda of MMR",
        "core/settings.py",
        '"search.diversity", 0.7,',
        '"search.diversity", 1.0,',
    ),
    Fault(
        "passages of a document",
        "core/settings.py",
        '"search.per_document", 2,',
        '"search.per_document", 0,',
    ),
    Fault("proximity", "search/passages.py", "NEIGHBOURS = 0.2", "NEIGHBOURS = 0.0"),
    Fault("the whole query", "search/passages.py", "VERBATIM = 1.6", "VERBATIM = 0.0"),
    Fault("words of a passage", "search/passages.py", "COVERAGE = 0.05", "COVERAGE = 0.0"),
    Fault("mentioned names", "search/passages.py", "ENTITY = 0.1", "ENTITY = 0.0"),
    Fault("columns of BM25", "store/rows.py", "WEIGHTS = (2.0,", "WEIGHTS = (1.0,"),
    Fault("feedback", "search/scores.py", "FEEDBACK_STRENGTH = 0.7", "FEEDBACK_STRENGTH = 0.0"),
    Fault("hits of feedback", "search/scores.py", "FEEDBACK_HITS = 3", "FEEDBACK_HITS = 10"),
    Fault("the floor", "core/settings.py", '"search.floor", 0.001,', '"search.floor", 0.02,'),
    Fault("isotonic table", "search/calibration.py", "    table = head.isotonic\n", "    table = ()\n"),
    Fault("the cap", "search/judge.py", "least.get(label, -math.inf)", "0"),
    Fault("falling scores", "search/judge.py", "if verdict.falls:", "if not verdict:"),
    Fault(
        "stop words are kept",
        "text/word_lists.py",
        "    plain = [_plain(word) for word in words]\n    stop",
        "    plain = [_plain(word) + '.' for word in words]\n    stop",
    ),
    Fault(
        "phrases are their first word",
        "text/query_language.py",
        "return phrase_match(self.text)",
        "return word_match(self.text.split()[0])",
    ),
    Fault("filter by tags", "store/rows.py", "if filter.tags:", "if len(filter.tags) > 1:"),
    Fault("content words of a name", "text/names.py", "FEW_WORDS = 4", "FEW_WORDS = 40"),
    Fault("similar words", "search/fallback.py", "SIMILAR_WORDS = 5", "SIMILAR_WORDS = 1"),
    Fault(
        "one edit",
        "text/similar.py",
        "most = (len(word) >= 5) + (len(word) >= 8)",
        "most = (len(word) >= 50) + (len(word) >= 80)",
    ),
    Fault(
        "nonsense",
        "core/settings.py",
        '"search.least_score", 0.1,',
        '"search.least_score", 0.0,',
    ),
    Fault(
        "fewer candidates",
        "core/settings.py",
        '"search.candidates", 40,',
        '"search.candidates", 10,',
    ),
)


def main(words: Sequence[str]) -> int:
    """Plant the faults one after the other; the exit status is 1 if one is missed."""
    if "--help" in words:
        raise SystemExit(__doc__)
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
