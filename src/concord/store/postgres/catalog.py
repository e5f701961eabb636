"""The catalog that all engines share, but for what every search asks: that is one statement here."""

from __future__ import annotations

from msgspec import json

from concord.store.catalog import SqlCatalog
from concord.store.contract import Snapshot
from concord.store.models import space_of
from concord.store.outbox import home_of
from concord.store.overriding import override
from concord.store.rows import SOURCE_COLUMNS, source_of
from concord.types import Home

_SNAPSHOT = f"""
SELECT (SELECT value FROM kb_meta WHERE key = 'generation'),
    (SELECT coalesce(json_agg(json_build_array({SOURCE_COLUMNS}) ORDER BY s.name), '[]')
     FROM kb_sources AS s),
    (SELECT coalesce(json_agg(json_build_array(identity, recipe,
            key = (SELECT value FROM kb_meta WHERE key = 'active_model'), was_active) ORDER BY key), '[]')
     FROM kb_models WHERE is_added = 1),
    EXISTS (SELECT FROM kb_documents WHERE superseded_by IS NOT NULL),
    EXISTS (SELECT FROM kb_vec_meta WHERE key IN ('home', 'key'))"""


class PostgresCatalog(SqlCatalog):
    """The catalog of one organisation."""

    @override
    def snapshot(self) -> Snapshot:
        with self._database.read() as session:
            ((generation, sources, models, has_superseded, has_home),) = session.rows(_SNAPSHOT)
            home = home_of(session, self._database.origin) if has_home else Home("", "")
        return Snapshot(
            generation,
            [source_of(row) for row in json.decode(sources)],
            [space_of(*row) for row in json.decode(models)],
            has_superseded,
            home,
        )
