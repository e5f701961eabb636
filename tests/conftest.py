"""What holds for every test."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

import needs
from concord import KnowledgeBase
from concord.cli.main import main
from concord.embed.bundled import BundledEmbedder
from concord.extract.sandbox import Sandbox
from concord.search import passages
from support import postgres_server
from support.engines import NO_ENGINE
from support.kb_command import Kb, Run
from support.postgres_server import fresh_org, server_url
from support.recorders import SyncBench, opened
from support.scratch import scratch

if TYPE_CHECKING:
    from support.qdrant_shim import QdrantShim

# The same cases in every run, so that a failure is always news of the change at hand; and with
# HYPOTHESIS_PROFILE=explore others each time, to look for what nobody has met yet. Neither looks at the
# clock: on a busy machine any case may take a second. And cases may share a fixture, such as a store, which
# those that need a clean one empty themselves.
patient = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.register_profile("steady", patient, derandomize=True)
settings.register_profile("explore", patient, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# A busy machine is not a disk that hangs: only the test of one may run into the limit.
passages.FILES_MS = 30_000.0

# No test starts a process that stays, but for those of engines, which end theirs.
os.environ[NO_ENGINE] = "never"

# Thousands of searches are not about the reader, which takes as long as all else of one. And it computes in
# int8, which processors round differently. `test_reader.py` turns it on.
os.environ.setdefault("KB_READER_ENABLED", "false")
os.environ.setdefault("KB_OCR_ENGINE", "none")  # whether an engine is installed must not change other tests

# A shell starts what runs in the background with Ctrl-C ignored, and every child inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Whoever opens the model's network, and whoever asks for the server, is noted: see `needs`. Its tokenizer
# alone counts what every answer may take.
chosen_session = needs.noting("model", BundledEmbedder._chosen_session)
BundledEmbedder._chosen_session = chosen_session  # type: ignore[method-assign]
postgres_server.shared_server = needs.noting("server", postgres_server.shared_server)


@pytest.fixture(autouse=True, scope="session")
def worker() -> Iterator[None]:
    """Keep the process that reads files from one test to the next: starting one takes a tenth of a second."""
    sandbox = Sandbox()
    sandbox.extract("text", b"words", "a.txt")
    yield
    sandbox.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a server or the model, for `make quick`."""
    for item in items:
        needs.mark(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Note from now on what a test uses, in its fixtures too."""
    needs.begin()


@pytest.hookimpl(trylast=True)  # when its fixtures have been put away
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Hold a test to its marks."""
    needs.check(item)


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kb:
    """Run `kb` with a home and a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")

    def run(*args: str | Path) -> Run:
        capsys.readouterr()
        return Run(main([str(arg) for arg in args]), *capsys.readouterr())

    return run


@pytest.fixture
def knowledge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    """A knowledge base as the library opens it, with a home of its own."""
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    with KnowledgeBase.open() as made:
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is such a place."""
    with scratch() as made:
        yield Path(made)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that an unprivileged user may enter: pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for models that are built or unpacked, for all tests of a module."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[SyncBench]:
    """Give what a sync works with; that stores are alike, their contract's tests show."""
    store = opened(f"sqlite://{tmp_path}/store")
    made = SyncBench(store)
    yield made
    made.reader.close()
    store.close()


@pytest.fixture(scope="module")
def qdrant_server() -> Iterator[QdrantShim]:
    """A server on Qdrant's own engine, for all tests of a module."""
    from support.qdrant_shim import QdrantShim  # its engine comes with the dev extra

    made = QdrantShim()
    yield made
    made.close()


@pytest.fixture
def shim(qdrant_server: QdrantShim) -> Iterator[QdrantShim]:
    """That server, without a collection and without a fault."""
    yield qdrant_server
    qdrant_server.reset()


@pytest.fixture
def administrator() -> Iterator[Any]:
    """A connection to PostgreSQL that no policy holds back."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
    with psycopg.connect(server_url(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def database(administrator: Any) -> Iterator[str]:
    """The URL of a database of PostgreSQL in which nothing has been made yet."""
    name = fresh_org().replace("-", "_")
    administrator.execute(f"CREATE DATABASE {name}")
    yield server_url().replace("/postgres?", f"/{name}?")
    administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def owned(administrator: Any) -> Iterator[str]:
    """The URL of a database with its owner, who is no administrator, as docs/postgresql.md has them made."""
    import psycopg

    name = fresh_org().replace("-", "_")
    administrator.execute(f"CREATE ROLE {name} LOGIN")
    administrator.execute(f"CREATE DATABASE {name} OWNER {name}")
    url = server_url().replace("/postgres?", f"/{name}?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    yield url.replace("postgres:@", f"{name}:@")
    administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
    administrator.execute(f"DROP ROLE {name}")
