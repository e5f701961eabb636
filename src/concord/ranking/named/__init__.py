"""What does a query name, is that there, and what is lifted for it? One file a kind, a row in `kinds.py`."""
