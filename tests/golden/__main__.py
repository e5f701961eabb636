"""`python -m tests.golden compare|make [--only SETS] [--stores STORES] [--list]`, or `pack FOLDER`.

compare  ask everything now and print how the answers differ from the golden ones, by set
make     make the golden answers anew, all or those of some sets; the vectors with them
pack     make the archive of the corpora from a folder
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from concord.search import passages
from golden import answers, corpora, kept_vectors, queries, runs
from golden.differences import beyond, differences, table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 1 where answers differ by more than is tolerated."""
    passages.FILES_MS = 60_000.0  # a disk that is busy is not one that hangs
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("command", choices=("compare", "make", "pack"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", default="", help="sets, separated by commas")
    parser.add_argument("--stores", default=",".join(runs.STORES), help="stores, separated by commas")
    parser.add_argument("--list", action="store_true", help="name each query that differs")
    given = parser.parse_args(arguments)
    if given.command == "pack":
        print(f"{corpora.pack(given.folder)} files are in {corpora.ARCHIVE.name}")
        return 0
    sets = set(filter(None, given.only.split(",")))
    if given.command == "make":
        return _make(given.stores.split(","), sets)
    return max(_compare(store, sets, is_listed=given.list) for store in given.stores.split(","))


def _make(stores: Sequence[str], sets: set[str]) -> int:
    for store in stores:
        asked = answers.asked_of(store, queries.written())
        wanted = [query for query in asked if not sets or query.set in sets]
        with runs.filled(store) as knowledge:
            now = runs.answers(knowledge, wanted)
        kept = answers.read(store)
        print(f"{store}\n{table(wanted, differences(wanted, kept, now))}")
        answers.write(store, {query.id: now.get(query.id) or kept[query.id] for query in asked})
    is_partial = bool(sets) or "sqlite" not in stores
    print(f"{kept_vectors.keep(only_add=is_partial)} vectors are kept, {len(kept_vectors.EMBEDDED)} are new")
    return 0


def _compare(store: str, sets: set[str], *, is_listed: bool) -> int:
    asked = answers.asked_of(store, queries.written())
    wanted = [query for query in asked if not sets or query.set in sets]
    with runs.filled(store) as knowledge:
        now = runs.answers(knowledge, wanted)
    found = differences(wanted, answers.read(store), now)
    print(f"{store}\n{table(wanted, found)}")
    for difference in found if is_listed else ():
        print(difference.query.id, repr(difference.query.text), *sorted(difference.columns))
    print(f"{len(kept_vectors.EMBEDDED)} texts had no kept vector and were embedded by the bundled model")
    return 1 if beyond(store, found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
