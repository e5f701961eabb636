"""`python -m benchmarks [NAME]...`: run what is in bench_NAME.py, all of them or those named.

A module has `run()`, which yields rows of the table; one without is a program of its own and prints what it
likes. What they keep between runs (filled stores, the model's graph) lies in KB_BENCH_CACHE.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Row, table
from benchmarks.synthetic import cache_folder

PREFIX = "bench_"


def main(names: Sequence[str]) -> int:
    """Run benchmarks; return the exit status."""
    known = sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    os.environ["KB_HOME"] = str(cache_folder() / "home")  # nothing of the user's own is read or written
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    rows = [row for name in names or known for row in _rows(name)]
    verdicts = [row.is_met for row in rows if row.is_met is not None]
    print(f"\n{sum(verdicts)} of {len(verdicts)} targets met")
    return 0


def _rows(name: str) -> list[Row]:
    print(f"\n{name}", flush=True)
    module = import_module(f"benchmarks.{PREFIX}{name}")
    if not hasattr(module, "run"):
        subprocess.run([sys.executable, "-m", module.__name__], check=False)
        return []
    rows = list(module.run())
    print(table(rows), flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
