"""Look-ups of names in what this machine has: releases, definitions, options, keys of settings.

Nothing of it is brought along: sources are the installed packages', changelogs and settings those of the
system, manual pages likewise, and the command line is our own. Each look-up knows the lines that are wanted.
"""

from __future__ import annotations

import ast
import gzip
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import sized
from benchmarks.synthetic import SEED

PACKAGES = sized(("click", "httpx"), ("iniconfig",))
CHANGELOGS = (
    "usr/share/doc/*/NEWS.gz",
    "usr/share/doc/*/CHANGELOG.md*",
    "usr/lib/node_modules/*/*/*/*LOG.md",
)
SETTINGS = ("etc/*.conf", "etc/*/*.conf", "etc/*/*/*/*.conf")
MANUALS = ("usr/share/man/man1/*.1.gz",)
COMMANDS = Path(__file__).parent.parent / "docs/cli.md"
MOST_BYTES = 130_000  # of a file, packed or not: larger ones would only take long to embed
FEWEST_NAMES = 8  # in a file that is worth asking
FILES = sized(24, 1)  # of changelogs, of settings and of manual pages
MOST_OPTIONS = 3  # explained together: more stand in a synopsis
LOOKED_INTO = 600  # of the files that a pattern finds

_RELEASE = re.compile(
    r"^(?:#+ |\* (?:Noteworthy )?[Cc]hanges in (?:release |version )?)\[?v?(\d{1,3}(?:\.\d+)+)", re.M
)
_KEY = re.compile(r"^[ \t]*[#;]?[ \t]*([A-Za-z_][\w.-]{3,})[ \t]*=[ \t]*\S", re.M)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]{3,}")
_ENTRY = re.compile(r'(?:\.(?:IP|B|BR|BI|RB|TP)\s+)?\s*"?(-.*)')
_FONT = re.compile(r"\\f(?:\[\w*\]|\(..|.)|\\&")

Lines = dict[str, set[int]]  # name → lines, from 1, of which a hit shall hold one


class LookUp(NamedTuple):
    """What is typed, and where it should lead."""

    query: str
    file: str
    lines: frozenset[int]


def sources() -> dict[str, str]:
    """Return the texts to index by their paths, each kind of file in a folder of its own."""
    texts = {"docs/cli.md": COMMANDS.read_text(encoding="utf-8")}
    for package in PACKAGES:
        spec = find_spec(package)
        root = Path(spec.origin).parent if spec and spec.origin else Path()
        for path in sorted(root.rglob("*.py")) if spec else ():
            texts[f"code/{package}/{path.relative_to(root)}"] = path.read_text(encoding="utf-8")
    texts |= _some("changelogs", CHANGELOGS, lambda text: Counter(_RELEASE.findall(text)))
    texts |= _some("settings", SETTINGS, keys)
    return texts | _some("manuals", MANUALS, manual_options)


def looked_up(texts: Mapping[str, str]) -> dict[str, list[LookUp]]:
    """Return all look-ups by their kind."""
    found: dict[str, list[LookUp]] = {
        "versions": [*_versions(_of("changelogs", texts))],
        "options": [*_command_options(texts["docs/cli.md"])],
        "keys of settings": [*_settings(_of("settings", texts))],
        "options of manual pages": [*_manuals(_of("manuals", texts))],
    }
    return found | _definitions(_of("code", texts))


def _some(folder: str, patterns: Iterable[str], names: Callable[[str], Sized]) -> dict[str, str]:
    """Return some of the files that patterns find on this machine and that have enough names."""
    paths = sorted({path for pattern in patterns for path in Path("/").glob(pattern)})
    paths = [path for path in paths if "_" not in path.name]  # hundreds of pages are of one program
    chosen = random.Random(SEED).sample(paths, min(LOOKED_INTO, len(paths)))
    texts: dict[str, str] = {}
    for path in chosen:
        text = _text(path)
        if len(texts) < FILES and len(names(text)) >= FEWEST_NAMES:
            texts[f"{folder}/{path.parent.name}/{path.name.removesuffix('.gz')}"] = text
    return texts


