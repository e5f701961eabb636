"""`kb eval` and `kb calibrate`: how good are the answers, and does confidence hold?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import click

from concord.cli import output, progress
from concord.cli.command import Flags, command, opened

if TYPE_CHECKING:
    from concord.quality.evaluate import Evaluation, Review
    from concord.quality.refit import Refit

_folder = click.Path(path_type=Path)


def _on_a_collection(
    unanswerable: str, *, required: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a judged collection, and which part of it is asked."""
    parameters = (
        click.argument("folder", metavar="DIR" if required else "[DIR]", type=_folder, required=required),
        click.option("--unanswerable", metavar="OTHER", type=_folder, multiple=True, help=unanswerable),
        click.option(
            "--split", metavar="NAME", help="Which judgements: qrels/NAME.tsv (test, else the first)."
        ),
        click.option(
            "--limit", metavar="N", type=click.IntRange(min=1), help="Ask no more queries than this."
        ),
    )
    return lambda function: reduce(lambda made, parameter: parameter(made), reversed(parameters), function)


@command(
    "eval",
    "kb eval ./scifact",
    "kb eval ./scifact --unanswerable ./cranfield --report quality.html",
    "kb eval ./scifact --run runs --limit 200 --json",
)
@click.option("--run", metavar="OUT", type=_folder, help="Write a TREC run file for each mode there.")
@click.option("--report", metavar="FILE", type=_folder, help="Write a page of HTML with the plots.")
@_on_a_collection("Ask the queries in OTHER too: DIR's documents cannot answer them; repeatable.")
def evaluate(
    flags: Flags,
    folder: Path,
    run: Path | None,
    report: Path | None,
    unanswerable: tuple[Path, ...],
    split: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Evaluate search on a judged collection in BEIR layout.

    DIR holds corpus.jsonl, queries.jsonl and qrels/*.tsv. Its documents are indexed apart from your knowledge
    base, in the cache directory, and only once. A --limit always picks the same queries.
    """
    with opened(flags, must_exist=False) as knowledge, progress.progress_shown() as meter:
        found = knowledge.measuring.evaluate(
            folder, unanswerable=unanswerable, split=split, limit=limit, progress=meter
        )
        judged = knowledge.measuring.review()
    _write(found, run, report)
    if as_json:
        from concord.ops.reports import report_to_json

        output.emit_json({**report_to_json(found), "feedback": report_to_json(judged)})
    else:
        output.emit("\n\n".join([*_parts(found), *_feedback(judged)]))


@command(
    "calibrate",
    "kb calibrate ./judged",
    "kb calibrate ./judged --unanswerable ./other --near-miss unanswered.txt",
    "kb calibrate --json",
)
@_on_a_collection(
    "Queries that DIR's documents cannot answer (else everyday questions); repeatable.", required=False
)
@click.option(
    "--near-miss",
    "near_misses",
    metavar="FILE",
    type=_folder,
    multiple=True,
    help="Queries, one a line, about what the documents speak of and do not answer; repeatable.",
)
def calibrate(
    flags: Flags,
    folder: Path | None,
    unanswerable: tuple[Path, ...],
    near_misses: tuple[Path, ...],
    split: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Calibrate confidence to your own documents and judged queries.

    DIR is a collection as for `kb eval`, with 50 judged queries or more. What is fitted serves every later
    search with the same embedding model; remove the file that is named to go back to the fit that ships.
    Queries that `kb feedback` was given on count as judged queries too; without DIR they are all that counts.
    """
    with opened(flags, must_exist=False) as knowledge, progress.progress_shown() as meter:
        found = knowledge.measuring.calibrate(
            folder,
            unanswerable=unanswerable,
            near_misses=near_misses,
            split=split,
            limit=limit,
            progress=meter,
        )
    if as_json:
        output.emit_json(found)
    else:
        output.emit(_before_and_after(found))
        if found.feedback:
            output.talk(f"with {found.feedback:,} queries that `kb feedback` was given on")
        output.talk(f"kept in {found.path}")


def _write(found: Evaluation, run: Path | None, report: Path | None) -> None:
    from datetime import UTC, datetime

    from concord import __version__
    from concord.core.errors import BadValue
    from concord.quality.evaluate import write_runs
    from concord.quality.report import page

    try:
        if run is not None:
            write_runs(found.runs, run)
        if report is not None:
            report.parent.mkdir(parents=True, exist_ok=True)
            made = f"Concord {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
            report.write_text(page(found, made), encoding="utf-8")
    except OSError as fault:
        raise BadValue(
            f"cannot write {fault.filename}: {fault.strerror}", hint="choose another place"
        ) from fault


def _parts(found: Evaluation) -> Iterator[str]:
    from concord.quality.report import parts

    return (f"{part.said}\n{output.table(*part.table)}" if part.table else part.said for part in parts(found))


def _feedback(judged: Review) -> Iterator[str]:
    """Yield how search does on results that were judged with `kb feedback`, if any were."""
    if judged.good or judged.bad:
        yield (
            f"feedback on your own knowledge base: {judged.good:,} good, {judged.bad:,} bad; "
            f"of {judged.queries:,} queries with a good result, {judged.found:,} have it in the first ten, "
            f"{judged.first:,} at the top"
        )


def _before_and_after(found: Refit) -> str:
    rows = [
        (
            name,
            f"{before.n:,}",
            f"{before.ece:.3f}",
            f"{after.ece:.3f}",
            f"{before.brier:.3f}",
            f"{after.brier:.3f}",
        )
        for name, before, after in (
            ("score", found.before.score, found.after.score),
            ("confidence_score", found.before.confidence_score, found.after.confidence_score),
        )
    ]
    return output.table(("", "n", "ECE before", "after", "Brier before", "after"), rows)
