"""A store in one SQLite file an organisation: FTS5 for words, sqlite-vec for vectors."""
