"""`kb add`, `kb sync`, `kb list` and `kb remove`: what is indexed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse, tags_option
from concord.cli.faults import SOME_FAILED
from concord.cli.progress import progress_shown
from concord.cli.words import in_words
from concord.core.reports import FILE_COUNTS, sentence
from concord.visible import one_line

if TYPE_CHECKING:
    from concord.core.reports import Failure, SyncReport
    from concord.knowledge import KnowledgeBase
    from concord.types import Source

MOST_NAMED = 5  # files of one kind in a report; --json names all

no_embed_option = click.option(
    "--no-embed", is_flag=True, help="Words only for now; the next `kb sync` embeds."
)


@command(
    "add",
    "kb add ./docs",
    "kb add ~/papers --name papers --pattern '*.pdf' --tags research",
    "kb add ./downloads ./mail --untrusted --no-embed",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--name", metavar="N", help="The name of a single PATH (default: the folder's).")
@click.option(
    "--pattern", "patterns", metavar="GLOB", multiple=True, help="Only files that match; repeatable."
)
@tags_option("Tags for all of its documents.")
@click.option("--untrusted", is_flag=True, help="Its content comes from strangers: results from it say so.")
@no_embed_option
def add(
    flags: Flags,
    paths: tuple[str, ...],
    name: str | None,
    patterns: tuple[str, ...],
    tags: tuple[str, ...],
    untrusted: bool,
    no_embed: bool,
    as_json: bool,
) -> int:
    """Index folders or files, each as a source of its own.

    Follows .gitignore and .kbignore. A path that was added before is brought up to date: its patterns and
    tags stay unless others are given, and --pattern '**' takes every file again. Every file is searchable by
    words soon after it is read; an interrupted run loses nothing. With --json, several paths are told of as
    by `kb sync`.
    """
    if name is not None and len(paths) > 1:
        refuse("--name is for a single PATH")
    reports = []
    with opened(flags, must_exist=False) as knowledge:
        for path in paths:
            with progress_shown() as progress:
                report = knowledge.add(
                    path,
                    name=name,
                    patterns=patterns,
                    tags=tags,
                    trust="untrusted" if untrusted else "trusted",
                    embed=not no_embed,
                    progress=progress,
                )
            reports.append(report)
            if not as_json:
                output.emit(summary(report))
            if report.source.patterns and not patterns:
                _say_patterns(report.source)
    if as_json:
        from concord.wire_reports import report_to_json, sync_reports_to_json

        output.emit_json(report_to_json(reports[0]) if len(paths) == 1 else sync_reports_to_json(reports))
    return SOME_FAILED if any(report.failed for report in reports) else 0


def _say_patterns(source: Source) -> None:
    output.talk(f"only files like {_patterns(source)}, as said before: --pattern '**' takes all")


@command("sync", "kb sync", "kb sync docs papers", "kb sync --watch")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--watch", is_flag=True, help="Go on, and sync again whenever files change, until Ctrl-C.")
@no_embed_option
def sync(flags: Flags, sources: tuple[str, ...], watch: bool, no_embed: bool, as_json: bool) -> int:
    """Bring sources up to date with their files, all of them or those named.

    Unchanged files cost one look each. Also finishes what an interrupted run has left to embed. With --watch
    a line on stderr tells of each sync that found something; with --json, a line of JSON on stdout.
    """
    if watch:
        return _watch(flags, sources, embed=not no_embed, as_json=as_json)
    with opened(flags) as knowledge, progress_shown() as progress:
        reports = knowledge.sync(sources, embed=not no_embed, progress=progress)
    if as_json:
        from concord.wire_reports import sync_reports_to_json

        output.emit_json(sync_reports_to_json(reports))
    elif reports:
        output.emit("\n".join(map(summary, reports)))
    else:
        output.talk("there are no sources yet: `kb add PATH` indexes a folder")
    return SOME_FAILED if any(report.failed for report in reports) else 0


def _watch(flags: Flags, sources: tuple[str, ...], *, embed: bool, as_json: bool) -> int:
    from concord.wire import to_text
    from concord.wire_reports import report_to_json

    with opened(flags, must_exist=False) as knowledge:
        try:
            for report in knowledge.watch(sources, embed=embed):
                if as_json:
                    output.emit(to_text(report_to_json(report)))
                output.talk(_one_line(report))
        except KeyboardInterrupt:
            output.talk("stopped watching")
    return 0


def _one_line(report: SyncReport) -> str:
    failed = f" · failed {len(report.failed):,}: {in_words(report.failed[0].reason)}" if report.failed else ""
    left = f" · {report.pending:,} chunks left to embed" if report.pending else ""
    return _first_line(report) + left + failed


@command("list", "kb list", "kb list docs", "kb list --json")
@click.argument("source", required=False)
def list_sources(flags: Flags, source: str | None, as_json: bool) -> None:
    """List the sources, or the documents of one."""
    with opened(flags) as knowledge:
        if source is None:
            _list_sources(knowledge, as_json=as_json)
        else:
            _list_documents(knowledge, source, as_json=as_json)


@command("remove", "kb remove docs", "kb remove docs --json")
@click.argument("source")
@click.option("--force", is_flag=True, help="Also notes, which are in no file: they are gone for good.")
def remove(flags: Flags, source: str, force: bool, as_json: bool) -> None:
    """Remove a source from the index: its vectors, chunks and documents. The files themselves stay.

    Notes are in no file: `kb note --export` saves them first, and only --force removes them.
    """
    with opened(flags) as knowledge:
        removal = knowledge.remove(source, force=force)
    if as_json:
        from concord.wire_reports import report_to_json

        output.emit_json(report_to_json(removal))
        return
    name, documents, vectors = removal.source.name, removal.documents_deleted, removal.vectors_deleted
    output.emit(f"✓ Removed source: {one_line(name)} ({documents} documents, {vectors} vectors)")


def summary(report: SyncReport) -> str:
    """Return what one sync did: a line, then what was skipped, failed or is left to do."""
    return "\n".join([_first_line(report), *(f"  {line}" for line in _further_lines(report))])


def _first_line(report: SyncReport) -> str:
    done = [f"{getattr(report, name):,} {name}" for name in FILE_COUNTS if getattr(report, name)]
    what = ", ".join(done) or "nothing to index"
    written = "1 chunk" if report.chunks == 1 else f"{report.chunks:,} chunks"
    return f"{one_line(report.source.name)}: {what} · {written} written in {report.took_s:.1f} s"


def _further_lines(report: SyncReport) -> Iterator[str]:
    if report.skipped:
        reasons = ", ".join(f"{count:,} {one_line(reason)}" for reason, count in report.skipped.items())
        yield f"skipped {sum(report.skipped.values()):,}: {reasons}"
        yield from _named([f"{one_line(one.path)}: {one_line(one.reason)}" for one in _rarest_first(report)])
    if report.partly_read:
        unread = sum(one.pages_without_text for one in report.partly_read)
        yield f"{unread:,} pages without text, which OCR such as ocrmypdf makes readable:"
        yield from _named([one_line(sentence(one)) for one in report.partly_read])
    if report.failed:
        yield f"failed {len(report.failed):,}:"
        yield from (
            f"  {one_line(failure.path)}: {one_line(in_words(failure.reason))}" for failure in report.failed
        )
    if report.embedded or report.reused:
        yield f"embedded {report.embedded:,} chunks, {report.reused:,} more were known already"
    if report.overflowed:
        yield (
            f"{report.overflowed:,} chunks are longer than the model reads at once and were embedded in parts"
            ": a lower ingest.chunk_tokens suits it better"
        )
    if report.pending:
        why = f" ({one_line(in_words(report.degraded))})" if report.degraded else ""
        yield f"{report.pending:,} chunks left to embed{why}: `kb sync`"


def _rarest_first(report: SyncReport) -> list[Failure]:
    """Return what was skipped, the rarest reason first: a hundred pictures must not hide the one contract."""
    return sorted(report.skipped_files, key=lambda one: report.skipped[one.reason])


def _named(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:MOST_NAMED])
    if len(lines) > MOST_NAMED:
        yield f"  … and {len(lines) - MOST_NAMED:,} more, which --json names"


def _list_sources(knowledge: KnowledgeBase, *, as_json: bool) -> None:
    from concord.wire import iso_time
    from concord.wire_reports import report_to_json

    summaries = knowledge.sources()
    if as_json:
        output.emit_json({"sources": [report_to_json(summary) for summary in summaries]})
    elif not summaries:
        output.talk("there are no sources yet: `kb add PATH` indexes a folder")
    else:
        heads = ("source", "documents", "chunks", "vectors", "last sync", "path", "only files like")
        rows = [
            (
                source.name,
                f"{counts.documents:,}",
                f"{counts.chunks:,}",
                f"{counts.vectors:,}",
                iso_time(source.synced_at) or "never",
                source.path or source.kind,
                _patterns(source),
            )
            for source, counts in ((summary.source, summary.counts) for summary in summaries)
        ]
        columns = len(heads) if any(row[-1] for row in rows) else len(heads) - 1
        output.emit(output.table(heads[:columns], [row[:columns] for row in rows]))


def _patterns(source: Source) -> str:
    return one_line(", ".join(source.patterns))


def _list_documents(knowledge: KnowledgeBase, name: str, *, as_json: bool) -> None:
    from concord.wire import document_to_json

    documents = list(knowledge.documents(name))
    if as_json:
        sources = {summary.source.id: summary.source for summary in knowledge.sources()}
        listed = [document_to_json(document, sources[document.source_id]) for document in documents]
        output.emit_json({"documents": listed})
    elif not documents:
        output.talk(f"{name} holds no documents")
    else:
        heads = ("type", "path", "title", "tags")
        rows: Sequence[Sequence[str]] = [(d.type, d.path, d.title, ",".join(d.tags)) for d in documents]
        output.emit(output.table(heads, rows))
