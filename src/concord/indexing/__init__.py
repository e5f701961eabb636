"""The steps by which `ingest.py` makes something searchable, and what other writers share with it."""
