"""How the reader of `src/concord/data/reader` is trained; see README.md. Nothing here ships."""
