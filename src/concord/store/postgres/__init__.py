"""The store in PostgreSQL, with pgvector: one schema an organisation."""
