"""`kb add`, `kb sync`, `kb list` and `kb remove`: what is indexed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import click
from msgspec import convert

from concord.cli import output
from concord.cli.command import SOME_FAILED, Flags, command, opened, refuse, run, run_on, tags_option
from concord.cli.output import counted
from concord.core.arguments import Add, List, Remove, Sync
from concord.core.errors import KBError
from concord.core.protocols import NO_TEXT_LAYER, READS_SCANS
from concord.core.reports import FILE_COUNTS, PartlyRead, sentence
from concord.ops.reports import report_to_json, summed
from concord.text.json_safe import JsonObject, to_text
from concord.text.visible import one_line
from concord.wire import document_to_json

NO_SOURCES = "there are no sources yet: `kb add PATH` indexes a folder"
MOST_NAMED = 5  # files of one kind in a report; --json names all

_no_embed = click.option("--no-embed", is_flag=True, help="Words only for now; the next `kb sync` embeds.")


@command(
    "add",
    "kb add ./docs",
    "kb add ~/papers --name papers --pattern '*.pdf' --about 'what our field has published'",
    "kb add ./downloads ./mail --untrusted --no-embed",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--name", metavar="N", help="The name of a single PATH (default: the folder's).")
@click.option(
    "--pattern", "patterns", metavar="GLOB", multiple=True, help="Only files that match; repeatable."
)
@tags_option("Tags for all of its documents.")
@click.option("--about", metavar="TEXT", help="One line on what is in it, which AI tools see; '' removes it.")
@click.option("--untrusted", is_flag=True, help="Its content comes from strangers: results from it say so.")
@_no_embed
def add(flags: Flags, paths: tuple[str, ...], untrusted: bool, no_embed: bool, **options: Any) -> int:
    """Index folders or files, each as a source of its own.

    Follows .gitignore and .kbignore. A path that was added before is brought up to date: its patterns and
    tags stay unless others are given, and --pattern '**' takes every file again. Every file is searchable by
    words soon after it is read; of an interrupted run, the next `kb sync` does the rest, for all PATHs. With
    --json, several paths are told of as by `kb sync`.
    """
    if options["name"] is not None and len(paths) > 1:
        refuse("--name is for a single PATH")
    options["trust"] = "untrusted" if untrusted else "trusted"
    reports = []
    with opened(flags, must_exist=False) as knowledge:
        for path in paths if len(paths) > 1 else ():
            with suppress(KBError):  # raised again in its turn
                knowledge.register(path, **options)
        for path in paths:
            report = run_on(knowledge, "add", Add(path, embed=not no_embed, **options))
            reports.append(report)
            if not flags.as_json:
                output.emit(_summary(report))
            kept = knowledge.source(report["source_id"]).source.patterns
            if kept and not options["patterns"]:
                named = ", ".join(kept)
                output.talk(f"only files like {named}, as said before: --pattern '**' takes all")
    if flags.as_json:
        output.emit_json(reports[0] if len(reports) == 1 else summed(reports))
    return SOME_FAILED if any(report["failed"] for report in reports) else 0


@command("sync", "kb sync", "kb sync docs papers", "kb sync --watch")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--watch", is_flag=True, help="Go on, and sync again whenever files change, until Ctrl-C.")
@_no_embed
def sync(flags: Flags, sources: tuple[str, ...], watch: bool, no_embed: bool) -> int:
    """Bring sources up to date with their files, all of them or those named.

    Unchanged files cost one look each. Also finishes what an interrupted run has left to embed. With --watch
    a line on stderr tells of each sync that found something; with --json, a line of JSON on stdout.
    """
    if watch:
        _watch(flags, sources, embed=not no_embed)
        return 0
    done = run(flags, "sync", Sync(sources=sources, embed=not no_embed))
    if flags.as_json:
        output.emit_json(done)
    elif done["sources"]:
        output.emit("\n".join(_summaries(done["sources"])))
    else:
        output.talk(NO_SOURCES)
    return SOME_FAILED if done["failed"] else 0


def _watch(flags: Flags, sources: tuple[str, ...], *, embed: bool) -> None:
    with opened(flags, must_exist=False) as knowledge:
        try:
            for synced in knowledge.watch(sources, embed=embed):
                report = report_to_json(synced)
                if flags.as_json:
                    output.emit(to_text(report))
                failed, pending = report["failed"], report["pending"]
                left = f" · {pending:,} chunks left to embed" if pending else ""
                told = f" · failed {len(failed):,}: {failed[0]['reason']}" if failed else ""
                output.talk(_first_line(report) + left + told)
        except KeyboardInterrupt:
            output.talk("stopped watching")


@command("list", "kb list", "kb list docs", "kb list --orphans --json")
@click.argument("source", required=False)
@click.option("--orphans", is_flag=True, help="The documents that no other links to.")
def list_sources(flags: Flags, source: str | None, orphans: bool) -> None:
    """List the sources, or the documents of one."""
    if source is None and not orphans:
        listed = run(flags, "list", List())
        flags.show({"sources": listed["sources"]}, _show_sources)
        return
    with opened(flags) as knowledge:
        sources = {summary.source.id: summary.source for summary in knowledge.sources()}
        if source is not None:
            knowledge.source(source)  # or there is none
        found = knowledge.orphans(source) if orphans else knowledge.documents(source)
        documents = [document_to_json(document, sources[document.source_id]) for document in found]
    none = "every document is linked to" if orphans else f"{source} holds no documents"
    heads = {name: name for name in ("type", "path", "title", "tags")}
    flags.show({"documents": documents}, lambda _: output.listed(documents, heads, none))


def _show_sources(listed: JsonObject) -> None:
    heads = {name: name for name in ("source", "documents", "chunks", "vectors")}
    more = {"synced_at": "last sync", "path": "path", "patterns": "only files like", "about": "about"}
    output.listed(listed["sources"], {**heads, **more}, NO_SOURCES)


@command("remove", "kb remove docs", "kb remove docs --json")
@click.argument("source")
@click.option("--force", is_flag=True, help="Also notes, which are in no file: they are gone for good.")
def remove(flags: Flags, source: str, force: bool) -> None:
    """Remove a source from the index: its vectors, chunks and documents. The files themselves stay.

    Notes are in no file: `kb note --export` saves them first, and only --force removes them.
    """
    gone = run(flags, "remove", Remove(source, force))
    counts = f"{gone['documents_deleted']} documents, {gone['vectors_deleted']} vectors"
    flags.show(gone, lambda _: output.emit(f"✓ Removed source: {one_line(gone['source'])} ({counts})"))


def _summaries(reports: Sequence[JsonObject]) -> Iterator[str]:
    """Yield what a sync of several sources did; those in which nothing has changed share a line."""
    quiet = [report for report in reports if _is_quiet(report)]
    yield from (_summary(report) for report in reports if not _is_quiet(report))
    if quiet:
        names = ", ".join(one_line(report["source"]) for report in quiet)
        where = names if len(quiet) <= MOST_NAMED else f"{len(quiet):,} sources"
        files = sum(report["unchanged"] for report in quiet)
        yield f"{where}: nothing has changed ({counted(files, 'document')})"


def _is_quiet(report: JsonObject) -> bool:
    """Whether a sync found all as it was before."""
    told = ("added", "changed", "removed", "renamed", "chunks", "embedded", "reused", "pending", "failed")
    return not any(report[name] for name in told) and "removed meanwhile" not in report["skipped"]


def _summary(report: JsonObject) -> str:
    """Return what one sync did: a line, then what was skipped, failed or is left to do."""
    return "\n".join([_first_line(report), *(f"  {one_line(line)}" for line in _further_lines(report))])


def _first_line(report: JsonObject) -> str:
    done = [f"{report[name]:,} {name}" for name in FILE_COUNTS if report[name]]
    what, written = ", ".join(done) or "nothing to index", counted(report["chunks"], "chunk")
    return f"{one_line(report['source'])}: {what} · {written} written in {report['took_s']:.1f} s"


def _further_lines(report: JsonObject) -> Iterator[str]:
    if skipped := report["skipped"]:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
        yield f"skipped {sum(skipped.values()):,}: {reasons}"
        # The rarest reason first: a hundred pictures must not hide the one contract.
        rarest = sorted(report["skipped_files"], key=lambda file: skipped[file["reason"]])
        yield from _named([f"{file['path']}: {file['reason']}" for file in rarest])
        if NO_TEXT_LAYER in skipped:
            yield f"to read scans: {READS_SCANS}"
    if partly := report["partly_read"]:
        unread = counted(sum(file["pages_without_text"] for file in partly), "page")
        yield f"{unread} without text, which OCR such as ocrmypdf makes readable:"
        yield from _named([sentence(convert(file, PartlyRead)) for file in partly])
    if failed := report["failed"]:
        yield f"failed {len(failed):,}:"
        yield from (f"  {file['path']}: {file['reason']}" for file in failed)
    if report["embedded"] or report["reused"]:
        made = counted(report["embedded"], "chunk")
        yield f"embedded {made}, {report['reused']:,} more were known already"
    if report["pending"]:
        why = f" ({report['degraded']})" if report["degraded"] else ""
        yield f"{counted(report['pending'], 'chunk')} left to embed{why}: `kb sync`"


def _named(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:MOST_NAMED])
    if len(lines) > MOST_NAMED:
        yield f"  … and {len(lines) - MOST_NAMED:,} more, which --json names"
