"""`kb add --no-embed` on Markdown: chunks per processor second, the command as a whole.

Beside it stands what the command cannot do without: reading the files, counting their tokens with
`tokenizers`, and storing the same chunks in an FTS5 table.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import apsw
from tokenizers import Tokenizer

from benchmarks.development import folder
from benchmarks.measure import (
    KB,
    Cost,
    Row,
    absent,
    command_cost,
    cost_of,
    cpu_ms,
    in_turn,
    quick_environment,
    sized,
)
from benchmarks.synthetic import write_markdown
from concord.embed import pack

FILES = sized(500, 5)
ROUNDS = sized(3, 2)
LEAST_A_SECOND = 1500
COLLECTION = "k8s-anchor"

_FTS = "CREATE VIRTUAL TABLE words USING fts5(content, tokenize='porter unicode61')"
_CHUNKS = "SELECT content FROM kb_chunks ORDER BY id"


def run() -> Iterator[Row]:
    """Measure on made-up pages and, where they are, on pages of the Kubernetes documentation."""
    with tempfile.TemporaryDirectory() as place:
        write_markdown(Path(place, "tree"), FILES)
        yield _row("made-up Markdown", Path(place))
    pages = folder() / COLLECTION / "corpus.jsonl"
    if not pages.is_file():
        yield absent("`kb add`, Kubernetes pages", f"no {COLLECTION} in {folder()} (KB_BENCH_DATA)")
        return
    with tempfile.TemporaryDirectory() as place:
        _write_pages(pages, Path(place, "tree"))
        yield _row("Kubernetes pages", Path(place))


def _write_pages(corpus: Path, folder: Path) -> None:
    folder.mkdir()
    with corpus.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number < 2 * FILES and number % 2:
                page = json.loads(line)
                Path(folder, f"{number}.md").write_text(
                    f"# {page['title']}\n\n{page['text']}\n", encoding="utf-8"
                )


def _row(what: str, folder: Path) -> Row:
    homes = iter(range(ROUNDS + 1))
    _add(folder, next(homes))
    texts = _chunks(folder, 0)
    works = {"ours": lambda: _add(folder, next(homes)), "bare": lambda: _bare(folder, texts)}
    costs = in_turn(ROUNDS, works)
    ours, bare = (len(texts) / cpu_ms(costs[name]) * 1000 for name in ("ours", "bare"))
    return Row(
        f"`kb add --no-embed`, {what}, {len(texts):,} chunks",
        f"{ours:,.0f} chunks/cpu s",
        f"{bare:,.0f} chunks/cpu s",
        ours / bare,
        f"≥ {LEAST_A_SECOND:,} chunks/s",
        ours >= LEAST_A_SECOND,
    )


def _add(folder: Path, number: int) -> Cost:
    environment = quick_environment(KB_HOME=str(folder / f"home{number}"))
    return command_cost([KB, "add", str(folder / "tree"), "--no-embed"], environment)


def _chunks(folder: Path, number: int) -> list[str]:
    store = folder / f"home{number}" / "data" / "default.db"
    with closing(apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return [text for (text,) in connection.execute(_CHUNKS)]


def _bare(folder: Path, texts: Sequence[str]) -> Cost:
    with tempfile.TemporaryDirectory() as place:
        return cost_of(lambda: _read_count_store(folder / "tree", texts, Path(place, "bare.db")))


def _read_count_store(tree: Path, texts: Sequence[str], store: Path) -> None:
    tokenizer = Tokenizer.from_buffer(pack.read_tokenizer(pack.pack_path()))
    for path in tree.rglob("*.md"):
        tokenizer.encode(path.read_text(encoding="utf-8"), add_special_tokens=False)
    with closing(apsw.Connection(str(store))) as connection:
        connection.pragma("journal_mode", "wal")
        connection.execute(_FTS)
        with connection:
            connection.executemany("INSERT INTO words VALUES (?)", ((text,) for text in texts))
