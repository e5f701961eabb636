"""`kb eval` and `kb calibrate`: how good are the answers, and does confidence hold?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse, run_on
from concord.core.arguments import OWN_PAIRS, Calibrate, Evaluate
from concord.operations import OPERATIONS

if TYPE_CHECKING:
    from concord.quality.evaluate import Evaluation, Review
    from concord.quality.own_evaluation import OwnEvaluation
    from concord.quality.refit import Refit
    from concord.quality.report import Part

_file = click.Path(path_type=Path)
_folder = click.Path()


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
    "kb eval --auto",
    "kb eval ./scifact --unanswerable ./cranfield --report quality.html",
    "kb eval questions.json --run runs --json",
)
@click.option("--auto", is_flag=True, help="Ask what your own documents say they are about.")
@click.option("--source", metavar="SOURCE", help="With --auto: only this source's documents.")
@click.option(
    "--n", metavar="N", type=click.IntRange(min=1), help=f"With --auto: ask at most N ({OWN_PAIRS})."
)
@click.option("--save", metavar="OUT", type=_folder, help="With --auto: keep what is asked, as a DIR.")
@click.option("--run", metavar="OUT", type=_file, help="Write a TREC run file for each mode there.")
@click.option("--report", metavar="FILE", type=_file, help="Write a page of HTML with the plots.")
@_on_a_collection(
    "Ask the queries in OTHER too: DIR's documents cannot answer them; repeatable.", required=False
)
def evaluate(
    flags: Flags,
    folder: str | None,
    auto: bool,
    source: str | None,
    n: int | None,
    save: str | None,
    run: Path | None,
    report: Path | None,
    unanswerable: tuple[str, ...],
    split: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Evaluate search on your own documents, or on a judged collection.

    --auto asks what people wrote in your documents: titles, headings, links, questions, docstrings, whose
    answer is known. They are hidden first, in a copy. DIR holds corpus.jsonl, queries.jsonl and qrels/*.tsv,
    as BEIR has them; it is indexed apart, in the cache directory, and only once. FILE.json holds questions
    and the files of yours that answer them, as qmd has it. A --limit always picks the same queries.
    """
    _check_flags(auto, folder, {"--source": source, "--n": n, "--save": save})
    asked = Evaluate(folder, unanswerable, split, limit, source, n or OWN_PAIRS, save)
    with opened(flags, must_exist=auto or os.path.isfile(folder or "")) as knowledge:
        found: Evaluation | OwnEvaluation = run_on(knowledge, OPERATIONS["eval"], asked, value=True)
        judged = knowledge.measuring.review()
    _write(found, run, report)
    if as_json:
        from concord.ops.reports import report_to_json

        output.emit_json({**report_to_json(found), "feedback": report_to_json(judged)})
    else:
        output.emit("\n\n".join([*_parts(found), *_feedback(judged)]))


def _check_flags(auto: bool, folder: str | None, of_auto: dict[str, Any]) -> None:
    given = [name for name, value in of_auto.items() if value is not None]
    if auto == (folder is not None):
        refuse("name a judged collection, or give --auto, and not both")
    if given and not auto:
        refuse(f"{given[0]} goes with --auto")


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
    folder: str | None,
    unanswerable: tuple[str, ...],
    near_misses: tuple[str, ...],
    split: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Calibrate confidence to your own documents and judged queries.

    DIR is a collection as for `kb eval`, with 50 judged queries or more. What is fitted serves every later
    search with the same embedding model; remove the file that is named to go back to the fit that ships.
    Queries that `kb feedback` was given on count as judged queries too; without DIR they are all that counts.
    """
    asked = Calibrate(folder, unanswerable, split, limit, near_misses)
    with opened(flags, must_exist=False) as knowledge:
        found: Refit = run_on(knowledge, OPERATIONS["calibrate"], asked, value=True)
    if as_json:
        output.emit_json(found)
    else:
        output.emit(_before_and_after(found))
        if found.feedback:
            output.talk(f"with {found.feedback:,} queries that `kb feedback` was given on")
        output.talk(f"kept in {found.path}")


def _write(found: Evaluation | OwnEvaluation, run: Path | None, report: Path | None) -> None:
    from datetime import UTC, datetime

    from concord import __version__
    from concord.core.errors import BadValue
    from concord.quality.evaluate import write_runs
    from concord.quality.report import page

    said, plots = _said(found)
    try:
        if run is not None:
            write_runs(found.runs, run)
        if report is not None:
            report.parent.mkdir(parents=True, exist_ok=True)
            made = f"Concord {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
            whole = page(found.name, said, found.promises, made, plots)
            report.write_text(whole, encoding="utf-8")
    except OSError as fault:
        raise BadValue(
            f"cannot write {fault.filename}: {fault.strerror}", hint="choose another place"
        ) from fault


def _parts(found: Evaluation | OwnEvaluation) -> Iterator[str]:
    said, _ = _said(found)
    return (f"{part.said}\n{output.table(*part.table)}" if part.table else part.said for part in said)


def _said(found: Evaluation | OwnEvaluation) -> tuple[Iterator[Part], str]:
    """Return what there is to say, and the plots beside those of confidence."""
    from concord.quality.own_evaluation import OwnEvaluation
    from concord.quality.own_report import mode_plot, own_parts
    from concord.quality.report import parts

    if isinstance(found, OwnEvaluation):
        return own_parts(found), mode_plot(found.intervals)
    return parts(found), ""


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
