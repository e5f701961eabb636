"""Benchmarks still work: some go their whole way with next to nothing, and measure nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.engines import plain_environment
from support.judged import recipes, things
from support.postgres_server import server_url

ROOT = Path(__file__).parent.parent
NAMES = ("ingest", "partitions", "quality", "search")  # the others are built of the same parts
ON_POSTGRESQL = ("partitions",)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of what benchmarks keep: one for all, so that the model's graph is made once."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write collections named as benchmarks want them, enough of them for one to be left out."""
    folder = tmp_path_factory.mktemp("collections")
    things(folder / "scifact", queries=20)
    shutil.copy(folder / "scifact/qrels/test.tsv", folder / "scifact/qrels/train.tsv")
    things(folder / "k8s-anchor", queries=10)
    recipes(folder / "cranfield")
    recipes(folder / "xquad-en")
    return folder


def small(name: str, kept: Path, data: Path, *arguments: str) -> str:
    """Run a benchmark with next to nothing and return what it printed."""
    environment = plain_environment()
    if name in ON_POSTGRESQL:
        environment["KB_BENCH_POSTGRES_URL"] = _database(f"bench_{name}")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--small", name, *arguments],
        cwd=ROOT,
        env={**environment, "KB_BENCH_CACHE": str(kept), "KB_BENCH_DATA": str(data)},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _database(name: str) -> str:
    """Make a database on the server of all tests: one of its own takes longer to make than all the rest."""
    url = server_url()
    from benchmarks.postgres_lab import ordinary_database

    return ordinary_database(url, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_prints_its_rows(name: str, kept: Path, collections: Path):
    title, *lines = small(name, kept, collections).splitlines()
    assert title == f"{name} (small: these figures mean nothing)"
    assert [line for line in lines if re.search(r"\d", line) and "not measured" not in line]
