"""The tables, as statements. Every one begins with the organisation, and a policy keeps the others' rows out.

kb_orgs ─< kb_sources ─< kb_documents ─< kb_chunks ── kb_pending      (chunks without a vector)
                                       ├─ kb_vectors_<dimension>   (made when the first embedder is known)
                  kb_accesses (of documents)  ├─ kb_postings, kb_segments, kb_gone     (BM25's statistics)
                                              ├─ kb_names          (what chunks are called)
                                              └─ kb_unsettled      (for vectors outside; by triggers)

Words are kept twice, for two questions. `kb_chunks.words`, a tsvector, knows where each token of a chunk
stands: it tells phrases. `kb_postings` holds what BM25 needs, as arrays: one row for a token and a *segment*
(the chunks that were written together), so that reading a frequent token touches a few rows, not one for each
chunk. A deleted chunk stays in its segment until that is merged: no id is used again, so it is known by not
having a row any more, and `kb_gone` counts such chunks by token.
"""

from __future__ import annotations

EXTENSION = "vector"

_TABLES = """
CREATE TABLE kb_orgs (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    generation bigint NOT NULL DEFAULT 0,
    last_chunk bigint NOT NULL DEFAULT 0,
    chunks bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    stale bigint NOT NULL DEFAULT 0
);

CREATE TABLE kb_spaces (
    org integer NOT NULL,
    key integer NOT NULL,
    identity text COLLATE "C",
    dimension integer,
    recipe text NOT NULL DEFAULT '{}',
    is_active boolean NOT NULL DEFAULT false,
    was_active boolean NOT NULL DEFAULT false,
    PRIMARY KEY (org, key),
    UNIQUE (org, identity)
);

CREATE TABLE kb_sources (
    org integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    path text,
    kind text NOT NULL,
    prefix text COLLATE "C" NOT NULL,
    patterns text NOT NULL,
    tags text NOT NULL,
    trust text NOT NULL,
    created_at double precision NOT NULL,
    synced_at double precision,
    memo text NOT NULL DEFAULT '',
    PRIMARY KEY (org, id),
    UNIQUE (org, name),
    UNIQUE (org, prefix)
);

CREATE TABLE kb_documents (
    org integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    title text NOT NULL,
    tags text[] COLLATE "C" NOT NULL,
    details text NOT NULL,
    file_hash text NOT NULL,
    content_hash text NOT NULL,
    size bigint NOT NULL,
    mtime_ns bigint NOT NULL,
    superseded_by text COLLATE "C",
    indexed_at double precision NOT NULL,
    fields text NOT NULL,
    PRIMARY KEY (org, id),
    UNIQUE (org, path)
);
CREATE INDEX kb_documents_source ON kb_documents (org, source, path);
CREATE INDEX kb_documents_superseded ON kb_documents (org, superseded_by, id) WHERE superseded_by IS NOT NULL;

CREATE TABLE kb_chunks (
    org integer NOT NULL,
    id bigint NOT NULL,
    document text COLLATE "C" NOT NULL,
    position integer NOT NULL,
    start_offset integer NOT NULL,
    end_offset integer NOT NULL,
    start_line integer NOT NULL,
    end_line integer NOT NULL,
    page integer,
    length integer NOT NULL,
    heading text NOT NULL,
    content text NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (org, id)
);
CREATE INDEX kb_chunks_document ON kb_chunks (org, document, id);

CREATE TABLE kb_pending (
    org integer NOT NULL,
    space integer NOT NULL,
    chunk bigint NOT NULL,
    PRIMARY KEY (org, space, chunk)
);

CREATE TABLE kb_segments (
    org integer NOT NULL,
    segment bigint NOT NULL,
    chunks integer NOT NULL,
    PRIMARY KEY (org, segment)
);

CREATE TABLE kb_postings (
    org integer NOT NULL,
    segment bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    size integer NOT NULL,
    chunks bigint[] NOT NULL,
    packed bigint[] NOT NULL
);
CREATE INDEX kb_postings_term ON kb_postings (org, term);
CREATE INDEX kb_postings_segment ON kb_postings USING brin (org, segment);

CREATE TABLE kb_gone (
    org integer NOT NULL,
    term text COLLATE "C" NOT NULL,
    chunks bigint NOT NULL,
    PRIMARY KEY (org, term)
);

CREATE TABLE kb_accesses (
    org integer NOT NULL,
    document text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    last_at double precision NOT NULL,
    PRIMARY KEY (org, document)
);

CREATE TABLE kb_feedback (
    org integer NOT NULL,
    query text COLLATE "C" NOT NULL,
    document_id text COLLATE "C" NOT NULL,
    citation text NOT NULL,
    opinion text NOT NULL,
    at double precision NOT NULL,
    PRIMARY KEY (org, query, document_id)
);

CREATE TABLE kb_embedding_cache (
    org integer NOT NULL,
    text_hash bytea NOT NULL,
    identity text COLLATE "C" NOT NULL,
    vector bytea NOT NULL,
    used bigint NOT NULL,
    PRIMARY KEY (org, text_hash, identity)
);
CREATE TABLE kb_cache_usage (
    org integer PRIMARY KEY,
    hits bigint NOT NULL,
    misses bigint NOT NULL
);
ALTER TABLE kb_embedding_cache ALTER vector SET STORAGE EXTERNAL;
"""

