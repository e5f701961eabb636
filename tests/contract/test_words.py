"""What every lexical index does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.store.contract import Store
from concord.text.query_language import parse
from concord.types import AllOf, AnyOf, ChunkId, Filter, Match, Phrase, Piece, Scored, Without, Word
from contract.stored import EVERYTHING, document, put

reads_only = settings(max_examples=60)


def ids(store: Store, match: Match, filter: Filter = EVERYTHING, limit: int = 100) -> list[int]:
    return [scored.chunk_id for scored in store.words.search(match, filter, limit)]


def exact(query: str) -> Match:
    match = parse(query).exact
    assert match is not None
    return match


def scores(found: Sequence[Scored]) -> dict[ChunkId, float]:
    return {hit.chunk_id: hit.score for hit in found}


def words(*texts: str) -> tuple[Word, ...]:
    return tuple(map(Word, texts))


@pytest.mark.promise("001.fts.keyword-search")
@pytest.mark.promise("001.fts.tokenizer")
def test_a_word_is_found_in_all_its_forms_and_the_best_chunk_comes_first(store: Store):
    a, b, c = put(
        store,
        "docs/a.md",
        "A long text in which, among many other things, the installation is named once.",
        "Install git: installing git installs git.",
        "Nothing of the kind.",
    )
    assert ids(store, Word("install")) == [b, a]
    assert ids(store, AnyOf(words("INSTALLATION", "git"))) == [b, a]
    assert ids(store, Word("kind")) == [c]


def test_scores_are_positive_fall_and_ties_go_by_id(store: Store):
    same = put(store, "docs/a.md", "alpha beta", "alpha gamma", "alpha delta", "nothing here", "nor here")
    scored = store.words.search(AnyOf(words("alpha", "gamma")), EVERYTHING, 10)
    assert [each.chunk_id for each in scored] == [same[1], same[0], same[2]]
    assert scored[0].score > scored[1].score == scored[2].score > 0


def test_all_of_any_of_and_without_mean_what_they_say(store: Store):
    a, b, c = put(store, "docs/a.md", "red green", "red blue", "green blue")
    assert ids(store, AllOf(words("red", "green"))) == [a]
    assert sorted(ids(store, AnyOf(words("red", "green")))) == [a, b, c]
    assert ids(store, Without(Word("red"), Word("blue"))) == [a]
    assert ids(store, Without(AnyOf(words("red", "blue")), AllOf(words("red", "blue")))) == [a, c]
    assert ids(store, AllOf((Word("blue"), AnyOf(words("red", "pink"))))) == [b]


@pytest.mark.promise("000.lexical.phrase")
def test_a_phrase_is_found_only_in_order_and_in_one_column(store: Store):
    a, b = put(store, "docs/a.md", "the Oak Ridge laboratory", "a ridge of oak", title="Oak")
    assert ids(store, Phrase("oak ridges")) == [a]
    assert ids(store, Phrase("ridge of oak")) == [b]
    assert ids(store, Phrase("untitled oak the")) == []


def test_a_prefix_finds_every_word_that_begins_so(store: Store):
    a, b, _ = put(store, "docs/a.md", "kubernetes", "kubectl", "docker")
    assert sorted(ids(store, Word("kub", prefix=True))) == [a, b]
    assert ids(store, Word("kub")) == []


@pytest.mark.promise("004.fields")
def test_titles_headings_and_tags_are_searched(store: Store):
    (a,) = put(
        store,
        "docs/a.md",
        Piece("text", 0, 4, 1, 1, heading=("Setup", "Proxy settings")),
        title="Handbook",
        tags=("ops", "on-call"),
    )
    for match in (Word("handbook"), Word("proxy"), Word("ops"), Phrase("on-call"), Word("text")):
        assert ids(store, match) == [a]


@pytest.mark.promise("004.identifier-parts", "B.lexical.identifiers", "B.lexical.unspaced")
def test_parts_of_identifiers_and_of_scripts_without_spaces_are_searched(store: Store):
    code, japanese, _ = put(
        store, "docs/a.md", "call getUserName() on a 386DX33", "知識ベースの検索", "天気予報"
    )
    for typed in ("user", "getusername", "386", "386DX33", "get"):
        assert ids(store, exact(typed)) == [code]
    assert ids(store, exact("検索")) == [japanese]


# Which of these texts a query finds.
TEXTS = ("मेरी बिल्ली सो रही है।", "बल से लाल बाल", "בְּרֵאשִׁית בָּרָא אֱלֹהִים", "بسم الله شكرًا جزيلا", "தமிழ் மொழி", "தமழ")
SIGNED = {
    "बिल्ली": [0],
    "बल": [1],
    "बिल*": [0],
    '"मेरी बिल्ली"': [0],
    '"बिल्ली मेरी"': [],
    "बाल OR बिल्ली": [0, 1],
    "בָּרָא": [2],
    '"ברא אלהים"': [2],
    "شكرا جزيلا": [3],
    '"شكرًا جزيلا"': [3],
    "தமிழ்": [4],
    "தமழ": [5],
}


def test_words_with_signs_are_found_counted_and_suggested_as_a_whole(store: Store):
    chunks = put(store, "docs/a.md", *TEXTS)
    for query, found in SIGNED.items():
        assert sorted(ids(store, exact(query))) == [chunks[at] for at in found]
    (form,), (mistyped,) = parse("बिल्ली").words, parse("बिल्लि").words
    assert store.words.frequencies([form])[1] == {form: 1}
    assert store.words.similar_words(mistyped, 5) == [(form, 1)]


@pytest.mark.promise("002.title", "B.lexical.headings")
def test_a_word_of_the_title_or_a_heading_counts_more_than_one_of_the_text(store: Store):
    by_text, by_heading = put(
        store,
        "docs/a.md",
        Piece("proxy words alone", 0, 17, 1, 1, heading=("Setup", "Network")),
        Piece("other words alone", 18, 35, 2, 2, heading=("Setup", "Proxy")),
    )
    (by_title,) = put(store, "docs/b.md", "other words alone", title="Proxy")
    put(store, "docs/c.md", *("filler text" for _ in range(8)))
    assert ids(store, Word("proxy")) == [by_title, by_heading, by_text]


@pytest.mark.parametrize("text", ["", "-", "?!", '"', "\0", "\ud800", " \t\n", "***"])
def test_what_holds_no_word_finds_nothing_and_hinders_nothing(store: Store, text: str):
    (a,) = put(store, "docs/a.md", "alpha")
    assert ids(store, Word(text)) == ids(store, Phrase(text)) == ids(store, Word(text, prefix=True)) == []
    assert ids(store, AllOf((Word("alpha"), Word(text)))) == [a]
    assert ids(store, AnyOf((Word("alpha"), Word(text)))) == [a]
    assert ids(store, Without(Word("alpha"), Word(text))) == [a]
    assert ids(store, Without(Word(text), Word("alpha"))) == []
    assert ids(store, AllOf(())) == ids(store, AnyOf(())) == []


WILD = st.one_of(
    st.text(),
    st.binary().map(lambda b: b.decode("utf-8", "surrogateescape")),
    st.sampled_from(
        ["AND", "NOT", "NEAR(a b)", "title:x", "^a", "a*", "(", '"', "''", "{a}", "a + b", "- a"]
    ),
    st.text(alphabet="ab\"'*()^:-+{}\0 ANDOR", max_size=30),
)
LEAVES = st.builds(Word, WILD, st.booleans()) | st.builds(Phrase, WILD)
MATCHES = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(AllOf, st.lists(inner, max_size=4).map(tuple))
        | st.builds(AnyOf, st.lists(inner, max_size=4).map(tuple))
        | st.builds(Without, inner, inner)
    ),
    max_leaves=12,
)


@pytest.mark.promise("001.fts.escaped")
@given(match=MATCHES)
@reads_only
def test_no_text_makes_a_search_fail(store: Store, match: Match):
    if not store.catalog.count().chunks:
        put(store, "docs/a.md", "a b c NEAR title AND OR NOT")
    for scored in store.words.search(match, EVERYTHING, 5):
        assert scored.score > 0


def test_words_are_counted_by_their_stem(store: Store):
    put(store, "docs/a.md", "installing git", "installation", "install the foo-bar", "bar foo")
    total, counts = store.words.frequencies(["installed", "git", "foo-bar", "foo", "absent", "?", "Git"])
    assert total == 4
    assert counts == {"installed": 3, "git": 1, "foo-bar": 1, "foo": 2, "absent": 0, "?": 0, "Git": 1}
    put(store, "docs/b.md", "git")
    store.catalog.delete_documents(["docs/a.md"])
    assert store.words.frequencies(["git", "foo"]) == (1, {"git": 1, "foo": 0})


@pytest.mark.promise("001.tags.single")
@pytest.mark.promise("001.tags.and")
def test_a_hit_has_every_tag_that_is_asked_for(store: Store):
    (a,) = put(store, "docs/a.md", "deploy", tags=("ops",))
    (b,) = put(store, "docs/b.md", "deploy", tags=("production", "ops"))
    put(store, "docs/c.md", "deploy", tags=("production", "op"))
    assert ids(store, Word("deploy"), Filter(tags=("ops",))) == [a, b]
    assert ids(store, Word("deploy"), Filter(tags=("ops", "production", "ops"))) == [b]
    assert ids(store, Word("deploy"), Filter(tags=("ops", "none"))) == []
    assert ids(store, Word("deploy"), Filter(tags=tuple(f"t{n}" for n in range(200)))) == []


@pytest.mark.promise("001.type.filter")
def test_a_hit_is_of_the_type_and_source_that_are_asked_for(store: Store):
    (a,) = put(store, "docs/a.py", "deploy", type="code")
    (b,) = put(store, "docs/b.md", "deploy")
    (c,) = put(store, "wiki/c.md", "deploy")
    assert ids(store, Word("deploy"), Filter(type="code")) == [a]
    assert ids(store, Word("deploy"), Filter(source_id="docs")) == [a, b]
    assert ids(store, Word("deploy"), Filter(source_id="wiki", type="markdown")) == [c]
    assert ids(store, Word("deploy"), Filter(source_id="none")) == []


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("docs/**", {"docs/a.md", "docs/api/a.md", "docs/api/b.py"}),
        ("docs/*.md", {"docs/a.md"}),
        ("docs/**/a.md", {"docs/a.md", "docs/api/a.md"}),
        ("docs/api", set()),
        ("[d]ocs/**", set()),
    ],
)
def test_a_hit_lies_under_the_path_that_is_asked_for(store: Store, glob: str, paths: set[str]):
    stored = {
        put(store, path, "deploy")[0]: path
        for path in ("docs/a.md", "docs/api/a.md", "docs/api/b.py", "wiki/a.md")
    }
    assert {stored[chunk_id] for chunk_id in ids(store, Word("deploy"), Filter(path=glob))} == paths


def test_a_hit_is_as_old_as_is_asked_for(store: Store):
    stored = [
        put(store, f"docs/{second}.md", "deploy", mtime_ns=second * 10**9)[0] for second in (10, 20, 30)
    ]
    assert ids(store, Word("deploy"), Filter(since=20)) == stored[1:]
    assert ids(store, Word("deploy"), Filter(until=20.0)) == stored[:2]
    assert ids(store, Word("deploy"), Filter(since=10.5, until=29.5)) == stored[1:2]
    assert ids(store, Word("deploy"), Filter(since=-1e300, until=float("inf"))) == stored


@pytest.mark.promise("002.supersede")
def test_superseded_documents_are_found_only_when_asked_for(store: Store):
    (old,) = put(store, "docs/old.md", "deploy", superseded_by="docs/new.md", tags=("ops",))
    (new,) = put(store, "docs/new.md", "deploy", tags=("ops",))
    assert ids(store, Word("deploy")) == [new]
    assert ids(store, Word("deploy"), Filter(include_superseded=True)) == [old, new]
    assert ids(store, Word("deploy"), Filter(tags=("ops",))) == [new]
    assert ids(store, Word("deploy"), Filter(tags=("ops",), include_superseded=True)) == [old, new]
    store.catalog.update_documents([document("docs/old.md", tags=("ops",))])
    assert ids(store, Word("deploy")) == [old, new]


VOCABULARY = ["red", "reds", "green", "blue", "running", "runs", "foo-bar", "getUserName", "検索", "über"]
TEXT = st.lists(st.sampled_from(VOCABULARY), max_size=12).map(" ".join)
DOCUMENTS = st.lists(
    st.tuples(TEXT, TEXT, st.lists(st.sampled_from(VOCABULARY), max_size=2)), min_size=1, max_size=12
)
LEAF = st.builds(Word, st.sampled_from([*VOCABULARY, "absent"]), st.booleans()) | st.builds(Phrase, TEXT)


def groups(inner: st.SearchStrategy[Match], most: int) -> st.SearchStrategy[Match]:
    members = st.lists(inner, min_size=1, max_size=most).map(tuple)
    return st.builds(AllOf, members) | st.builds(AnyOf, members)


def without(inner: st.SearchStrategy[Match]) -> st.SearchStrategy[Match]:
    return st.builds(Without, inner, inner) | st.builds(AnyOf, st.tuples(inner, inner))


# Levels, not st.recursive: its budget of leaves is kept beside the choices that an example is replayed from.
SHALLOW = LEAF | groups(LEAF, 4)
PLAIN = SHALLOW | groups(SHALLOW, 3)
# FTS5's scores (never its matches) stray where NOT meets phrases or stands within OR: a dropped word may add
# to them, a kept one be forgotten. So `Without` is scored on words alone; beyond that its finds are compared.
FLAT = st.lists(st.builds(Word, st.sampled_from(VOCABULARY)), min_size=1, max_size=3).map(tuple)
SCORED = PLAIN | st.builds(Without, st.builds(AnyOf, FLAT) | st.builds(AllOf, FLAT), st.builds(AnyOf, FLAT))
NESTED = PLAIN | without(PLAIN) | without(PLAIN | without(PLAIN))
FILTERS = st.builds(
    Filter,
    tags=st.sampled_from([(), ("red",), ("red", "blue")]),
    path=st.sampled_from([None, "docs/1*", "**/?.md"]),
    include_superseded=st.booleans(),
)


@given(
    DOCUMENTS,
    st.lists(SCORED, min_size=3, max_size=8),
    st.lists(NESTED, max_size=5),
    st.sampled_from([Filter(), EVERYTHING]) | FILTERS,
)
@settings(max_examples=40)
def test_any_match_finds_and_scores_as_in_the_reference(
    rivals: tuple[Store, Store],
    texts: list[Any],
    matches: list[Match],
    nested: list[Match],
    filter: Filter,
):
    for store in rivals:
        store.catalog.remove_source("docs")  # the statistics must forget the last example as well
        for n, (title, text, tags) in enumerate(texts):
            superseded_by = "docs/0.md" if n % 5 == 4 else None
            put(
                store, f"docs/{n}.md", text, title, title=title, tags=tuple(tags), superseded_by=superseded_by
            )
        store.catalog.delete_documents([f"docs/{n}.md" for n in range(3, len(texts), 6)])
    reference, other = rivals
    for match in matches:
        expected = scores(reference.words.search(match, filter, 100))
        scored = other.words.search(match, filter, 100)
        assert scores(scored) == pytest.approx(expected, rel=1e-6)
        assert scored == sorted(scored, key=lambda each: (-each.score, each.chunk_id))
        assert other.words.search(match, filter, 2) == scored[:2]
    for match in nested:
        assert set(ids(reference, match, filter)) == set(ids(other, match, filter))
    assert reference.words.frequencies(VOCABULARY) == other.words.frequencies(VOCABULARY)


def similar(store: Store, word: str, limit: int = 5) -> list[str]:
    return [found for found, _ in store.words.similar_words(word, limit)]


@pytest.mark.promise("003.cascade.suggestions")
def test_a_misspelt_word_is_near_the_word_that_was_meant(store: Store):
    put(store, "docs/a.md", "Kubernetes deployments", "a deployment on kubernetes", "an unrelated chunk")
    assert store.words.similar_words("kuberntes", 5) == [("kubernetes", 2)]
    assert similar(store, "deploymnet") == ["deployment"]  # two letters off, and a word rather than a stem
    assert similar(store, "umrelated") == ["unrelated"]
    assert similar(store, "kubernetes") == ["kubernetes"]
