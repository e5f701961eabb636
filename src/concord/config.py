"""Settings: one table, one way to resolve them. Only this module reads the environment.

A value comes from, weakest first: its default, `config.toml`, the environment (`search.default_top` is
`KB_SEARCH_DEFAULT_TOP`), what the caller passed (a flag). A configuration file is read from the user's own
configuration directory alone, never from a folder that is indexed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from concord.errors import BadValue, UnknownSetting, did_you_mean
from concord.types import MODES

Origin = Literal["default", "file", "environment", "flag", "implied"]
APP = "concord"
_HAS_XDG = sys.platform == "linux"


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


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "store.url",
        "",
        "where the knowledge base is kept: sqlite:///DIRECTORY, postgresql://USER@HOST/DATABASE,"
        " json:///DIRECTORY or memory://",
        "empty means SQLite in the user's data directory: no server, no set-up",
    ),
    Setting(
        "store.index_memory_mb",
        256,
        "how much memory in MB a PostgreSQL server may use while it builds the vector index",
        "150,000 vectors of 384 dimensions fit; what does not fit is built ten times slower",
        minimum=1,
    ),
    Setting(
        "vectors.url",
        "",
        "where vectors are kept when not in the store: http://HOST:6333, a Qdrant server",
        "empty means in the store itself: one thing less to run",
    ),
    Setting(
        "vectors.collection",
        "conduit_kb",
        "the Qdrant collection; several stores and organisations may share it",
        "one name for everybody, so that several machines find the same collection",
    ),
    Setting(
        "vectors.api_key",
        "",
        "the key that the Qdrant server asks for",
        "empty for a server that asks for none",
        is_secret=True,
    ),
    Setting(
        "vectors.timeout_s",
        5,
        "how many seconds one call to the Qdrant server may take",
        "as long as a whole search may: who waits longer has been answered from words already",
        minimum=1,
    ),
    Setting(
        "vectors.shards",
        0,
        "shards of a collection that is made; 0 leaves it to the server",
        "one a node is Qdrant's own default, and the number cannot be changed later on every edition",
        minimum=0,
    ),
    Setting(
        "vectors.replicas",
        0,
        "copies of each shard of a collection that is made; 0 leaves it to the server",
        "vectors can be made again from the store; copies buy availability, not safety",
        minimum=0,
    ),
    Setting(
        "vectors.index",
        "auto",
        "whether a SQLite store keeps an index of its vectors beside it: auto or off",
        "auto needs the extra `index`; without it, and with off, every search compares all vectors",
        choices=("auto", "off"),
    ),
    Setting(
        "vectors.index_from",
        50_000,
        "from how many vectors on a SQLite store keeps an index of them",
        "fewer are kept in memory by a server, and compared in 40 ms by a single command",
        minimum=1,
    ),
    Setting(
        "org",
        "default",
        "the organisation whose knowledge base is used; SQLite keeps one file for each",
        "one person needs one",
    ),
    Setting(
        "embed.provider",
        "bundled",
        "who turns text into vectors: bundled, onnx, ollama, openai, hashing or none",
        "the bundled model needs no server and no download; a store that has vectors keeps to their model",
    ),
    Setting(
        "embed.model",
        "",
        "the model: a name for ollama and openai; for onnx a directory with model.onnx and tokenizer.json,"
        " or a name as of rerank.model",
        "the bundled provider has one model; ollama's default is nomic-embed-text",
    ),
    Setting(
        "embed.url",
        "",
        "where the model server is; any OpenAI-compatible one for openai, up to and including /v1",
        "empty means this machine: port 11434 for ollama, 8080 for openai",
    ),
    Setting(
        "embed.key",
        "",
        "the key that an OpenAI-compatible server wants; it is sent to embed.url and nowhere else",
        "a server on this machine wants none",
        is_secret=True,
    ),
    Setting(
        "embed.batch",
        10,
        "texts in one request to a model server",
        "a batch that fails costs little to repeat, and a server answers others in between",
        minimum=1,
    ),
    Setting(
        "embed.concurrency",
        2,
        "requests that a model server is sent at once",
        "one is computed while the next one travels; more only wait in the server's queue",
        minimum=1,
    ),
    Setting(
        "embed.keep_alive",
        "30m",
        "how long ollama keeps the model in memory after a request",
        "its own 5 minutes end before the next question of a conversation does",
    ),
    Setting(
        "embed.precision",
        "auto",
        "arithmetic of the bundled model",
        "auto takes int8 only where it is both faster and verified on this machine",
        choices=("auto", "exact", "int8"),
    ),
    Setting(
        "embed.threads",
        0,
        "processor threads for the model; 0 is one for each core",
        "embedding is compute bound; more threads than cores are slower",
        minimum=0,
    ),
    Setting(
        "embed.timeout_s",
        10.0,
        "how long one embedding call may take",
        "a model server may load its model on the first call",
        minimum=0.1,
    ),
    Setting(
        "cache.max_mb",
        1000.0,
        "how much of the embedding cache is kept; what was used least recently goes first",
        "the vectors of 600,000 chunks: enough never to embed a text twice on one machine",
        minimum=0,
    ),
    Setting(
        "search.default_top",
        10,
        "how many results a search returns",
        "as AI tools expect of kb_search",
        minimum=1,
    ),
    Setting(
        "search.mode",
        "auto",
        "how results are found when the caller does not say",
        "auto weighs words and meaning by the query",
        choices=MODES,
    ),
    Setting(
        "search.strategies",
        "",
        "further strategies to ask, by the names under which installed packages bring them, separated by"
        " commas; each in the modes of its family",
        "empty means ours alone: to look for others takes longer than a search",
    ),
    Setting(
        "search.candidates",
        40,
        "how many chunks each strategy may propose, at least (3 × top if that is more)",
        "fusion needs the tails of both lists; more costs time and finds little",
        minimum=1,
    ),
    Setting(
        "search.ef_search",
        64,
        "effort of an approximate vector index: how many neighbours it keeps in view, up to 200;"
        " that of a SQLite store keeps so many for each 16,000 vectors",
        "recall@10 is above 0.95 with it and hardly grows beyond; up to 50,000 vectors SQLite compares each",
        minimum=1,
    ),
    Setting(
        "search.rrf_k",
        60,
        "the constant of reciprocal rank fusion",
        "Cormack et al. 2009; results change little between 20 and 100",
        minimum=1,
    ),
    Setting(
        "search.floor",
        0.001,
        "fused scores below this are dropped (never all of them)",
        "0.01 emptied answers that one strategy alone had found: rank 1 of one list is 0.0164 at most",
        minimum=0,
    ),
    Setting(
        "search.prune_share",
        0.2,
        "words in more than this share of all chunks do not take part in loose matching",
        "0.2 costs no quality and makes long questions 12 times faster at 100,000 chunks; 0.05 loses quality",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "search.deadline_ms",
        5000.0,
        "how long the strategies and the reranker may take together, and any one statement of a server",
        "a tool call should fail fast and let the client retry",
        minimum=1,
    ),
    Setting(
        "search.prefix_ms",
        100.0,
        "how long to look for words that begin like those of a query which found nothing",
        "the first step down must not double the time of a search",
        minimum=1,
    ),
    Setting(
        "search.partial_ms",
        50.0,
        "how long to look for words that are spelt like those of a query which found nothing",
        "the last step: a guess is worth less time than a find",
        minimum=1,
    ),
    Setting(
        "search.diversity",
        0.7,
        "relevance against diversity in the order of results: 1 is relevance alone",
        "the usual λ of maximal marginal relevance; near-duplicates lose their place, clear leads stay",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "search.retry_s",
        30.0,
        "how long searches answer from words alone after meaning has failed them three times in a row",
        "long enough not to hammer a server that is starting, short enough to notice that it is back",
        minimum=0,
    ),
    Setting("search.snippet_width", 240, "characters in a snippet", "two or three sentences", minimum=20),
    Setting(
        "rerank.provider",
        "none",
        "who takes a second look at what was found: none, cosine or cross_encoder",
        "vectors have voted already, so cosine gained nothing on three collections (120 queries each),"
        " and a cross-encoder needs a model of the user's own",
    ),
    Setting(
        "rerank.weight",
        0.5,
        "how much the second look counts: 0 leaves the order as it is, 1 leaves it to the reranker alone",
        "up to 0.5 cosine moved nDCG@10 by less than 0.01, at 1 it cost up to 0.06;"
        " `kb eval` tells what another model does",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "rerank.model",
        "",
        "the cross-encoder: a directory with model.onnx and tokenizer.json, or the name (ORG/MODEL) of one in"
        " the data directory's `models` or in Hugging Face's cache; it implies rerank.provider cross_encoder",
        "none comes with the program, and none is ever downloaded",
    ),
    Setting(
        "ingest.max_bytes",
        20_000_000,
        "larger files are skipped and counted",
        "text files above this are logs and dumps",
        minimum=1,
    ),
    Setting(
        "ingest.chunk_tokens",
        320,
        "how long a chunk should be, in tokens of the embedding model",
        "most paragraphs and functions stay whole and the title still fits into a window of 512",
        minimum=16,
    ),
    Setting(
        "ingest.chunk_overlap",
        32,
        "tokens repeated between neighbouring chunks of one section",
        "a sentence cut from its neighbour keeps some context",
        minimum=0,
    ),
    Setting(
        "sync.lock_wait_s",
        600.0,
        "how long a sync waits for another one of the same source",
        "the second one then finds nothing left to do",
        minimum=0,
    ),
    Setting(
        "sync.rescan_s",
        600.0,
        "how often `kb sync --watch` looks at everything anew, besides what it is notified of; 0 is never",
        "notices can be lost, a rescan loses nothing; of 50,000 files it takes two seconds",
        minimum=0,
    ),
    Setting(
        "usage.enabled",
        False,
        "count which documents are read, in the store, and let those lift results a little",
        "what is read is nobody's business unless you say so; a habit is no evidence of relevance",
    ),
    Setting(
        "mcp.roots",
        "",
        "folders that kb_add_source may index, separated as in PATH",
        "beside the folder in which the server was started: an agent must not choose what else is read",
    ),
    Setting(
        "serve.host",
        "127.0.0.1",
        "the address that `kb serve` listens on",
        "only this machine; any other address needs a token",
    ),
    Setting(
        "serve.port",
        8420,
        "the port that `kb serve` listens on; 0 is any free one",
        "seldom taken",
        minimum=0,
    ),
    Setting(
        "serve.hosts",
        "",
        "further names, separated by commas, under which `kb serve` is reached",
        "requests for any other name are refused: a web page could have sent them",
    ),
    Setting(
        "serve.tokens",
        "",
        "the file of tokens, one `ORGANISATION TOKEN` on a line, readable by its owner alone;"
        " one that is named must be there",
        "empty means `tokens` beside the configuration file; a file keeps secrets out of the environment",
    ),
    Setting(
        "serve.max_bytes",
        4_000_000,
        "the longest request that `kb serve` takes",
        "room for a long note in any script, not for filling the memory",
        minimum=1000,
    ),
    Setting(
        "serve.max_connections",
        100,
        "how many connections `kb serve` has at once; further ones are told to come back",
        "each agent holds one or two",
        minimum=1,
    ),
)
TABLE: Mapping[str, Setting] = {setting.key: setting for setting in SETTINGS}
_OURS = ("KB_HOME", "KB_TEST_", "KB_BENCH_")  # variables with our prefix that are not settings


class Resolved(Struct, frozen=True):
    """A setting's value and who set it."""

    value: Any
    origin: Origin


