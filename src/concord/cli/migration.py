"""`kb migrate`: another store, or another place for the vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse
from concord.cli.faults import SOME_FAILED
from concord.cli.progress import progress_shown
from concord.cli.words import in_words

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase


@command(
    "migrate",
    "kb migrate --to postgresql://kb@db.example.com/kb",
    "kb migrate --to postgresql://kb@db.example.com/kb --to-org team",
    "KB_VECTORS_URL=http://localhost:6333 kb migrate",
)
@click.option("--to", metavar="URL", help="The store that everything is copied to; it must be empty.")
@click.option("--to-org", metavar="ORG", help="The organisation to copy to (default: the same).")
@click.option("--vectors", metavar="URL", help="Where that store keeps its vectors (default: inside).")
def migrate(flags: Flags, to: str | None, to_org: str | None, vectors: str | None, as_json: bool) -> int:
    """Move everything to another store; without --to, only the vectors, to where `vectors.url` says.

    Vectors that are known are not made again. With --to the old store is only read, and stays as it is: set
    `store.url` once you are content with the copy. If a run is interrupted, the next one goes on from there.
    At the end every document, chunk and vector is compared.
    """
    if to is None and vectors is not None:
        refuse("--vectors goes with --to; without it, set vectors.url")
    if to is None and to_org is not None:
        refuse("--to-org goes with --to; to another organisation of the same store, give its URL")
    with opened(flags) as knowledge:
        if to is None:
            return _vectors(knowledge, as_json)
        return _everything(knowledge, Target(to, to_org, vectors), as_json)


class Target(NamedTuple):
    """What everything is copied to."""

    url: str
    org: str | None
    vectors: str | None


def _everything(knowledge: KnowledgeBase, target: Target, as_json: bool) -> int:
    from concord.core.values import without_password
    from concord.wire_reports import report_to_json

    with progress_shown() as progress:
        done = knowledge.migrate(target.url, org=target.org, vectors=target.vectors, progress=progress)
    if as_json:
        output.emit_json(report_to_json(done, store=without_password(target.url)))
        return 0
    counts, place = done.counts, without_password(target.url)
    output.emit(
        f"✓ {place}: {counts.sources:,} sources, {counts.documents:,} documents,"
        f" {counts.chunks:,} chunks, {counts.vectors:,} vectors, {done.cached:,} more remembered,"
        f" in {done.took_s:.1f} s\n  compared, all the same (checksum {done.checksum[:16]})"
    )
    org = f" KB_ORG={target.org}" if target.org else ""
    kept = f" KB_VECTORS_URL={without_password(target.vectors)}" if target.vectors else ""
    named = "store.url and vectors.url" if kept else "store.url"
    output.talk(f"to use it: KB_STORE_URL={place}{kept}{org}, or {named} in the configuration file")
    if done.left:
        output.talk(
            f"the old store's vectors stay in {done.left}, with their texts: when you need it no more,"
            " `KB_VECTORS_URL= kb migrate` on the old store brings them back to it and deletes them there"
        )
    return 0


def _vectors(knowledge: KnowledgeBase, as_json: bool) -> int:
    with progress_shown() as progress:
        moved = knowledge.migrate_vectors(progress=progress)
    done, place = moved.embedding, knowledge.vectors_home or "the store itself"
    if as_json:
        from concord.wire_reports import report_to_json

        output.emit_json(report_to_json(moved, vectors=place))
    else:
        output.emit(
            f"✓ vectors are kept in {place}: {done.reused:,} sent again, {done.embedded:,} embedded anew"
        )
        if done.pending:
            output.talk(
                f"{done.pending:,} chunks are left ({in_words(done.degraded) or 'no model'}): `kb sync`"
            )
    for left in moved.left:
        output.talk(f"what was sent to {left.home.url} is still there, with its texts: {in_words(left.why)}")
        again = "the next `kb migrate` tries again to delete it; by hand,"
        when = "where that is gone," if left.home.is_anothers else again
        output.talk(f"  {when} delete the points there whose `store` is {left.home.key}")
    return SOME_FAILED if done.pending else 0
