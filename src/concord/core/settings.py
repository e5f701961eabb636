"""What can be set: one table, and a reason for each default."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from concord.types import MODES


class Setting(Struct, frozen=True):
    """One knob: its key, its default, what it does and why the default is what it is."""

    key: str
    default: str | int | float | bool
    doc: str
    why: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    is_secret: bool = False  # its value is never shown

    @property
    def environment_name(self) -> str:
        """The variable that sets it."""
        return "KB_" + self.key.upper().replace(".", "_")


# fmt: off
SETTINGS: tuple[Setting, ...] = (
    Setting("store.url", "",
        doc="where the knowledge base is kept: sqlite:///DIRECTORY, postgresql://USER@HOST/DATABASE, "
            "json:///DIRECTORY or memory://",
        why="empty means SQLite in the user's data directory: no server, no set-up"),
    Setting("store.index_memory_mb", 256, minimum=1,
        doc="how much memory in MB a PostgreSQL server may use while it builds the vector index",
        why="150,000 vectors of 384 dimensions fit; what does not fit is built ten times slower"),
    Setting("postgres.words", "blocks", choices=("blocks", "native"),
        doc="how words are looked for in PostgreSQL: blocks, scored as in SQLite, or native: by the server's "
            "own full-text search",
        why="blocks answer as every other store does, and better"),
    Setting("vectors.url", "",
        doc="where vectors are kept when not in the store: http://HOST:6333, a Qdrant server",
        why="empty means in the store itself: one thing less to run"),
    Setting("vectors.collection", "conduit_kb",
        doc="the Qdrant collection; several stores and organisations may share it",
        why="one name for everybody, so that several machines find the same collection"),
    Setting("vectors.api_key", "", is_secret=True,
        doc="the key that the Qdrant server asks for",
        why="empty for a server that asks for none"),
    Setting("vectors.timeout_s", 5, minimum=1,
        doc="how many seconds one call to the Qdrant server may take",
        why="as long as a whole search may: who waits longer has been answered from words already"),
    Setting("vectors.shards", 0, minimum=0,
        doc="shards of a collection that is made; 0 leaves it to the server",
        why="one a node is Qdrant's own default, and the number cannot be changed later on every edition"),
    Setting("vectors.replicas", 0, minimum=0,
        doc="copies of each shard of a collection that is made; 0 leaves it to the server",
        why="vectors can be made again from the store; copies buy availability, not safety"),
    Setting("vectors.index", "auto", choices=("auto", "off"),
        doc="whether a process that searches a SQLite store often keeps codes of its vectors: auto or off",
        why="codes propose and vectors decide: 0.99 of the nearest are found; with off every vector is "
            "compared"),
    Setting("vectors.index_from", 16_000, minimum=1,
        doc="from how many vectors on there are codes; where a filter leaves fewer, all of these are "
            "compared",
        why="comparing fewer in memory takes no longer"),
    Setting("org", "default",
        doc="the organisation whose knowledge base is used; SQLite keeps one file for each",
        why="one person needs one"),
    Setting("embed.provider", "bundled",
        doc="who turns text into vectors: bundled, multilingual, onnx, ollama, openai, hashing or none",
        why="the bundled model needs no server and no download; a store that has vectors keeps to their "
            "model"),
    Setting("embed.model", "",
        doc="the model: a name for ollama and openai; for onnx a directory with model.onnx and "
            "tokenizer.json, or the name of one in the data directory's `models`",
        why="the bundled provider has one model; ollama's default is nomic-embed-text"),
    Setting("embed.url", "",
        doc="where the model server is; any OpenAI-compatible one for openai, up to and including /v1",
        why="empty means this machine: port 11434 for ollama, 8080 for openai"),
    Setting("embed.key", "", is_secret=True,
        doc="the key that an OpenAI-compatible server wants; it is sent to embed.url and nowhere else",
        why="a server on this machine wants none"),
    Setting("embed.batch", 10, minimum=1,
        doc="texts in one request to a model server",
        why="a batch that fails costs little to repeat, and a server answers others in between"),
    Setting("embed.concurrency", 2, minimum=1,
        doc="requests that a model server is sent at once",
        why="one is computed while the next one travels; more only wait in the server's queue"),
    Setting("embed.keep_alive", "30m",
        doc="how long ollama keeps the model in memory after a request",
        why="its own 5 minutes end before the next question of a conversation does"),
    Setting("embed.precision", "auto", choices=("auto", "exact", "int8"),
        doc="arithmetic of the bundled and the multilingual model",
        why="auto takes int8 only where it is both faster and verified on this machine"),
    Setting("embed.threads", 0, minimum=0,
        doc="processor threads for the model; 0 is one for each core",
        why="embedding is compute bound; more threads than cores are slower"),
    Setting("embed.timeout_s", 10.0, minimum=0.1,
        doc="how long one embedding call may take",
        why="a model server may load its model on the first call"),
    Setting("cache.max_mb", 1000.0, minimum=0,
        doc="how much of the embedding cache is kept; what was used least recently goes first",
        why="the vectors of 600,000 chunks: enough never to embed a text twice on one machine"),
    Setting("search.default_top", 10, minimum=1,
        doc="how many results a search returns",
        why="as AI tools expect of kb_search"),
    Setting("search.mode", "auto", choices=MODES,
        doc="how results are found when the caller does not say",
        why="auto weighs words and meaning by the query"),
    Setting("search.strategies", "",
        doc="further strategies to ask, by the names under which installed packages bring them, separated by "
            "commas; each in the modes of its leg",
        why="empty means ours alone: to look for others takes longer than a search"),
    Setting("search.candidates", 40, minimum=1,
        doc="how many chunks each strategy may propose, at least (3 × top if that is more)",
        why="fusion needs the tails of both lists; more costs time and finds little"),
    Setting("search.ef_search", 64, minimum=1,
        doc="effort of an approximate vector index: how many neighbours it keeps in view, up to 200; beyond "
            "the default, the codes of a SQLite store propose more in proportion",
        why="recall@10 is above 0.95 with it and hardly grows beyond"),
    Setting("search.rrf_k", 60, minimum=1,
        doc="the constant of reciprocal rank fusion",
        why="Cormack et al. 2009; results change little between 20 and 100"),
    Setting("search.floor", 0.001, minimum=0,
        doc="fused scores below this are dropped (never all of them)",
        why="0.01 emptied answers that one strategy alone had found: rank 1 of one list is 0.0164 at most"),
    Setting("search.prune_share", 0.2, minimum=0, maximum=1,
        doc="words in more than this share of all chunks do not take part in loose matching",
        why="0.2 costs no quality and makes long questions 12 times faster at 100,000 chunks; 0.05 loses "
            "quality"),
    Setting("search.deadline_ms", 5000.0, minimum=1,
        doc="how long the strategies and the reranker may take together, and any one statement of a server",
        why="a tool call should fail fast and let the client retry"),
    Setting("search.prefix_ms", 100.0, minimum=1,
        doc="how long to look for words that begin like those of a query which found nothing",
        why="the first step down must not double the time of a search"),
    Setting("search.partial_ms", 50.0, minimum=1,
        doc="how long to look for words that are spelt like those of a query which found nothing",
        why="the last step: a guess is worth less time than a find"),
    Setting("search.diversity", 0.7, minimum=0, maximum=1,
        doc="relevance against diversity in the order of results: 1 is relevance alone",
        why="the usual λ of maximal marginal relevance; near-duplicates lose their place, clear leads stay"),
    Setting("search.per_document", 2, minimum=0,
        doc="passages of a document before others have their turn in auto; 0 sets no limit",
        why="one file must not fill the list: on link texts to long pages nDCG@10 is .642 without, .658 with "
            "2"),
    Setting("search.least_score", 0.1, minimum=0, maximum=1,
        doc="in auto, a query of which no word is known finds nothing if its confidence score is below this",
        why="meaning has a neighbour for any gibberish: its confidence is .02 to .07; that of a paraphrase "
            "without a shared word, from a cosine of .7 on, is .13 and more"),
    Setting("search.retry_s", 30.0, minimum=0,
        doc="how long searches answer from words alone after meaning has failed them three times in a row",
        why="long enough not to hammer a server that is starting, short enough to notice that it is back"),
    Setting("search.snippet_width", 240, minimum=20,
        doc="characters in a snippet",
        why="two or three sentences"),
    Setting("rerank.provider", "none",
        doc="who takes a second look at what was found: none or cosine",
        why="vectors have voted already, so cosine gained nothing on three collections (120 queries each)"),
    Setting("rerank.weight", 0.5, minimum=0, maximum=1,
        doc="how much the second look counts: 0 leaves the order as it is, 1 leaves it to the reranker alone",
        why="up to 0.5 cosine moved nDCG@10 by less than 0.01, at 1 it cost up to 0.06"),
    Setting("reader.enabled", True,
        doc="whether a small model reads the best passages with the question, and says whether they answer "
            "it",
        why="of questions whose topic is there and whose answer is not, twice as many can be told apart"),
    Setting("reader.passages", 3, minimum=1, maximum=10,
        doc="how many passages it reads, at most; fewer if the first settles the matter",
        why="as measured; each further one takes as long as the first and seldom says more"),
    Setting("reader.budget_ms", 60.0, minimum=1,
        doc="how long it may read, once it is loaded; in proportion more where a deadline of more than "
            "search.deadline_ms is asked for",
        why="three passages take that long on two cores; what it has read by then counts"),
    Setting("ingest.max_bytes", 20_000_000, minimum=1,
        doc="larger files are skipped and counted",
        why="text files above this are logs and dumps"),
    Setting("ocr.engine", "auto", choices=("auto", "rapidocr", "tesseract", "none"),
        doc="what reads scans and pictures: auto, rapidocr, tesseract or none",
        why="auto takes rapidocr if it is installed, else tesseract; a page takes seconds, so they come "
            "last"),
    Setting("ingest.chunk_tokens", 320, minimum=16,
        doc="how long a chunk should be, in tokens of the embedding model",
        why="most paragraphs and functions stay whole and the title still fits into a window of 512"),
    Setting("ingest.chunk_overlap", 32, minimum=0,
        doc="tokens repeated between neighbouring chunks of one section",
        why="a sentence cut from its neighbour keeps some context"),
    Setting("sync.lock_wait_s", 600.0, minimum=0,
        doc="how long a sync waits for another one of the same source",
        why="the second one then finds nothing left to do"),
    Setting("sync.rescan_s", 600.0, minimum=0,
        doc="how often a sync that watches looks at everything anew, besides what it is notified of; 0 is "
            "never",
        why="notices can be lost, a rescan loses nothing; of 50,000 files it takes two seconds"),
    Setting("usage.enabled", False,
        doc="count which documents are read, in the store, and let those lift results a little",
        why="what is read is nobody's business unless you say so; a habit is no evidence of relevance"),
    Setting("mcp.roots", "",
        doc="folders that kb_add_source may index, separated as in PATH; ORG=PATH is for one organisation "
            "alone",
        why="beside the folder in which the server was started: an agent must not choose what else is read"),
    Setting("engine.start", "search", choices=("search", "never"),
        doc="whether one process works for all clients of these settings: search has a search or an MCP "
            "client start it, never has each client do its own work",
        why="the model is in memory once, and the next search need not load it"),
    Setting("engine.idle_s", 600.0, minimum=1,
        doc="how many seconds an engine goes on without a client or work to do",
        why="the next question of a conversation finds it, and a machine that is left alone gets its memory "
            "back"),
    Setting("engine.watch", False,
        doc="an engine keeps all sources current as files are saved, and stays until it is stopped",
        why="what is indexed without being asked is for its owner to decide"),
    Setting("serve.host", "127.0.0.1",
        doc="the address that the HTTP server listens on",
        why="only this machine; any other address needs a token"),
    Setting("serve.port", 8420, minimum=0, maximum=65535,
        doc="the port that the HTTP server listens on; 0 is any free one",
        why="seldom taken"),
    Setting("serve.hosts", "",
        doc="further names, separated by commas, under which the HTTP server is reached",
        why="requests for any other name are refused: a web page could have sent them"),
    Setting("serve.tokens", "",
        doc="the file of tokens, one `ORGANISATION TOKEN` on a line, readable by its owner alone; one that "
            "is named must be there",
        why="empty means `tokens` beside the configuration file; a file keeps secrets out of the "
            "environment"),
    Setting("serve.max_bytes", 4_000_000, minimum=1000,
        doc="the longest request that the HTTP server takes",
        why="room for a long note in any script, not for filling the memory"),
    Setting("serve.max_connections", 100, minimum=1,
        doc="how many connections the HTTP server has at once; further ones are told to come back",
        why="each agent holds one or two"),
    Setting("serve.max_per_token", 50, minimum=1,
        doc="how many requests of one token the HTTP server answers at once",
        why="one program that asks too much leaves room for others"),
    Setting("serve.origins", "",
        doc="web pages, separated by commas, whose scripts may use the API, such as https://wiki.example.com",
        why="none: a browser lets only the server's own page read its answers"),
    Setting("serve.editor", "vscode://file{file}:{line}",
        doc="the address with which the page opens a file in an editor: {file} and {line} are filled in",
        why="the most common editor; others have addresses of their own, and empty means no such button"),
)
# fmt: on
TABLE: Mapping[str, Setting] = {setting.key: setting for setting in SETTINGS}
