"""`kb add`, `kb sync`, `kb list` and `kb remove`: what is indexed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from msgspec import convert

from concord.cli import output
from concord.cli.command import SOME_FAILED, Flags, command, opened, refuse, run, run_on, tags_option
from concord.cli.words import in_words
from concord.core.arguments import Add, List, Remove, Sync
from concord.core.errors import KBError
from concord.core.reports import FILE_COUNTS, PartlyRead, sentence
from concord.operations import OPERATIONS, JsonObject
from concord.ops.reports import summed
from concord.text.visible import one_line
from concord.types import Trust

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase
    from concord.types import Document, Source

MOST_NAMED = 5  # files of one kind in a report; --json names all

no_embed_option = click.option(
    "--no-embed", is_flag=True, help="Words only for now; the next `kb sync` embeds."
)


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
@no_embed_option
def add(
    flags: Flags,
    paths: tuple[str, ...],
    name: str | None,
    patterns: tuple[str, ...],
    tags: tuple[str, ...],
    about: str | None,
    untrusted: bool,
    no_embed: bool,
    as_json: bool,
) -> int:
    """Index folders or files, each as a source of its own.

    Follows .gitignore and .kbignore. A path that was added before is brought up to date: its patterns and
    tags stay unless others are given, and --pattern '**' takes every file again. Every file is searchable by
    words soon after it is read; of an interrupted run, the next `kb sync` does the rest, for all PATHs. With
    --json, several paths are told of as by `kb sync`.
    """
    if name is not None and len(paths) > 1:
        refuse("--name is for a single PATH")
    trust: Trust = "untrusted" if untrusted else "trusted"
    asked = [
        Add(path, name=name, patterns=patterns, tags=tags, about=about, trust=trust, embed=not no_embed)
        for path in paths
    ]
    reports = []
    with opened(flags, must_exist=False) as knowledge:
        for args in asked if len(asked) > 1 else ():
            with suppress(KBError):  # raised again in its turn
                knowledge.register(args.path, patterns=patterns, tags=tags, trust=trust, about=about)
        for args in asked:
            reports.append(run_on(knowledge, OPERATIONS["add"], args))
            if not as_json:
                output.emit(summary(reports[-1]))
            if not patterns:
                _say_patterns(knowledge.source(reports[-1]["source_id"]).source)
    if as_json:
        output.emit_json(reports[0] if len(reports) == 1 else summed(reports))
    return SOME_FAILED if any(report["failed"] for report in reports) else 0


def _say_patterns(source: Source) -> None:
    if source.patterns:
        named = one_line(", ".join(source.patterns))
        output.talk(f"only files like {named}, as said before: --pattern '**' takes all")


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
    done = run(flags, "sync", Sync(sources=sources, embed=not no_embed))
    if as_json:
        output.emit_json(done)
    elif done["sources"]:
        output.emit("\n".join(_summaries(done["sources"])))
    else:
        output.talk("there are no sources yet: `kb add PATH` indexes a folder")
    return SOME_FAILED if done["failed"] else 0


def _watch(flags: Flags, sources: tuple[str, ...], *, embed: bool, as_json: bool) -> int:
    from concord.ops.reports import report_to_json
    from concord.text.json_safe import to_text

    with opened(flags, must_exist=False) as knowledge:
        try:
            for report in knowledge.watch(sources, embed=embed):
                wire = report_to_json(report)
                if as_json:
                    output.emit(to_text(wire))
                output.talk(_one_line(wire))
        except KeyboardInterrupt:
            output.talk("stopped watching")
    return 0


def _one_line(report: JsonObject) -> str:
    failed = report["failed"]
    told = f" · failed {len(failed):,}: {in_words(failed[0]['reason'])}" if failed else ""
    left = f" · {report['pending']:,} chunks left to embed" if report["pending"] else ""
    return _first_line(report) + left + told


@command("list", "kb list", "kb list docs", "kb list --orphans --json")
@click.argument("source", required=False)
@click.option("--orphans", is_flag=True, help="The documents that no other links to.")
def list_sources(flags: Flags, source: str | None, orphans: bool, as_json: bool) -> None:
    """List the sources, or the documents of one."""
    if orphans:
        with opened(flags) as knowledge:
            _show_documents(
                list(knowledge.orphans(source)), knowledge, "every document is linked to", as_json
            )
        return
    if source is None:
        _list_sources(run(flags, "list", List()), as_json=as_json)
        return
    with opened(flags) as knowledge:
        _list_documents(knowledge, source, as_json=as_json)


@command("remove", "kb remove docs", "kb remove docs --json")
@click.argument("source")
@click.option("--force", is_flag=True, help="Also notes, which are in no file: they are gone for good.")
def remove(flags: Flags, source: str, force: bool, as_json: bool) -> None:
    """Remove a source from the index: its vectors, chunks and documents. The files themselves stay.

    Notes are in no file: `kb note --export` saves them first, and only --force removes them.
    """
    gone = run(flags, "remove", Remove(source, force))
    if as_json:
        output.emit_json(gone)
        return
    counts = f"{gone['documents_deleted']} documents, {gone['vectors_deleted']} vectors"
    output.emit(f"✓ Removed source: {one_line(gone['source'])} ({counts})")


def _summaries(reports: Sequence[JsonObject]) -> Iterator[str]:
    """Yield what a sync of several sources did; those in which nothing has changed share a line."""
    quiet = [report for report in reports if _is_quiet(report)]
    yield from (summary(report) for report in reports if not _is_quiet(report))
    if quiet:
        names = ", ".join(one_line(report["source"]) for report in quiet)
        where = names if len(quiet) <= MOST_NAMED else f"{len(quiet):,} sources"
        files = sum(report["unchanged"] for report in quiet)
        yield f"{where}: nothing has changed ({_count(files, 'document')})"


def _is_quiet(report: JsonObject) -> bool:
    """Whether a sync found all as it was before."""
    told = ("added", "changed", "removed", "renamed", "chunks", "embedded", "reused", "pending", "failed")
    return not any(report[name] for name in told) and "removed meanwhile" not in report["skipped"]


def summary(report: JsonObject) -> str:
    """Return what one sync did: a line, then what was skipped, failed or is left to do."""
    return "\n".join([_first_line(report), *(f"  {line}" for line in _further_lines(report))])


def _first_line(report: JsonObject) -> str:
    done = [f"{report[name]:,} {name}" for name in FILE_COUNTS if report[name]]
    what, written = ", ".join(done) or "nothing to index", _count(report["chunks"], "chunk")
    return f"{one_line(report['source'])}: {what} · {written} written in {report['took_s']:.1f} s"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _further_lines(report: JsonObject) -> Iterator[str]:
    skipped = report["skipped"]
    if skipped:
        reasons = ", ".join(f"{count:,} {one_line(reason)}" for reason, count in skipped.items())
        yield f"skipped {sum(skipped.values()):,}: {reasons}"
        # The rarest reason first: a hundred pictures must not hide the one contract.
        rarest = sorted(report["skipped_files"], key=lambda file: skipped[file["reason"]])
        yield from _named([f"{one_line(file['path'])}: {one_line(file['reason'])}" for file in rarest])
    if partly := report["partly_read"]:
        unread = _count(sum(file["pages_without_text"] for file in partly), "page")
        yield f"{unread} without text, which OCR such as ocrmypdf makes readable:"
        yield from _named([one_line(sentence(convert(file, PartlyRead))) for file in partly])
    if report["failed"]:
        yield f"failed {len(report['failed']):,}:"
        for file in in_words(report["failed"]):
            yield f"  {one_line(file['path'])}: {one_line(file['reason'])}"
    if report["embedded"] or report["reused"]:
        made = _count(report["embedded"], "chunk")
        yield f"embedded {made}, {report['reused']:,} more were known already"
    if report["overflowed"]:
        yield (
            f"{report['overflowed']:,} chunks are longer than the model reads at once and were embedded in"
            " parts: a lower ingest.chunk_tokens suits it better"
        )
    if report["pending"]:
        why = f" ({one_line(in_words(report['degraded']))})" if report["degraded"] else ""
        yield f"{_count(report['pending'], 'chunk')} left to embed{why}: `kb sync`"


def _named(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:MOST_NAMED])
    if len(lines) > MOST_NAMED:
        yield f"  … and {len(lines) - MOST_NAMED:,} more, which --json names"


def _list_sources(listed: JsonObject, *, as_json: bool) -> None:
    sources = listed["sources"]
    if as_json:
        output.emit_json({"sources": sources})
    elif not sources:
        output.talk("there are no sources yet: `kb add PATH` indexes a folder")
    else:
        heads = ("source", "documents", "chunks", "vectors", "last sync", "path", "only files like", "about")
        rows = [
            (
                source["source"],
                *(f"{source[name]:,}" for name in ("documents", "chunks", "vectors")),
                source["synced_at"] or "never",
                source["path"] or source["kind"],
                ", ".join(source["patterns"]),
                source["about"],
            )
            for source in sources
        ]
        filled = [column for column in zip(heads, *rows, strict=True) if any(column[1:])]
        heads, *rows = zip(*filled, strict=True)
        output.emit(output.table(heads, rows))


def _list_documents(knowledge: KnowledgeBase, name: str, *, as_json: bool) -> None:
    knowledge.source(name)  # or there is none
    _show_documents(list(knowledge.documents(name)), knowledge, f"{name} holds no documents", as_json)


def _show_documents(
    documents: Sequence[Document], knowledge: KnowledgeBase, none: str, as_json: bool
) -> None:
    from concord.wire import document_to_json

    if as_json:
        sources = {summary.source.id: summary.source for summary in knowledge.sources()}
        rows_of = [document_to_json(document, sources[document.source_id]) for document in documents]
        output.emit_json({"documents": rows_of})
    elif not documents:
        output.talk(none)
    else:
        heads = ("type", "path", "title", "tags")
        rows: Sequence[Sequence[str]] = [(d.type, d.path, d.title, ",".join(d.tags)) for d in documents]
        output.emit(output.table(heads, rows))