# The sub-select is asked once a statement, not once a row.
_OWN_ROWS = "{column} = (SELECT {value} FROM kb_orgs WHERE name = current_setting('concord.org', true))"
_POLICY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY kb_own_rows ON {table} USING ({condition}) WITH CHECK ({condition});
"""
_KEYED = (
    "kb_spaces",
    "kb_cache_usage",
    "kb_sources",
    "kb_documents",
    "kb_chunks",
    "kb_pending",
    "kb_segments",
    "kb_postings",
    "kb_gone",
    "kb_accesses",
    "kb_feedback",
    "kb_embedding_cache",
)


GUARDED = ("kb_orgs", "kb_unsettled", "kb_names", *_KEYED)  # by policies; tables of vectors are as well


def policy(table: str) -> str:
    """Return the statements that keep a table's rows to the organisation of the connection."""
    return _POLICY.format(table=table, condition=_OWN_ROWS.format(column="org", value="key"))


FIRST = (
    _TABLES
    + "".join(map(policy, _KEYED))
    + _POLICY.format(table="kb_orgs", condition="name = current_setting('concord.org', true)")
)

# Vectors may be kept outside: `kb_orgs` says whose and where, `kb_unsettled` what was not told there.
# A document or a chunk that is changed calls a function only when what changed is kept outside, too.
_NOTED = """
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO kb_unsettled (org, chunk) {chunks};
    RETURN NULL;
END $$;
CREATE TRIGGER {name} AFTER {event} EXECUTE FUNCTION {name}();
"""
# Of a document, that filters ask for.
_LABELS = (
    "source",
    "path",
    "type",
    "tags",
    "mtime_ns",
    "superseded_by",
)
_OLD, _NEW = (", ".join(f"{row}.{field}" for field in _LABELS) for row in ("old", "new"))
LEDGER = (
    """
ALTER TABLE kb_orgs ADD COLUMN home text NOT NULL DEFAULT '', ADD COLUMN home_key text NOT NULL DEFAULT '';
CREATE TABLE kb_unsettled (
    org integer NOT NULL,
    turn bigint GENERATED ALWAYS AS IDENTITY,
    chunk bigint NOT NULL,
    PRIMARY KEY (org, turn)
);
"""
    + policy("kb_unsettled")
    + _NOTED.format(
        name="kb_note_deleted_chunks",
        event="DELETE ON kb_chunks REFERENCING OLD TABLE AS gone FOR EACH STATEMENT",
        chunks="""SELECT g.org, g.id FROM gone AS g
        JOIN kb_orgs AS o ON o.key = g.org AND o.home <> '' ORDER BY g.id""",
    )
    + _NOTED.format(
        name="kb_note_moved_chunk",
        event="UPDATE OF position ON kb_chunks FOR EACH ROW WHEN (old.position <> new.position)",
        chunks="SELECT o.key, new.id FROM kb_orgs AS o WHERE o.key = new.org AND o.home <> ''",
    )
    + _NOTED.format(
        name="kb_note_changed_document",
        event=f"UPDATE ON kb_documents FOR EACH ROW WHEN (({_OLD}) IS DISTINCT FROM ({_NEW}))",
        chunks="""SELECT c.org, c.id FROM kb_orgs AS o
        JOIN kb_chunks AS c ON c.org = o.key AND c.document = new.id
        WHERE o.key = new.org AND o.home <> '' ORDER BY c.id""",
    )
)

