"""What every store does with names: chunks are found by theirs, as filters allow, while they exist."""

from __future__ import annotations

from msgspec.structs import replace

from concord.store.contract import Store
from concord.text.names import asked_names
from concord.types import ChunkId, Filter, Piece
from contract.stored import EVERYTHING, document, pieces, put

INSERT = "insert\n\n  --csv   Rows of commas.\n  --pk TEXT   The key.\n"
QUERY = "query\n\n  --csv   Print rows of commas.\n"


def called(store: Store, *tokens: str, filter: Filter = EVERYTHING, limit: int = 9) -> list[ChunkId]:
    return [scored.chunk_id for scored in store.words.search_names(tokens, filter, limit)]


def test_a_chunk_is_found_by_its_names_and_by_nothing_that_only_looks_like_one(store: Store):
    a, b, _ = put(store, "docs/cli.md", INSERT, QUERY, "Write --csv or csv, and pk.")
    assert called(store, "--csv") == [a, b]
    assert called(store, "--pk") == [a]
    assert called(store, "csv") == called(store, "--no-csv") == called(store) == []
    assert called(store, "--csv", limit=1) == [a]
    assert called(store, "--csv", limit=0) == []


def test_the_owner_of_a_name_tells_one_of_many_from_the_others(store: Store):
    headings = [Piece(text, 0, 9, 1, 1, heading=("CLI", text[:6].strip())) for text in (INSERT, QUERY)]
    a, b = put(store, "docs/cli.md", *headings)
    assert called(store, *asked_names("cli query --csv").tokens) == [b, a]
    assert called(store, *asked_names("cli insert --csv").tokens) == [a, b]
    assert called(store, "query --csv") == [b]


def test_filters_hold_for_names(store: Store):
    (a,) = put(store, "docs/cli.md", QUERY, tags=("ops",))
    (b,) = put(store, "more/cli.md", QUERY, mtime_ns=9_000_000_000)
    (c,) = put(store, "more/old.md", QUERY, superseded_by="more/cli.md")
    assert called(store, "--csv") == [a, b]
    assert called(store, "--csv", filter=Filter(include_superseded=True)) == [a, b, c]
    assert called(store, "--csv", filter=Filter(tags=("ops",))) == [a]
    assert called(store, "--csv", filter=Filter(source_id="more")) == [b]
    assert called(store, "--csv", filter=Filter(path="docs/*")) == [a]
    assert called(store, "--csv", filter=Filter(since=8.0)) == [b]
    assert called(store, "--csv", filter=Filter(type="code")) == []


def test_names_go_with_their_chunks(store: Store):
    put(store, "docs/cli.md", INSERT, QUERY)
    (b,) = put(store, "docs/cli.md", QUERY)
    assert called(store, "--csv") == [b]
    assert called(store, "--pk") == []
    store.catalog.delete_documents(["docs/cli.md"])
    assert called(store, "--csv") == []
    assert store.words.name_frequencies(["--csv"]) == {"--csv": 0}
    put(store, "docs/cli.md", QUERY)
    store.catalog.remove_source("docs")
    assert called(store, "--csv") == []


def test_a_chunk_is_called_after_the_name_that_its_file_has_now(store: Store):
    (a,) = put(store, "docs/tar.md", QUERY)
    store.catalog.update_documents([document("docs/zip.md", id="docs/tar.md")])
    assert called(store, "tar --csv") == []
    assert called(store, "zip --csv") == [a]
    moved = replace(document("docs/cat.md"), id="docs/tar.md")
    assert store.catalog.put_documents([(moved, pieces(QUERY))])[0] == [a]
    assert called(store, "cat --csv") == [a]
