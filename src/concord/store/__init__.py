"""Where everything is kept: what all SQL engines share, and in `store/sqlite/` what only SQLite does."""
