"""How much memory: indexing a tree and one eight times as large, and a warm process with many chunks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.measure import KB, Row, at_most, quick_environment, sized
from benchmarks.synthetic import filled_store, questions, write_markdown

FEW, MANY = sized((150, 1200), (5, 10))  # files of 8 kB
MOST_GROWTH = 1.2
CHUNKS = sized(100_000, 400)
MOST_MB = 300

_WARM = """
import sys
from concord.knowledge import KnowledgeBase
with KnowledgeBase.open(store__url=sys.argv[1]) as kb:
    kb.warm()
    for text in sys.argv[2:]:
        kb.search(text)
    sizes = dict(line.split(":") for line in open("/proc/self/status", encoding="ascii"))
    print(sizes["VmRSS"].split()[0])
"""
# Started by a small process of its own: a child begins with its parent's size on its record.
_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def run() -> Iterator[Row]:
    """Measure peaks of commands, and a process at rest."""
    few, many = _peak_mb(FEW), _peak_mb(MANY)
    what = f"peak of `kb add --no-embed`, {MANY:,} files beside {FEW}"
    yield at_most(what, f"{many:.0f} MB", f"{few:.0f} MB", many / few, MOST_GROWTH)
    warm = warm_mb(filled_store(CHUNKS))
    row = Row(f"warm process: model, {CHUNKS:,} chunks, 20 searches", f"{warm:.0f} MB")
    yield row._replace(baseline=f"{MOST_MB} MB", ratio=warm / MOST_MB, target="< 1", is_met=warm < MOST_MB)


def _peak_mb(files: int) -> float:
    """Index a tree in a process of its own and return the most memory it had."""
    with tempfile.TemporaryDirectory() as folder:
        write_markdown(Path(folder, "tree"), files)
        environment = quick_environment(KB_HOME=str(Path(folder, "home")))
        return _printed([sys.executable, "-c", _PEAK, KB, "add", f"{folder}/tree", "--no-embed"], environment)


def warm_mb(url: str, org: str = "default") -> float:
    """Return the memory of a process of its own that has its model loaded and has searched that store."""
    return _printed([sys.executable, "-c", _WARM, url, *questions(20)], quick_environment(KB_ORG=org))


def _printed(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the kilobytes that a command prints, in megabytes."""
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", env=environment)
    return int(done.stdout) / 1024
