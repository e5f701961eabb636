"""`python -m benchmarks [NAME]...`: run what is in bench_NAME.py, all of them or those named.

Each module has `run()`, which prints what it likes and yields rows (or returns None). What they keep between
runs (filled stores, the model's graph) lies in KB_BENCH_CACHE.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Row, table
from benchmarks.synthetic import cache_folder

PREFIX = "bench_"


def main(names: Sequence[str]) -> int:
    """Run benchmarks; return 1 when a target was missed."""
    known = sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    os.environ["KB_HOME"] = str(cache_folder() / "home")  # nothing of the user's own is read or written
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    rows = [row for name in names or known for row in _rows(name)]
    return 1 if any(row.is_met is False for row in rows) else 0


def _rows(name: str) -> list[Row]:
    print(f"\n{name}", flush=True)
    rows = list(import_module(f"benchmarks.{PREFIX}{name}").run() or ())
    if rows:
        print(table(rows), flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