# What `@@` and `@>` ask might tell of rows that a policy hides, so PostgreSQL asks after the policy: of each
# row, never of an index. These were only written to.
WITHOUT_GIN = "DROP INDEX IF EXISTS kb_chunks_words, kb_documents_tags"

# Arrays of postings that fit into a page stay as they are: compressing them took a tenth of a write's time
# and a third of a merge's, and saved a tenth of their room.
PLAIN_POSTINGS = "ALTER TABLE kb_postings SET (toast_tuple_target = 8160)"

# The types that documents are of: knowing that none is code, a search need not ask it of its candidates. A
# type whose last document was deleted stays until a source is removed; null is yet to be found out. Triggers
# write them down: a process of an older version may still be writing.
_TYPED = """
CREATE TRIGGER {name} AFTER {event} ON kb_documents FOR EACH ROW {when} EXECUTE FUNCTION kb_note_type();
"""
TYPES = (
    """
ALTER TABLE kb_orgs ADD COLUMN types text[] COLLATE "C";
ALTER TABLE kb_orgs ALTER types SET DEFAULT '{}';
CREATE FUNCTION kb_note_type() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE kb_orgs SET types = types || new.type WHERE key = new.org AND new.type <> ALL (types);
    RETURN NULL;
END $$;
"""
    + _TYPED.format(name="kb_note_new_type", event="INSERT", when="")
    + _TYPED.format(name="kb_note_other_type", event="UPDATE", when="WHEN (old.type <> new.type)")
)


# Where vectors were kept before, and still lie: a list of URLs and keys.
LEFT_BEHIND = "ALTER TABLE kb_orgs ADD COLUMN left_behind text NOT NULL DEFAULT '[]'"

# Where `home_key` was drawn: dumps and templates carry it to other databases.
BIRTHPLACE = "ALTER TABLE kb_orgs ADD COLUMN birthplace text NOT NULL DEFAULT ''"


# A row of an index has room for a third of a page, and a query may be a pasted one. The hash is the same for
# as long as the database is there, although PostgreSQL cannot know: its encoding does not change.
ANY_QUERY = """
CREATE FUNCTION kb_hash(given text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT sha256(convert_to(given, 'UTF8')) $$;
ALTER TABLE kb_feedback DROP CONSTRAINT kb_feedback_pkey;
CREATE UNIQUE INDEX kb_feedback_once ON kb_feedback (org, kb_hash(query), document_id);
"""


