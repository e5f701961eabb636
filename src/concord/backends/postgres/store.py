"""One organisation in a PostgreSQL database: what `postgresql://` URLs open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from concord.backends.postgres.cache import PostgresCache
from concord.backends.postgres.catalog import PostgresCatalog
from concord.backends.postgres.connections import Connections, Org
from concord.backends.postgres.journal import PostgresJournal
from concord.backends.postgres.ledger import PostgresLedger
from concord.backends.postgres.lexical import PostgresLexical
from concord.backends.postgres.location import Location, locate
from concord.backends.postgres.locks import Locks
from concord.backends.postgres.migrations import bring_up_to_date, make_org
from concord.backends.postgres.spaces import SPACE_COLUMNS, PostgresSpaces, active_of, spaces_of
from concord.backends.postgres.upkeep import tidy_up
from concord.backends.postgres.vectors import PostgresVectors
from concord.core.protocols import Progress
from concord.core.reports import Finding, VectorIndexState
from concord.types import Glance, Source

_GLANCE = f"""
SELECT o.generation, o.types, {SPACE_COLUMNS} FROM kb_orgs AS o
LEFT JOIN kb_spaces AS s ON s.org = o.key AND s.is_active WHERE o.key = %(org)s"""


class PostgresStore:
    """The storage of one organisation, until it is closed."""

    path = None  # the server has its own files

    def __init__(self, location: Location, org: Org, options: Mapping[str, Any] | None = None) -> None:
        self._connections = Connections(location, org, options)
        self._locks = Locks(self._connections)
        # The sources of a generation, and whether any document of it is superseded.
        self._seen: tuple[int, list[Source], bool] | None = None

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> PostgresStore:
        """Open an organisation's rows, making the tables when there are none and migrating them when old.

        Raises:
            BadValue: the URL or the organisation's name is not of the form it must have.
            StoreError: the database cannot be used as it is.
            BackendDown: the server does not answer.
        """
        location = locate(url, org)
        key = bring_up_to_date(location)
        return cls(location, partial(make_org, location) if key is None else key, options)

    @property
    def org(self) -> int:
        """The key of the organisation's row."""
        return self._connections.org

    @property
    def is_begun(self) -> bool:
        """Whether the organisation has ever changed anything: its row is made when a part is first used."""
        return self._connections.has_org and self.catalog.generation() > 0

    # Each part is made when it is first asked for, and the organisation's row with it.

    @cached_property
    def catalog(self) -> PostgresCatalog:
        """Sources, documents and chunks."""
        return PostgresCatalog(self._connections, self._locks)

    @cached_property
    def lexical(self) -> PostgresLexical:
        """The index of words."""
        return PostgresLexical(self._connections)

    @cached_property
    def vectors(self) -> PostgresVectors:
        """The vectors of the active space."""
        return PostgresVectors(self._connections)

    @cached_property
    def spaces(self) -> PostgresSpaces:
        """The vectors of each model."""
        return PostgresSpaces(self._connections)

    @cached_property
    def cache(self) -> PostgresCache:
        """Embeddings that were made before."""
        return PostgresCache(self._connections)

    @cached_property
    def ledger(self) -> PostgresLedger:
        """What is known of vectors outside."""
        return PostgresLedger(self._connections, self._locks)

    @cached_property
    def journal(self) -> PostgresJournal:
        """What was read and what was judged."""
        return PostgresJournal(self._connections)

    def others(self) -> list[str]:
        """Return nobody: policies hide organisations from each other."""
        return []

    def unique_id(self) -> str:
        """Return which rows of which server these are, by whatever name it was reached."""
        from concord.backends.postgres.unique_id import find_unique_id  # no search needs to load it

        return self._connections.read(lambda connection: find_unique_id(connection, self.org))

    def glance(self) -> Glance:
        """Return all that a search has to know before it begins, in one trip.

        Sources and documents change with the generation alone: while it is the same they are not asked for.
        """
        ((generation, types, *space),) = self._connections.rows(_GLANCE)
        if self._seen is None or self._seen[0] != generation:
            self._seen = generation, self.catalog.sources(), self.catalog.has_superseded()
        _, sources, has_superseded = self._seen
        active = active_of(spaces_of([tuple(space)] if space[0] else []))
        known = None if types is None else frozenset(types)
        return Glance(generation, list(sources), active, known, has_superseded)

    def check(self) -> list[Finding]:
        """Look for indexes and counters out of step, orphans and lost vectors; changes nothing."""
        from concord.backends.postgres.checks import find_faults  # no search needs to load it

        return find_faults(self._connections)

    def repair(self, findings: Sequence[Finding]) -> None:
        """Put right what can be: indexes are built anew, orphans deleted, lost vectors made again."""
        from concord.backends.postgres.repairs import put_right

        put_right(findings, self._connections)

    def tend(self, progress: Progress) -> None:
        """Merge small segments, let the server look at what is new, and index vectors once they are many."""
        tidy_up(self._connections)

    def index_state(self) -> VectorIndexState:
        """Tell whether there is an index of the vectors that searches use, and if not, who may build it."""
        from concord.backends.postgres.checks import index_state

        return index_state(self._connections)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()
