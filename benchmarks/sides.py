"""Two revisions of this repository, each installed beside the other, and a process of either that searches.

A side is known by its command `kb` and by `concord.KnowledgeBase` alone, so that any two can be compared.
What takes long to make (an unpacked revision, filled stores) is kept by revision in the benchmarks' cache.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

from benchmarks.measure import Cost, command_cost, quick_environment
from benchmarks.synthetic import cache_folder

ROOT = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).with_name("searching_process.py")
_DIGEST = "digest"  # of the sources that a folder was filled by


class Side(NamedTuple):
    """A revision that is installed: its interpreter is in `environment`, its filled stores beside that."""

    folder: Path
    environment: Path

    def command(self, *arguments: str) -> list[str]:
        """Return a command line of its `kb`."""
        return [str(self.environment / "bin" / "kb"), *arguments]

    def filled(self, tree: Path, settings: Mapping[str, str]) -> Path:
        """Return the home of a knowledge base that holds a folder, indexed now or by an earlier run."""
        home = self.folder / f"home-{tree.name}"
        if not home.is_dir():
            print(f"  indexing {tree.name} by {self.folder.name}, once", flush=True)
            making = home.with_name(f"{home.name}.making")
            shutil.rmtree(making, ignore_errors=True)
            command_cost(self.command("add", str(tree)), side_variables(making, settings))
            making.rename(home)
        return home


def side_variables(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which `kb` has that home and no other settings than these."""
    leaving_out = ("KB_", "PYTHONPATH")
    plain = {key: value for key, value in quick_environment().items() if not key.startswith(leaving_out)}
    return {**plain, "KB_HOME": str(home), **settings}


def commit_of(revision: str) -> str | None:
    """Return which commit a revision is; None if git knows none, or is not there."""
    try:
        return _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None


def earlier(commit: str) -> Side:
    """Return a commit of this repository, unpacked and installed."""
    folder = cache_folder().absolute() / "against" / commit[:12]
    if not (folder / "source").is_dir():
        with tarfile.open(fileobj=BytesIO(_git("archive", commit))) as archive:
            archive.extractall(folder / "unpacking", filter="data")
        (folder / "unpacking").rename(folder / "source")
    return _installed(folder, folder / "source")


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def working_tree() -> Side:
    """Return what is in the working tree, installed; what earlier sources filled is filled anew."""
    folder = cache_folder().absolute() / "against" / "working-tree"
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.*")):
        if path.suffix != ".pyc" and path.is_file():
            digest.update(str(path).encode() + path.read_bytes())
    stamp = folder / _DIGEST
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != digest.hexdigest():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stamp.write_text(digest.hexdigest(), encoding="utf-8")
    return _installed(folder, ROOT)


def _installed(folder: Path, source: Path) -> Side:
    """Return the side of unpacked sources: with the packages of this environment, or with its own."""
    project, ours = _project(source), _project(ROOT)
    if project["dependencies"] != ours["dependencies"]:
        return Side(folder, _with_own_packages(folder / "own-environment", source))
    environment = folder / "environment"
    venv.create(environment, clear=True, symlinks=True)
    packages = [entry for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "sides.pth").write_text("\n".join([str(source / "src"), *packages]), encoding="utf-8")
    module, _, function = project["scripts"]["kb"].partition(":")
    lines = [f"#!{environment}/bin/python", "import sys", f"from {module} import {function}"]
    script = environment / "bin" / "kb"
    script.write_text("\n".join([*lines, f"sys.exit({function}())\n"]), encoding="utf-8")
    script.chmod(0o755)
    return Side(folder, environment)


def _project(source: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    return project


def _with_own_packages(environment: Path, source: Path) -> Path:
    """Return an environment with the packages that sources ask for, made now or by an earlier run."""
    if not (environment / "bin" / "kb").is_file():
        print("  other dependencies: installing them, once", flush=True)
        venv.create(environment, clear=True, symlinks=True, with_pip=True)
        python = str(environment / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(source)], check=True)
    return environment


class Searching:
    """A process of one side that has its knowledge base open and its model loaded."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions, self._answers = questions, answers

    def search(self, text: str) -> Cost:
        """Ask, and return what the answer took."""
        reply = self._reply({"query": text})
        return Cost(reply["cpu"], reply["elapsed"])

    def memory_mb(self) -> float:
        """Return how much memory it has now."""
        return float(self._reply({})["kb"]) / 1024

    def _reply(self, message: Mapping[str, str]) -> dict[str, float]:
        self._questions.write(json.dumps(message) + "\n")
        self._questions.flush()
        reply: dict[str, float] = json.loads(self._answers.readline())
        return reply


@contextmanager
def searching(side: Side, home: Path, settings: Mapping[str, str]) -> Iterator[Searching]:
    """Start a process that searches, and end it afterwards."""
    command = [str(side.environment / "bin" / "python"), "-P", str(WORKER)]
    pipe, variables = subprocess.PIPE, side_variables(home, settings)
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=variables, encoding="utf-8") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Searching(process.stdin, process.stdout)


class Stored(NamedTuple):
    """What a side made of the texts."""

    chunks: int
    size_mb: float


def stats(side: Side, home: Path, settings: Mapping[str, str]) -> Stored:
    """Return how much a side has stored, as its `kb stats` says."""
    command, variables = side.command("stats", "--json"), side_variables(home, settings)
    done = subprocess.run(command, env=variables, check=True, capture_output=True)
    reply = json.loads(done.stdout)
    return Stored(reply["chunks"], reply["size_bytes"] / 1e6)
