"""The nouns. Frozen; refined with `msgspec.structs.replace`, never changed in place.

Indexing:   Source → Document → Extracted → Piece → Chunk
Searching:  Request → Query → RankedList → Candidate → Ranked → Passage → Judged → Hit → Answer
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct, field

ChunkId = int  # never reused, so a vector that arrives late can never belong to another chunk
Vector = bytes  # little-endian float32, of length 1: every store keeps this form, and it needs no numpy
FLOAT_BYTES = 4  # in a vector, bytes for each number
Json = Any  # what json.loads returns

DocumentType = Literal[
    "pdf", "markdown", "code", "note", "html", "office", "text", "data", "image", "mail", "notebook"
]
DOCUMENT_TYPES: tuple[DocumentType, ...] = get_args(DocumentType)
SourceKind = Literal["directory", "file", "notes"]
Trust = Literal["trusted", "untrusted"]
Mode = Literal["auto", "hybrid", "semantic", "fts5"]
MODES: tuple[Mode, ...] = get_args(Mode)
FUSION_NAMES = ("adaptive", "blend", "dominant", "logodds", "rrf", "weighted")  # of search/fuse.py
Leg = Literal["lexical", "semantic"]
QueryType = Literal["exact_quote", "entity", "conceptual", "factual", "exploratory"]
Freshness = Literal["fresh", "changed", "deleted"]
Opinion = Literal["good", "bad"]
Level = Literal["passage", "section", "document", "outline"]
LEVELS: tuple[Level, ...] = get_args(Level)
Group = Literal["passage", "section", "document"]
GROUPS: tuple[Group, ...] = get_args(Group)


def silent(stage: str, done: int, total: int | None) -> None:
    """Report progress to nobody. It is here, and not in `protocols`, to keep that out of quick commands."""


class Source(Struct, frozen=True):
    """A folder, a file or the notes: where documents come from."""

    id: str
    name: str  # unique; what a person calls it
    path: str | None  # absolute; None for notes
    kind: SourceKind
    prefix: str  # unique; what its documents' citation paths begin with ("docs" → docs/auth.md)
    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    trust: Trust = "trusted"
    created_at: float = 0.0
    synced_at: float | None = None
    about: str = ""  # one line: what is in it

    def file_of(self, document_path: str) -> str | None:
        """Return where a document's file is; None for notes."""
        if self.path is None or self.kind == "file":
            return self.path
        return os.path.join(self.path, document_path.removeprefix(self.prefix + "/"))

    def path_of(self, relative: str) -> str:
        """Return the citation path of a file, from its path within the source, with forward slashes."""
        return self.prefix if self.kind == "file" else f"{self.prefix}/{relative}"


class Document(Struct, frozen=True):
    """One file or note, as it was when it was last indexed."""

    id: str
    source_id: str
    path: str  # the citation path: unique, forward slashes, begins with the source's prefix
    type: DocumentType
    title: str
    tags: tuple[str, ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict)
    file_hash: str = ""  # of the bytes: did the file change?
    content_hash: str = ""  # of the cleaned text: does anything need chunking or embedding again?
    size: int = 0
    mtime_ns: int = 0
    superseded_by: str | None = None
    indexed_at: float = 0.0  # when its file was last read
    fields: Mapping[str, Json] = field(default_factory=dict)  # what a note was made of, to edit and export it


# How a passage points to a document: a link, a name in [[brackets]], a field of front matter, an import of
# code, or its title within the text.
LinkKind = Literal["link", "wiki", "relation", "import", "mention"]


class Link(Struct, frozen=True, order=True):
    """What a passage points to, as it is written there."""

    kind: LinkKind
    target: str  # an address or a name; of a mention, the words of the title
    words: str = ""  # that stand for it in the text, or the field that holds it


class Piece(Struct, frozen=True):
    """A chunk before the catalog has given it an id."""

    text: str
    start: int  # offsets into the document's cleaned text; end is exclusive
    end: int
    start_line: int  # lines of the file itself, from 1, inclusive
    end_line: int
    page: int | None = None  # where its own text begins, after its overlap with the piece before
    heading: tuple[str, ...] = ()
    last_page: int | None = None
    # Columns of its first and last character, from 1, in characters of the file's lines; None where it is
    # whole lines, or where the lines of the text are not those of the file.
    start_column: int | None = None
    end_column: int | None = None
    links: tuple[Link, ...] = ()  # no mentions, which depend on other documents


