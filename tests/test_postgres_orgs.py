"""Walls between organisations on PostgreSQL: nobody sees, finds or counts what belongs to another."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Sequence
from operator import mul
from pathlib import Path
from typing import Any

import pytest

from concord.store.contract import Select, Store, document_by_id, documents_at
from concord.store.sqlite.store import SQLiteStore
from concord.types import AllOf, AnyOf, Feedback, Filter, Match, Phrase, Scored, Vector, Without, Word, silent
from contract.stored import IDENTITY, active_model, embed, put, unit, vectors_of
from support.kb_command import Kb
from support.postgres_server import fresh_org, server_url, walks
from support.stores import postgres_store

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres import vectors  # noqa: E402
from concord.store.postgres.connections import schema_of  # noqa: E402
from concord.store.postgres.store import PostgresStore  # noqa: E402

CASES = 2_000  # in all; the campaign of organisations asks far more
TENDED = 1_200  # of them, on stores that have their indexes
WORDS = ("alpha", "beta", "gamma", "delta", "ops", "web", "one", "two")
NAMES = ("--alpha", "--beta", "wiki --beta", "docs --two")
PATHS = tuple(f"{name}/{n}.md" for name in ("docs", "wiki") for n in range(4))
TAGS = ((), ("ops",), ("ops", "web"))
Case = Callable[[Store], object]
store = pytest.fixture(postgres_store)


@pytest.fixture(scope="module")
def guest() -> str:
    """The URL for a role that is no administrator, and may use nothing but the schemas that it makes."""
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
    return admitted(server_url())


def admitted(url: str) -> str:
    """Return the URL for that role to a database in which it may make schemas."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"GRANT CREATE ON DATABASE {connection.info.dbname} TO guest")
    return url.replace("postgres:@", "guest:@")


def some_match(chance: random.Random) -> Match:
    words = [Word(word, prefix=chance.random() < 0.2) for word in chance.sample(WORDS, 3)]
    some: list[Match] = [
        words[0],
        AnyOf(tuple(words)),
        AllOf(tuple(words[:2])),
        Without(AnyOf(tuple(words[:2])), words[2]),
        Phrase(f"{words[0].text} {words[1].text}"),
    ]
    return chance.choice(some)


def some_filter(chance: random.Random) -> Filter:
    return Filter(
        tags=chance.choice(TAGS),
        source_id=chance.choice([None, None, "docs"]),
        path=chance.choice([None, None, "docs/**", "*/1.md"]),
        include_superseded=chance.random() < 0.3,
    )