class Paths(Struct, frozen=True):
    """The three directories that belong to us, and one that does not.

    As text: pathlib is 5 ms, which a search need not pay.
    """

    data: str
    cache: str
    config: str
    hub: str = ""  # where Hugging Face's programs keep the models that they have downloaded

    @property
    def models(self) -> str:
        """Where a user may put models to be found by name."""
        return os.path.join(self.data, "models")

    @property
    def config_file(self) -> str:
        """The one configuration file that is obeyed."""
        return os.path.join(self.config, "config.toml")


class Settings(Mapping[str, Any]):
    """Every setting with its value; look one up by key."""

    def __init__(self, values: Mapping[str, Resolved], paths: Paths, warnings: tuple[str, ...] = ()) -> None:
        self._values = values
        self.paths = paths
        self.warnings = warnings  # sentences for a face to print

    def __getitem__(self, key: str) -> Any:
        """Return a setting's value."""
        return self._values[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def origin(self, key: str) -> Origin:
        """Return who set it."""
        return self._values[key].origin

    def replaced(self, **values: Any) -> Settings:
        """Return the same settings with some of them set anew, dots written as double underscores."""
        given = _layer({key.replace("__", "."): value for key, value in values.items()}, "flag")
        return Settings({**self._values, **given}, self.paths)

    @property
    def store_url(self) -> str:
        """`store.url`, or the SQLite store in the data directory."""
        return str(self["store.url"]) or f"sqlite:///{self.paths.data}"


def load_settings(
    overrides: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Resolve every setting: default < file < environment < overrides (None in an override is 'not said').

    Raises:
        UnknownSetting: a key in the file or in `overrides` does not exist.
        BadValue: a value does not fit its setting.
    """
    environment = os.environ if environment is None else environment
    paths = find_paths(environment)
    values = {setting.key: Resolved(setting.default, "default") for setting in SETTINGS}
    values |= _layer(read_file(paths.config_file), "file")
    named = {setting.environment_name: setting.key for setting in SETTINGS}
    values |= _layer(
        {key: environment[name] for name, key in named.items() if name in environment}, "environment"
    )
    values |= _layer({k: v for k, v in (overrides or {}).items() if v is not None}, "flag")
    values |= _implied(values)
    strangers = [
        name
        for name in environment
        if name.startswith("KB_") and name not in named and not name.startswith(_OURS)
    ]
    return Settings(values, paths, tuple(_stranger_warning(name, named) for name in sorted(strangers)))


def _implied(values: Mapping[str, Resolved]) -> dict[str, Resolved]:
    """Return what is meant by what was set: whoever names a cross-encoder wants it asked."""
    named, provider = values["rerank.model"], values["rerank.provider"]
    if not named.value or provider.origin != "default":
        return {}
    return {"rerank.provider": Resolved("cross_encoder", "implied")}


def find_paths(environment: Mapping[str, str]) -> Paths:
    """Return our directories: under KB_HOME when it is set, else where the platform wants them."""
    if home := environment.get("KB_HOME"):
        root = os.path.abspath(os.path.expanduser(home))
        return Paths(os.path.join(root, "data"), os.path.join(root, "cache"), root, _hub(environment))
    if _HAS_XDG:
        return Paths(
            _xdg(environment, "XDG_DATA_HOME", ".local/share"),
            _xdg(environment, "XDG_CACHE_HOME", ".cache"),
            _xdg(environment, "XDG_CONFIG_HOME", ".config"),
            _hub(environment),
        )
    import platformdirs  # late: it loads a dozen modules, a tenth of the time of a quick search

    return Paths(
        platformdirs.user_data_dir(APP),
        platformdirs.user_cache_dir(APP),
        platformdirs.user_config_dir(APP),
        _hub(environment),
    )


def _xdg(environment: Mapping[str, str], name: str, otherwise: str, part: str = APP) -> str:
    """Return our part of a base directory; the specification has relative ones ignored."""
    given = environment.get(name, "")
    base = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), otherwise)
    return os.path.join(base, part)


def _hub(environment: Mapping[str, str]) -> str:
    """Return where Hugging Face's own programs keep models, by the variables that those obey."""
    if given := environment.get("HF_HUB_CACHE"):
        return os.path.expanduser(given)
    home = environment.get("HF_HOME") or _xdg(environment, "XDG_CACHE_HOME", ".cache", "huggingface")
    return os.path.join(os.path.expanduser(home), "hub")


def read_file(path: str) -> dict[str, Any]:
    """Return the keys and values of a configuration file, dotted; nothing when there is no file."""
    try:
        with open(path, encoding="utf-8-sig") as file:  # some editors begin a file with a mark
            text = file.read()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="mend or remove the file") from fault
    import tomllib

    try:
        return dict(_flatten(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as fault:
        raise BadValue(f"{path} is not valid TOML: {fault}", hint="mend or remove the file") from fault


def find_setting(key: str) -> Setting:
    """Return the setting of a key.

    Raises:
        UnknownSetting: there is no such key.
    """
    if setting := TABLE.get(key):
        return setting
    hint = did_you_mean(key, TABLE, "`kb config` lists them all")
    raise UnknownSetting(f"there is no setting {key!r}", hint=hint)


def parse_value(key: str, raw: Any) -> Any:
    """Return a raw value as its setting's type.

    Raises:
        UnknownSetting: there is no such key.
        BadValue: the value does not fit.
    """
    setting = find_setting(key)
    value = _converted(setting, raw)
    if setting.choices and value not in setting.choices:
        raise BadValue(f"{key} cannot be {value!r}", hint="one of: " + ", ".join(setting.choices))
    if setting.minimum is not None and not value >= setting.minimum:
        raise BadValue(f"{key} cannot be {value}", hint=f"at least {setting.minimum:g}")
    if setting.maximum is not None and value > setting.maximum:
        raise BadValue(f"{key} cannot be {value}", hint=f"at most {setting.maximum:g}")
    return value


def _converted(setting: Setting, raw: Any) -> Any:
    kind = type(setting.default)
    try:
        if kind is bool:
            return _truth(raw)
        if isinstance(raw, (bool, list, dict)):
            raise ValueError
        return kind(raw)
    except (TypeError, ValueError, OverflowError) as fault:
        wanted = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
        raise BadValue(
            f"{setting.key} must be {wanted}, not {raw!r}", hint=f"{setting.doc}; default {setting.default}"
        ) from fault


def _truth(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    word = str(raw).lower()
    if word not in {"true", "1", "yes", "on", "false", "0", "no", "off"}:
        raise ValueError(word)
    return word in {"true", "1", "yes", "on"}


def _layer(raw: Mapping[str, Any], origin: Origin) -> dict[str, Resolved]:
    return {key: Resolved(parse_value(key, value), origin) for key, value in raw.items()}


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _stranger_warning(name: str, named: Mapping[str, str]) -> str:
    hint = did_you_mean(name, named, "see `kb config`")
    return f"the environment variable {name} is no setting of ours ({hint})"
