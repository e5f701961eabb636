"""What benchmarks on PostgreSQL share: a server with an ordinary role, and vectors that lie as texts do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg

from benchmarks.synthetic import DIMENSION, SEED, Floats, unit_rows
from concord.store.postgres.connections import schema_of

ROLE = "kb_bench"
ORG = "synthetic"  # the organisation that has all the chunks
VECTORS = "kb_vectors_1"  # the table of their vectors
LATENT = 24  # texts of one kind differ in some tens of directions, not in all 384
NOISE = 0.3


@contextmanager
def server() -> Iterator[str]:
    """Lend a database in which an ordinary role owns everything."""
    if url := os.environ.get("KB_BENCH_POSTGRES_URL"):
        yield url
        return
    from support.postgres_server import Server

    started = Server()
    yield ordinary_database(started.url, ROLE)


def ordinary_database(url: str, name: str) -> str:
    """Make a database and the ordinary role that owns it, on the tests' server; return where it is."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"CREATE DATABASE {name} OWNER {name}")
    with psycopg.connect(url.replace("/postgres?", f"/{name}?"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    return url.replace("postgres:@/postgres?", f"{name}:@/{name}?")


@contextmanager
def session(url: str, org: str) -> Iterator[psycopg.Connection[Any]]:
    """Lend a connection that works in the schema of one organisation."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{schema_of(org)}", public')
        yield connection


def points(number: int, seed: int) -> Floats:
    """Return vectors of the bundled model's dimension that lie near a few directions, as texts do."""
    directions = np.random.default_rng(SEED).standard_normal((LATENT, DIMENSION))
    chance = np.random.default_rng([SEED, seed])
    noise = NOISE * chance.standard_normal((number, DIMENSION))
    return unit_rows(chance.standard_normal((number, LATENT)) @ directions + noise)