class Scores(dict[int, float]):
    """Scores by chunk, equal when they are so but for what floating-point numbers lose."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scores) and dict(self) == pytest.approx(dict(other), abs=1e-5)


def some_change(chance: random.Random) -> Case:
    path = chance.choice(PATHS)
    texts = ["{} {}\n--{}".format(*chance.choices(WORDS, k=3)) for _ in range(2)]
    fields = {"tags": chance.choice(TAGS), "superseded_by": chance.choice([None, None, "docs/0.md"])}
    number, kind = chance.randint(1, 9), chance.random()
    if kind < 0.6:
        return lambda store: put(store, path, *texts, **fields)
    if kind < 0.8:
        return lambda store: embed(
            store,
            [(each.chunk_id, unit(each.chunk_id, number, 1, 0)) for each in vectors_of(store).pending(0, 5)],
        )
    if kind < 0.85:
        return lambda store: store.journal.record_access([path], number)
    if kind < 0.9:
        return lambda store: store.journal.record_feedback(Feedback(path, path, "good", texts[0], number))
    if kind < 0.92:
        return lambda store: store.catalog.put_sync_state("docs", texts[0])
    if kind < 0.97:
        return lambda store: store.catalog.delete_documents([path])
    return lambda store: store.catalog.remove_source(path.split("/")[0])


def scores(found: list[Scored]) -> Scores:
    return Scores((hit.chunk_id, hit.score) for hit in found)


def nearest(store: Store, vector: Vector, filter: Filter, limit: int) -> list[Scored]:
    """Search by meaning; before a model is added, nobody does."""
    return vectors_of(store).search(vector, filter, limit) if active_model(store) else []


def truths(store: Store, vector: Vector, filter: Filter) -> list[bool]:
    """Return of each of the few nearest whether it is the store's own, scored by its vector and let through.

    Which few it is, a graph may tell otherwise than comparing all does.
    """
    found = nearest(store, vector, filter, 3)
    ids = [hit.chunk_id for hit in found]
    known, allowed = vectors_of(store).fetch(ids), store.catalog.allowed(filter, ids)
    return [
        hit.chunk_id in allowed and hit.score == pytest.approx(cosine(vector, known[hit.chunk_id]), abs=1e-5)
        for hit in found
    ]


def cosine(one: Vector, other: Vector) -> float:
    return float(sum(map(mul, array("f", one), array("f", other))))


def some_question(chance: random.Random) -> Case:
    match, filter, path = some_match(chance), some_filter(chance), chance.choice(PATHS)
    vector, ids = unit(chance.random(), chance.random(), 1, 0), [chance.randint(1, 200) for _ in range(5)]
    cases: list[Case] = [
        lambda store: scores(store.words.search(match, filter, 500)),
        lambda store: scores(nearest(store, vector, filter, 500)),
        lambda store: truths(store, vector, filter),
        lambda store: store.words.frequencies(WORDS),
        lambda store: scores(store.words.search_names(NAMES, filter, 500)),
        lambda store: store.words.name_frequencies(NAMES),
        lambda store: sorted(store.words.similar_words("alphas", 3)),
        lambda store: store.catalog.read(ids),
        lambda store: store.catalog.document_types(ids),
        lambda store: vectors_of(store).fetch(ids),
        lambda store: (document_by_id(store.catalog, path), store.catalog.chunks(path)),
        lambda store: documents_at(store.catalog, path.split("/")[1]),
        lambda store: (list(store.catalog.documents()), store.catalog.file_states("docs")),
        lambda store: (store.catalog.count(), store.catalog.count("docs")),
        lambda store: store.catalog.count_documents(filter),
        lambda store: vectors_of(store).pending(0, 5, "docs"),
        lambda store: (
            [known.id for known in store.catalog.snapshot().sources],
            store.catalog.sync_state("docs"),
        ),
        lambda store: (
            list(store.catalog.documents(Select(superseded_by="docs/0.md"))),
            store.catalog.count_types(),
        ),
        lambda store: (store.journal.accesses(PATHS), store.journal.feedback()),
        lambda store: store.models.index(IDENTITY).cached([bytes(range(n % 7, 32)) for n in ids]),
        lambda store: (
            store.cache.usage(),
            store.catalog.snapshot().models,
            vectors_of(store).count_pending(),
        ),
        lambda store: (store.catalog.allowed(filter, ids), sorted(store.catalog.matching(filter, 8) or [])),
        lambda store: (store.outbox.is_empty(), store.outbox.home(), list(store.cache.entries())),
    ]
    return chance.choice(cases)


def compare(
    pairs: Sequence[tuple[SQLiteStore, PostgresStore]], cases: int, share_tended: float = 0.0
) -> None:
    """Change and ask both stores of each organisation alike, and insist that they say the same."""
    chance = random.Random(5)
    for number, pair in enumerate(pairs):
        for each in pair:
            each.models.index(IDENTITY).remember({bytes(range(number, 32)): unit(number + 1, 0, 0, 1)})
    for number in range(cases):
        alone, among = pairs[number % len(pairs)]
        if chance.random() < share_tended:
            among.maintain(silent)
        case = some_change(chance) if chance.random() < 0.06 else some_question(chance)
        assert case(among) == case(alone)


def opened(folder: Path, *urls: str) -> list[tuple[SQLiteStore, PostgresStore]]:
    """Return pairs of stores, one alone in a file and one among others.

    Ids, paths, words and sources are the same in all of them.
    """
    return [
        (SQLiteStore.open(f"sqlite://{folder}", f"org{at}"), PostgresStore.open(url, fresh_org()))
        for at, url in enumerate(urls)
    ]


def each(pairs: Sequence[tuple[Store, Store]]) -> list[Store]:
    return [store for pair in pairs for store in pair]


@pytest.mark.promise("design.organisations-apart")
def test_every_organisation_is_answered_as_if_it_were_alone(guest: str, folder: Path):
    """Each has a file of its own, which knows of no other: both must say the same, always.

    One is an administrator's, whom nothing stops: there the statements alone keep the others out.
    """
    pairs = opened(folder, server_url(), guest, guest)
    compare(pairs, CASES - TENDED)
    for store in each(pairs):
        store.close()


@pytest.mark.promise("design.organisations-apart")
def test_every_organisation_is_answered_as_if_it_were_alone_where_graphs_have_the_vectors(
    guest: str, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same where vectors are indexed, however few they are."""
    monkeypatch.setattr(vectors, "INDEX_FROM", 1)
    monkeypatch.setattr(vectors, "MOST_COMPARED", 0)
    monkeypatch.setattr(vectors, "NARROW_SHARE", 0)
    own = admitted(database)
    pairs = opened(folder, database, own, own)
    for store in each(pairs):
        embed(store, [(put(store, "docs/0.md", "alpha")[0], unit(1, 0, 0, 0))])
        store.maintain(silent)
    compare(pairs, TENDED, share_tended=0.02)
    assert walks(pairs[1][1]) > 20
    for store in each(pairs):
        store.close()


@pytest.mark.parametrize("command", [("search", "deploy"), ("list",), ("stats",), ("sync",)], ids=" ".join)
def test_who_only_looks_makes_no_organisation_however_it_was_named(
    kb: Kb, command: tuple[str, ...], administrator: Any, monkeypatch: pytest.MonkeyPatch
):
    org = fresh_org()
    monkeypatch.setenv("KB_STORE_URL", server_url())
    monkeypatch.setenv("KB_ORG", org)
    run = kb(*command)
    assert (run.status, run.out) == (2, "")
    assert f"{org!r} has nothing in" in run.err
    assert administrator.execute("SELECT to_regnamespace(%s)", (f'"{schema_of(org)}"',)).fetchone() == (None,)
