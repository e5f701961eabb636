"""`kb backup`: a copy of everything in one file."""

from __future__ import annotations

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened
from concord.cli.progress import progress_shown
from concord.visible import one_line


@command("backup", "kb backup ~/backups/kb.db", "kb backup kb-$(date +%F).db --json")
@click.argument("file")
def backup(flags: Flags, file: str, as_json: bool) -> None:
    """Copy everything to one file, while others may use the knowledge base.

    An older copy of that name is replaced when the new one is complete and sound. To look into it, name it:
    `kb --store sqlite:///home/me/backups/kb.db search …`. Stores in SQLite can do this.
    """
    with opened(flags) as knowledge, progress_shown() as progress:
        done = knowledge.backup(file, progress=progress)
    if as_json:
        from concord.wire_reports import report_to_json

        output.emit_json(report_to_json(done))
        return
    counts = done.counts
    output.emit(
        f"✓ {one_line(done.path)}: {counts.sources:,} sources, {counts.documents:,} documents,"
        f" {counts.chunks:,} chunks, {done.size_bytes / 1e6:,.1f} MB in {done.took_s:.1f} s"
    )
