"""`python -m benchmarks [--small] [NAME]...`: run what is in bench_NAME.py, all of them or those named.

A module has `run()`, which yields rows of the table; one without is a program of its own and prints what it
likes. What they keep between runs (vectors, filled stores, the model's graph) lies in KB_BENCH_CACHE.
`against` takes the revision that it compares with: `python -m benchmarks against REV`.

With `--small` each goes its whole way with next to nothing: that takes seconds, shows whether it still works,
and measures nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.measure import SMALL, Row, is_small, table
from benchmarks.synthetic import cache_folder
from concord.store.sqlite.migrations import VERSION

PREFIX = "bench_"
SMALL_FLAG = "--small"


def main(arguments: Sequence[str]) -> int:
    """Run benchmarks; return the exit status."""
    if SMALL_FLAG in arguments:
        os.environ[SMALL] = "1"  # before any of them is imported, and for the processes that they start
    names = [argument for argument in arguments if argument != SMALL_FLAG]
    if names[:1] == ["against"] and len(names) == 2:
        os.environ["KB_BENCH_AGAINST"] = names.pop()
    known = sorted(path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py"))
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    if len(names) == 1:
        return _run(names[0])
    # Each in a process of its own: what one has loaded must not slow the next.
    return max(
        [subprocess.run([sys.executable, "-m", "benchmarks", name]).returncode for name in names or known]
    )


def _run(name: str) -> int:
    # Nothing of the user's own is read or written; and no store is taken from a program of another schema.
    os.environ["KB_ENGINE_START"] = "never"  # each process does its own work, and none stays
    os.environ["KB_HOME"] = str(cache_folder() / f"home-{VERSION}")
    print(f"{name} ({_conditions()})", flush=True)
    module = import_module(f"benchmarks.{PREFIX}{name}")
    if not hasattr(module, "run"):
        return subprocess.run([sys.executable, "-m", module.__name__]).returncode
    rows: list[Row] = list(module.run())
    if is_small():
        print(table([row._replace(target="", is_met=None) for row in rows]), flush=True)
        return 0
    verdicts = [row.is_met for row in rows if row.is_met is not None]
    print(table(rows), f"\n{sum(verdicts)} of {len(verdicts)} targets met\n", sep="\n", flush=True)
    return 0


def _conditions() -> str:
    if is_small():
        return "small: these figures mean nothing"
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
