"""Look-ups of names in what this machine has: releases, definitions, options, keys of settings.

Nothing of it is brought along: sources are the installed packages', changelogs, settings and manual pages the
system's, and the command line is our own. Each look-up knows the lines that are wanted.
"""

from __future__ import annotations

import ast
import gzip
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import sized
from benchmarks.synthetic import SEED

PACKAGES = sized(("click", "httpx"), ("iniconfig",))
COMMANDS = Path(__file__).parent.parent / "docs/cli.md"
SYSTEM = {
    "changelogs": (
        "usr/share/doc/*/NEWS.gz",
        "usr/share/doc/*/CHANGELOG.md*",
        "usr/lib/node_modules/*/*/*/*LOG.md",
    ),
    "settings": ("etc/*.conf", "etc/*/*.conf", "etc/*/*/*/*.conf"),
    "manuals": ("usr/share/man/man1/*.1.gz",),
}
MOST_BYTES = 130_000  # of a file, packed or not: larger ones would only take long to embed
FEWEST_NAMES = 8  # in a file that is worth asking
FILES = sized(24, 1)  # of each kind
LOOKED_INTO = 600  # of the files that patterns find
MOST_OPTIONS = 3  # explained together: more stand in a synopsis

_RELEASE = re.compile(
    r"(?:#+ |\* (?:Noteworthy )?[Cc]hanges in (?:release |version )?)\[?v?(\d{1,3}(?:\.\d+)+)"
)
_KEY = re.compile(r"[ \t]*[#;]?[ \t]*([A-Za-z_][\w.-]{3,})[ \t]*=[ \t]*\S")
_COMMAND_OPTION = re.compile(r"  (?:-\w, )?(--(?!help)[a-z-]{4,})")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]{3,}")
_ENTRY = re.compile(r'(?:\.(?:IP|B|BR|BI|RB|TP)\s+)?\s*"?(-.*)')
_FONT = re.compile(r"\\f(?:\[\w*\]|\(..|.)|\\&")

Lines = Mapping[str, set[int]]  # name → the lines of a file, from 1, of which a hit shall hold one


class LookUp(NamedTuple):
    """What is typed, and where it should lead."""

    query: str
    file: str
    lines: set[int]


def sources() -> dict[str, str]:
    """Return the texts to index by their paths, each kind of file in a folder of its own."""
    texts = {"docs/cli.md": COMMANDS.read_text(encoding="utf-8")}
    for package in PACKAGES:
        spec = find_spec(package)
        root = Path(spec.origin).parent if spec and spec.origin else COMMANDS
        for path in sorted(root.rglob("*.py")):
            texts[f"code/{package}/{path.relative_to(root)}"] = path.read_text(encoding="utf-8")
    for folder, patterns in SYSTEM.items():
        # Hundreds of manual pages are of one program, with underscores in their names.
        paths = sorted(
            {path for pattern in patterns for path in Path("/").glob(pattern) if "_" not in path.name}
        )
        some = random.Random(SEED).sample(paths, min(LOOKED_INTO, len(paths)))
        read = (
            (f"{folder}/{path.parent.name}/{path.name.removesuffix('.gz')}", _text(path)) for path in some
        )
        worth = [(name, text) for name, text in read if len(_names(folder, text)) >= FEWEST_NAMES]
        texts |= dict(worth[:FILES])
    return texts


def looked_up(texts: Mapping[str, str]) -> dict[str, list[LookUp]]:
    """Return all look-ups by their kind."""
    code = [*_asked("code", texts, ("{}",))]
    last = Counter(lookup.query.rpartition(".")[2] for lookup in code)
    once = {name for name, times in last.items() if times == 1 and len(name) > 5}
    forms = ("{}", "where is {} defined", "def {}")
    chance = random.Random(SEED)
    return {
        "versions": [*_asked("changelogs", texts, ("{1} {0} changes", "{1} {0} bug fixes"))],
        "options": [*_asked("docs", texts, ("{}",))],
        "keys of settings": [*_asked("settings", texts, ("{0}", "{2} {0}", "what is {0} set to"))],
        "options of manual pages": [*_asked("manuals", texts, ("{2} {0}",))],
        "definitions": [
            lookup._replace(query=chance.choice(forms).format(name))
            for lookup in code
            if (name := lookup.query.rpartition(".")[2]) in once
        ],
        "qualified names": [
            lookup for lookup in code if "." in lookup.query and last[lookup.query.rpartition(".")[2]] > 1
        ],
    }


def _asked(folder: str, texts: Mapping[str, str], forms: tuple[str, ...]) -> Iterator[LookUp]:
    """Yield a look-up for each name; a form takes it with the file's folder and its own name."""
    chance = random.Random(SEED)
    held = {path: _names(folder, text) for path, text in texts.items() if path.startswith(f"{folder}/")}
    files = Counter(name for names in held.values() for name in names)
    for path, names in held.items():
        parent, stem = Path(path).parent.name, Path(path).stem.replace("git-", "git ")
        for name, lines in names.items():
            if files[name] == 1 or folder in ("changelogs", "manuals"):
                yield LookUp(chance.choice(forms).format(name, parent, stem), path, lines)


def _names(folder: str, text: str) -> Lines:
    lines = defaultdict[str, set[int]](set)
    for name, number in READERS[folder](text):
        lines[name].add(number)
    return lines


def _text(path: Path) -> str:
    try:
        data = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except (OSError, UnicodeDecodeError, EOFError):
        return ""


def _releases(text: str) -> Iterator[tuple[str, int]]:
    """Yield each release with its lines, from its heading to the next one."""
    release = ""
    for number, line in enumerate(text.splitlines(), 1):
        heading = _RELEASE.match(line)
        release = heading[1] if heading else release
        if release:
            yield release, number


def _command_options(text: str) -> Iterator[tuple[str, int]]:
    """Yield the options of our own commands, as `kb add --pattern`."""
    command = ""
    for number, line in enumerate(text.splitlines(), 1):
        command = line.removeprefix("## ") if line.startswith("## ") else command
        if option := _COMMAND_OPTION.match(line):
            yield f"{command} {option[1]}", number


def _keys(text: str) -> Iterator[tuple[str, int]]:
    """Yield the keys of a settings file, also those that are commented out."""
    matches = ((_KEY.match(line), number) for number, line in enumerate(text.splitlines(), 1))
    yield from ((key[1], number) for key, number in matches if key)


def _manual_options(text: str) -> Iterator[tuple[str, int]]:
    """Yield the long options that lines of a manual page begin with."""
    for number, line in enumerate(text.splitlines(), 1):
        entry = _ENTRY.match(_FONT.sub("", line.replace("\\-", "-")))
        options = _OPTION.findall(entry[1]) if entry else []
        yield from ((option, number) for option in options if len(options) <= MOST_OPTIONS)


def _definitions(text: str) -> Iterator[tuple[str, int]]:
    """Yield what Python code defines, methods as `Class.method`."""
    tree = ast.parse(text)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    owners = {inner: f"{node.name}." for node in classes for inner in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and "__" not in node.name:
            yield owners.get(node, "") + node.name, node.lineno


READERS: Mapping[str, Callable[[str], Iterator[tuple[str, int]]]] = {
    "docs": _command_options,
    "code": _definitions,
    "changelogs": _releases,
    "settings": _keys,
    "manuals": _manual_options,
}
