"""Golden answers: what searches over frozen corpora returned, and how that is compared. See README.md."""
