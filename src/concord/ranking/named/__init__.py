"""What does a query name, does a text hold it, and what is lifted for it? One file a kind; see `kinds.py`."""
