"""Whatever is done to a store, in whatever order, it answers like the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.store.contract import Store, document_by_id
from concord.types import AnyOf, Filter, Word
from contract.anywhere import rivals_anywhere  # noqa: F401
from contract.stored import IDENTITY, keyed, put, unit, vectors_of

PATHS = ("docs/a.md", "docs/sub/b.md", "wiki/a.md")
WORDS = ("red", "green", "blue")
TAGS = st.sampled_from([(), ("x",), ("x", "y")])
TEXTS = st.lists(st.sampled_from(["red", "green blue", "blue blue red"]), min_size=1, max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(PATHS), TEXTS, TAGS),
        st.tuples(st.just("tag"), st.sampled_from(PATHS), TAGS),
        st.tuples(st.just("supersede"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
        st.tuples(st.just("embed"), st.integers(1, 4)),
        st.tuples(st.just("delete"), st.sampled_from(PATHS)),
        st.tuples(st.just("remove"), st.sampled_from(["docs", "wiki"])),
    ),
    max_size=10,
)
FILTERS = (
    Filter(),
    Filter(include_superseded=True),
    Filter(tags=("x",)),
    Filter(source_id="docs"),
    Filter(path="docs/**"),
    Filter(path="**/a.md"),
)


@given(STEPS)
@settings(max_examples=25)
def test_any_sequence_of_changes_leaves_what_it_leaves_in_the_reference(
    rivals: tuple[Store, Store], steps: list[tuple[Any, ...]]
):
    for store in rivals:
        for source in ("docs", "wiki"):
            _remove(store, source)
        for step in steps:
            ACTS[step[0]](store, *step[1:])
    expected, found = (_answers(store) for store in rivals)
    assert found == expected


def _put(store: Store, path: str, texts: list[str], tags: tuple[str, ...]) -> None:
    put(store, path, *texts, tags=tags)


def _tag(store: Store, path: str, tags: tuple[str, ...]) -> None:
    if known := document_by_id(store.catalog, path):
        store.catalog.update_documents([replace(known, tags=tags)])


def _supersede(store: Store, path: str, by: str) -> None:
    known = document_by_id(store.catalog, path)
    if known and document_by_id(store.catalog, by) and path != by:
        store.catalog.update_documents([replace(known, superseded_by=by)])


def _embed(store: Store, most: int) -> None:
    store.models.add(IDENTITY, {})
    waiting = vectors_of(store).pending(0, most)
    vectors_of(store).put(keyed((pending.chunk_id, _meaning(pending.text)) for pending in waiting))


def _remove(store: Store, source: str) -> None:
    vectors_of(store).delete_source(source)
    store.catalog.remove_source(source)


ACTS: dict[str, Callable[..., object]] = {
    "put": _put,
    "tag": _tag,
    "supersede": _supersede,
    "embed": _embed,
    "delete": lambda store, path: store.catalog.delete_documents([path]),
    "remove": _remove,
}


def _meaning(text: str) -> bytes:
    return unit(*(1 + text.split().count(word) for word in WORDS), 1)


def _answers(store: Store) -> list[Any]:
    """Return all that can be asked of a store, in words that do not depend on its ids."""
    words = AnyOf(tuple(map(Word, WORDS)))
    by_words = [_named(store, store.words.search(words, filter, 99)) for filter in FILTERS]
    store.models.add(IDENTITY, {})
    near = unit(1, 2, 3, 1)
    by_meaning = [_named(store, vectors_of(store).search(near, filter, 99)) for filter in FILTERS]
    documents = [(known.path, known.tags, known.superseded_by) for known in store.catalog.documents()]
    return [by_words, by_meaning, documents, store.catalog.count(), len(vectors_of(store).pending(0, 99))]


def _named(store: Store, scored: list[Any]) -> list[tuple[str, int, float]]:
    read = store.catalog.read([each.chunk_id for each in scored])
    places = ((read[each.chunk_id][0], each.score) for each in scored)
    return sorted((chunk.document_id, chunk.index, round(score, 4)) for chunk, score in places)
