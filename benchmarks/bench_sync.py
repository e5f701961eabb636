"""`kb sync` on a tree in which nothing changed, beside a script that walks it and asks for files' states.

Both are commands, start-up and all.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import (
    KB,
    Row,
    at_most,
    command_cost,
    cpu_ms,
    elapsed_ms,
    in_turn,
    milliseconds,
    quick_environment,
    sized,
)
from benchmarks.synthetic import make_old, write_small_files

FILES = sized(10_000, 100)
ROUNDS = sized(9, 2)
MOST = 5.0

_WALK = """
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        os.stat(os.path.join(folder, name))
"""


def run() -> Iterator[Row]:
    """Index the tree once, then sync it again and again."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        write_small_files(tree, FILES)
        make_old(tree)
        environment = quick_environment(KB_HOME=str(Path(folder, "home")))
        command_cost([KB, "add", str(tree), "--no-embed"], environment)
        costs = in_turn(
            ROUNDS,
            {
                "ours": lambda: command_cost([KB, "sync", "--no-embed"], environment),
                "bare": lambda: command_cost([sys.executable, "-c", _WALK, str(tree)], environment),
            },
        )
    what = f"`kb sync`, {FILES:,} files unchanged"
    for clock, name in ((cpu_ms, "cpu"), (elapsed_ms, "elapsed")):
        ours, bare = clock(costs["ours"]), clock(costs["bare"])
        row = at_most(f"{what}, {name}", milliseconds(ours), milliseconds(bare), ours / bare, MOST)
        yield row if clock is cpu_ms else row._replace(target="", is_met=None)
