"""One organisation in one SQLite file: what `sqlite://` URLs open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from concord.backends.sqlite.catalog import SQLiteCatalog
from concord.backends.sqlite.connections import Connection, Readers, Writer
from concord.backends.sqlite.lexical import SQLiteLexical
from concord.backends.sqlite.location import Location, locate
from concord.backends.sqlite.migrations import bring_up_to_date, make_if_missing
from concord.backends.sqlite.opened_file import OpenedFile
from concord.core.errors import BackendDown, StoreBusy
from concord.types import Glance

if TYPE_CHECKING:
    from concord.backends.sqlite.cache import SQLiteCache
    from concord.backends.sqlite.graph_search import Plan
    from concord.backends.sqlite.graph_upkeep import Graphs
    from concord.backends.sqlite.journal import SQLiteJournal
    from concord.backends.sqlite.ledger import SQLiteLedger
    from concord.backends.sqlite.spaces import SQLiteSpaces
    from concord.backends.sqlite.vectors import SQLiteVectors
    from concord.core.protocols import Progress
    from concord.core.reports import Finding, VectorIndexState


class SQLiteStore:
    """The storage of one organisation, until it is closed.

    What a search by words does not touch is made, and its module imported, when it is first asked for.
    """

    def __init__(self, location: Location, options: Mapping[str, Any] | None = None) -> None:
        self._location = location
        self._options = options or {}
        self.path = location.path
        self._is_to_shrink = False
        self._file = OpenedFile(location.path, self._make_ready)
        self._readers = Readers(location, self._file)
        self._vec_readers = Readers(location, self._file, Connection.load_vec0)
        self._writer = Writer(location, self._file)
        self.catalog = SQLiteCatalog(location, self._readers, self._writer)
        self.lexical = SQLiteLexical(self._readers)

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> SQLiteStore:
        """Open an organisation's file, migrating it when it is old; where there is none, a change makes it.

        Of the options it heeds `vectors.index` and `vectors.index_from`.

        Raises:
            BadValue: the URL or the organisation's name is not of the form it must have.
            StoreError: the file cannot be used as it is.
            BackendDown: the disk refuses.
        """
        location = locate(url, org)
        store = cls(location, options)
        if not store.is_begun:
            return store
        try:
            bring_up_to_date(location, store._readers)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def is_begun(self) -> bool:
        """Whether there is a file."""
        return not self._file.is_missing()

    def others(self) -> list[str]:
        """Return the organisations that have a file in the same folder."""
        from concord.backends.organisations_beside import organisations_beside

        return organisations_beside(self.path) if self._location.is_one_of_many else []

    def _make_ready(self) -> None:
        """Make the file, or bring one up to date that was put in the place of ours."""
        readers = Readers(self._location, OpenedFile(self._location.path))
        try:
            make_if_missing(self._location)
            bring_up_to_date(self._location, readers)
        finally:
            readers.close()

    @cached_property
    def vectors(self) -> SQLiteVectors:
        """The vectors of the active space."""
        from concord.backends.sqlite.vectors import SQLiteVectors

        return SQLiteVectors(self._readers, self._vec_readers, self._writer, self._plan)

    @cached_property
    def spaces(self) -> SQLiteSpaces:
        """The spaces of vectors, one a model."""
        from concord.backends.sqlite.spaces import SQLiteSpaces

        return SQLiteSpaces(self._readers, self._vec_readers, self._writer, self._plan)

    @cached_property
    def _plan(self) -> Plan:
        from concord.backends.sqlite.graph_search import LEAST, Plan

        is_wanted = self._options.get("vectors.index", "auto") != "off"
        return Plan(self._location.path, is_wanted, self._options.get("vectors.index_from", LEAST))

    @cached_property
    def cache(self) -> SQLiteCache:
        """The embeddings of texts seen before."""
        from concord.backends.sqlite.cache import SQLiteCache

        return SQLiteCache(self._readers, self._writer)

    @cached_property
    def ledger(self) -> SQLiteLedger:
        """What vectors kept outside have yet to learn."""
        from concord.backends.sqlite.ledger import SQLiteLedger

        return SQLiteLedger(self._location, self._readers, self._writer)

    @cached_property
    def journal(self) -> SQLiteJournal:
        """How often documents are read, and what people think of results."""
        from concord.backends.sqlite.journal import SQLiteJournal

        return SQLiteJournal(self._readers, self._writer)

    def unique_id(self) -> str:
        """Return which file it is, by whatever name it was opened."""
        from concord.backends.file_identity import file_identity

        return file_identity(self.path)

    def glance(self) -> Glance:
        """Return the generation, the sources by name, the active space and whether anything is superseded."""
        catalog, space = self.catalog, self.spaces.active()
        return Glance(catalog.generation(), catalog.sources(), space, has_superseded=catalog.has_superseded())

    def check(self) -> list[Finding]:
        """Look for damage, indexes out of step, orphans and lost vectors; changes nothing."""
        if not self.is_begun:
            return []  # comparing words would make a file
        from concord.backends.sqlite.checks import find_faults  # no search needs to load it

        # On connections of its own: one that has read the full-text index remembers what a repair replaces.
        readers = Readers(self._location, self._file, Connection.load_vec0)
        try:
            found = find_faults(readers, self._writer)
            is_damaged = any(finding.fault == "integrity" for finding in found)
            return found if is_damaged else [*found, *self._graphs().check()]
        finally:
            readers.close()

    def repair(self, findings: Sequence[Finding]) -> None:
        """Put right what can be: indexes are built anew, orphans deleted, lost vectors made again.

        A damaged index of vectors is only forgotten: `tend` builds it, which takes long. Nor is free space
        given back before that.
        """
        from concord.backends.sqlite.repairs import put_right

        put_right(findings, self._writer)
        self._graphs().forget_damaged()
        self._is_to_shrink = any(finding.fault == "space" for finding in findings)

    def tend(self, progress: Progress) -> None:
        """Build or grow the indexes of vectors where that is worth it, and give back what a repair freed."""
        if self.is_begun:
            self._graphs().tend(progress)
        if self._is_to_shrink:
            self._shrink(progress)

    def _shrink(self, progress: Progress) -> None:
        from concord.backends.sqlite.upkeep import shrink

        self._is_to_shrink = False
        with suppress(StoreBusy, BackendDown):  # nothing was lost: it is found again
            shrink(self._writer, progress)

    def backup(self, path: str, progress: Progress) -> None:
        """Copy what is stored now to a file, in place of an older copy that may be there."""
        from concord.backends.sqlite.backups import write_backup

        write_backup(self._readers, path, progress)

    def index_state(self) -> VectorIndexState:
        """Tell whether there is an index of the vectors that searches use."""
        return self._graphs().state()

    def _graphs(self) -> Graphs:
        from concord.backends.sqlite.graph_upkeep import Graphs  # no search needs to load it

        return Graphs(self._plan, self._readers, self._vec_readers, self._writer)

    def close(self) -> None:
        """Close all connections."""
        for connections in (self._readers, self._vec_readers, self._writer):
            connections.close()
