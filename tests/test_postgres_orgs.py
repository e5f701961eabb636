"""Walls between organisations on PostgreSQL: nobody sees, finds or counts what belongs to another."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Sequence
from contextlib import closing
from operator import mul
from typing import Any

import pytest

from concord.core.storage import Store
from concord.store.old_names import OldMemoryStore
from concord.types import (
    AllOf,
    AnyOf,
    Feedback,
    Filter,
    Identity,
    Match,
    Phrase,
    Scored,
    Vector,
    Without,
    Word,
    silent,
)
from contract.stored import IDENTITY, embed, put, unit
from support.kb_command import Kb
from support.postgres_server import fresh_org, server_url, walks
from support.stores import postgres_store

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.backends.postgres import scope, upkeep  # noqa: E402
from concord.backends.postgres.store import PostgresStore  # noqa: E402

CASES = 10_000  # in all
TENDED = 6_000  # of them, on stores that have their indexes
WORDS = ("alpha", "beta", "gamma", "delta", "ops", "web", "one", "two")
NAMES = ("--alpha", "--beta", "wiki --beta", "docs --two")
PATHS = tuple(f"{name}/{n}.md" for name in ("docs", "wiki") for n in range(4))
TAGS = ((), ("ops",), ("ops", "web"))
Case = Callable[[Store], object]
TABLES = (
    "kb_sources",
    "kb_documents",
    "kb_chunks",
    "kb_pending",
    "kb_spaces",
    "kb_cache_usage",
    "kb_gone",
    "kb_names",
    "kb_accesses",
    "kb_feedback",
    "kb_segments",
    "kb_postings",
    "kb_unsettled",
    "kb_embedding_cache",
    "kb_vectors_4",
)


store = pytest.fixture(postgres_store)


@pytest.fixture(scope="module")
def guest() -> str:
    """The URL for a role that is no administrator: for such a one the policies are in force."""
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
    return admitted(server_url())


def admitted(url: str) -> str:
    """Return the URL for that role to a database, whose tables are another's."""
    with closing(PostgresStore.open(url, fresh_org())) as made:
        made.vectors.prepare(IDENTITY)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "GRANT ALL ON SCHEMA public TO guest; GRANT ALL ON ALL TABLES IN SCHEMA public TO guest"
        )
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
            [(each.chunk_id, unit(each.chunk_id, number, 1, 0)) for each in store.vectors.pending(0, 5)],
        )
    if kind < 0.85:
        return lambda store: store.journal.record_access([path], number)
    if kind < 0.9:
        return lambda store: store.journal.record_feedback(Feedback(path, path, "good", texts[0], number))
    if kind < 0.92:
        return lambda store: store.catalog.put_memo("docs", texts[0])
    if kind < 0.97:
        return lambda store: store.catalog.delete_documents([path])
    return lambda store: store.catalog.remove_source(path.split("/")[0])


def scores(found: list[Scored]) -> Scores:
    return Scores((one.chunk_id, one.score) for one in found)


def truths(store: Store, vector: Vector, filter: Filter) -> list[bool]:
    """Return of each of the few nearest whether it is the store's own, scored by its vector and let through.

    Which few it is, a graph may tell otherwise than comparing all does.
    """
    found = store.vectors.search(vector, filter, 3)
    ids = [one.chunk_id for one in found]
    known, allowed = store.vectors.fetch(ids), store.ledger.allowed(ids, filter)
    return [
        one.chunk_id in allowed and one.score == pytest.approx(cosine(vector, known[one.chunk_id]), abs=1e-5)
        for one in found
    ]


def cosine(one: Vector, other: Vector) -> float:
    return float(sum(map(mul, array("f", one), array("f", other))))