class Chunk(Struct, frozen=True):
    """A piece of a document, as stored."""

    id: ChunkId
    document_id: str
    index: int  # position within the document, from 0
    text: str
    start: int
    end: int
    start_line: int
    end_line: int
    page: int | None = None
    heading: tuple[str, ...] = ()
    last_page: int | None = None
    start_column: int | None = None
    end_column: int | None = None

    @property
    def pages(self) -> tuple[int, int] | None:
        """The first page and the last; None where the document has no pages."""
        return None if self.page is None else (self.page, max(self.page, self.last_page or 0))


class FileState(Struct, frozen=True):
    """What sync needs to know of a stored document to tell whether its file changed."""

    document_id: str
    path: str
    size: int
    mtime_ns: int
    file_hash: str
    content_hash: str
    indexed_at: float


class Pending(Struct, frozen=True):
    """A chunk that has no vector yet, with everything that goes into its embeddable text."""

    chunk_id: ChunkId
    title: str
    heading: tuple[str, ...]
    text: str
    tags: tuple[str, ...] = ()  # only a note's, which are embedded with its text


class Access(Struct, frozen=True):
    """How often a document was read, and when last."""

    times: int
    last_at: float


class Feedback(Struct, frozen=True):
    """An opinion on a result. Of several on the same document for the same query, the last counts."""

    document_id: str
    citation: str  # as it was judged: the document may have changed since
    opinion: Opinion
    query: str = ""  # empty when nobody said what was asked
    at: float = 0.0


class Counts(Struct, frozen=True):
    """How much is stored."""

    sources: int
    documents: int
    chunks: int
    vectors: int


Heading = tuple[str, ...]  # from the outermost heading inwards

# How a block may be cut when it must be: prose between sentences, solid (code, tables, quotes, HTML) between
# lines and only when it alone is too long, records (data) between lines like prose between sentences.
BlockKind = Literal["heading", "prose", "solid", "records"]


class Block(NamedTuple):
    """A paragraph, list item, table, listing … with the blank lines that follow it."""

    start: int
    end: int  # exclusive; where the next block starts
    kind: BlockKind
    reluctance: float = 0.0  # to cut just before it: 0 is a fine place, 1 tears apart what belongs together


class Section(NamedTuple):
    """What stands under one heading, the heading included; all sections together are the whole text."""

    heading: Heading
    blocks: list[Block]

    @property
    def start(self) -> int:
        """Where its first block begins."""
        return self.blocks[0].start

    @property
    def end(self) -> int:
        """Where its last block ends."""
        return self.blocks[-1].end


