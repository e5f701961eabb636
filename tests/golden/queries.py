"""Queries over the frozen corpora: most are made from the texts, always the same ones; some by hand."""

from __future__ import annotations

import ast
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
FILE = HERE / "queries.jsonl"
BY_HAND = HERE / "by_hand.txt"
JUDGED = HERE / "judged.txt"
FUSIONS = ("rrf", "weighted", "adaptive", "dominant", "logodds", "blend")
_WORD = re.compile(r"[A-Za-z][a-z]{3,}")


class GoldenQuery(NamedTuple):
    """One query: its set and number, its text, and the options of the search."""

    id: str
    text: str
    options: Mapping[str, Any]

    @property
    def set(self) -> str:
        return self.id.rpartition("-")[0]


class Texts:
    """The corpora as plain files, and a fixed order to pick from them."""

    def __init__(self, corpora: Path) -> None:
        files = sorted(path for path in corpora.rglob("*") if path.is_file())
        self.by_path = {file.relative_to(corpora).as_posix(): _read(file) for file in files}
        self.frequency = Counter(
            word for text in self.by_path.values() for word in set(_WORD.findall(text.lower()))
        )

    def below(self, *folders: str, ending: str = "") -> dict[str, str]:
        return {
            path: text
            for path, text in self.by_path.items()
            if path.startswith(folders) and path.endswith(ending)
        }

    def rare_words(self, text: str, count: int) -> list[str]:
        """Return words of a text that few files have, in their order."""
        words = dict.fromkeys(_WORD.findall(text.lower()))
        rarest = sorted(words, key=lambda word: (self.frequency[word], word))[:count]
        return [word for word in words if word in rarest]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def written() -> list[GoldenQuery]:
    """Return the queries of the file."""
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return [GoldenQuery(row.pop("id"), row.pop("text"), row) for row in rows]


def write(queries: Sequence[GoldenQuery]) -> None:
    rows = ({"id": query.id, "text": query.text, **query.options} for query in queries)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    FILE.write_text(text, encoding="utf-8")


def judged() -> dict[str, list[str]]:
    """Return the documents that answer each judged query."""
    lines = JUDGED.read_text(encoding="utf-8").splitlines()
    rows = (line.split(" => ") for line in lines if " => " in line)
    return {text: paths.split(", ") for text, paths in rows}


def made(corpora: Path) -> list[GoldenQuery]:
    """Make all queries from the corpora and the files beside this one."""
    texts, by_hand = Texts(corpora), _by_hand()
    sets: dict[str, list[tuple[str, dict[str, Any]]]] = {
        name: [(text, {}) for text in chosen] for name, chosen in by_hand.items()
    }
    for name, make in GENERATED.items():
        sets.setdefault(name, []).extend(_as_pairs(make(texts, random.Random(name))))
    sets |= {name: list(make(by_hand)) for name, make in VARIED.items()}
    sets["judged"] = [(text, {}) for text in judged()]
    return [query for name in sorted(sets) for query in _numbered(name, sets[name])]


