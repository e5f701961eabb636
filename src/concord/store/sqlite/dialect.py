"""SQLite's own SQL: types of columns, the forms of shared statements, its full-text index and triggers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from concord.store.rows import list_column
from concord.store.sql import Dialect, Values

_LIST = re.compile(r"IN \(:(\w+)( as bytes)?\.\.\.\)")
_JSON_LIST = re.compile(r"json_list\((\w+), (\w+)\)")

# The index has the content of kb_chunks: it takes a row out by being given exactly what was put in.
WORDS = """
CREATE VIRTUAL TABLE kb_chunks_fts USING fts5(
    title, content, tags, terms,
    content='kb_chunks', content_rowid='id', tokenize='porter unicode61'
);
CREATE VIRTUAL TABLE kb_chunks_vocab USING fts5vocab('kb_chunks_fts', 'row');
CREATE TRIGGER kb_chunks_updated AFTER UPDATE OF title, content, tags, terms ON kb_chunks
WHEN (old.title, old.content, old.tags, old.terms) IS NOT (new.title, new.content, new.tags, new.terms) BEGIN
    INSERT INTO kb_chunks_fts (kb_chunks_fts, rowid, title, content, tags, terms)
        VALUES ('delete', old.id, old.title, old.content, old.tags, old.terms);
    INSERT INTO kb_chunks_fts (rowid, title, content, tags, terms)
        VALUES (new.id, new.title, new.content, new.tags, new.terms);
END;
"""
INSERTED_TRIGGER = """
CREATE TRIGGER kb_chunks_inserted AFTER INSERT ON kb_chunks BEGIN
    INSERT INTO kb_chunks_fts (rowid, title, content, tags, terms)
        VALUES (new.id, new.title, new.content, new.tags, new.terms);
    UPDATE kb_meta SET value = value + 1 WHERE key = 'chunks';
END;
"""
DELETED_TRIGGER = """
CREATE TRIGGER kb_chunks_deleted AFTER DELETE ON kb_chunks BEGIN
    INSERT INTO kb_chunks_fts (kb_chunks_fts, rowid, title, content, tags, terms)
        VALUES ('delete', old.id, old.title, old.content, old.tags, old.terms);
    UPDATE kb_meta SET value = value - 1 WHERE key = 'chunks';
END;
"""

_CHUNKS_OF = "INSERT INTO kb_outbox (chunk) SELECT id FROM kb_chunks WHERE document ="
_FIELDS = ("source", "path", "type", "mtime_ns", "superseded_by")  # of a document, that filters ask for
_OLD, _NEW = (", ".join(f"{row}.{field}" for field in _FIELDS) for row in ("old", "new"))
_WATCH = {
    "kb_outbox_chunk_deleted": """AFTER DELETE ON kb_chunks
        BEGIN INSERT INTO kb_outbox (chunk) VALUES (old.id); END""",
    "kb_outbox_chunk_moved": """AFTER UPDATE OF position ON kb_chunks WHEN old.position <> new.position
        BEGIN INSERT INTO kb_outbox (chunk) VALUES (new.id); END""",
    "kb_outbox_document": f"""AFTER UPDATE ON kb_documents WHEN ({_OLD}) IS NOT ({_NEW})
        BEGIN {_CHUNKS_OF} new.key; END""",
    "kb_outbox_tag_added": f"AFTER INSERT ON kb_document_tags BEGIN {_CHUNKS_OF} new.document; END",
    "kb_outbox_tag_deleted": f"AFTER DELETE ON kb_document_tags BEGIN {_CHUNKS_OF} old.document; END",
}


class SQLiteDialect(Dialect):
    """What SQLite's SQL has of its own."""

    types: Mapping[str, str] = {
        "key": "INTEGER PRIMARY KEY",
        "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",  # never used again, even after the last was deleted
        "int": "INTEGER",
        "real": "REAL",
        "text": "TEXT",
        "bytes": "BLOB",
        "any": "ANY",
        "any_text": "ANY",
        "plain": "STRICT",
        "clustered": "STRICT, WITHOUT ROWID",
    }
    number_after = """DELETE FROM sqlite_sequence WHERE name = '{table}';
        INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', :last)"""
    glob = "kb_glob(:glob, path)"
    watch = "".join(f"CREATE TRIGGER {name} {body};" for name, body in _WATCH.items())
    unwatch = "".join(f"DROP TRIGGER IF EXISTS {name};" for name in _WATCH)

    def glob_value(self, glob: str) -> str:
        """Return the glob: a function of ours matches it."""
        return glob


DIALECT = SQLiteDialect()


@lru_cache(maxsize=512)
def translated(statement: str) -> str:
    """Return a shared statement in SQLite's form."""
    return _JSON_LIST.sub(r"json_group_array(\1 ORDER BY \2)", _LIST.sub(_from_json, statement))


def bound(values: Values) -> Values:
    """Return values as SQLite takes them: lists as JSON, with bytes in it in hexadecimal."""
    if list not in map(type, values.values()):  # of most statements, and of all that write many rows
        return values
    return {name: _json_list(value) if isinstance(value, list) else value for name, value in values.items()}


def _from_json(match: re.Match[str]) -> str:
    value = "unhex(value)" if match[2] else "value"
    return f"IN (SELECT {value} FROM json_each(:{match[1]}))"


def _json_list(values: list[Any]) -> str:
    return list_column([value.hex() if isinstance(value, bytes) else value for value in values])