def some_question(chance: random.Random) -> Case:
    match, filter, path = some_match(chance), some_filter(chance), chance.choice(PATHS)
    vector, ids = unit(chance.random(), chance.random(), 1, 0), [chance.randint(1, 200) for _ in range(5)]
    cases: list[Case] = [
        lambda store: scores(store.lexical.search(match, filter, 500)),
        lambda store: scores(store.vectors.search(vector, filter, 500)),
        lambda store: truths(store, vector, filter),
        lambda store: store.lexical.frequencies(WORDS),
        lambda store: scores(store.lexical.search_names(NAMES, filter, 500)),
        lambda store: store.lexical.name_frequencies(NAMES),
        lambda store: sorted(store.lexical.similar_words("alphas", 3)),
        lambda store: store.catalog.read(ids),
        lambda store: store.catalog.types_of(ids),
        lambda store: store.vectors.fetch(ids),
        lambda store: (store.catalog.document(path), store.catalog.chunks_of(path)),
        lambda store: store.catalog.documents_at(path.split("/")[1]),
        lambda store: (list(store.catalog.documents()), store.catalog.file_states("docs")),
        lambda store: (store.catalog.counts(), store.catalog.counts("docs")),
        lambda store: store.catalog.count_documents(filter),
        lambda store: store.vectors.pending(0, 5, "docs"),
        lambda store: ([known.id for known in store.catalog.sources()], store.catalog.memo("docs")),
        lambda store: (store.catalog.superseded("docs/0.md"), store.catalog.count_types()),
        lambda store: (store.journal.accesses(PATHS), store.journal.feedback()),
        lambda store: store.cache.get(IDENTITY, [bytes(range(n % 7, 32)) for n in ids]),
        lambda store: (store.cache.usage().hits, store.spaces.all(), store.vectors.count_pending()),
        lambda store: (store.ledger.allowed(ids, filter), sorted(store.ledger.matching(filter, 8) or [])),
        lambda store: (store.ledger.is_empty(), store.ledger.home(), remembered(store)),
    ]
    return chance.choice(cases)


def remembered(store: Store) -> list[tuple[Identity, bytes, bytes]]:
    """Return the vectors that `compare` put into the cache: in memory, those of chunks are in it too."""
    texts = [bytes(range(number, 32)) for number in range(7)]
    return [entry for entry in store.cache.entries() if entry[1] in texts]


def compare(
    pairs: Sequence[tuple[OldMemoryStore, PostgresStore]], cases: int, share_tended: float = 0.0
) -> None:
    """Change and ask both stores of each organisation alike, and insist that they say the same."""
    chance = random.Random(5)
    for number, pair in enumerate(pairs):
        for each in pair:
            each.cache.put(IDENTITY, {bytes(range(number, 32)): unit(number + 1, 0, 0, 1)})
    for number in range(cases):
        alone, among = pairs[number % len(pairs)]
        if chance.random() < share_tended:
            among.tend(silent)
        case = some_change(chance) if chance.random() < 0.06 else some_question(chance)
        assert case(among) == case(alone)


def opened(*urls: str) -> list[tuple[OldMemoryStore, PostgresStore]]:
    """Return pairs of stores, one alone in memory and one among others.

    Ids, paths, words and sources are the same in all of them.
    """
    return [(OldMemoryStore.open("memory://", ""), PostgresStore.open(url, fresh_org())) for url in urls]


@pytest.mark.promise("design.organisations-apart")
def test_every_organisation_is_answered_as_if_it_were_alone(guest: str):
    """Each has a store of its own in memory, which knows of no other: both must say the same, always.

    One is an administrator's, whom no policy stops: there the statements alone keep the others out.
    """
    pairs = opened(server_url(), guest, guest)
    compare(pairs, CASES - TENDED)
    for _, among in pairs:
        among.close()


@pytest.mark.promise("design.organisations-apart")
def test_every_organisation_is_answered_as_if_it_were_alone_where_one_graph_has_the_vectors_of_all(
    guest: str, database: str, monkeypatch: pytest.MonkeyPatch
):
    """The same where vectors are indexed and segments merged, however few they are."""
    monkeypatch.setattr(upkeep, "INDEX_FROM", 1)
    monkeypatch.setattr(upkeep, "_MANY", 2)
    monkeypatch.setattr(scope, "ALWAYS_EXACT", 0)
    monkeypatch.setattr(scope, "MOST_EXACT", 0)
    own = admitted(database)
    pairs = opened(database, own, own)
    for store in pairs[0]:  # whose tables they are makes the index
        embed(store, [(put(store, "docs/0.md", "alpha")[0], unit(1, 0, 0, 0))])
        store.tend(silent)
    compare(pairs, TENDED, share_tended=0.02)
    assert walks(pairs[1][1], IDENTITY.dimension) > 100
    for _, among in pairs:
        among.close()


