"""One organisation in a PostgreSQL database: what `postgresql://` URLs open."""

from __future__ import annotations

from concord.backends.postgres.cache import PostgresCache
from concord.backends.postgres.catalog import PostgresCatalog
from concord.backends.postgres.connections import Connections
from concord.backends.postgres.lexical import PostgresLexical
from concord.backends.postgres.location import Location, locate
from concord.backends.postgres.migrations import bring_up_to_date
from concord.backends.postgres.vectors import PostgresVectors


class PostgresStore:
    """The storage of one organisation, until it is closed."""

    def __init__(self, location: Location, org: int) -> None:
        self._connections = Connections(location, org)
        self.catalog = PostgresCatalog(self._connections)
        self.lexical = PostgresLexical(self._connections)
        self.vectors = PostgresVectors(self._connections)
        self.cache = PostgresCache(self._connections)

    @classmethod
    def open(cls, url: str, org: str) -> PostgresStore:
        """Open an organisation's rows, making the tables when there are none and migrating them when old.

        Raises:
            BadValue: the URL or the organisation's name is not of the form it must have.
            StoreError: the database cannot be used as it is.
            BackendDown: the server does not answer.
        """
        location = locate(url, org)
        return cls(location, bring_up_to_date(location))

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()
