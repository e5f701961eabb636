"""Is a knowledge base well? The store is asked about itself; then its files, its model and the machine.

Each check yields findings and changes nothing. `treat` puts right what is safe to: what is derived is built
anew, what is gone from the disk is forgotten, what has no vector gets one.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from concord.core.errors import Action, Hint, KBError, Unreadable, joined
from concord.core.protocols import Embedder, Progress
from concord.core.reports import CheckName, FaultName, Finding, SourceSummary, Stats, SyncReport
from concord.files.state import Files, check_disk
from concord.files.walk import walk_source
from concord.index.embedding import embed_pending
from concord.store.contract import Catalog, Select, Store
from concord.types import Document, Identity, Source

LEAST_FREE_BYTES = 200_000_000  # plus the size of the store: rewriting it takes as much for a while
_NAMED = 3  # examples in a sentence
_SPOILED: frozenset[FaultName] = frozenset({"integrity", "texts", "notes"})  # what is read again where it is
_UNFIT_EMBEDDER: frozenset[FaultName] = frozenset({"provider", "model"})  # if found, nothing can be embedded


class DoctorTools(NamedTuple):
    """What is examined. Parts are opened by the checks: one that does not open is a finding."""

    store: Callable[[], Store]
    embedder: Callable[[], Embedder | None]
    sync: Callable[[Source], SyncReport]  # embeds nothing
    restore: Callable[[], object]  # puts notes into the store that it has lost
    folder: str  # our data directory, whose disk is looked at where the store is no file


class Diagnosis(NamedTuple):
    """What was checked, what is wrong now, and what was wrong before it was repaired."""

    checks: tuple[CheckName, ...]
    findings: tuple[Finding, ...]
    fixed: tuple[Finding, ...] = ()
    broken_links: int = 0  # which are for the writers of documents to mend: nothing is wrong with the store


def diagnose(tools: DoctorTools, *, fix: bool, progress: Progress) -> Diagnosis:
    """Examine a knowledge base; with `fix`, repair it and examine it again."""
    checks = ("open", *CHECKS)
    found = examine(tools)
    if not fix or not any(finding.is_repairable for finding in found):
        return Diagnosis(checks, found, broken_links=_broken_links(tools))
    treat(found, tools, progress)
    left = examine(tools)
    still = {finding.fault for finding in left}
    fixed = tuple(finding for finding in found if finding.fault not in still)
    return Diagnosis(checks, left, fixed, _broken_links(tools))


def _broken_links(tools: DoctorTools) -> int:
    """Return how many links lead to no document; of a store that cannot be read none are known."""
    with suppress(KBError):
        return len(tools.store().links.broken())
    return 0


def examine(tools: DoctorTools) -> tuple[Finding, ...]:
    """Run every check; of a store that does not open or is damaged, only those that do not rely on it."""
    try:
        tools.store().catalog.snapshot()
    except KBError as fault:
        return (Finding("store", fault.message, fault.hint or ""), *_machine(tools))
    found = tuple(_checked("storage", tools))
    if any(finding.fault == "integrity" for finding in found):
        return (*found, *_machine(tools))
    others = (name for name in CHECKS if name != "storage")
    return (*found, *(finding for name in others for finding in _checked(name, tools)))


def treat(findings: Sequence[Finding], tools: DoctorTools, progress: Progress) -> None:
    """Repair what is repairable; vectors have to wait if the embedder is down, or is another one."""
    store = tools.store()
    faults = {finding.fault for finding in findings}
    store.repair(findings)
    sources = {source.id: source for source, _ in _ghosts(store)}
    if _SPOILED & faults:
        tools.restore()
        sources = {source.id: source for source in store.catalog.snapshot().sources if source.path}
    for source in sources.values():
        with suppress(KBError):  # what it does not forget, or read again, is found again
            tools.sync(source)
    counts = store.catalog.count()
    if counts.chunks > counts.vectors and faults.isdisjoint(_UNFIT_EMBEDDER):
        embed_pending(store, tools.embedder(), progress)
    store.maintain(progress)


def _checked(name: CheckName, tools: DoctorTools) -> Iterator[Finding]:
    """Run a check; an error that stops it is a finding, too."""
    try:
        yield from CHECKS[name](tools)
    except KBError as fault:
        yield Finding(name, fault.message, fault.hint or "")


def _sources(tools: DoctorTools) -> Iterator[Finding]:
    """Find sources that cannot be read any more; of parts of them every sync tells."""
    catalog = tools.store().catalog
    for source in catalog.snapshot().sources:
        if source.path is None:
            continue
        try:
            walk_source(source, max_bytes=0)
            if catalog.count(source.id).documents:
                check_disk(source)
        except Unreadable as fault:
            yield Finding("sources", joined(": ", source.name, fault.message), fault.hint or "")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def _files(tools: DoctorTools) -> Iterator[Finding]:
    gone = [document.path for _, document in _ghosts(tools.store())]
    if gone:
        said = f"{len(gone):,} documents whose file is gone: {_some(gone)}"
        yield Finding("ghosts", said, Hint(Action.SYNC, "{sync} forgets them, and so does {repair}"), True)


def _ghosts(store: Store) -> Iterator[tuple[Source, Document]]:
    for source in store.catalog.snapshot().sources:
        if source.path is not None:
            files = Files([source])
            documents = store.catalog.documents(Select(source_id=source.id))
            yield from ((source, document) for document in documents if files.is_deleted(document))


def _vectors(tools: DoctorTools) -> Iterator[Finding]:
    store = tools.store()
    identity = _active(store)
    if identity and not store.outbox.is_empty():
        store.models.index(identity).fetch([0])  # raises where vectors are elsewhere than the settings say
    counts = store.catalog.count()
    waiting = counts.chunks - counts.vectors
    if waiting > 0:
        said = f"{waiting:,} of {counts.chunks:,} chunks have no vector and are found by words alone"
        yield Finding("embedding", said, Hint(Action.SYNC, "{sync} embeds them, and so does {repair}"), True)


def _active(store: Store) -> Identity | None:
    active = store.catalog.snapshot().active
    return active.identity if active else None


def _provider(tools: DoctorTools) -> Iterator[Finding]:
    """Whether the embedder answers, as it should, and is the one that made the vectors."""
    embedder = tools.embedder()
    theirs = _active(tools.store())
    if embedder is None:
        if theirs is not None:
            hint = Hint(Action.WORDS_ONLY, "set embed.provider, or search with {words_only}")
            yield Finding("model", f"no provider is set, but {theirs.model} made the vectors", hint)
        return
    embedder.embed_query("Is anybody there?")
    if check := getattr(embedder, "check", None):  # of the bundled model it is known what it should return
        check()
    mine = embedder.identity
    if theirs is not None and theirs != mine:
        said = f"the vectors are of {theirs.name}, but the model that opens is {mine.name}"
        hint = Hint(Action.MODELS_ADD, "{models_add} builds vectors of a model beside those that are there")
        yield Finding("model", said, hint)


def _machine(tools: DoctorTools) -> Iterator[Finding]:
    file = _file(tools)
    home = file.parent if file else Path(tools.folder)
    folder = next(parent for parent in (home, *home.parents) if parent.is_dir())
    size = file.stat().st_size if file and file.exists() else 0
    free, wanted = shutil.disk_usage(folder).free, LEAST_FREE_BYTES + size
    if free < wanted:
        said = f"{free / 1e6:,.0f} MB are free on the disk of {folder}; {wanted / 1e6:,.0f} MB may be needed"
        yield Finding("disk", said, Hint(Action.STORE, "free some space, or use another {store}"))


def _file(tools: DoctorTools) -> Path | None:
    """Return the file of a store that is one; None also for one that does not open."""
    try:
        path = tools.store().place.path
    except KBError:
        return None
    return None if path is None else Path(path)


CHECKS: dict[CheckName, Callable[[DoctorTools], Iterator[Finding]]] = {
    "storage": lambda tools: iter(tools.store().check()),
    "sources": _sources,
    "files": _files,
    "vectors": _vectors,
    "provider": _provider,
    "machine": _machine,
}


def summary(catalog: Catalog, source: Source) -> SourceSummary:
    """Return a source with its counts."""
    return SourceSummary(source, catalog.count(source.id))


def stats(store: Store, org: str, url: str) -> Stats:
    """Return the state of a knowledge base, which is kept at a URL."""
    catalog = store.catalog
    counts, home = catalog.count(), store.outbox.home().url
    pending = counts.chunks - counts.vectors
    return Stats(
        org=org,
        store=url,
        size_bytes=_size(store.place.path) if store.place.path else None,
        counts=counts,
        pending=pending,
        identity=_active(store),
        cache=store.cache.usage(),
        index=None if home else store.vector_index_state(),  # another server has an index of its own
        generation=catalog.snapshot().generation,
        types=catalog.count_types(),
        feedback=Counter(feedback.opinion for feedback in store.journal.feedback()),
        vectors_home=home,
        problems=tuple(_problems(counts.documents, pending)),
    )


def _problems(documents: int, pending: int) -> Iterator[str]:
    if not documents:
        yield Hint(Action.ADD, "nothing is indexed yet: {add} indexes a folder, {note} keeps a note")
    if pending:
        left = f"{pending:,} chunks are left to embed, and found by words alone until then"
        yield Hint(Action.SYNC, f"{left}: {{sync}}")


def _size(path: str) -> int | None:
    """Return what a store takes on the disk, with the log of a database, which may be the larger part."""
    files = [file for file in (path, f"{path}-wal", f"{path}-shm") if os.path.exists(file)]
    return sum(map(os.path.getsize, files)) if files else None
