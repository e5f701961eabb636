"""Which rows of which server does a URL lead to? Sockets, names, addresses and roles give them many URLs."""

from __future__ import annotations

from concord.backends.postgres.connections import Connection

# A replica has the same identifier as the server that it follows, and in the end the same rows.
_IDENTIFIER = "SELECT system_identifier::text FROM pg_control_system()"
_IS_ALLOWED = "SELECT has_function_privilege('pg_control_system()', 'execute')"  # unless it was revoked
_STARTED = "SELECT extract(epoch FROM pg_postmaster_start_time())::text"
# Tables of the same name may be in several schemas of a database: `search_path` chooses.
_TABLES = "SELECT oid, 'kb_orgs'::regclass::oid FROM pg_database WHERE datname = current_database()"


def find_birthplace(connection: Connection, org: int) -> str:
    """Return the same as a birthplace; the server is left out where nobody may ask for it."""
    is_allowed = connection.execute(_IS_ALLOWED).fetchone() == (True,)
    (server,) = (connection.execute(_IDENTIFIER).fetchone() if is_allowed else None) or ("",)
    database, tables = connection.execute(_TABLES).fetchone() or ("", "")
    return f"postgresql/{server}/{database}/{tables}/{org}"


def find_unique_id(connection: Connection, org: int) -> str:
    """Return the server, the database, the tables and the organisation."""
    is_allowed = connection.execute(_IS_ALLOWED).fetchone() == (True,)
    (server,) = connection.execute(_IDENTIFIER if is_allowed else _STARTED).fetchone() or ("",)
    database, tables = connection.execute(_TABLES).fetchone() or (0, 0)
    return f"postgresql {server}/{database}/{tables}/{org}"
