"""What do people call their documents? Pairs of words and the document that they stand for.

A heading names its section, a link what it leads to, a docstring what a function does. Each is a question
whose answer is known, once its words are hidden from the document that it names.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from msgspec import DecodeError, Struct, json

from concord.core.errors import BadValue
from concord.store.contract import Catalog, Journal, Links, Select, Store, documents_at
from concord.text.headings import MARKDOWN_TYPES, heading_lines, line_words
from concord.text.tokens import has_undivided, pattern, tokenize
from concord.text.word_lists import is_stop_word, significant
from concord.types import Chunk, Document

LEAST_WORDS = 3  # that mean something: "Overview" or "See also" names nothing in particular
LONGEST = 200  # characters of what may be asked
LEAST_TEXT = 200  # characters of a document that is to be found by what is left of it
OF_A_DOCUMENT = 3  # pairs of one document at most, so that a book is not the whole measure
WRITTEN = ("link", "wiki")  # kinds of link that have words of their own
MOST_READ = 5_000  # documents that are looked through: enough for any number of pairs that is asked

Hidden = tuple[str, str]  # a document's id, and words that it is not to be found by

_DOCSTRING = pattern(
    r"""(?:"{3}|'{3})(?P<python>[^"']{15,2000}?)(?:"{3}|'{3})|/\*\*(?P<block>[^/]{15,2000}?)\*/"""
)
_SENTENCE = pattern(r"[^.\n@:]{10,200}(?:\n[^.\n@:]{1,200}){0,2}")


class Pair(Struct, frozen=True):
    """What is asked, the documents that answer it, and where its words have to be hidden first."""

    kind: str
    query: str
    targets: tuple[str, ...]  # ids of documents
    hidden: tuple[Hidden, ...] = ()


def own_pairs(store: Store, n: int, source_id: str | None = None) -> list[Pair]:
    """Return at most `n` pairs, as many of each kind as there are, always the same ones."""
    catalog = store.catalog
    current = [d for d in catalog.documents(Select(source_id=source_id)) if d.superseded_by is None]
    copies = Counter(document.content_hash for document in current if document.content_hash)
    own = [document for document in current if copies[document.content_hash] < 2]
    readable = {document.id for document in own}
    found: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for document in sorted(own, key=lambda document: _shuffled(document.id))[:MOST_READ]:
        chunks = catalog.chunks(document.id)
        if sum(len(chunk.text) for chunk in chunks) >= LEAST_TEXT:
            of_text, of_links = _of_document(document, chunks), _links(document, store.links, readable)
            for pair in chain(of_text, of_links):
                found[pair.kind][_plain(pair.query)].append(pair)
    kinds = [_unambiguous(pairs, readable) for pairs in found.values()]
    return _chosen([*kinds, _judged(store.journal, readable)], n)


def _of_document(document: Document, chunks: Sequence[Chunk]) -> Iterator[Pair]:
    title, stem = document.title, posixpath.splitext(posixpath.basename(document.path))[0]
    if _is_telling(title) and tokenize(title) != tokenize(stem):
        kind = "question" if title.endswith("?") else "title"
        kind = "subject" if document.path.endswith((".eml", ".mbox")) else kind
        yield _named(kind, document, title, title)
    for alias in document.fields.get("aliases") or ():
        yield _named("alias", document, str(alias), str(alias))
    for chunk in chunks:
        if document.type == "code":
            yield from _docstrings(document, chunk)
        elif document.type in MARKDOWN_TYPES:
            yield from _headings(document, chunk)


def _named(kind: str, document: Document, query: str, *hidden: str) -> Pair:
    return Pair(kind, query, (document.id,), tuple((document.id, words) for words in hidden if words))


def _headings(document: Document, chunk: Chunk) -> Iterator[Pair]:
    for start, end in [(0, len(chunk.text.partition("\n")[0])), *heading_lines(chunk.text)]:
        line = chunk.text[start:end]
        if line.startswith("#") and (words := line_words(line)) != document.title:
            yield _named("question" if words.endswith("?") else "heading", document, words, line, words)


def _docstrings(document: Document, chunk: Chunk) -> Iterator[Pair]:
    for found in _DOCSTRING.finditer(chunk.text):
        said = re.sub(r"\n[ \t]*\*?", "\n", found["python"] or found["block"]).strip(" *\n")
        if sentence := _SENTENCE.match(said):
            yield _named("docstring", document, " ".join(sentence[0].split()), found[0])


def _links(document: Document, links: Links, readable: set[str]) -> Iterator[Pair]:
    """Yield what a document calls others. It still does so when it is asked, as it does for whoever asks."""
    for row in links.outgoing(document.id):
        target, link = row.document_id, row.link
        is_written = link.kind in WRITTEN and link.words != link.target
        if is_written and target in readable and target != document.id:
            yield Pair("link", " ".join(link.words.split()), (target,))


def _unambiguous(pairs: Mapping[str, Sequence[Pair]], readable: set[str]) -> list[Pair]:
    """Return pairs whose words stand for one document alone, of which there is no copy."""
    kept = []
    for same in pairs.values():
        targets = {target for pair in same for target in pair.targets}
        if len(targets) == 1 and targets <= readable and _is_telling(same[0].query):
            hidden = dict.fromkeys(chain.from_iterable(pair.hidden for pair in same))
            kept.append(Pair(same[0].kind, same[0].query, same[0].targets, tuple(hidden)))
    return kept


def _judged(journal: Journal, known: set[str]) -> list[Pair]:
    good: dict[str, list[str]] = defaultdict(list)
    for given in journal.feedback():
        if given.opinion == "good" and given.query and given.document_id in known:
            good[given.query].append(given.document_id)
    return [Pair("feedback", query, tuple(dict.fromkeys(ids))) for query, ids in good.items()]


def _chosen(kinds: Sequence[Sequence[Pair]], n: int) -> list[Pair]:
    """Return pairs of each kind in turn, few of each document and none asked twice."""
    of_document: Counter[str] = Counter()
    asked: set[str] = set()
    chosen: list[Pair] = []
    in_turn = zip_longest(*(sorted(kind, key=lambda pair: _shuffled(pair.query)) for kind in kinds))
    for pair in filter(None, chain.from_iterable(in_turn)):
        if len(chosen) == n:
            break
        if of_document[pair.targets[0]] < OF_A_DOCUMENT and _plain(pair.query) not in asked:
            of_document[pair.targets[0]] += 1
            asked.add(_plain(pair.query))
            chosen.append(pair)
    return chosen


def _is_telling(words: str) -> bool:
    """Whether words say enough to be asked: three that mean something, or as much in an unspaced script."""
    if len(words) > LONGEST:
        return False
    if has_undivided(words):
        return sum(map(str.isalpha, words)) >= 2 * LEAST_WORDS
    telling = significant([word for word in words.split() if any(map(str.isalpha, word))])
    return len({word.casefold() for word in telling if not is_stop_word(word)}) >= LEAST_WORDS


def _plain(words: str) -> str:
    return " ".join(words.casefold().split())


def _shuffled(text: str) -> bytes:
    """Return a key that puts texts in an order that looks random and is always the same."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


class _Judged(Struct):
    """A question of a fixture, and the files that answer it."""

    query: str
    expected_files: list[str]
    type: str = "query"


class _Fixture(Struct):
    queries: list[_Judged]


def read_fixture(path: Path, catalog: Catalog) -> list[Pair]:
    """Return the questions of a fixture as qmd writes them, with those of their files that are indexed."""
    try:
        fixture = json.decode(path.read_bytes(), type=_Fixture)
    except (OSError, DecodeError) as fault:
        raise BadValue(
            f"cannot read {path}: {fault}",
            hint='a folder as BEIR has them, or JSON with "queries" of a "query" and "expected_files" each',
        ) from fault
    pairs = []
    for judged in fixture.queries:
        # qmd may put its scheme and a collection before a path.
        names = [re.sub(r"\Aqmd://[^/]*/", "", name).strip("/") for name in judged.expected_files]
        targets = dict.fromkeys(document.id for name in names for document in documents_at(catalog, name))
        if targets and judged.query.strip():
            pairs.append(Pair(judged.type, judged.query, tuple(targets)))
    if not pairs:
        hint = "index the folder that they are in first"
        raise BadValue(f"no file that {path} expects is indexed", hint=hint)
    return pairs