# Where a policy is in force, PostgreSQL refuses COPY, which writes postings in three quarters of the time
# that INSERT takes. So they lie in a part of their table that has none: all are read, changed and deleted
# through the whole and its policy. The part has a wall of its own. Nobody may do anything with it but add
# rows, and not say whose these are, not even its owner: they are the connection's organisation's.
_POSTINGS = "segment, term, size, chunks, packed"
MAY_ADD_POSTINGS = f"INSERT ({_POSTINGS}) ON kb_postings_rows"
OWN_POSTINGS = (
    """
ALTER TABLE kb_postings RENAME TO kb_postings_rows;
ALTER INDEX kb_postings_term RENAME TO kb_postings_rows_term;
ALTER INDEX kb_postings_segment RENAME TO kb_postings_rows_segment;
DROP POLICY kb_own_rows ON kb_postings_rows;
ALTER TABLE kb_postings_rows DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;

CREATE TABLE kb_postings (LIKE kb_postings_rows) PARTITION BY LIST (org);
CREATE INDEX kb_postings_term ON kb_postings (org, term);
CREATE INDEX kb_postings_segment ON kb_postings USING brin (org, segment);
ALTER TABLE kb_postings ATTACH PARTITION kb_postings_rows DEFAULT;
"""
    + policy("kb_postings")
    + f"""
-- Called immutable, it is asked once for all rows of a COPY. Nothing else may ask it: a prepared INSERT would
-- keep the answer. Without quotes the table is found now: a temporary one of its name is not asked later.
CREATE FUNCTION kb_own_org() RETURNS integer LANGUAGE sql IMMUTABLE
    RETURN (SELECT key FROM kb_orgs WHERE name = current_setting('concord.org', true));
ALTER TABLE kb_postings_rows ALTER org SET DEFAULT kb_own_org();

-- Rights are given for the whole. Of the part are left MAINTAIN, which shows nothing, and what a role above
-- policies could read before: one that makes backups.
DO $$
DECLARE given record;
BEGIN
    FOR given IN
        WITH rights AS (
            SELECT '' AS field, (aclexplode(coalesce(relacl, acldefault('r', relowner)))).*
            FROM pg_class WHERE oid = 'kb_postings_rows'::regclass
            UNION ALL
            SELECT format(' (%I)', attname), (aclexplode(attacl)).*
            FROM pg_attribute WHERE attrelid = 'kb_postings_rows'::regclass AND attacl IS NOT NULL
        )
        SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS role,
            string_agg(DISTINCT a.privilege_type || a.field, ', ') AS whole,
            string_agg(DISTINCT a.privilege_type || a.field, ', ') FILTER (
                WHERE a.privilege_type = 'MAINTAIN' OR a.privilege_type = 'SELECT' AND r.rolbypassrls
            ) AS part,
            bool_or(a.privilege_type = 'INSERT') AS may_insert
        FROM rights AS a LEFT JOIN pg_roles AS r ON r.oid = a.grantee GROUP BY a.grantee
    LOOP
        EXECUTE format('GRANT %s ON kb_postings TO %s', given.whole, given.role);
        EXECUTE format('REVOKE ALL ON kb_postings_rows FROM %s CASCADE', given.role);
        IF given.part IS NOT NULL THEN
            EXECUTE format('GRANT %s ON kb_postings_rows TO %s', given.part, given.role);
        END IF;
        IF given.may_insert THEN
            EXECUTE format('GRANT {MAY_ADD_POSTINGS} TO %s', given.role);
        END IF;
    END LOOP;
END $$;
"""
)


# What chunks are called, and where in a line they begin and end. `kb backfill` fills in the names of chunks
# that were stored before, and the next sync their columns, too. Who had rights for chunks has them for names.
NAMES = (
    """
ALTER TABLE kb_chunks ADD COLUMN start_column integer, ADD COLUMN end_column integer;
CREATE TABLE kb_names (
    org integer NOT NULL,
    token text COLLATE "C" NOT NULL,
    chunk bigint NOT NULL,
    PRIMARY KEY (org, token, chunk)
);
CREATE INDEX kb_names_chunk ON kb_names (org, chunk);
"""
    + policy("kb_names")
    + """
DO $$
DECLARE given record;
BEGIN
    FOR given IN
        SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS role,
            string_agg(a.privilege_type, ', ') AS rights
        FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.oid = 'kb_chunks'::regclass GROUP BY a.grantee
    LOOP
        EXECUTE format('GRANT %s ON kb_names TO %s', given.rights, given.role);
    END LOOP;
END $$;
"""
)


def vector_table(dimension: int) -> str:
    """Return the name of the table of vectors of a dimension; its index is called the same with `_hnsw`."""
    return f"kb_vectors_{dimension:d}"


def is_vector_table(name: str) -> str:
    """Return the condition that a column of names holds that of a table of vectors."""
    return f"{name} ~ '^kb_vectors_[0-9]+$'"


def vectors(dimension: int) -> str:
    """Return the statements that make the table of vectors of a dimension."""
    table = vector_table(dimension)
    return f"""
CREATE TABLE {table} (
    org integer NOT NULL,
    space integer NOT NULL,
    chunk bigint NOT NULL,
    embedding vector({dimension:d}) NOT NULL,
    PRIMARY KEY (org, space, chunk)
);
ALTER TABLE {table} ALTER embedding SET STORAGE PLAIN;
{policy(table)}"""
