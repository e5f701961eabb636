"""Which server, database and organisation a store URL means.

postgresql://user:password@host:5432/database?option=value   as libpq reads it; `postgres://` is the same
"""

from __future__ import annotations

from typing import Any

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from concord.core.errors import BadValue
from concord.core.values import check_org

# A server that does not answer must be told from a slow one before a tool call gives up (10 s).
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 30,
    "application_name": "concord",
}


class Location(Struct, frozen=True):
    """How to connect, and for whom."""

    conninfo: str
    server: str  # for messages: without user and password
    org: str


def locate(url: str, org: str) -> Location:
    """Return where an organisation is kept.

    Raises:
        BadValue: the URL or the organisation's name is not of the form it must have.
    """
    check_org(org)
    try:
        given = {key: value for key, value in conninfo_to_dict(url).items() if value is not None}
        conninfo = make_conninfo(**{**_DEFAULTS, **given})
        int(given.get("connect_timeout", 0))  # the one number that psycopg reads itself
    except (psycopg.Error, ValueError) as fault:
        raise BadValue(
            "the store's URL is not one that PostgreSQL understands",
            hint="write postgresql://user@host:5432/database",
        ) from fault
    place = f"{given.get('host') or 'localhost'}:{given.get('port') or 5432}"
    return Location(conninfo, f"{place}/{given.get('dbname') or given.get('user') or ''}", org)