def _text(path: Path) -> str:
    try:
        data = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except (OSError, UnicodeDecodeError, EOFError):
        return ""


def _of(folder: str, texts: Mapping[str, str]) -> dict[str, str]:
    return {path: text for path, text in texts.items() if path.startswith(f"{folder}/")}


def _versions(texts: Mapping[str, str]) -> Iterator[LookUp]:
    chance = random.Random(SEED)
    for path, text in texts.items():
        package = Path(path).parent.name
        releases = [*_RELEASE.finditer(text)]
        named = Counter(release[1] for release in releases)
        ends = [release.start() for release in releases[1:]] + [len(text)]
        for release, end in zip(releases, ends, strict=True):
            if named[release[1]] == 1:
                lines = range(_line(text, release.start()), _line(text, end - 1) + 1)
                what = chance.choice(("changes", "bug fixes", "new features"))
                yield LookUp(f"{package} {release[1]} {what}", path, frozenset(lines))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _command_options(text: str) -> Iterator[LookUp]:
    """Yield the options of our own commands, as `kb add --pattern`."""
    command = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            command = line.removeprefix("## ")
        option = re.match(r"  (?:-\w, )?(--[a-z-]{4,})", line)
        if option and command and option[1] != "--help":
            yield LookUp(f"{command} {option[1]}", "docs/cli.md", frozenset([number]))


def keys(text: str) -> Lines:
    """Return the keys of a settings file, also of those that are commented out."""
    found: Lines = defaultdict(set)
    for key in _KEY.finditer(text):
        found[key[1]].add(_line(text, key.start(1)))
    return found


def _settings(texts: Mapping[str, str]) -> Iterator[LookUp]:
    chance = random.Random(SEED)
    held = {path: keys(text) for path, text in texts.items()}
    files = Counter(key for names in held.values() for key in names)
    for path, names in held.items():
        for key, lines in names.items():
            if files[key] == 1:
                asked = (key, f"{Path(path).stem} {key}", f"what is {key} set to")
                yield LookUp(chance.choice(asked), path, frozenset(lines))


def manual_options(text: str) -> Lines:
    """Return the long options that lines of a manual page begin with."""
    found: Lines = defaultdict(set)
    for number, line in enumerate(text.splitlines(), 1):
        entry = _ENTRY.match(_FONT.sub("", line.replace("\\-", "-")))
        options = _OPTION.findall(entry[1]) if entry else []
        for option in options if len(options) <= MOST_OPTIONS else ():
            found[option].add(number)
    return found


def _manuals(texts: Mapping[str, str]) -> Iterator[LookUp]:
    for path, text in texts.items():
        for option, lines in manual_options(text).items():
            command = Path(path).stem.replace("git-", "git ")
            yield LookUp(f"{command} {option}", path, frozenset(lines))


def _definitions(texts: Mapping[str, str]) -> dict[str, list[LookUp]]:
    """Return look-ups of names that are defined once, and of methods whose name several classes have."""
    chance = random.Random(SEED)
    named, methods = list[LookUp](), list[LookUp]()
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                named.append(LookUp(node.name, path, frozenset([node.lineno])))
            if isinstance(node, ast.ClassDef):
                methods += [
                    LookUp(f"{node.name}.{inner.name}", path, frozenset([inner.lineno]))
                    for inner in node.body
                    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
    times = Counter(one.query for one in named)
    qualified = Counter(one.query for one in methods)
    forms = ("{}", "where is {} defined", "def {}")
    return {
        "definitions": [
            one._replace(query=chance.choice(forms).format(one.query))
            for one in named
            if times[one.query] == 1 and len(one.query) > 5 and not one.query.startswith("__")
        ],
        "qualified names": [
            one
            for one in methods
            if qualified[one.query] == 1 and times[one.query.rpartition(".")[2]] > 1 and "__" not in one.query
        ],
    }