def _as_pairs(given: Iterator[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((query, {}) if isinstance(query, str) else query for query in given)


def _numbered(name: str, pairs: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[GoldenQuery]:
    seen: set[str] = set()
    for text, options in pairs:
        key = json.dumps([text, options])
        if key not in seen:
            seen.add(key)
            yield GoldenQuery(f"{name}-{len(seen):03d}", text, options)


def _by_hand() -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    current: list[str] = []
    for line in BY_HAND.read_text(encoding="utf-8").splitlines():
        if re.fullmatch(r"\[[a-z]+\]", line):
            current = chosen.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("# "):
            current.append(line)
    return chosen


def _headings(texts: Texts, pick: random.Random) -> Iterator[str]:
    found = [
        heading.strip("# `*")
        for text in texts.below("", ending=".md").values()
        for heading in re.findall(r"^#{1,4} .+$", text, re.M)
    ]
    unique = sorted({heading for heading in found if len(heading) > 5})
    yield from pick.sample(unique, 220)


def _keywords(texts: Texts, pick: random.Random) -> Iterator[str]:
    paragraphs = [
        paragraph
        for text in texts.below("wiki", "project", "minutes", "howto", "decisions", "mail", "code").values()
        for paragraph in text.split("\n\n")
        if len(paragraph) > 150
    ]
    for paragraph in pick.sample(paragraphs, 200):
        yield " ".join(texts.rare_words(paragraph, pick.choice((1, 2, 3, 3))))


def _sentences(texts: Texts, pick: random.Random) -> Iterator[str]:
    sentences = [
        sentence
        for text in texts.below("wiki", "project", "minutes", "howto", "decisions", "site").values()
        for sentence in re.findall(r"(?<=[.\n] )[A-Z][^.|\n`*<>]{50,140}(?=\.)", text)
    ]
    for sentence in pick.sample(sentences, 160):
        words = sentence.split()
        yield " ".join(words[: pick.randint(5, 9)])


def _options(texts: Texts, pick: random.Random) -> Iterator[str]:
    for path, text in texts.below("manuals", ending=".txt").items():
        tool = Path(path).stem
        for option, meaning in re.findall(r"^ {7}(-.+)\n {14}(.+)", text, re.M):
            long = option.split(", ")[-1].split()[0]
            yield pick.choice((long, f"{tool} {long}", f"what does {tool} {long} do", meaning.rstrip(".")))
    flags = sorted(set(re.findall(r"`(--[a-z-]+)", texts.by_path["project/docs/cli.md"])))
    yield from pick.sample(flags, min(30, len(flags)))


def _names(texts: Texts, pick: random.Random) -> Iterator[str]:
    names = []
    for path, text in texts.below("code/src", ending=".py").items():
        module = path.removeprefix("code/src/").removesuffix(".py").replace("/", ".")
        names += [f"{module}.{name}" for name in _defined(text)]
    for name in pick.sample(names, 110):
        last = name.rpartition(".")[2]
        yield pick.choice(
            (name, last, f"def {last}", f"where is {last} defined", ".".join(name.split(".")[-2:]))
        )
    yield from (
        "RetryPolicy.Pause",
        "SegmentError",
        "LazyLoader",
        "frame_accept",
        "FRAME_MAX_PAYLOAD",
        "SetZero",
    )
    yield from ("alarm_rules", "renderPanel", "MemberMissing", "Segment::open", "PanelOptions.maxSeries")


def _defined(text: str) -> Iterator[str]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (
                f"{node.name}.{statement.name}"
                for statement in node.body
                if isinstance(statement, ast.FunctionDef)
            )


def _settings(texts: Texts, pick: random.Random) -> Iterator[str]:
    keys = re.findall(r'^        "([a-z]+\.[a-z_]+)",$', texts.by_path["code/src/settings.py"], re.M)
    for path in texts.below("data", ending="-settings.md"):
        keys += re.findall(r"^\| `([^`]+)`", texts.by_path[path], re.M)
    for key in keys:
        yield pick.choice(
            (key, f"default of {key}", f"what does {key} set", f"KB_{key.upper().replace('.', '_')}")
        )


def _codes(texts: Texts, pick: random.Random) -> Iterator[str]:
    pattern = r"\b(?:TW|BUG|TWSA|GN|TP|D|SK|ADR)[- ](?:\d{4}-)?\d+\b|#\d{4}"
    everything = "\n".join(texts.by_path.values())
    codes = sorted(set(re.findall(pattern, everything)))
    for code in pick.sample(codes, min(90, len(codes))):
        yield pick.choice((code, code, f"what is {code}", code.lower(), code.replace("-", " ")))


def _versions(texts: Texts, pick: random.Random) -> Iterator[str]:
    for path, text in texts.below("products", ending="CHANGELOG.md").items():
        product = path.split("/")[1]
        for version in re.findall(r"^## (\S+)", text, re.M):
            yield pick.choice(
                (f"{product} {version}", f"what changed in {product} {version}", f"{version} fixed")
            )
    for version in re.findall(r"^## \[?(\d[\w.]+)", texts.by_path["project/CHANGELOG.md"], re.M)[:12]:
        yield pick.choice((f"concord {version}", f"changes in {version}", version))


def _definitions(texts: Texts, pick: random.Random) -> Iterator[str]:
    terms = re.findall(r"^\*\*(.+?)\*\*:", texts.by_path["data/glossary.md"], re.M)
    words = re.findall(r"^\| ([a-z, ]+) \| [a-z]", texts.by_path["project/ARCHITECTURE.md"], re.M)
    for term in [*terms, *(word for row in words for word in row.split(", "))]:
        yield pick.choice((f"what is a {term.lower()}", f"define {term.lower()}", f"{term} meaning", term))


def _typos(texts: Texts, pick: random.Random) -> Iterator[str]:
    words = [word for word, count in sorted(texts.frequency.items()) if len(word) > 6 and count < 12]
    for word in pick.sample(words, 110):
        place = pick.randrange(1, len(word) - 2)
        swapped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        dropped, doubled = word[:place] + word[place + 1 :], word[:place] + word[place - 1 :]
        yield pick.choice((swapped, dropped, doubled, f"{swapped} {pick.choice(words)}"))


def _syntax(texts: Texts, pick: random.Random) -> Iterator[str]:
    bodies = list(texts.below("wiki", "project/docs", "howto").values())
    for _ in range(110):
        first, second, third = (texts.rare_words(text, 3)[-1] for text in pick.sample(bodies, 3))
        near = texts.rare_words(pick.choice(bodies), 8)
        a, b = near[0], near[-1]
        yield pick.choice(
            (
                f"{a} AND {b}", f"{first} OR {second}", f"{a} NOT {b}", f"{a} -{second}", f"{a[:4]}*",
                f"({first} OR {second}) AND {third}", f"({a} OR {first}) NOT {third}", f'"{a}" {b}',
            )
        )  # fmt: skip
    for text in pick.sample(bodies, 40):
        words = re.findall(r"[a-z]+", pick.choice(re.findall(r"[a-z ]{25,60}", text)))
        yield f'"{" ".join(words[1:4])}"'


def _filters(texts: Texts, pick: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    queries = (
        list(_keywords(texts, pick))[:30] + ["ferry timetable", "battery", "how is quality measured"] * 10
    )
    filters: list[dict[str, Any]] = [
        {"tags": ["wiki"]}, {"tags": ["tidewater", "software"]}, {"tags": ["nosuchtag"]}, {"type": "code"},
        {"type": "markdown"}, {"type": "data"}, {"type": "note"}, {"type": "html"}, {"type": "text"},
        {"source": "project"}, {"source": "code"}, {"source": "mail"}, {"path": "project/docs/*.md"},
        {"path": "**/*.py"}, {"path": "code/**"}, {"path": "wiki/island"}, {"path": "nowhere/*"},
        {"since": 1_760_000_000.0}, {"until": 1_765_000_000.0},
        {"since": 1_760_000_000.0, "until": 1_770_000_000.0}, {"tags": ["minutes"], "type": "markdown"},
        {"source": "wiki", "path": "wiki/tidewater/*.md"}, {"include_superseded": True},
    ]  # fmt: skip
    for _ in range(150):
        yield pick.choice(queries), pick.choice(filters)


def _languages(texts: Texts, pick: random.Random) -> Iterator[str]:
    for path, text in texts.below("languages").items():
        body = text.split("\n\n", 1)[1]
        sentences = [part.strip() for part in re.split(r"[.。:;،]", body) if len(part.strip()) > 8]
        for sentence in pick.sample(sentences, min(2, len(sentences))):
            yield (
                sentence[:24] if path.split("/")[1] in ("zh", "ja", "th") else " ".join(sentence.split()[:6])
            )


def _places(texts: Texts, pick: random.Random) -> Iterator[str]:
    for path, text in pick.sample(sorted(texts.below("code", "project/docs").items()), 30):
        name, line = path.split("/", 1)[1], pick.randint(1, text.count("\n"))
        yield pick.choice((f"{name}:{line}", f"{Path(path).name}:{line}", f"line {line} of {path}", path))


def _absent(texts: Texts, pick: random.Random) -> Iterator[str]:
    for product in ("auk", "petrel", "dashboards", "gannet-firmware", "concord"):
        yield f"what changed in {product} {pick.randint(11, 40)}.{pick.randint(0, 9)}.{pick.randint(0, 9)}"
    for tool in ("petrel", "auk", "tidecalc", "logsieve"):
        yield f"{tool} --{pick.choice(('bogus', 'warp', 'levitate'))}-{pick.choice(('mode', 'level'))}"
    for code in ("TW-", "BUG-", "D-", "GN-"):
        yield f"what is {code}{pick.randint(700_000, 800_000)}"


def _modes(by_hand: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for text in _base(by_hand, 12):
        for mode in ("hybrid", "semantic", "fts5"):
            yield text, {"mode": mode}


def _fusions(by_hand: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for text in _base(by_hand, 16):
        for fusion in FUSIONS:
            yield text, {"fusion": fusion, "mode": "hybrid"}


def _amounts(by_hand: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, text in enumerate(_base(by_hand, 8)):
        yield text, ({"top": 1}, {"top": 3}, {"top": 25}, {"threshold": 0.02}, {"threshold": 0.5})[place % 5]


def _polite(by_hand: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    phrases = (
        "could you please tell me {}",
        "I would like to know {}?",
        "hi, {} thanks!",
        "{}??",
        "Please: {}.",
    )
    for place, text in enumerate(by_hand["natural"][::2]):
        yield phrases[place % len(phrases)].format(text), {}


def _errors(by_hand: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "", {}
    yield "   ", {}
    for options in (
        {"type": "poem"}, {"mode": "magic"}, {"fusion": "magic"}, {"top": 0}, {"top": -1},
        {"source": "nobody"}, {"threshold": -1.0}, {"mode": "fts5", "fusion": "rrf"}, {"path": ""},
        {"tags": [""]}, {"ef_search": 0}, {"ef_search": 900}, {"deadline_ms": 0.0}, {"min_generation": -1},
    ):  # fmt: skip
        yield "ferry", options


def _base(by_hand: Mapping[str, Sequence[str]], step: int) -> Iterator[str]:
    """Return some queries of every kind that is written by hand."""
    for name in (
        "natural",
        "docs",
        "absent",
        "messages",
        "languages",
        "syntax",
        "versions",
        "dates",
        "gibberish",
    ):
        yield from by_hand[name][step // 2 :: step]


GENERATED: Mapping[str, Callable[[Texts, random.Random], Iterator[Any]]] = {
    "headings": _headings,
    "keywords": _keywords,
    "sentences": _sentences,
    "options": _options,
    "names": _names,
    "settings": _settings,
    "codes": _codes,
    "versions": _versions,
    "definitions": _definitions,
    "typos": _typos,
    "syntax": _syntax,
    "filters": _filters,
    "languages": _languages,
    "places": _places,
    "absent": _absent,
}
VARIED: Mapping[str, Callable[[Mapping[str, Sequence[str]]], Iterator[tuple[str, dict[str, Any]]]]] = {
    "modes": _modes,
    "fusions": _fusions,
    "amounts": _amounts,
    "polite": _polite,
    "errors": _errors,
}
