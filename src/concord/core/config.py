"""What is set, and who set it: one way to resolve settings. Only this module reads them from the environment.

A value comes from, weakest first: its default, `config.toml`, the environment (`search.default_top` is
`KB_SEARCH_DEFAULT_TOP`), what the caller passed (a flag). A configuration file is read from the user's own
configuration directory alone, never from a folder that is indexed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from concord.core.errors import Action, BadValue, Hint, UnknownSetting, did_you_mean, joined
from concord.core.settings import SETTINGS, TABLE, Setting

Origin = Literal["default", "file", "environment", "flag"]
APP = "concord"
_OF_A_CALL = ("org", "mcp.roots", "engine.start")
_TRUTHS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
_OURS = ("KB_HOME", "KB_TEST_", "KB_BENCH_")  # variables with our prefix that are not settings


class Resolved(Struct, frozen=True):
    """A setting's value and who set it."""

    value: Any
    origin: Origin


class Paths(Struct, frozen=True):
    """The directories that belong to us, as text: pathlib is 5 ms, which a search need not pay."""

    data: str
    cache: str
    config: str
    user_cache: str = ""  # a cache that all knowledge bases of a user share; empty: `cache` is it

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
    """Resolve every setting: default < file < environment < overrides (None in an override is 'not said')."""
    environment = os.environ if environment is None else environment
    paths = find_paths(environment)
    named = {setting.environment_name: setting.key for setting in SETTINGS}
    values = {setting.key: Resolved(setting.default, "default") for setting in SETTINGS}
    values |= _layer(read_file(paths.config_file), "file")
    set_there = {key: environment[name] for name, key in named.items() if name in environment}
    values |= _layer(set_there, "environment")
    values |= _layer({key: value for key, value in (overrides or {}).items() if value is not None}, "flag")
    ours = {*named, *(name for name in environment if name.startswith(_OURS))}
    strangers = sorted(name for name in environment if name.startswith("KB_") and name not in ours)
    return Settings(values, paths, tuple(_stranger_warning(name, named) for name in strangers))


def fingerprint(settings: Settings, environment: Mapping[str, str] | None = None) -> str:
    """Return what differs wherever the same call may be answered differently: by other settings or programs.

    Left out is what a caller says with each call. PostgreSQL's library reads variables of its own.
    """
    try:
        from _blake2 import blake2b  # hashlib loads OpenSSL, which takes longer than all the rest of this
    except ImportError:
        from hashlib import blake2b

    environment = os.environ if environment is None else environment
    values = {key: settings[key] for key in settings if key not in _OF_A_CALL}
    servers = {name: value for name, value in environment.items() if name.startswith("PG")}
    program = (sys.executable, os.path.dirname(__file__), time.tzname, os.path.expanduser("~"))
    parts = (sorted(values.items()), settings.paths, sorted(servers.items()), program)
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def find_paths(environment: Mapping[str, str]) -> Paths:
    """Return our directories: under KB_HOME when it is set, else XDG's."""
    if home := environment.get("KB_HOME"):
        root = os.path.abspath(os.path.expanduser(home))
        cache = _xdg(environment, "XDG_CACHE_HOME", ".cache")
        return Paths(os.path.join(root, "data"), os.path.join(root, "cache"), root, cache)
    return Paths(
        _xdg(environment, "XDG_DATA_HOME", ".local/share"),
        _xdg(environment, "XDG_CACHE_HOME", ".cache"),
        _xdg(environment, "XDG_CONFIG_HOME", ".config"),
    )


def _xdg(environment: Mapping[str, str], name: str, otherwise: str) -> str:
    """Return our part of a base directory; the specification has relative ones ignored."""
    given = environment.get(name, "")
    base = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), otherwise)
    return os.path.join(base, APP)


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


def write_setting(path: str, key: str, raw: str) -> None:
    """Write a setting to a configuration file; comments and other settings in it stay."""
    import tomlkit

    from concord.core.filesystem import replace_file

    value = parse_value(key, raw)
    read_file(path)  # raises if it is not as it must be
    text = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    table: Any = tomlkit.parse(text)
    document, (*tables, name) = table, key.split(".")
    for part in tables:
        table = table.setdefault(part, tomlkit.table())
    table[name] = value
    os.makedirs(os.path.dirname(path), exist_ok=True)
    replace_file(path, tomlkit.dumps(document).encode(), mode=0o600)


def find_setting(key: str) -> Setting:
    """Return the setting of a key."""
    if setting := TABLE.get(key):
        return setting
    hint = did_you_mean(key, TABLE, Hint(Action.CONFIG, "{config} lists them all"))
    raise UnknownSetting(f"there is no setting {key!r}", hint=hint)


def parse_value(key: str, raw: Any) -> Any:
    """Return a raw value as its setting's type."""
    setting = find_setting(key)
    kind = type(setting.default)
    try:
        if kind is not bool and isinstance(raw, (bool, list, dict)):
            raise ValueError
        value: Any = _TRUTHS[str(raw).lower()] if kind is bool else kind(raw)
    except (TypeError, ValueError, KeyError, OverflowError) as fault:
        wanted = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
        hint = f"{setting.doc}; default {setting.default}"
        raise BadValue(f"{key} must be {wanted}, not {raw!r}", hint=hint) from fault
    least, most = setting.minimum, setting.maximum
    if setting.choices and value not in setting.choices:
        raise BadValue(f"{key} cannot be {value!r}", hint="one of: " + ", ".join(setting.choices))
    if least is not None and not value >= least:
        raise BadValue(f"{key} cannot be {value}", hint=f"at least {least:g}")
    if most is not None and value > most:
        raise BadValue(f"{key} cannot be {value}", hint=f"at most {most:g}")
    return value


def _layer(raw: Mapping[str, Any], origin: Origin) -> dict[str, Resolved]:
    return {key: Resolved(parse_value(key, value), origin) for key, value in raw.items()}


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _stranger_warning(name: str, named: Mapping[str, str]) -> str:
    hint = did_you_mean(name, named, Hint(Action.CONFIG, "see {config}"))
    return joined("", f"the environment variable {name} is no setting of ours (", hint, ")")