class Extracted(Struct, frozen=True):
    """A file turned into text, before chunking."""

    text: str
    type: DocumentType
    title: str | None = None
    tags: tuple[str, ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()  # offset in `text` at which page 1, 2, … begins; empty when unpaged
    file_lines: tuple[int, ...] = ()  # file line of each line of `text`; empty when they are the same lines
    language: str | None = None  # code: tree-sitter's name; else a form: csv, json, org …
    body_start: int = 0  # offset in `text` at which front matter ends; 0 when there is none
    sections: list[Section] | None = None  # None where nobody has looked for them
    links: tuple[tuple[str, str], ...] = ()  # address and words of links whose address the text has lost


class Identity(Struct, frozen=True):
    """Which embedder made a vector. Vectors of different identities are never compared."""

    provider: str
    model: str
    dimension: int
    prefix_version: str = ""  # changes when the text put before queries or documents changes
    metric: str = "cosine"

    @property
    def name(self) -> str:
        """What a person calls the model."""
        return f"{self.provider}/{self.model}"


class Model(Struct, frozen=True):
    """A model that a store keeps vectors of. There may be several; searches use the active one."""

    identity: Identity
    recipe: Mapping[str, Json]  # the settings that open its embedder again; never a secret
    is_active: bool


class Home(Struct, frozen=True):
    """Where a store's vectors are kept, and under which key."""

    url: str  # empty: in the store itself
    key: str  # marks all that this store has sent there; it changes with every move


class Filter(Struct, frozen=True):
    """What a hit must satisfy. Applied inside the engines, lexical and vector alike."""

    tags: tuple[str, ...] = ()  # a hit must have all of them
    type: DocumentType | None = None
    source_id: str | None = None
    path: str | None = None  # a glob over citation paths; * crosses no slash, ** does
    since: float | None = None  # file modification time, seconds
    until: float | None = None
    include_superseded: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it lets every document through that has not been superseded."""
        return not self.tags and (self.type, self.source_id, self.path, self.since, self.until) == (None,) * 5


class Word(Struct, frozen=True):
    """One token to find; with `prefix`, any token that begins so (of several tokens, the last)."""

    text: str
    prefix: bool = False


class Phrase(Struct, frozen=True):
    """Tokens to find next to each other, in this order."""

    text: str


class AllOf(Struct, frozen=True):
    """Every part must match."""

    parts: tuple[Match, ...]


class AnyOf(Struct, frozen=True):
    """At least one part must match."""

    parts: tuple[Match, ...]


class Without(Struct, frozen=True):
    """`keep` must match and `drop` must not."""

    keep: Match
    drop: Match


Match = Word | Phrase | AllOf | AnyOf | Without  # a lexical query in no engine's syntax


class Request(Struct, frozen=True):
    """Exactly what the caller asked for; None means that the caller did not say."""

    text: str
    mode: Mode | None = None
    top: int | None = None
    threshold: float | None = None
    tags: tuple[str, ...] = ()
    type: str | None = None
    source: str | None = None
    path: str | None = None
    since: float | None = None
    until: float | None = None
    include_superseded: bool = False
    fusion: str | None = None
    ef_search: int | None = None
    deadline_ms: float | None = None
    max_tokens: int | None = None
    min_generation: int | None = None
    explain: bool = False
    min_score: float | None = None
    rerank: bool = False  # the reader reads the first ten, and has a say in their order
    reader: bool = True  # whether it reads at all: while a question is typed, nobody waits for it
    group: Group | None = None  # what comes as one hit; by default a section where tokens are limited


class Query(Struct, frozen=True):
    """The request, understood."""

    text: str
    meaning: str  # what is embedded: the text without excluded words, spelling corrected
    terms: tuple[str, ...]  # as typed, operators and stop words taken out (never to nothing)
    phrases: tuple[str, ...]
    excluded: tuple[str, ...]
    exact: Match | None  # None when nothing in the query can be searched by words
    loose: Match | None
    limit: int
    candidates: int  # how many each strategy may propose
    filter: Filter
    type: QueryType = "exploratory"
    entities: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  # tokens that loose matching looks for, before frequent ones are pruned
    frequencies: Mapping[str, int] = field(default_factory=dict)  # word → how many chunks hold it
    chunks: int = 0  # how many chunks there are in all
    names: tuple[str, ...] = ()  # name tokens that are looked up
    absent_names: tuple[str, ...] = ()  # names that the query asks for and no chunk defines
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # unknown word → searched instead
    dropped: Match | None = None  # what a hit must not match
    ef_search: int | None = None
    nothing_wanted: bool = False  # it only excludes (-word), so its words are looked for instead


# A search makes thousands of the next two; in neither could the garbage collector find a cycle.
class Scored(Struct, frozen=True, gc=False):
    """What an engine returns: higher is better, best first."""

    chunk_id: ChunkId
    score: float


class RankedList(Struct, frozen=True):
    """What one strategy found, best first."""

    strategy: str
    leg: Leg
    found: Sequence[Scored]  # those beyond the query's number of candidates only lend their scores


class Candidate(Struct, frozen=True, gc=False):
    """All that is known of a chunk before its text is read."""

    chunk_id: ChunkId
    ranks: Mapping[str, int]  # strategy → rank, 1 is best
    lexical_rank: int | None = None  # the best of the leg's strategies, ties by BM25
    semantic_rank: int | None = None
    bm25: float | None = None  # also where only the other leg found it, if known
    cosine: float | None = None
    feedback_cosine: float | None = None  # with the query moved towards the first hit that is most like it
    name_score: float = 0.0  # 0–1: share of the best score among chunks that hold an asked name


class Ranked(Struct, frozen=True):
    """A candidate with its fused score."""

    candidate: Candidate
    score: float  # of the chosen fusion, later with boosts
    z: float = 0.0  # of the blend, in standard deviations, whichever fusion ordered
    moved_from: int | None = None  # its rank before diversification, where that was another

    @property
    def chunk_id(self) -> ChunkId:
        """The chunk's id."""
        return self.candidate.chunk_id


class Reading(Struct, frozen=True):
    """What the reader makes of a passage: how far it answers the question, and with which of its words."""

    logit: float  # that the passage answers
    start: int  # of the likeliest answer, in the text of its chunk
    end: int
    margin: float  # by how much that span is likelier than none, in log-odds


class Passage(Struct, frozen=True):
    """A ranked candidate whose text has been read."""

    ranked: Ranked
    chunk: Chunk
    document: Document
    also_at: tuple[str, ...] = ()  # citations of the same text elsewhere
    closeness: float = 0.0  # how close the query's words stand in it; 1: all of them, in order
    coverage: float = 0.0  # share of the query's words, by rarity, that it or its title holds
    reading: Reading | None = None  # None where the reader has not looked


class Part(NamedTuple):
    """Where a chunk is in its document."""

    position: int  # from 0
    start: int
    end: int
    start_line: int
    end_line: int


class SectionSpan(Struct, frozen=True):
    """All that stands under the heading of a passage, as it was indexed."""

    heading: Heading
    start_line: int
    end_line: int
    tokens: int  # about


class Hit(Struct, frozen=True):
    """A result: the passage, who found it and how far to trust it."""

    chunk: Chunk
    document: Document
    source: Source
    rank: int
    score: float  # relevance in [0, 1], as a part of its document
    passage_score: float  # relevance of the passage alone: lower if its document has a better one
    scores: Mapping[str, float | None]  # raw numbers, each on its own scale
    found_by: tuple[str, ...]
    best_rank: int
    agreement: float | None
    confidence: str | None
    snippet: str
    citation: str
    freshness: Freshness | None = None
    moved_from: int | None = None
    also_at: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    more_in_document: int = 0  # further passages of its document that were found and are not shown
    explanation: Json = None
    section: SectionSpan | None = None  # None where the passage is all of it
    more: tuple[Hit, ...] | None = None  # under it, of its section or document; None if nothing comes as one


class Span(Struct, frozen=True):
    """The words that answer a question, and where they stand."""

    text: str
    rank: int  # of the result that holds them
    citation: str  # of these words alone, where their lines are the file's; else of the passage
    start_line: int
    end_line: int
    start_column: int | None = None  # None where the columns of the file are not known
    end_column: int | None = None
    page: int | None = None


class Linked(Struct, frozen=True):
    """A passage that a hit points to, beside the hits."""

    citation: str
    via: str  # citation of the hit
    kind: LinkKind
    title: str
    snippet: str
    document_id: str
    warnings: tuple[str, ...] = ()


class Degraded(Struct, frozen=True):
    """A strategy that failed or was late, and why."""

    strategy: str
    reason: str


class Answer(Struct, frozen=True):
    """Everything an interface may show of one search."""

    request: Request
    mode: Mode
    hits: tuple[Hit, ...]
    total_hits: int
    fusion: str | None
    org: str
    generation: int
    query_type: QueryType | None = None
    confidence: str | None = None
    confidence_score: float | None = None
    answerable: bool | None = None
    answer: Span | None = None  # None where no words are surely the answer
    linked: tuple[Linked, ...] = ()  # what the hits point to, best first
    calibrated: bool | None = None
    strategies_matched: tuple[str, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    note: str | None = None
    suggestions: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()  # in place of words that no chunk holds: similar words, or prefix*
    omitted: Mapping[str, int] = field(default_factory=dict)  # how many candidates are not shown, by reason
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    search_time_ms: float = 0.0
