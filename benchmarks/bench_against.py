"""`python -m benchmarks against REV`: the working tree (ours) beside that revision of it (baseline).

Without REV that is the last commit. Every figure is a cost, so a ratio below 1 is an improvement. Texts are
made up and the same for both; the two search in turn, query by query, each in a process of its own over a
store that it filled itself.

The large store has vectors of the `hashing` provider: to embed ten thousand chunks takes ten minutes for each
revision, and a query's share of the bundled model, the same on both sides, would hide what changed. The
bundled model is measured on a small store.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.measure import Cost, Row, absent, at_most, command_cost, cpu_ms, in_turn, milliseconds, sized
from benchmarks.sides import (
    Searching,
    Side,
    commit_of,
    earlier,
    searching,
    side_variables,
    stats,
    working_tree,
)
from benchmarks.synthetic import CHUNKS_A_DOCUMENT, SEED, batches_of_texts, cache_folder, make_old, questions

REVISION = "KB_BENCH_AGAINST"  # the variable that names the revision, as an argument of the runner does
MOST = 1.05  # what chance does to a ratio of two equal sides
TEXTS = sized(28_600, 80)  # become 10,000 chunks
TEXTS_INDEXED = sized(5_000, 40)
TEXTS_EMBEDDED = sized(400, 20)  # by the bundled model
QUERIES, WARM_UP = sized((300, 20), (4, 2))
ROUNDS_INDEXING = sized(5, 1)
ROUNDS_STARTING = sized(15, 1)
HASHING = {"KB_EMBED_PROVIDER": "hashing"}
BUNDLED: dict[str, str] = {}

Sides = Mapping[str, Side]


def run() -> Iterator[Row]:
    """Compare searches, memory, disk, indexing and start-up."""
    revision = os.environ.get(REVISION) or "HEAD"
    commit = commit_of(revision)
    if commit is None:
        yield absent("the working tree", f"git knows no revision {revision}")
        return
    sides = {"ours": working_tree(), "baseline": earlier(commit)}
    yield from _searches("hashed vectors", sides, _tree(TEXTS), HASHING)
    yield from _searches("bundled model", sides, _tree(TEXTS_EMBEDDED), BUNDLED)
    yield from _indexing(sides, _tree(TEXTS_INDEXED))
    yield from _starting(sides, _tree(TEXTS_EMBEDDED))


def _tree(texts: int) -> Path:
    """Return a folder of Markdown pages with so many made-up texts, each below a heading of its own."""
    folder = cache_folder().absolute() / "against" / f"texts-{texts}"
    if not folder.is_dir():
        making = folder.with_name(f"{folder.name}.making")
        shutil.rmtree(making, ignore_errors=True)
        made = [text for batch in batches_of_texts(texts) for text in batch]
        for start in range(0, texts, CHUNKS_A_DOCUMENT):
            numbered = enumerate(made[start : start + CHUNKS_A_DOCUMENT], start)
            sections = [f"## Section {number}\n\n{text}.\n" for number, text in numbered]
            path = making / f"part{start // 1000:03}" / f"page{start:05}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join([f"# Page {start}\n", *sections]), encoding="utf-8")
        make_old(making)
        making.rename(folder)
    return folder


def _searches(what: str, sides: Sides, tree: Path, settings: Mapping[str, str]) -> Iterator[Row]:
    homes = {name: side.filled(tree, settings) for name, side in sides.items()}
    stores = {name: stats(side, homes[name], settings) for name, side in sides.items()}
    what = f"{stores['ours'].chunks:,} chunks ({stores['baseline'].chunks:,}), {what}"
    yield _megabytes_row(f"disk, {what}", {name: store.size_mb for name, store in stores.items()})
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(searching(side, homes[name], settings)) for name, side in sides.items()
        }
        known = questions(QUERIES + WARM_UP)
        _search_in_turn(processes, known[QUERIES:])
        yield _cpu_row(f"search, {what}", _search_in_turn(processes, known[:QUERIES]))
        unknown = _questions_of_unknown_words(QUERIES)
        yield _cpu_row(f"search, words nowhere, {what}", _search_in_turn(processes, unknown))
        memory = {name: process.memory_mb() for name, process in processes.items()}
        yield _megabytes_row(f"memory, {what}", memory)


def _search_in_turn(processes: Mapping[str, Searching], texts: Sequence[str]) -> dict[str, list[Cost]]:
    works = {name: partial(_search_next, process, iter(texts)) for name, process in processes.items()}
    return in_turn(len(texts), works)


def _search_next(process: Searching, texts: Iterator[str]) -> Cost:
    return process.search(next(texts))


def _questions_of_unknown_words(number: int) -> list[str]:
    """Return questions of words that no text has."""
    chance = random.Random(SEED)
    words = ["".join(chance.choices("qxwjy", k=7)) for _ in range(2 * number)]
    return [f"where to find {first} {second}" for first, second in zip(words[::2], words[1::2], strict=True)]


def _indexing(sides: Sides, tree: Path) -> Iterator[Row]:
    homes = {name: side.filled(tree, HASHING) for name, side in sides.items()}
    ways = {"without vectors": _add_words, "vectors from the cache": _add_anew}
    for what, way in ways.items():
        works = {name: partial(way, side, tree, homes[name]) for name, side in sides.items()}
        yield _cpu_row(f"kb add, {TEXTS_INDEXED:,} texts, {what}", in_turn(ROUNDS_INDEXING, works))


def _add_words(side: Side, tree: Path, _: Path) -> Cost:
    with tempfile.TemporaryDirectory() as place:
        variables = side_variables(Path(place, "home"), HASHING)
        return command_cost(side.command("add", str(tree), "--no-embed"), variables)


def _add_anew(side: Side, tree: Path, home: Path) -> Cost:
    """Remove the folder from a copy of a home, whose cache keeps the vectors, and add it again."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(home, Path(place, "home"))
        variables = side_variables(Path(place, "home"), HASHING)
        command_cost(side.command("remove", tree.name), variables)
        return command_cost(side.command("add", str(tree)), variables)


def _starting(sides: Sides, tree: Path) -> Iterator[Row]:
    homes = {name: side.filled(tree, BUNDLED) for name, side in sides.items()}
    query = questions(1)[0]
    for arguments in (["--help"], ["search", "--fts-only", query], ["search", query]):
        works = {
            name: partial(command_cost, side.command(*arguments), side_variables(homes[name], BUNDLED))
            for name, side in sides.items()
        }
        in_turn(1, works)  # writes the bytecode
        yield _cpu_row(f"kb {' '.join(arguments[:-1] or arguments)}", in_turn(ROUNDS_STARTING, works))


def _cpu_row(what: str, costs: Mapping[str, Sequence[Cost]]) -> Row:
    """Return a row whose ratio is the median of pairs: a machine's speed changes less between two turns."""
    ours, baseline = costs["ours"], costs["baseline"]
    ratio = median(mine.cpu / theirs.cpu for mine, theirs in zip(ours, baseline, strict=True))
    return at_most(f"{what}, cpu", milliseconds(cpu_ms(ours)), milliseconds(cpu_ms(baseline)), ratio, MOST)


def _megabytes_row(what: str, sizes: Mapping[str, float]) -> Row:
    ours, baseline = sizes["ours"], sizes["baseline"]
    return at_most(what, f"{ours:.1f} MB", f"{baseline:.1f} MB", ours / baseline, MOST)
