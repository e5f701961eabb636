"""`kb models`, `kb eval` and `kb calibrate`: which model is used, how good are the answers?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concord.cli import output
from concord.cli.command import (
    SOME_FAILED,
    Decorator,
    Flags,
    command,
    group,
    opened,
    refuse,
    run,
    run_on,
    together,
)
from concord.core.arguments import OWN_PAIRS, Calibrate, Evaluate, Nothing
from concord.operations import evaluated
from concord.ops.reports import report_to_json
from concord.text.json_safe import JsonObject, json_object
from concord.text.visible import one_line

if TYPE_CHECKING:
    from concord.quality.evaluate import Evaluation, Review


@group("models", "kb models", "kb models add ollama nomic-embed-text", "kb models use nomic-embed-text")
def models(flags: Flags) -> None:
    """List, add, use and remove embedding models.

    A new model's vectors are built beside those that are there, while searches go on with the old ones; an
    interrupted `kb models add` goes on where it was. `kb models use` switches at once, for every process;
    going back is as quick. `kb eval --auto` tells how much is found. Without a command, lists the models.
    """
    _list(flags)


@models.own("list", "kb models list", "kb models list --json")
def list_models(flags: Flags) -> None:
    """List the models whose vectors are kept."""
    _list(flags)


def _list(flags: Flags) -> None:
    flags.show(run(flags, "models", Nothing()), _show_list)


def _show_list(listed: JsonObject) -> None:
    rows = [{"number": number, **model} for number, model in enumerate(listed["models"], 1)]
    heads = {"number": "#", "name": "model", "dimension": "dimensions", "vectors": "vectors"}
    more = {"pending": "pending", "active": "active", "url": "url"}
    output.listed(rows, {**heads, **more}, "there are no vectors yet: `kb add PATH` indexes a folder")


@models.own(
    "add",
    "kb models add multilingual",
    "kb models add ollama nomic-embed-text",
    "kb models add openai bge-m3 --url http://127.0.0.1:8080/v1",
    "kb models add onnx ./my-model",
)
@click.argument("provider")
@click.argument("model", required=False, default="")
@click.option("--url", metavar="URL", default="", help="Where its server is.")
def add(flags: Flags, provider: str, model: str, url: str) -> int:
    """Add a model: build its vectors beside those that are there.

    PROVIDER is bundled, multilingual, onnx, ollama, openai or hashing. What the store remembers is how to
    open the model, never a key.
    """
    with opened(flags, must_exist=False) as knowledge, output.progress_shown() as progress:
        built = knowledge.models.add(provider, model, url, progress)
    flags.show(report_to_json(built), output.facts)
    if not built.is_active and not built.embedding.pending and not flags.as_json:
        output.talk(f"searches still use the other model: `kb models use {built.identity.model}`")
    return SOME_FAILED if built.embedding.pending > built.embedding.refused else 0


@models.own("use", "kb models use nomic-embed-text", "kb models use 2 --force", "kb models use 1 --json")
@click.argument("model")
@click.option("--force", is_flag=True, help="Switch though chunks wait for a vector.")
def use(flags: Flags, model: str, force: bool) -> None:
    """Use a model from now on.

    MODEL is a name, a part of one, or its number in `kb models list`. What has no vector of it yet is
    embedded first.
    """
    with opened(flags) as knowledge, output.progress_shown() as progress:
        switch = knowledge.models.use(model, force=force, progress=progress)
    how = "already" if switch.outcome == "already" else "now"
    line = f"searches use {one_line(switch.identity.name)} {how}"
    flags.show(switch, lambda _: output.emit(line))


@models.own("remove", "kb models remove nomic-embed-text", "kb models remove 1 --json")
@click.argument("model")
def remove(flags: Flags, model: str) -> None:
    """Remove a model's vectors; the one that searches use cannot be removed.

    MODEL is a whole name, or its number in `kb models list`.
    """
    with opened(flags) as knowledge:
        identity, vectors = knowledge.models.remove(model)
    gone = json_object({"name": identity.name, "vectors_deleted": vectors})
    line = f"✓ Removed model: {one_line(identity.name)} ({vectors:,} vectors)"
    flags.show(gone, lambda _: output.emit(line))


_file = click.Path(path_type=Path)
_count = click.IntRange(min=1)


def _on_a_collection(unanswerable: str) -> Decorator:
    """Give a command a judged collection, and which part of it is asked."""
    return together(
        click.argument("folder", metavar="[DIR]", type=click.Path(), required=False),
        click.option("--unanswerable", metavar="OTHER", type=click.Path(), multiple=True, help=unanswerable),
        click.option(
            "--split", metavar="NAME", help="Which judgements: qrels/NAME.tsv (test, else the first)."
        ),
        click.option("--limit", metavar="N", type=_count, help="Ask no more queries than this."),
    )


@command(
    "eval",
    "kb eval --auto",
    "kb eval ./scifact --unanswerable ./cranfield --report quality.html",
    "kb eval questions.json --run runs --json",
)
@click.option("--auto", is_flag=True, help="Ask what your own documents say they are about.")
@click.option("--source", metavar="SOURCE", help="With --auto: only this source's documents.")
@click.option("--n", metavar="N", type=_count, help=f"With --auto: ask at most N ({OWN_PAIRS}).")
@click.option("--save", metavar="OUT", type=click.Path(), help="With --auto: keep what is asked, as a DIR.")
@click.option("--run", metavar="OUT", type=_file, help="Write a TREC run file for each mode there.")
@click.option("--report", metavar="FILE", type=_file, help="Write a page of HTML with the plots.")
@_on_a_collection("Ask the queries in OTHER too: DIR's documents cannot answer them; repeatable.")
def evaluate(flags: Flags, auto: bool, run: Path | None, report: Path | None, **given: Any) -> None:
    """Evaluate search on your own documents, or on a judged collection.

    --auto asks what people wrote in your documents: titles, headings, links, questions, docstrings, whose
    answer is known. They are hidden first, in a copy. DIR holds corpus.jsonl, queries.jsonl and qrels/*.tsv,
    as BEIR has them; it is indexed apart, in the cache directory, and only once. FILE.json holds questions
    and the files of yours that answer them, as qmd has it. A --limit always picks the same queries.
    """
    folder = given["folder"]
    if auto == (folder is not None):
        refuse("name a judged collection, or give --auto, and not both")
    if of_auto := [name for name in ("source", "n", "save") if given[name] is not None and not auto]:
        refuse(f"--{of_auto[0]} goes with --auto")
    asked = Evaluate(**{**given, "n": given["n"] or OWN_PAIRS})
    with (
        opened(flags, must_exist=auto or os.path.isfile(folder or "")) as knowledge,
        output.progress_shown() as progress,
    ):
        found = evaluated(knowledge, asked, progress)
        judged = knowledge.measuring.review()
    _write(found, run, report)
    if flags.as_json:
        output.emit_json({**report_to_json(found), "feedback": report_to_json(judged)})
    else:
        from concord.quality.report import parts

        said = [
            f"{part.said}\n{output.table(*part.table)}" if part.table else part.said for part in parts(found)
        ]
        output.emit("\n\n".join([*said, *_feedback(judged)]))


def _write(found: Evaluation, run: Path | None, report: Path | None) -> None:
    from datetime import UTC, datetime

    from concord import __version__
    from concord.quality.evaluate import write_runs
    from concord.quality.report import page

    if run is not None:
        write_runs(found.runs, run)
    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
        made = f"Concord {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        report.write_text(page(found, made), encoding="utf-8")


def _feedback(judged: Review) -> Iterator[str]:
    """Yield how search does on results that were judged with `kb feedback`, if any were."""
    if judged.good or judged.bad:
        yield (
            f"feedback on your own knowledge base: {judged.good:,} good, {judged.bad:,} bad; "
            f"of {judged.queries:,} queries with a good result, {judged.found:,} have it in the first ten, "
            f"{judged.first:,} at the top"
        )


@command(
    "calibrate",
    "kb calibrate ./judged",
    "kb calibrate ./judged --unanswerable ./other --near-miss unanswered.txt",
    "kb calibrate --json",
)
@_on_a_collection("Queries that DIR's documents cannot answer (else everyday questions); repeatable.")
@click.option(
    "--near-miss",
    "near_misses",
    metavar="FILE",
    type=click.Path(),
    multiple=True,
    help="Queries, one a line, about what the documents speak of and do not answer; repeatable.",
)
def calibrate(flags: Flags, **given: Any) -> None:
    """Calibrate confidence to your own documents and judged queries.

    DIR is a collection as for `kb eval`, with 50 judged queries or more. What is fitted serves every later
    search with the same embedding model; remove the file that is named to go back to the fit that ships.
    Queries that `kb feedback` was given on count as judged queries too; without DIR they are all that counts.
    """
    with opened(flags, must_exist=False) as knowledge:
        found = run_on(knowledge, "calibrate", Calibrate(**given))
    flags.show(found, _show_fit)


def _show_fit(found: JsonObject) -> None:
    rows = []
    for name in ("score", "confidence_score"):
        before, after = found["before"][name], found["after"][name]
        errors = (f"{fit[measure]:.3f}" for measure in ("ece", "brier") for fit in (before, after))
        rows.append((name, f"{before['n']:,}", *errors))
    output.emit(output.table(("", "n", "ECE before", "after", "Brier before", "after"), rows))
    if found["feedback"]:
        output.talk(f"with {found['feedback']:,} queries that `kb feedback` was given on")
    output.talk(f"kept in {found['file']}")
