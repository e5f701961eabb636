"""`kb migrate`: another store, or another place for the vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse
from concord.cli.faults import SOME_FAILED
from concord.cli.progress import shown

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase


@command(
    "migrate",
    "kb migrate --to postgresql://kb@db.example.com/kb",
    "kb migrate --to sqlite:///srv/kb --vectors http://qdrant.example.com:6333",
    "KB_VECTORS_URL=http://localhost:6333 kb migrate",
)
@click.option("--to", metavar="URL", help="The store that everything is copied to; it must be empty.")
@click.option("--vectors", metavar="URL", help="Where that store keeps its vectors; inside, unless given.")
def migrate(flags: Flags, to: str | None, vectors: str | None, as_json: bool) -> int:
    """Move everything to another store, or without --to the vectors to where `vectors.url` says.

    Nothing is embedded again that is known. The store itself is only read, and stays as it is: set
    `store.url` when you are content with the copy. A run that was interrupted is taken up by the next one.
    At the end every document, chunk and vector is compared.
    """
    if to is None and vectors is not None:
        refuse("--vectors goes with --to; without it, set vectors.url")
    with opened(flags) as knowledge:
        return _vectors(knowledge, as_json) if to is None else _everything(knowledge, to, vectors, as_json)


def _everything(knowledge: KnowledgeBase, to: str, vectors: str | None, as_json: bool) -> int:
    from concord.text.urls import without_password
    from concord.wire_outcomes import migration_to_json

    with shown() as progress:
        done = knowledge.migrate(to, vectors=vectors, progress=progress)
    if as_json:
        output.emit_json(migration_to_json(done, to))
        return 0
    counts = done.counts
    output.emit(
        f"✓ {without_password(to)}: {counts.sources:,} sources, {counts.documents:,} documents,"
        f" {counts.chunks:,} chunks, {counts.vectors:,} vectors, {done.cached:,} more remembered,"
        f" in {done.took_s:.1f} s\n  compared, all the same (checksum {done.checksum[:16]})"
    )
    output.talk(f"to use it: KB_STORE_URL={without_password(to)}, or store.url in the configuration file")
    return 0


def _vectors(knowledge: KnowledgeBase, as_json: bool) -> int:
    with shown() as progress:
        done = knowledge.migrate_vectors(progress=progress)
    place = knowledge.vectors_home or "the store itself"
    if as_json:
        from concord.wire_outcomes import rehomed_to_json

        output.emit_json(rehomed_to_json(done, place))
    else:
        output.emit(
            f"✓ vectors are kept in {place}: {done.reused:,} sent again, {done.embedded:,} embedded anew"
        )
        if done.pending:
            output.talk(f"{done.pending:,} chunks are left ({done.degraded or 'no model'}): `kb sync`")
    return SOME_FAILED if done.pending else 0
