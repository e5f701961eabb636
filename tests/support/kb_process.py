"""`kb` as a process of its own, as a user runs it, and what its store holds when it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw

import concord
from concord.store.sqlite.store import SQLiteStore
from contract.stored import vectors_of
from support.engines import plain_environment

KB = (sys.executable, "-c", "import sys; from concord.cli.main import main; sys.exit(main())")
BOUND_S = 120.0  # a process that takes longer is a failed test, not a hung one


def environment(home: Path, compiled: Path | None = None) -> dict[str, str]:
    """Return the variables that `kb` runs with: a home of its own, and a place for compiled modules."""
    kept = plain_environment()
    if compiled:
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        kept["PYTHONPYCACHEPREFIX"] = str(compiled)
    source, tests = Path(concord.__file__).parent.parent, Path(__file__).parent.parent
    return {
        **kept,
        "KB_HOME": str(home),
        "KB_EMBED_PROVIDER": "hashing",
        "PYTHONPATH": os.pathsep.join([str(source), str(tests)]),
    }


def start(
    *args: str | Path, env: Mapping[str, str], before: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    """Start `kb`; `before` is called in the new process."""
    return subprocess.Popen(
        [*KB, *map(str, args)],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        preexec_fn=before,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a process; return its status and what it said on stdout and stderr."""
    out, err = process.communicate(timeout=BOUND_S)
    return process.returncode, out, err


def run(
    *args: str | Path, env: Mapping[str, str], before: Callable[[], None] | None = None
) -> tuple[int, str, str]:
    """Run `kb` to its end."""
    return finish(start(*args, env=env, before=before))


def database(home: Path) -> Path:
    return home / "data" / "default.db"


def assert_sound(path: Path) -> None:
    """Assert that a store's file is whole and its parts agree with each other."""
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.execute("INSERT INTO kb_chunks_fts (kb_chunks_fts, rank) VALUES ('integrity-check', 1)")
    chunks = connection.execute("SELECT count(*) FROM kb_chunks").get
    assert connection.execute("SELECT value FROM kb_meta WHERE key = 'chunks'").get == chunks
    empty = "SELECT count(*) FROM kb_documents WHERE key NOT IN (SELECT document FROM kb_chunks)"
    assert connection.execute(empty).get == 0
    connection.close()


def state(path: Path) -> dict[str, Any]:
    """Return all that a store says of its documents, but for the ids and times that differ every time."""
    store = SQLiteStore.open(f"sqlite://{path}", "default")
    try:
        return {
            document.path: (
                document.type,
                document.title,
                document.tags,
                document.file_hash,
                document.content_hash,
                [
                    (chunk.text, chunk.start_line, chunk.end_line, chunk.heading, vectors.get(chunk.id))
                    for chunk in chunks
                ],
            )
            for document in store.catalog.documents()
            for chunks in [store.catalog.chunks(document.id)]
            for vectors in [vectors_of(store).fetch([chunk.id for chunk in chunks])]
        }
    finally:
        store.close()