@pytest.mark.promise("design.organisations-apart")
def test_a_policy_hides_the_rows_of_others_from_statements_that_forget_to_ask(
    guest: str, store: PostgresStore
):
    (theirs,) = put(store, "docs/a.md", "secret text\n--secret")
    embed(store, [(theirs, unit(1, 0, 0, 0))])
    store.cache.put(IDENTITY, {b"key": unit(1, 0, 0, 0)})
    store.ledger.move("http://elsewhere")
    put(store, "docs/a.md", "secret text", tags=("told",))
    assert store.ledger.unsettled(9)
    org = fresh_org()
    with (
        closing(PostgresStore.open(guest, org)) as own,
        psycopg.connect(guest, autocommit=True) as connection,
    ):
        put(own, "docs/a.md", "own text")
        for table in TABLES:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        connection.execute("SELECT set_config('concord.org', %s, false)", (org,))
        assert connection.execute("SELECT count(*) FROM kb_orgs").fetchone() == (1,)
        assert connection.execute("SELECT content FROM kb_chunks").fetchall() == [("own text",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO kb_pending SELECT max(org) + 1, 1, 1 FROM kb_chunks")


@pytest.mark.promise("design.organisations-apart")
def test_where_one_keeps_its_vectors_is_nothing_to_the_others(guest: str):
    with (
        closing(PostgresStore.open(guest, fresh_org())) as outside,
        closing(PostgresStore.open(guest, fresh_org())) as inside,
    ):
        for each in (outside, inside):
            (a,) = put(each, "docs/a.md", "text")
            embed(each, [(a, unit(1, 0, 0, 0))])
        outside.ledger.move("http://elsewhere")
        inside.catalog.delete_documents(["docs/a.md"])
        assert (inside.ledger.unsettled(9), outside.ledger.unsettled(9)) == ([], [])
        outside.catalog.delete_documents(["docs/a.md"])
        assert (inside.ledger.unsettled(9), [i for _, i in outside.ledger.unsettled(9)]) == ([], [a])
        assert inside.ledger.home().url == ""


def test_every_table_with_rows_of_an_organisation_has_a_policy(store: PostgresStore, administrator: Any):
    store.vectors.prepare(IDENTITY)
    unguarded = administrator.execute(
        "SELECT relname FROM pg_class WHERE relname LIKE 'kb\\_%' AND relkind IN ('r', 'p')"
        " AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY relname"
    ).fetchall()
    assert unguarded == [("kb_postings_rows",), ("kb_schema",)]


@pytest.mark.promise("design.organisations-apart")
def test_where_postings_lie_without_a_policy_nobody_may_look_or_say_whose_they_are(owned: str):
    fields = "segment, term, size, chunks, packed"
    with (
        closing(PostgresStore.open(owned, "theirs")) as theirs,
        closing(PostgresStore.open(owned, "own")) as own,
        psycopg.connect(owned, autocommit=True) as connection,
    ):
        put(theirs, "docs/a.md", "secret text")
        put(own, "docs/a.md", "own text")
        for statement in (
            "SELECT count(*) FROM kb_postings_rows",
            "UPDATE kb_postings_rows SET size = 2",
            "DELETE FROM kb_postings_rows",
            f"INSERT INTO kb_postings_rows (org, {fields}) VALUES (1, 1, 'x', 1, '{{1}}', '{{1}}')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
        added = f"INSERT INTO kb_postings_rows ({fields}) VALUES (1, 'zeta', 1, '{{1}}', '{{1}}')"
        with pytest.raises(psycopg.errors.NotNullViolation):
            connection.execute(added)  # it would be nobody's
        connection.execute("SELECT set_config('concord.org', 'own', false)")
        connection.execute("CREATE TEMPORARY TABLE kb_orgs (key integer, name text)")
        connection.execute("INSERT INTO pg_temp.kb_orgs VALUES (%s, 'own')", (theirs.org,))
        connection.execute(added)
        assert connection.execute("SELECT DISTINCT org FROM kb_postings").fetchall() == [(own.org,)]
        assert own.lexical.frequencies(["zeta", "secret"])[1] == {"zeta": 1, "secret": 0}
        assert theirs.lexical.frequencies(["zeta", "secret"])[1] == {"zeta": 0, "secret": 1}


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
    assert administrator.execute("SELECT FROM kb_orgs WHERE name = %s", (org,)).rowcount == 0
