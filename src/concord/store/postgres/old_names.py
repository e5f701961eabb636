"""The store by its old names, until nobody calls it by these any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from concord.store.old_names import OldStore
from concord.store.postgres.store import PostgresStore


class OldPostgresStore(OldStore):
    """What `postgresql://` URLs open."""

    new: PostgresStore

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> OldPostgresStore:
        """Open an organisation's schema."""
        return cls(PostgresStore.open(url, org, options))
