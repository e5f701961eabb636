"""How is a question answered? `pipeline.py` reads top to bottom."""
