"""Words by PostgreSQL's means alone, as `postgres.words = native` asks for: another order, nothing to load.

The statement is the design's own: the text is a tsvector of plain words, without stems; its cover density is
the score, and half a point more if the title holds all that was asked for, side by side.
"""

from __future__ import annotations

from typing import Any

from concord.store.postgres.database import DIALECT
from concord.store.postgres.words import BlockWords
from concord.store.rows import condition
from concord.store.sql import override
from concord.store.words import levelled, wanted
from concord.text.tokens import separated
from concord.types import AllOf, AnyOf, Filter, Match, Phrase, Scored, Without, Word

# A column that the server keeps itself: whoever writes a chunk need not know of it.
_MAKE_COLUMN = """DO $$ BEGIN
IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'kb_chunks'::regclass AND attname = 'body_tsv') THEN
    ALTER TABLE kb_chunks ADD COLUMN IF NOT EXISTS body_tsv tsvector
        GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED;
    CREATE INDEX IF NOT EXISTS kb_chunks_body ON kb_chunks USING gin (body_tsv);
END IF; END $$"""
_SEARCH = """
SELECT c.id, ts_rank_cd(c.body_tsv, q) + 0.5 * (c.title ILIKE :title)::int AS rank
FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document, CAST({query} AS tsquery) AS q
WHERE (c.body_tsv @@ q OR c.title ILIKE :title) AND NOT c.body_tsv @@ {dropped} AND {condition}
ORDER BY rank DESC, c.id LIMIT :limit"""
_PLAIN = "plainto_tsquery('simple', :{name})"
_ANY = f"replace({_PLAIN}::text, ' & ', ' | ')::tsquery"
_BEGINNING = f"coalesce((nullif({_PLAIN}::text, '') || ':*')::tsquery, '')"
_PHRASE = "phraseto_tsquery('simple', :{name})"
_LITERALLY = str.maketrans({sign: f"\\{sign}" for sign in "\\%_"})
_MOST_PARTS = 200  # of what is no plain word; PostgreSQL nests expressions only so deep
_LONGEST, _LONGEST_WORD = 20_000, 2_000  # characters that the server takes


class NativeWords(BlockWords):
    """Chunks are found by a tsvector; words are counted and suggested from the blocks, which stay."""

    _has_column = False

    @override
    def search(self, match: Match, filter: Filter, limit: int) -> list[Scored]:
        if limit < 1:
            return []
        sql, values = condition(filter, DIALECT)
        match = levelled(match)
        keep, drop = (match.keep, match.drop) if isinstance(match, Without) else (match, AnyOf(()))
        query, dropped = _query(keep, values), _query(drop, values)
        title = " ".join(map(_text, wanted(keep)))
        values |= {"title": f"%{title.translate(_LITERALLY)}%" if separated(title) else "", "limit": limit}
        with self._database.read() as session:
            if not self._has_column:
                session.run(_MAKE_COLUMN)
                self._has_column = True
            rows = session.rows(_SEARCH.format(query=query, dropped=dropped, condition=sql), values)
        return [Scored(chunk_id, rank) for chunk_id, rank in rows if rank > 0]


def _query(match: Match, values: dict[str, Any]) -> str:
    """Return a match as an expression of tsquery, and put down the values in it."""
    if isinstance(match, Without):
        return f"({_query(match.keep, values)} && !! {_query(match.drop, values)})"
    if isinstance(match, Phrase | Word):
        form = _PHRASE if isinstance(match, Phrase) else _BEGINNING if match.prefix else _PLAIN
        return _named(form, _text(match), values)
    form, sign = (_PLAIN, " && ") if isinstance(match, AllOf) else (_ANY, " || ")
    plain = [_text(part) for part in match.parts if _is_plain(part)]  # together: there may be thousands
    others = [part for part in match.parts if not _is_plain(part)][:_MOST_PARTS]
    rendered = [_named(form, " ".join(plain), values), *(_query(part, values) for part in others)]
    return f"({sign.join(rendered)})"


def _is_plain(part: Match) -> bool:
    return isinstance(part, Word) and not part.prefix


def _named(form: str, text: str, values: dict[str, Any]) -> str:
    name = f"text{len(values)}"
    values[name] = text[:_LONGEST]
    return form.format(name=name)


def _text(leaf: Match) -> str:
    assert isinstance(leaf, Word | Phrase)
    text = leaf.text[:_LONGEST_WORD].replace("\0", " ")
    return text.encode("utf-8", "replace").decode("utf-8")  # half a character is no text for a server
