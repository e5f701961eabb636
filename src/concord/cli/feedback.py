"""`kb feedback`: was a result good or bad?"""

from __future__ import annotations

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened
from concord.types import Opinion


@command(
    "feedback",
    'kb feedback docs/auth.md:12-31 good --query "how does login work"',
    'kb feedback docs/old.md bad --query "how does login work"',
    "kb feedback 3f2a9c51d07be684 bad --json",
)
@click.argument("reference", metavar="CITATION|ID")
@click.argument("opinion", type=click.Choice(("good", "bad")))
@click.option("--query", metavar="Q", default="", help="What was asked; without it nothing can be learnt.")
def feedback(flags: Flags, reference: str, opinion: Opinion, query: str, as_json: bool) -> None:
    """Record whether a result was good or bad for a query.

    Kept in the store, and nowhere else. It never moves a result by itself: `kb calibrate` fits confidence to
    it, `kb eval` and `kb stats` show it. A second opinion on the same document and query replaces the first.
    """
    with opened(flags) as knowledge:
        given = knowledge.feedback(reference, opinion, query=query)
    if as_json:
        from concord.wire_reports import report_to_json

        output.emit_json(report_to_json(given))
    else:
        output.talk(f"{given.citation} is {given.opinion}" + (f" for {given.query!r}" if given.query else ""))
