"""The steps of one search, in the order that `search.py` takes them, and what explains its answer."""
