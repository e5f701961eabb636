"""`kb doctor`: what is wrong with a knowledge base, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened
from concord.cli.faults import NOTHING_FOUND
from concord.cli.progress import progress_shown
from concord.cli.words import in_words

if TYPE_CHECKING:
    from concord.ops.doctor import Diagnosis

UNWELL = NOTHING_FOUND  # 1: what it found is for the user to see to, and no error of the command's own


@command("doctor", "kb doctor", "kb doctor --fix", "kb doctor --json")
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
def doctor(flags: Flags, fix: bool, as_json: bool) -> int:
    """Look for what is wrong: the store, its files, its vectors, the model, the machine.

    Checks that the database is whole, words and vectors are in step with the chunks, nothing is left over,
    every source can be read, no file has gone, the embedding provider answers and there is room to work.
    --fix rebuilds indexes, deletes what is left over, embeds what has no vector, forgets deleted files and
    gives free space in the store's file back to the disk, where that is much.
    Exit status: 0 all is well, 1 something is not.
    """
    with opened(flags) as knowledge, progress_shown() as progress:
        found = knowledge.doctor(fix=fix, progress=progress)
    if as_json:
        from concord.wire_reports import report_to_json

        output.emit_json(report_to_json(found))
    else:
        _show(found)
    return UNWELL if found.findings else 0


def _show(found: Diagnosis) -> None:
    for finding in found.fixed:
        output.emit(f"fixed: {in_words(finding.message)}")
    for finding in found.findings:
        output.emit(f"{finding.fault}: {in_words(finding.message)}\n  {in_words(finding.hint)}")
    if not found.findings:
        output.talk(f"all is well: {', '.join(found.checks)}")
