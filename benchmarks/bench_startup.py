"""What a short command costs before it does anything, beside bare programs with click and with apsw."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
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
from benchmarks.synthetic import make_old, write_markdown

ROUNDS = sized(25, 2)
FILES = sized(40, 5)
MOST_HELP, MOST_SEARCH = 1.3, 1.5
QUERY = "exception handler"

_TWO_COMMANDS = '''
import click

@click.group()
@click.option("--store", help="Where it is.")
def main(store):
    """Do one thing or the other."""

@main.command()
@click.argument("path")
def add(path):
    """Add something."""

@main.command()
@click.argument("query")
@click.option("--top", type=int, help="How many.")
def search(query, top):
    """Search for something."""

main()
'''

_ONE_QUERY = '''
import sys
import apsw
import click

FIND = """SELECT d.path, c.start_line, snippet(kb_chunks_fts, 1, '', '', '…', 40)
FROM kb_chunks_fts JOIN kb_chunks AS c ON c.id = kb_chunks_fts.rowid
JOIN kb_documents AS d ON d.key = c.document
WHERE kb_chunks_fts MATCH ? ORDER BY rank LIMIT 10"""

@click.command()
@click.argument("store")
@click.argument("query")
@click.option("--top", type=int, help="How many.")
def main(store, query, top):
    """Search for something."""
    for path, line, text in apsw.Connection(store).execute(FIND, (query,)):
        click.echo(f"{path}:{line} {text}")

main()
'''


def run() -> Iterator[Row]:
    """Compare the help, and a search by words in a small knowledge base."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        environment = quick_environment(KB_HOME=str(home))
        write_markdown(Path(folder, "tree"), FILES)
        make_old(Path(folder, "tree"))
        command_cost([KB, "add", str(Path(folder, "tree")), "--no-embed"], environment)
        for name, code in (("two.py", _TWO_COMMANDS), ("one.py", _ONE_QUERY)):
            Path(folder, name).write_text(code, encoding="utf-8")
        two, one = str(Path(folder, "two.py")), str(Path(folder, "one.py"))
        yield from _rows("`kb --help`", ["--help"], [two, "--help"], MOST_HELP, environment)
        bare = [one, str(home / "data" / "default.db"), QUERY]
        ours = ["search", "--fts-only", *QUERY.split()]
        yield from _rows("`kb search --fts-only`", ours, bare, MOST_SEARCH, environment)


def _rows(
    what: str, ours: Sequence[str], bare: Sequence[str], most: float, environment: Mapping[str, str]
) -> Iterator[Row]:
    commands = {"ours": [KB, *ours], "bare": [sys.executable, *bare]}
    for command in commands.values():
        command_cost(command, environment)  # writes the bytecode
    costs = in_turn(
        ROUNDS,
        {name: partial(command_cost, command, environment) for name, command in commands.items()},
    )
    for clock, name in ((cpu_ms, "cpu"), (elapsed_ms, "elapsed")):
        mine, theirs = clock(costs["ours"]), clock(costs["bare"])
        row = at_most(f"{what}, {name}", milliseconds(mine), milliseconds(theirs), mine / theirs, most)
        yield row if clock is cpu_ms else row._replace(target="", is_met=None)
